"""Which tests are quick: `slow_marks`."""

from pathlib import Path
from types import SimpleNamespace

import slow_marks


def item(name, **params):
    marks = []
    return SimpleNamespace(
        nodeid=f"tests/test_some.py::test_one[{name}]",
        path=Path("tests/test_some.py"),
        originalname="test_one",
        callspec=SimpleNamespace(params=params),
        marks=marks,
        add_marker=marks.append,
        get_closest_marker=lambda mark: None,
    )


def test_each_case_is_quick_by_one_executor():
    cases = [(f, further) for f in range(20) for further in (False, True)]
    items = {
        (case, compiled): item(
            f"{case[0]}-{case[1]}-{compiled}", f=case[0], further=case[1], compiled=compiled
        )
        for case in cases
        for compiled in (False, True)
    }
    slow_marks._mark(items.values())
    quick = [compiled for case in cases for compiled in (False, True)
             if not items[case, compiled].marks]  # fmt: skip
    assert len(quick) == len(cases)
    assert 5 < sum(quick) < 35


def test_others_stay_as_they_are():
    items = [item("a", f=1), item("b-True", compiled=True), item("c-native", compiled="native")]
    slow_marks._mark(items)
    assert not any(each.marks for each in items)
