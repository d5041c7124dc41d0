"""``python -m nbta``: the same as the ``nbta`` command."""

import sys

from nbta.cli import main

if __name__ == "__main__":
    sys.exit(main())
