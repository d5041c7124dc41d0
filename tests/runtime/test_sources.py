"""Gradient arrays of many sources: looked up, in order, and what happens without memory."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_in_use import live_bytes

import nbta
from nbta.array_memory import gradients_of, source_of
from nbta.packing import pack, unpack
from nbta.runtime import settings

#: Around where a table begins, and where it grows.
COUNTS = [0, 1, 7, 8, 9, 15, 16, 17, 18, 33, 64, 65, 300]


def forward(**options):
    return nbta.TensorArray("float64", 1, element_shape=(), **options)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("beginning", ["", "g" * 800, "é😀"])
def test_each_source_has_one_gradient_array(beginning, count):
    array = forward()
    sources = [f"{beginning}{k}" for k in range(count)]
    for k, source in enumerate(sources):
        array.grad(source).accumulate(0, float(k))
        assert len(list(gradients_of(array))) == k + 1
    for k, source in enumerate(sources):
        array.grad(source).accumulate(0, 0.5)
        assert array.grad(source)[0] == k + 0.5
    assert [source_of(gradient) for gradient in gradients_of(array)] == sources
    assert [source_of(each) for each in gradients_of(unpack(pack(array)))] == sources


@given(st.lists(st.text(max_size=3), max_size=40))
def test_sources_are_distinguished(sources):
    array, sums = forward(), {}
    for k, source in enumerate(sources):
        array.grad(source).accumulate(0, float(k))
        sums[source] = sums.get(source, 0.0) + k
    assert {source_of(each): each[0] for each in gradients_of(array)} == sums


def test_lone_surrogates_are_sources():
    array = forward()
    array.grad("\ud800").accumulate(0, 1.0)
    assert array.grad("\ud800")[0] == 1
    assert array.grad("\udc00")[0] == 0


@pytest.mark.parametrize("count", COUNTS)
def test_a_lookup_without_memory_changes_nothing(count):
    """The owners of gradient arrays were given back twice when one more could not be made."""
    array = forward()
    for k in range(count):
        array.grad(str(k)).accumulate(0, float(k))
    before, failures = live_bytes(), 0
    for allowed in range(20):
        old = settings.put(settings.ALLOCATIONS_LEFT, allowed)
        try:
            array.grad("one more")
            break
        except nbta.ResourceExhaustedError:
            failures += 1
        finally:
            settings.put(settings.ALLOCATIONS_LEFT, old)
        assert [each[0] for each in gradients_of(array)] == list(range(count))
        assert live_bytes() - before < 16 * (count + 32)  # a table for later ones may be there
    assert failures >= 3
    assert len(list(gradients_of(array))) == count + 1
    assert [array.grad(str(k))[0] for k in range(count)] == list(range(count))


def test_closing_forgets_sources():
    before = live_bytes()
    array = forward()
    for k in range(100):
        array.grad(str(k))
    array.close()
    with pytest.raises(nbta.InvalidArgumentError, match="is closed"):
        array.grad("1")
    assert live_bytes() == before


def test_lookups_take_the_same_time_however_many_there_are():
    """Lookups went through all sources: four times as many took fifteen times as long."""

    def seconds(count):
        array = forward()
        sources = ["s" * 800 + str(k) for k in range(count)]
        start = time.process_time()
        for source in sources * 2:
            array.grad(source)
        return time.process_time() - start

    seconds(100)
    ratios = [seconds(8000) / seconds(1000) for _ in range(3)]
    assert min(ratios) < 16, ratios


def test_gradients_of_many_sources_are_numbers(tmp_path):
    array = forward(tensor_array_name="many")
    for k in range(20):
        array.grad(str(k)).accumulate(0, float(k))
    nbta.save(tmp_path / "many.npz", array)
    loaded = nbta.load(tmp_path / "many.npz")
    np.testing.assert_array_equal([loaded.grad(str(k)).read(0) for k in range(20)], np.arange(20.0))
