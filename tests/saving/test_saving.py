"""Files and pickles: what comes back is what went in, and damage is found."""

import copy
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile

import ml_dtypes
import numpy as np
import pytest
from many import each

import nbta
from nbta import saving
from nbta.runtime import python_calls
from nbta.runtime.store import FIELD

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
RECORD = np.dtype([("when", "M8[s]"), ("name", "U3"), ("xy", "f4", (2,))], align=True)
NUMBERS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    BFLOAT16, "float32", "float64", "complex64", "complex128",
)  # fmt: skip
OTHERS = ("S5", "U4", "M8[ns]", "m8[D]", RECORD, "V6")


def sample(dtype, shape, seed=0):
    """Values whose every byte matters; raw bits would include invalid bools and strings."""
    dtype = np.dtype(dtype)
    numbers = np.random.default_rng(seed).integers(0, 100, shape)
    if dtype == RECORD:
        value = np.zeros(shape, RECORD)
        value["when"], value["name"] = numbers.astype("M8[s]"), numbers.astype("U3")
        value["xy"] = numbers[..., None]
        return value
    return (
        numbers.astype("S6").view("V6")
        if dtype.kind == "V" and dtype != BFLOAT16
        else (numbers.astype(dtype))
    )


@pytest.fixture(params=["file", "pickle", "deepcopy"])
def roundtrip(request, tmp_path):
    def through_file(array):
        saving.save(tmp_path / "array.npz", array)
        return saving.load(tmp_path / "array.npz")

    def through_pickle(array):
        return pickle.loads(pickle.dumps(array))

    return {"file": through_file, "pickle": through_pickle, "deepcopy": copy.deepcopy}[
        request.param
    ]


def states(array):
    return array._states().tolist()


FLAGS = ("dynamic_size", "clear_after_read", "infer_shape", "is_gradient", "element_shape", "dtype")


def assert_alike(new, old):
    assert states(new) == states(old)
    for flag in FLAGS:
        assert getattr(new, flag) == getattr(old, flag), flag
    assert new._fields[FIELD.marked] == old._fields[FIELD.marked]


def assert_same_outcome(new, old, operation):
    """Both give equal values, or both fail for the same reason."""
    outcomes = []
    for array in (new, old):
        try:
            outcomes.append(operation(array))
        except nbta.NbtaError as error:
            outcomes.append((type(error), error.reason))
    assert type(outcomes[0]) is type(outcomes[1])
    if isinstance(outcomes[0], tuple):
        assert outcomes[0] == outcomes[1]
    elif not isinstance(outcomes[0], nbta.TensorArray):
        assert np.asarray(outcomes[0]).tobytes() == np.asarray(outcomes[1]).tobytes()


@pytest.mark.smoke_every(12)
@pytest.mark.parametrize("dtype", [*NUMBERS, *OTHERS], ids=str)
def test_uniform_values_of_every_dtype(dtype, roundtrip):
    value = sample(dtype, (3, 2))
    old = nbta.TensorArray(dtype, 3, clear_after_read=True, tensor_array_name="kept").unstack(value)
    new = roundtrip(old)
    assert_alike(new, old)
    assert new.dtype == np.dtype(dtype)
    assert new.handle.name.startswith("kept_")
    assert new.handle != old.handle
    assert new.stack().tobytes() == value.tobytes()
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        new.read(0)
    assert caught.value.reason == "cleared"


@pytest.mark.parametrize("dtype", [*NUMBERS, *OTHERS], ids=str)
def test_ragged_values_of_every_dtype(dtype, roundtrip):
    old = nbta.TensorArray(dtype, size=5, infer_shape=False, dynamic_size=True)
    values = {0: sample(dtype, (2, 3)), 1: sample(dtype, ()), 3: sample(dtype, (0, 4))}
    for slot, value in values.items():
        old.write(slot, value)
    new = roundtrip(old)
    assert_alike(new, old)
    for slot, value in values.items():
        got = np.asarray(new.read(slot), new.dtype)
        assert got.shape == value.shape
        assert got.tobytes() == value.tobytes()
    assert_same_outcome(new, old, lambda array: array.read(2))
    assert_same_outcome(new, old, lambda array: array.append(values[0]).size())


