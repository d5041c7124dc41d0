"""The pages on other libraries, docs/coming_from: their blocks of code, and what these print.

Building the pages runs nbta's cells, and `test_coming_from.py` holds what they print against what
is written beside them. The other library's blocks are run by hand, where it is installed, from the
root of the repository:

    python tests/support/peer_pages.py docs/coming_from/jax.md

This file imports nothing of nbta, so that it runs where only the other library is installed.
"""

import contextlib
import io
import re
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

PAIR = re.compile(r'<div class="pair [^"]*">\n(.*?)\n</div>', re.DOTALL)
BLOCK = re.compile(r"^```(python|\{code-cell\} python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"^ *print\(.*\n((?: *# .*\n)+)", re.MULTILINE)


class Block(NamedTuple):
    """A block of code; ``printed`` is what its comments after calls of print say."""

    ours: bool
    code: str
    line: int

    @property
    def printed(self):
        """What it is to print, by its comments."""
        found = "".join(PRINTED.findall(self.code))
        return re.sub(r"^ *# ", "", found, flags=re.MULTILINE)


def blocks(page: str):
    """All blocks of a page."""
    return [
        Block(kind != "python", code, page.count("\n", 0, match.start()) + 2)
        for match in BLOCK.finditer(page)
        for kind, code in [match.groups()]
    ]


def pairs(page: str):
    """Blocks that do the same work side by side: the other library's, and ours."""
    for match in PAIR.finditer(page):
        theirs, ours = blocks(match.group(1))
        line = page.count("\n", 0, match.start(1))
        yield theirs._replace(line=theirs.line + line), ours._replace(line=ours.line + line)


def run(found, path):
    """What each block prints, one after another in one namespace."""
    namespace = {"__name__": "page"}
    for block in found:
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.code, path, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        yield block, printed.getvalue()


def main(paths):
    """Run the other library's blocks; how many do not print what is written."""
    wrong = 0
    for path in paths:
        theirs = [block for block in blocks(Path(path).read_text()) if not block.ours]
        try:
            for block, printed in run(theirs, path):
                if printed != block.printed:
                    wrong += 1
                    print(f"{path}:{block.line}: prints\n{printed}and says\n{block.printed}")
        except Exception:
            wrong += 1
            traceback.print_exc()
        print(f"{path}: {len(theirs)} blocks, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
