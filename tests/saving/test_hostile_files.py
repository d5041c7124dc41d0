"""Saving that is cut off anywhere, and files that were made up to do harm."""

import contextlib
import io
import json
import os
import random
import signal
import sys
import time
import tracemalloc
import zipfile
from itertools import count

import numpy as np
import pytest
from test_saving import assert_refused, forge, sign

import nbta
from nbta import saving

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


@pytest.fixture
def ragged(tmp_path):
    path = tmp_path / "ragged.npz"
    array = nbta.TensorArray("int16", size=3, infer_shape=False, clear_after_read=True)
    array.write(0, [1, 2]).write(1, 3).write(2, [[4]]).read(2)
    saving.save(path, array)
    return path


# Killed.

#: Functions that change what is on the disk.
TOUCHING = {"open", "write", "flush", "fsync", "close", "replace", "chmod", "__exit__"}


def killed_at(number, path, array):
    """Save in a forked process that is killed at its so-manieth call; whether it came so far."""
    child = os.fork()
    if child == 0:
        left = number

        def watch(frame, event, function):
            nonlocal left
            if event in ("c_call", "c_return") and function.__name__ in TOUCHING:
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        try:
            sys.setprofile(watch)
            saving.save(path, array)
            sys.setprofile(None)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] != 0


@pytest.mark.slow
def test_killed_before_and_after_every_call(tmp_path):
    path = tmp_path / "array.npz"
    old, new = (nbta.TensorArray("int64", size=1).write(0, np.full(5000, k)) for k in range(2))
    saving.save(path, old)
    whole, seen = path.read_bytes(), set()
    for number in count():
        was_killed = killed_at(number, path, new)
        value = saving.load(path).read(0)
        assert value.shape == (5000,)
        assert (value == value[0]).all()
        seen.add((was_killed, int(value[0])))
        if not was_killed:
            break
        path.write_bytes(whole)
    assert number > 40
    assert seen == {(True, 0), (True, 1), (False, 1)}


def test_what_a_killed_process_left_goes_an_hour_later(tmp_path):
    path = tmp_path / "array.npz"
    array = nbta.TensorArray("int8", size=1)
    saving.save(path, array)  # else each child would compile what saving calls, up to its end
    path.unlink()
    number = next(n for n in count(8) if killed_at(n, path, array) and len(os.listdir(tmp_path)))
    (left,) = os.listdir(tmp_path)
    assert number >= 8
    assert left.startswith("array.npz.")
    others = ["array.npz.tmp", "array.npz.0123456789ab.tmp.npz", "other.npz.0123456789ab.tmp"]
    for name in others:
        (tmp_path / name).write_text("mine")
        os.utime(tmp_path / name, (0, 0))
    saving.save(path, array)
    assert set(os.listdir(tmp_path)) == {"array.npz", left, *others}  # it may be at work yet
    old = time.time() - saving.LEFT_OVER - 1
    os.utime(tmp_path / left, (old, old))
    saving.save(path, array)
    assert set(os.listdir(tmp_path)) == {"array.npz", *others}


# Damaged.


@pytest.mark.slow
def test_every_length_and_a_bit_of_every_byte(tmp_path):
    path = tmp_path / "array.npz"
    saving.save(path, nbta.TensorArray("int8", size=1).write(0, 1))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert_refused(path, "empty|no file from|cut short")
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert_refused(path, "no file from|damaged")


# Made up, with the right digest.


def rewritten(path, change, compression=zipfile.ZIP_STORED):
    """The archive again, from members that were changed, signed."""
    with zipfile.ZipFile(path) as archive:
        members = [[entry.filename, archive.read(entry)] for entry in archive.infolist()]
    members = change(members) or members
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    sign(path)


def npy_of(shape, dtype="'|u1'"):
    """A member that announces more than it has."""
    stream = io.BytesIO()
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    stream.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
    return stream.getvalue()