OPERATIONS = {
    "read0": lambda a: a.read(0),
    "read1": lambda a: a.read(1),
    "read2": lambda a: a.read(2),
    "read9": lambda a: a.read(9),
    "write0": lambda a: a.write(0, np.zeros(2)),
    "write1": lambda a: a.write(1, np.zeros(2)),
    "write2": lambda a: a.write(2, np.zeros(2)),
    "write3": lambda a: a.write(3, np.zeros(3)),
    "write9": lambda a: a.write(9, np.zeros(2)),
    "stack": lambda a: a.stack(),
    "grad": lambda a: a.grad("later").read(0),
}


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("infers", [True, False])
@pytest.mark.parametrize("shape", [None, (2,), (None,)], ids=str)
def test_every_operation_ends_as_before(clears, infers, shape, roundtrip):
    each(OPERATIONS, lambda operation: check_end(operation, clears, infers, shape, roundtrip))


def check_end(operation, clears, infers, shape, roundtrip):
    old = nbta.TensorArray(
        "float64", size=4, clear_after_read=clears, infer_shape=infers, element_shape=shape
    )
    old.write(0, np.array([1.0, 2.0])).write(1, np.array([3.0, 4.0]))
    old.read(0)
    new = roundtrip(old)
    assert_alike(new, old)
    assert_same_outcome(new, old, OPERATIONS[operation])
    assert_alike(new, old)


@pytest.mark.parametrize("shape", [None, (), (3, None), (0,)], ids=str)
@pytest.mark.parametrize("size", [0, 3])
def test_arrays_that_hold_nothing(shape, size, roundtrip):
    old = nbta.TensorArray("int32", size=size, element_shape=shape, dynamic_size=True)
    new = roundtrip(old)
    assert_alike(new, old)
    assert_same_outcome(new, old, lambda array: array.stack())


def test_saving_is_no_read(tmp_path):
    array = nbta.TensorArray("float64", size=2).unstack([1.0, 2.0])
    saving.save(tmp_path / "a", array)
    assert states(array) == [1, 1]
    np.testing.assert_array_equal(array.stack(), [1.0, 2.0])


def test_a_merged_element_shape_stays(roundtrip):
    old = nbta.TensorArray("float64", size=3, infer_shape=False).write(0, [1.0, 2.0])
    old.gather([0], element_shape=(2,))
    new = roundtrip(old)
    assert_alike(new, old)
    assert_same_outcome(new, old, lambda array: array.read(2))
    assert_same_outcome(new, old, lambda array: array.write(1, [1.0, 2.0, 3.0]))


def test_what_a_split_marked(roundtrip):
    old = nbta.TensorArray("float64", size=2, infer_shape=False).split(
        [1.0, 2.0, 3.0], lengths=[1, 2]
    )
    gradient = roundtrip(old).grad("gradients")
    gradient.split([4.0, 5.0, 6.0], lengths=[1, 2])
    np.testing.assert_array_equal(gradient.concat().value, [4.0, 5.0, 6.0])


# Gradient arrays.


def test_gradient_arrays_nest(roundtrip):
    old = nbta.TensorArray("float64", size=3, element_shape=(2,), dynamic_size=True)
    old.write(0, [1.0, 2.0]).write(4, [3.0, 4.0])
    first = old.grad("gradients").write(0, [0.5, 0.25])
    first.grad("gradients_1", clear_after_read=False).write(1, [7.0, 8.0])
    source = "scope/\N{GREEK SMALL LETTER GAMMA}"
    old.grad(source).write(4, [9.0, 9.0])
    new = roundtrip(old)
    assert_alike(new, old)
    again = new.grad("gradients")
    assert again.handle.name == f"{new.handle.name}@gradients"
    assert_alike(again, first)
    np.testing.assert_array_equal(again.write(0, [1.0, 1.0]).read(0), [1.5, 1.25])
    np.testing.assert_array_equal(again.read(4), [0.0, 0.0])
    second = again.grad("gradients_1")
    assert not second.clear_after_read
    np.testing.assert_array_equal(second.read(1), [7.0, 8.0])
    np.testing.assert_array_equal(new.grad(source).read(4), [9.0, 9.0])
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        new.write(5, [1.0, 1.0])
    assert caught.value.reason == "write_out_of_range"


@pytest.mark.parametrize(("dtype", "step"), [("float16", 2**-12), (BFLOAT16, 2**-9)], ids=str)
@pytest.mark.parametrize("infers", [True, False])
def test_half_precision_keeps_its_exact_sums(dtype, step, infers, roundtrip):
    dtype = np.dtype(dtype)
    one, step = dtype.type(1), dtype.type(step)
    assert one + step == one  # but three steps count, if no sum on the way was rounded
    old = nbta.TensorArray(dtype, size=2, infer_shape=infers).write(0, one)
    old.grad("gradients").write(0, one).write(0, step)
    new = roundtrip(old).grad("gradients").write(0, step).write(0, step)
    assert new.read(0) == one + dtype.type(4) * step


