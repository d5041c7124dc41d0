"""Every recorded TensorFlow program gives the same values, or fails at the same step."""

import pytest
from golden import CORNERS, RawReplay, Replay, check_result, programs
from many import chunks, each

import nbta

PROGRAMS = programs("raw")


def test_there_are_as_many_programs_as_were_recorded():
    assert len(PROGRAMS) == 600


@pytest.mark.smoke
@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("way", [Replay, RawReplay])
@pytest.mark.parametrize("some", chunks(PROGRAMS))
def test_replay(some, way):
    each(some, lambda program: check_replay(program, way()))


def check_replay(program, replay):
    for step, expected in zip(program["steps"], program["expect"], strict=True):
        if "error" in expected:
            check_failure(replay, step, expected["error"])
        else:
            check_result(replay.step(step), expected)


#: What TensorFlow says where there are no slots, rows or elements, in all combinations of a few
#: shapes: programs by what they try, and by the element shape of the array.


def test_there_are_as_many_corners_as_were_recorded():
    assert len(CORNERS) == 4 * 7
    assert sum(map(len, CORNERS.values())) == 2331


@pytest.mark.smoke
@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners(corner):
    each(CORNERS[corner], lambda program: check_replay(program, RawReplay()))


def check_failure(replay, step, expected):
    """The same code and the same rule; only gradients of gradients go further than TensorFlow."""
    if expected["reason"] == "gradient_of_gradient":
        replay.step(step)
        handle = replay.arrays[step["array"]].handle
        assert handle.name.endswith(f"@{step['source']}")
        assert handle.name.count("@") == 2
        return
    with pytest.raises(nbta.NbtaError) as caught:
        replay.step(step)
    assert caught.value.code == expected["code"]
    assert caught.value.reason == expected["reason"]