def bounded(path, word, error=nbta.InvalidArgumentError):
    """It is refused, and took little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=word):
            saving.load(path)
        assert tracemalloc.get_traced_memory()[1] < (8 << 20) + 8 * path.stat().st_size
    finally:
        tracemalloc.stop()


def test_compressed_members(file):
    rewritten(file, lambda members: None, zipfile.ZIP_DEFLATED)
    bounded(file, "members")


def test_duplicate_members(file):
    with pytest.warns(UserWarning, match="Duplicate"):
        rewritten(file, lambda members: members + members[-1:])
    bounded(file, "members")


def test_members_that_lie_over_one_another(file):
    """Many entries of one member: each is read whole."""
    with zipfile.ZipFile(file, "a") as archive:
        entry = archive.getinfo("elements_0.npy")
        for k in range(1000):
            again = zipfile.ZipInfo(f"{k}.npy")
            for name in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(again, name, getattr(entry, name))
            archive.filelist.append(again)
        archive._didModify = True
    sign(file)
    bounded(file, "members")


@pytest.mark.parametrize("shape", ["(10**12,)", "(1000000000000,)", "(-1,)", "(2, -3)", "(2**63,)"])
def test_shapes_that_a_header_announces(file, shape):
    def change(members):
        return [[n, npy_of(shape) if n == "elements_0.npy" else d] for n, d in members]

    rewritten(file, change)
    with pytest.raises((nbta.InvalidArgumentError, nbta.ResourceExhaustedError)):
        saving.load(file)


@pytest.mark.parametrize("dtype", ["'|O'", "[('a', '|O')]", "'V0'", "('f8', (1000000000,))"])
def test_dtypes_that_a_header_announces(file, dtype):
    for member in ("elements_0.npy", "dtype_0.npy", "states_0.npy", "meta.npy"):
        whole = file.read_bytes()
        rewritten(
            file, lambda m, k=member: [[n, npy_of("()", dtype) if n == k else d] for n, d in m]
        )
        with pytest.raises((nbta.InvalidArgumentError, nbta.ResourceExhaustedError)):
            saving.load(file)
        file.write_bytes(whole)


def test_a_cleared_slot_may_have_any_shape_and_costs_nothing(ragged):
    """Its shape is known to gradient arrays, and there is no memory after it."""
    shapes = np.full((3, 9), -1)
    shapes[:, :2] = [[1, 2], [0, -1], [1, 2**40]]
    forge(ragged, shapes_0=shapes)
    array = saving.load(ragged)
    assert array.read(0).tolist() == [1, 2]
    with pytest.raises(nbta.InvalidArgumentError, match="was cleared"):
        array.read(2)


def test_a_written_slot_without_its_bytes(ragged):
    shapes = np.full((3, 9), -1)
    shapes[:, :2] = [[1, 2**40], [0, -1], [0, -1]]
    forge(ragged, shapes_0=shapes)
    bounded(ragged, "too early")


@pytest.mark.parametrize("state", [2, 4, 5, 9, 12, 13, 16, 32, 255])
def test_states_that_no_operation_leaves_behind(file, state):
    forge(file, states_0=np.array([1, 1, state], np.uint8))
    bounded(file, "state bits")


def test_written_slots_of_no_shape(file):
    states = np.array([7, 7, 0], np.uint8)
    forge(file, states_0=states, elements_0=np.zeros(0), element_shape=None)
    bounded(file, "no element shape")


def nested(depth, source):
    facts = {
        "size": 0, "element_shape": [], "ragged": False, "marked": 0, "closed": False,
        "dtype": None, "dynamic": False, "clear_after_read": True, "infer_shape": True,
    }  # fmt: skip
    rows = [
        {**facts, "parent": k - 1, "source": source if k else "", "gradient": k > 0}
        for k in range(depth)
    ]
    meta = {"format": 1, "name": "../../etc/x", "sources": "", "arrays": rows}
    members = {"meta": np.array(json.dumps(meta))}
    for k in range(depth):
        members[f"dtype_{k}"], members[f"elements_{k}"] = np.zeros(0), np.zeros(0)
        members[f"states_{k}"] = np.zeros(0, np.uint8)
    return members


def test_deeply_nested_gradient_arrays(tmp_path):
    path = tmp_path / "deep.npz"
    np.savez(path, **nested(500, "g"))
    sign(path)
    assert saving.load(path).grad("g").grad("g").handle.name.endswith("@g@g")
    np.savez(path, **nested(300, "g" * 1000))
    sign(path)
    assert_refused(path, "names are too long")


def test_members_named_like_paths(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rewritten(file, lambda members: [*members, ["../x.npy", npy_of("(0,)")], ["/y", b"z"]])
    before = set(os.listdir(tmp_path)) | set(os.listdir(tmp_path.parent))
    assert_refused(file, "not what nbta.save writes")
    assert set(os.listdir(tmp_path)) | set(os.listdir(tmp_path.parent)) == before


WEIRD = [
    None, True, 0, -1, 3, 2**62, 10**30, 1.5, float("nan"), "", "\ud800", [], [None], [-1], [0],
    [2**40], [2**62, 4], [1.5], ["a"], [1] * 9, {},
]  # fmt: skip
READS = (
    lambda a: a.read(0), lambda a: a.read(2), lambda a: a.stack(), lambda a: a.concat(),
    lambda a: a.append(np.zeros(2, a.dtype)), lambda a: a.grad("gradients").stack(), repr,
    lambda a: a.grad("new").read(0), lambda a: a.gather([1, 0]), saving.pack,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_random_contents(seed, file, ragged):
    """They are refused, or make an array that works."""
    rng, loaded = random.Random(seed), 0
    path = rng.choice([file, ragged])
    whole = path.read_bytes()
    for _ in range(60):
        path.write_bytes(whole)
        with np.load(path) as archive:
            members = dict(archive)
        facts = json.loads(str(members["meta"]))["arrays"][0]
        changes = {rng.choice(list(facts)): rng.choice(WEIRD)} if rng.random() < 0.6 else {}
        if not changes or rng.random() < 0.5:
            name = rng.choice([n for n in members if n != "meta" and members[n].size])
            value = np.array(members[name])
            value.reshape(-1).view(np.uint8)[rng.randrange(value.nbytes)] = rng.randrange(16)
            changes[name] = value
        forge(path, **changes)
        try:
            array = saving.load(path)
        except (nbta.InvalidArgumentError, nbta.ResourceExhaustedError):
            continue
        loaded += 1
        for read in rng.sample(READS, 4):
            with contextlib.suppress(nbta.NbtaError):
                read(array)
    assert 0 < loaded < 60
