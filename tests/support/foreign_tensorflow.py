"""Run a test file of TensorFlow's, unchanged, on nbta: see CONTRIBUTING.md."""

import argparse
import sys
from collections import Counter

from foreign.differences import DIFFERENCES
from foreign.running import FAILED, PASSED, outcomes

DIFFERS = "differs"


def judged(found):
    """An outcome; a failure that docs/tensorflow.md explains differs, and has to."""
    place = found.method, "eager" if found.mode == "eager" else "graph"
    if place not in DIFFERENCES:
        return found
    piece, row = DIFFERENCES[place]
    if found.state == PASSED:
        return found._replace(state=FAILED, why=f"passes: take it out of the table ({row})")
    if piece not in found.why:
        return found._replace(why=f"not as the table says ({row}): {found.why}")
    return found._replace(state=DIFFERS, why=f"{row}: {found.why}")


def main(arguments=None):
    """Print what becomes of each method and mode; 1 where one fails, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="such as tensor_array_ops_test.py")
    parser.add_argument("--compiled", action="store_true", help="run graphs as compiled functions")
    parser.add_argument("-k", default="", help="only methods with this in their names")
    parser.add_argument("-v", action="store_true", help="show where what fails fails")
    options = parser.parse_args(arguments)
    counts = Counter()
    for found in map(judged, outcomes(options.file, options.compiled, options.k)):
        counts[found.state] += 1
        why = found.why if options.v else found.why[:90]
        print(f"{found.method:74} {found.mode:8} {found.state:12} {why}", flush=True)
        if options.v and found.state == FAILED:
            print(found.trace)
    in_scope = sum(counts.values()) - counts["out of scope"]
    print(f"{counts[PASSED]} of {in_scope} pairs in scope pass;", dict(counts))
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