@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d != "bool"], ids=str)
def test_gradient_arrays_of_every_dtype_accumulate_on(dtype, roundtrip):
    value = sample(dtype, (2,))
    old = nbta.TensorArray(dtype, size=2).write(0, value)
    old.grad("gradients").write(0, value)
    new = roundtrip(old).grad("gradients").write(0, value)
    np.testing.assert_array_equal(new.read(0), value + value)


def test_a_ragged_gradient_keeps_shapes_of_cleared_slots(roundtrip):
    old = nbta.TensorArray("float64", size=3, infer_shape=False)
    old.write(0, [[1.0, 2.0]]).write(1, 3.0).read(0)
    before = old.grad("before").write(1, 2.0)
    before.read(0)
    new = roundtrip(old)
    assert_alike(new.grad("before"), before)
    assert_same_outcome(new, old, lambda array: array.grad("before").read(0))
    assert_same_outcome(new, old, lambda array: array.grad("before").read(1))
    after = new.grad("after")
    np.testing.assert_array_equal(after.read(0), [[0.0, 0.0]])
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        new.grad("another").write(0, [1.0])
    assert caught.value.reason == "aggregate_shape"


def test_a_gradient_array_by_itself(roundtrip):
    old = nbta.TensorArray("float64", size=2, element_shape=(2,), tensor_array_name="loss")
    gradient = old.write(0, [1.0, 2.0]).grad_with_shape("gradients", [3]).write(0, np.ones((3, 2)))
    old.close()
    new = roundtrip(gradient)
    assert_alike(new, gradient)
    assert new.element_shape == (3, 2)
    assert new.handle.container == "_tensor_array_grads"
    assert new.handle.name.split("@")[1] == "gradients"
    np.testing.assert_array_equal(new.write(0, np.ones((3, 2))).read(0), np.full((3, 2), 2.0))


def test_a_gradient_array_that_grew_and_one_that_is_closed(roundtrip):
    old = nbta.TensorArray("float64", size=1, element_shape=())
    old.grad("grew").read(3)
    old.grad("closed").close()
    new = roundtrip(old)
    assert len(new) == 1
    assert len(new.grad("grew")) == 4
    assert new.grad("closed").closed


def test_a_closed_array_is_not_saved(tmp_path):
    array = nbta.TensorArray("float64", size=1)
    array.close()
    with pytest.raises(nbta.InvalidArgumentError, match="closed") as caught:
        saving.save(tmp_path / "array.npz", array)
    assert caught.value.reason == "closed"
    assert os.listdir(tmp_path) == []


def test_only_arrays_are_packed():
    with pytest.raises(nbta.InvalidArgumentError, match="ndarray is not a TensorArray"):
        saving.pack(np.zeros(3))


def test_dtypes_that_no_file_can_name(tmp_path):
    array = nbta.TensorArray([("half", BFLOAT16)], size=1)
    with pytest.raises(nbta.InvalidArgumentError, match="no file can name"):
        saving.save(tmp_path / "array.npz", array)


# Files.


def test_numpy_opens_the_file(file):
    with np.load(file, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["elements_0"], [[1.0, 2.0], [3.0, 4.0]])
        np.testing.assert_array_equal(archive["states_0"], [1, 1, 0])
        np.testing.assert_array_equal(archive["elements_1"], [[5.0, 6.0]])
        assert json.loads(str(archive["meta"]))["format"] == 1


def test_equal_arrays_give_equal_files(file, tmp_path):
    saving.save(tmp_path / "again.npz", saving.load(file))
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()


def test_arguments_that_changed_places(tmp_path):
    with pytest.raises(nbta.InvalidArgumentError, match=r"save: file must be a path.*not a dict"):
        nbta.save({"a": 1}, tmp_path / "a.npz")
    with pytest.raises(nbta.InvalidArgumentError, match=r"load: file must be a path.*not a float"):
        nbta.load(0.5)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        saving.load(tmp_path / "none.npz")


def assert_refused(path, word):
    with pytest.raises(nbta.InvalidArgumentError, match=word) as caught:
        saving.load(path)
    assert str(path) in str(caught.value)
    assert caught.value.reason == "file"


def test_truncated_files(file):
    whole = file.read_bytes()
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        assert_refused(file, "empty|no file from|cut short")


