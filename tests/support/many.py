"""Many small cases in a few items: for cases of a millisecond an item of pytest's costs more."""

import pytest


def chunks(cases, size=25):
    """Lists of neighbouring cases, for ``parametrize``."""
    cases = list(cases)
    return [
        pytest.param(cases[k : k + size], id=f"{k}-{min(k + size, len(cases)) - 1}")
        for k in range(0, len(cases), size)
    ]


def each(cases, check):
    """Check cases one after another, and say which one fails."""
    for case in cases:
        try:
            check(case)
        except BaseException as error:
            error.add_note(f"in the case {case!r}")
            raise
