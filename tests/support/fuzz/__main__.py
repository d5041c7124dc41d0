"""The command: random programs for some time, and what is left of those that fail."""

import argparse
import sys
import time
import traceback
import warnings

from . import families


def main(arguments=None):
    """Run programs; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--family", choices=sorted(families.FAMILIES), default="loop")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, default=None, help="at most so many")
    parser.add_argument(
        "--machine-code", type=int, default=8, metavar="N",
        help="compile one program in N, others run in Python as their generated source; 0: none",
    )  # fmt: skip
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = run(given.family, given.seconds, given.seed, given.programs, given.machine_code)
    return int(bool(found))


def said(line):
    """Print at once, for who watches a long run."""
    print(line, flush=True)


def run(family, seconds, seed=0, programs=None, machine_code=8, report=said):
    """Check programs of a family one after another; those that failed, cut down."""
    end, findings, counts = time.monotonic() + seconds, [], {"programs": 0, "operations": 0}
    chosen = families.FAMILIES[family]
    first = seed
    while time.monotonic() < end and (programs is None or seed < first + programs):
        program = chosen.make(seed)
        compile_it = machine_code and seed % machine_code == 0
        counts["programs"] += 1
        counts["operations"] += program.operations()
        error = families.failure(chosen, program, compile_it, counts)
        if error is not None:
            small = families.cut_down(chosen, program, compile_it, error)
            findings.append(small)
            error = families.failure(chosen, small, compile_it) or error
            report(_described(family, seed, compile_it, error, small))
        seed += 1
    report(f"{family}, seeds {first} to {seed - 1}: " + _line(counts))
    return findings


def _line(counts):
    return ", ".join(f"{name}: {number}" for name, number in counts.items())


def _described(family, seed, compile_it, error, program):
    again = f"python -m fuzz --family {family} --seed {seed} --programs 1"
    again += f" --machine-code {int(compile_it)}"
    cause = "".join(traceback.format_exception(error)[-6:])
    return f"# {again}\n\n{program!r}\n\n{cause}\n{'-' * 80}"


if __name__ == "__main__":
    sys.exit(main())