def test_flipped_bits(file):
    whole = file.read_bytes()
    for place in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        assert_refused(file, "no file from|damaged")


def test_more_after_the_end(file):
    file.write_bytes(file.read_bytes() + b"\0")
    assert_refused(file, "cut short")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("bomb-went-off",)


def test_files_with_pickles_run_nothing(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file.write_bytes(pickle.dumps(Bomb()))
    assert_refused(file, "no file from")
    np.savez(file, meta=np.array([Bomb()], dtype=object))
    assert_refused(file, "not from nbta.save")
    sign(file)
    assert_refused(file, "allow_pickle")
    assert not (tmp_path / "bomb-went-off").exists()


def test_foreign_files(file):
    np.savez(file, x=np.zeros(3))
    assert_refused(file, "not from nbta.save")
    file.write_bytes(b"date,co2\n19580329,316.1\n")
    assert_refused(file, "no file from")


def sign(path):
    """Give a made-up archive the digest that a saved one has."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = bytes(len(saving._comment(io.BytesIO(), 0)))
    with open(path, "r+b") as stream:
        end = stream.seek(0, 2) - len(archive.comment)
        comment = saving._comment(stream, end)
        stream.seek(end)
        stream.write(comment)


def forge(path, **changes):
    """Change members of a file, or facts of its first array, and sign it."""
    with np.load(path) as archive:
        members = dict(archive)
    meta = json.loads(str(members["meta"]))
    for key, value in changes.items():
        if key in members:
            members[key] = value
        else:
            (meta if key in meta else meta["arrays"][0])[key] = value
    members["meta"] = np.array(json.dumps(meta))
    np.savez(path, **members)
    sign(path)


def test_forging_alone_changes_nothing(file):
    forge(file)
    np.testing.assert_array_equal(saving.load(file).gather([0, 1]), [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"format": 4}, "format 4"),
        ({"arrays": []}, "no arrays"),
        ({"name": 3}, "no name"),
        ({"size": 4}, "states"),
        ({"size": -1}, "states"),
        ({"size": True}, "size"),
        ({"states_0": np.array([1, 1, 64], np.uint8)}, "state bits"),
        ({"states_0": np.array([1, 1, 1], np.uint8)}, "shape of elements"),
        ({"states_0": np.array([1, 1, 0], np.int8)}, "states"),
        ({"elements_0": np.zeros((2, 3))}, "shape of elements"),
        ({"elements_0": np.zeros((2, 2), np.float32)}, "dtype of elements"),
        ({"element_shape": [-2]}, "element_shape"),
        ({"element_shape": None}, "shape"),
        ({"element_shape": [None]}, "shape"),
        ({"element_shape": "x"}, "element shape"),
        ({"marked": 4}, "marked"),
        ({"parent": 0}, "parent"),
        ({"ragged": True}, "shapes"),
        ({"dtype": "os.system"}, "dtype"),
        ({"dtype_0": np.zeros(0, "S3")}, "dtype of elements"),
        ({"meta": np.array("{")}, "."),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_signed_files_with_wrong_contents(file, changes, word):
    if "meta" in changes:
        np.savez(file, **changes)
        sign(file)
        word = "no JSON"
    else:
        forge(file, **changes)
    assert_refused(file, word)


def test_signed_ragged_files_with_wrong_contents(file):
    array = nbta.TensorArray("int16", size=2, infer_shape=False).write(0, [1, 2]).write(1, 3)
    for changes, word in (
        ({"shapes_0": np.full((2, 9), 9)}, "ranks"),
        ({"shapes_0": np.full((2, 9), -1)}, "ranks"),
        ({"shapes_0": np.array([[1, -5] + [-1] * 7] * 2)}, "dimensions"),
        ({"shapes_0": np.array([[1, 9] + [-1] * 7] * 2)}, "too early"),
        ({"elements_0": np.zeros(5, np.uint8)}, "too early"),
        ({"elements_0": np.zeros(7, np.uint8)}, "more elements"),
    ):
        saving.save(file, array)
        forge(file, **changes)
        assert_refused(file, word)


# Crashes.


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failure_leaves_the_old_file(file, function, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    whole = file.read_bytes()
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="No space"):
        saving.save(file, nbta.TensorArray("int8", size=1))
    monkeypatch.undo()
    assert file.read_bytes() == whole
    assert os.listdir(file.parent) == [file.name]


def test_data_and_name_reach_the_disk_in_order(file, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, n=name, f=original: (calls.append(n), f(*args))[1]
        )
    saving.save(file, nbta.TensorArray("int8", size=1))
    assert calls == ["fsync", "replace", "fsync"]


def test_links_and_permissions_stay(file):
    file.chmod(0o640)
    link = file.parent / "link.npz"
    link.symlink_to(file)
    saving.save(link, nbta.TensorArray("int8", size=7))
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert len(saving.load(file)) == 7


WRITER = """
import sys
import numpy as np
import nbta
from nbta import saving
from nbta.runtime import python_calls
arrays = [
    nbta.TensorArray("int64", size=1).write(0, np.full(200_000, k)) for k in range(2)
]
for array in arrays:
    saving.save(sys.argv[1], array)
print("ready", flush=True)
while True:
    for array in arrays:
        saving.save(sys.argv[1], array)
"""


@pytest.mark.slow
def test_killed_while_saving(tmp_path):
    path = tmp_path / "array.npz"
    for delay in (0.003, 0.008, 0.015):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        with writer:
            assert writer.stdout.readline() == "ready\n"
            time.sleep(delay)
            writer.send_signal(signal.SIGKILL)
        value = saving.load(path).read(0)
        assert value.shape == (200_000,)
        assert value[0] in (0, 1)
        assert (value == value[0]).all()


def frames_of(array):
    """The parts of a pickle that are not copied into it."""
    buffers = []
    body = pickle.dumps(array, protocol=5, buffer_callback=buffers.append)
    return body, [np.frombuffer(buffer, np.uint8) for buffer in buffers]


def test_pickles_of_earlier_versions_are_read(tmp_path):
    array = nbta.TensorArray("float64", size=2).write(1, 0.5)
    body = pickle.dumps(array, protocol=0)  # as text, in which the module can be replaced
    assert body.count(b"cnbta.packing\nunpack\n") == 1
    file = tmp_path / "array.pickle"
    file.write_bytes(body.replace(b"cnbta.packing\n", b"cnbta.unpacking\n"))
    program = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).gather([1])[0])"
    shown = subprocess.run(
        [sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "0.5\n"


def test_pickles_hand_out_the_memory_of_elements():
    old = nbta.TensorArray("float64", size=3, dynamic_size=True).unstack(sample("float64", (3, 2)))
    old.grad("gradients").write(0, np.ones(2)).write(1, np.full(2, 3.0))
    body, frames = frames_of(old)
    for array, written in [(old, 3), (old.grad("gradients"), 2)]:
        held = python_calls.native(python_calls.data_bytes)(array._address)
        (frame,) = [frame for frame in frames if np.shares_memory(frame, held)]
        assert frame.nbytes == written * 16
        assert not frame.flags.writeable
    new = pickle.loads(body, buffers=frames)
    assert_alike(new, old)
    for array in (new, new.grad("gradients")):
        held = python_calls.native(python_calls.data_bytes)(array._address)
        assert not any(np.shares_memory(held, frame) for frame in frames)
    assert new.stack().tobytes() == old.stack().tobytes()
    assert new.grad("gradients").stack().tolist() == [[1, 1], [3, 3], [0, 0]]


def test_what_a_pickle_hands_out_outlives_growth_and_the_array():
    value = sample("int64", (4, 3))
    old = nbta.TensorArray("int64", size=4, dynamic_size=True, clear_after_read=False)
    body, frames = frames_of(old.unstack(value))
    for slot in range(4, 100):
        old.append(np.full(3, slot))
    old.close()
    del old
    np.testing.assert_array_equal(pickle.loads(body, buffers=frames).stack(), value)


@pytest.mark.parametrize("offset", range(1, 16, 3))
def test_pickles_are_read_from_any_address(offset):
    old = nbta.TensorArray("complex128", size=3).unstack(sample("complex128", (3, 2)))
    body, frames = frames_of(old)
    moved = []
    for frame in frames:
        place = np.zeros(frame.nbytes + offset, np.uint8)[offset:]
        place[:] = frame
        moved.append(place)
    new = pickle.loads(body, buffers=moved)
    assert new.stack().tobytes() == old.stack().tobytes()


def test_slots_with_gaps_are_joined():
    old = nbta.TensorArray("float64", size=5).write(1, 1.0).write(3, 3.0)
    body, frames = frames_of(old)
    held = python_calls.native(python_calls.data_bytes)(old._address)
    assert not any(np.shares_memory(held, frame) for frame in frames)
    assert pickle.loads(body, buffers=frames).stack().tolist() == [0, 1, 0, 3, 0]
