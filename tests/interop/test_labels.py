"""Gradients of pandas' and xarray's arrays, with their labels."""

import numpy as np
import pytest

import nbta
from nbta.interop import with_labels


def loss(x, y):
    return np.sum((x * y) ** 2)


def squares(x):
    return np.sum(x**2)


SLOPE = with_labels(nbta.grad(squares))


@pytest.mark.parametrize("g", [squares, nbta.function(squares), nbta.hessian(squares)])
def test_other_functions_are_refused(g):
    with pytest.raises(nbta.InvalidArgumentError, match="with_labels: give what nbta"):
        with_labels(g)


def test_arrays_without_labels_are_as_ever():
    np.testing.assert_array_equal(SLOPE(np.ones(2)), [2.0, 2.0])
    found = with_labels(nbta.value_and_grad(squares))(np.ones(2))
    assert found[0] == 2.0


def test_series_and_frames():
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0, 3.0], ["a", "b", "c"], name="x")
    pd.testing.assert_series_equal(SLOPE(series), 2 * series)
    frame = pd.DataFrame({"u": [1.0, 2.0], "v": [3.0, 4.0]}, index=pd.date_range("2026", periods=2))
    pd.testing.assert_frame_equal(SLOPE(frame), 2 * frame)
    values, found = with_labels(nbta.value_and_grad(loss, argnums=(0, 1)))(series, series * 2)
    assert values == 4 * (1 + 16 + 81)
    pd.testing.assert_series_equal(found[0], 2 * series * (2 * series) ** 2)
    assert found[1].index.equals(series.index)
    tree = with_labels(nbta.grad(lambda p, y: np.sum(p["w"] ** 2 * y), has_aux=False))
    made = tree({"w": series, "b": 1.0}, y=series)["w"]
    pd.testing.assert_series_equal(made, 2 * series * series)
    more = with_labels(nbta.grad(lambda x: (np.sum(x**2), x + 1.0), has_aux=True))(series)
    assert isinstance(more[0], pd.Series)
    assert type(more[1]) is np.ndarray


def test_labels_of_pandas_that_would_align_otherwise():
    pd = pytest.importorskip("pandas")
    g = with_labels(nbta.grad(lambda w, a, y: np.sum((a @ w - y) ** 2)))
    rng = np.random.default_rng(0)
    days = pd.date_range("2026-01-01", periods=4)
    w, y = pd.Series([1.0, 2.0], ["u", "v"]), pd.Series(rng.normal(size=4), days)
    a = pd.DataFrame(rng.normal(size=(4, 2)), days, ["u", "v"])
    expected = 2 * a.to_numpy().T @ (a.to_numpy() @ w.to_numpy() - y.to_numpy())
    found = g(w, a, y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert list(found.index) == ["u", "v"]
    plain = pd.Series(w.to_numpy()), pd.DataFrame(a.to_numpy()), pd.Series(y.to_numpy())
    np.testing.assert_allclose(g(*plain), expected, rtol=1e-12)
    others = [
        (w, a, y[::-1]),
        (w[::-1], a, y),
        (w, a, y.shift(1, freq="D")),
        (w, a[["v", "u"]], y),
        (w, a, y.rename(lambda day: day if day != days[0] else days[0].replace(year=1999))),
    ]
    for args in others:
        with pytest.raises(nbta.InvalidArgumentError, match="labels in common, in other places"):
            g(*args)


def test_dtypes_of_pandas():
    pd = pytest.importorskip("pandas")
    mixed = pd.DataFrame({"u": [1.0, 2.0], "v": np.array([1.0, 2.0], np.float32)})
    with pytest.raises(nbta.InvalidArgumentError, match="columns have dtypes float32, float64"):
        SLOPE(mixed)
    for value in (pd.Series(["a"]), pd.Series([1], dtype="Int64"), pd.Series(["a"], dtype=object)):
        with pytest.raises(nbta.InvalidArgumentError, match="numeric dtype of NumPy's"):
            SLOPE(value)


def test_arrays_of_xarray():
    xr = pytest.importorskip("xarray")
    a = xr.DataArray(
        np.arange(6.0).reshape(2, 3), {"time": [10, 20], "city": list("abc")}, ["time", "city"]
    )
    a.attrs["units"] = "m"
    xr.testing.assert_identical(SLOPE(a), (2 * a).drop_attrs())
    g = with_labels(nbta.grad(loss))
    b = a.isel(time=0, drop=True)
    xr.testing.assert_allclose(g(a, b), 2 * a * b**2)
    with pytest.raises(nbta.InvalidArgumentError, match="have dimensions"):
        g(a, a.T)
    with pytest.raises(nbta.InvalidArgumentError, match="other labels along 'city'"):
        g(a, b[::-1])
    with pytest.raises(nbta.InvalidArgumentError, match="other labels along 'time'"):
        g(a, a.isel(time=slice(1)))
    pd = pytest.importorskip("pandas")
    with pytest.raises(nbta.InvalidArgumentError, match="give all of one library"):
        g(a, pd.Series([1.0, 2.0, 3.0]))
