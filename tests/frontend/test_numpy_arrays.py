"""NumPy's functions that arrange, pick and order, written as for arrays, in plain functions."""

import functools
import inspect
from contextlib import suppress

import numpy as np
import pytest

import nbta
from nbta.frontend.calls import _OF_NUMPY
from nbta.ops.core.dispatch import OF_NUMPY
from nbta.structure import leaves
from nbta.testing import check_grads

RNG = np.random.default_rng(5)
V = np.array([3.0, 1.0, 2.5, 5.0, 4.0])
M = RNG.permutation(np.arange(12.0)).reshape(3, 4) + 0.25
T = RNG.permutation(np.arange(24.0)).reshape(2, 3, 4) / 7
ROWS = np.array([2, 0, 1])

#: What is called with a vector, a matrix and an array of rank 3, by family; "~" before a name says
#: that the result has no gradient, "!" that tensors outside of converted code do not take it.
FAMILIES = {
    "sorting": {
        "sort": lambda v, m, t: np.sort(v),
        "sort columns": lambda v, m, t: np.sort(m, axis=0),
        "sort rows": lambda v, m, t: np.sort(t, 1, kind="stable"),
        "sort all": lambda v, m, t: np.sort(m, axis=None),
        "~argsort": lambda v, m, t: np.argsort(m, axis=0),
        "~argsort method": lambda v, m, t: v.argsort(),
        "take_along_axis": lambda v, m, t: np.take_along_axis(m, np.argsort(t[0], axis=1), axis=1),
        "take_along_axis broadcast": lambda v, m, t: np.take_along_axis(t, ROWS[:2, None, None], 1),
        "take_along_axis flat": lambda v, m, t: np.take_along_axis(m, ROWS, None),
        "!sort in place": lambda v, m, t: sorted_in_place(m),
    },
    "order": {
        "partition": lambda v, m, t: np.partition(v, 2)[2],
        "~argpartition": lambda v, m, t: np.argpartition(m, 1, axis=1)[:, 1],
        "~lexsort": lambda v, m, t: np.lexsort((m[0], t[0, 0] > 1)),
        "~lexsort rows": lambda v, m, t: np.lexsort(t[0] > 1, axis=0),
        "~searchsorted": lambda v, m, t: np.searchsorted(np.sort(v), m),
        "~searchsorted right": lambda v, m, t: np.searchsorted([1.0, 2.5, 4.0], v, side="right"),
        "~searchsorted sorter": lambda v, m, t: np.searchsorted(v, 2.5, "left", v.argsort()),
        "~searchsorted method": lambda v, m, t: np.sort(v).searchsorted(m[0]),
        "~digitize": lambda v, m, t: np.digitize(m, np.sort(v)),
        "~digitize down": lambda v, m, t: np.digitize(v, np.sort(v)[::-1], right=True),
        "~digitize known": lambda v, m, t: np.digitize(v, [1.0, 2.0, 4.0], True),
    },
    "picks": {
        "select": lambda v, m, t: np.select([v > 3.3, v > 1.2], [v, v[0] * 2], 1.5),
        "select scalars": lambda v, m, t: np.select([m > 3], [m], default=0.0),
        "choose": lambda v, m, t: np.choose(ROWS, [v[:3], v[1:4], 2.0 * v[2:]]),
        "choose traced": lambda v, m, t: np.choose((m > 3).astype(int), (m, v[0])),
        "choose wrap": lambda v, m, t: np.choose(ROWS - 1, [v[:3], v[2:]], mode="wrap"),
        "!choose clip": lambda v, m, t: np.choose(ROWS * 3 - 1, m[:, :3], mode="clip"),
        "compress": lambda v, m, t: np.compress([True, False, True], m, axis=0),
        "!compress method": lambda v, m, t: m.compress([True, False, True, True], axis=1),
        "!choose method": lambda v, m, t: (m > 3).astype(int).choose([v[:4], m]),
        "!ndim": lambda v, m, t: np.ndim(m) * v,
        "extract": lambda v, m, t: np.extract(V > 2, v),
        "delete": lambda v, m, t: np.delete(v, -2),
        "delete greatest": lambda v, m, t: np.delete(m, np.argmax(abs(v[:4])), 1),
        "insert greatest": lambda v, m, t: np.insert(m, -np.argmax(abs(v[:3])), v[:4], axis=0),
        "delete rows": lambda v, m, t: np.delete(m, [0, 2], axis=0),
        "delete slice": lambda v, m, t: np.delete(m, np.s_[1:3], 1),
        "delete mask": lambda v, m, t: np.delete(v, V > 2.5),
        "insert": lambda v, m, t: np.insert(v, 1, v[0] * 2),
        "insert all": lambda v, m, t: np.insert(m, [1, -1, 1], [7.0, 8.0, 9.0]),
        "insert column": lambda v, m, t: np.insert(m, 1, v[:3], axis=1),
        "insert columns": lambda v, m, t: np.insert(m, [1], m[:, :2], axis=1),
        "insert rows": lambda v, m, t: np.insert(m, np.s_[0:3:2], 5.0, 0),
        "take": lambda v, m, t: m.take(ROWS, 1),
        "!put_along_axis": lambda v, m, t: put(m, v),
        "!putmask": lambda v, m, t: masked(m),
        "!known mask": lambda v, m, t: v[V > 2],
        "!known mask of rows": lambda v, m, t: m[M[:, 0] > 3, 1:],
        "!known mask of items": lambda v, m, t: m[M > 3],
        "!known mask written": lambda v, m, t: written(v),
        "!places": lambda v, m, t: m[ROWS, ROWS[::-1]],
        "!places of columns": lambda v, m, t: t[:, ROWS[:2]],
        "!places written": lambda v, m, t: scattered(m, v),
    },
    "lists": {
        "!lists": lambda v, m, t: (np.sort([v[0], 2.0, 1.5]), np.sum([m[0, 0], 2.0]),
                                  np.diag([v[0], 1.0]), np.tile([v[0], v[1]], 2)),
        "!lists of points": lambda v, m, t: np.interp(v[1], [0.0, v[0]], [v[0], m[0, 0]]),
        "!meshgrid of lists": lambda v, m, t: np.meshgrid([v[0], 1.0], v)[0],
        "!c_": lambda v, m, t: np.c_[v[:3], m, np.zeros(3)],
        "!r_": lambda v, m, t: np.r_[v, 1.0, 0:3, m[0]],
        "!put": lambda v, m, t: put_in_a_row(m, v),
        "!known array": lambda v, m, t: (M.dot(v[:4]), M.take(v.argsort())),
    },
    "borders": {
        "pad": lambda v, m, t: np.pad(v, (1, 2), "constant", constant_values=3.5),
        "pad edge": lambda v, m, t: np.pad(m, 2, mode="edge"),
        "pad reflect": lambda v, m, t: np.pad(m, ((1, 0), (2, 5)), "reflect"),
        "pad symmetric": lambda v, m, t: np.pad(v, 7, mode="symmetric"),
        "pad wrap": lambda v, m, t: np.pad(v, (3, 6), mode="wrap"),
        "take wrap": lambda v, m, t: np.take(m, [5, -5, 1], axis=1, mode="wrap"),
        "take clip": lambda v, m, t: np.take(v, np.array([[5, -5], [1, 9]]), mode="clip"),
        "unstack": lambda v, m, t: np.unstack(m, axis=1),
        "vander": lambda v, m, t: np.vander(v / 4, 3),
        "vander square": lambda v, m, t: np.vander(m[0] / 8, increasing=True),
        "vander empty": lambda v, m, t: np.vander(v, 0),
        "!orders": lambda v, m, t: (m.flatten("F"), t.ravel(order="F"), m.reshape(2, 6, order="F"),
                                   np.reshape(m, shape=(4, 3)), np.ravel(m, "F")),
        "!new axes": lambda v, m, t: (m[ROWS, None], m[:, None, ROWS],
                                     t[0, ROWS[:2], None, ROWS[1:]]),
        "!new axes written": lambda v, m, t: written_wide(m, v),
    },
    "fits": {
        "polyfit": lambda v, m, t: np.polyfit(v, np.sin(v), 2),
        "polyfit weights": lambda v, m, t: np.polyfit(np.arange(4.0), m.T, 1, w=v[:4] + 1),
    },
    "counts": {
        "~bincount": lambda v, m, t: np.bincount(ROWS + v[:3].astype(int), minlength=9),
        "bincount weights": lambda v, m, t: np.bincount(ROWS, v[:3], 5),
        "bincount traced": lambda v, m, t: np.bincount(v.argsort() // 2, v, minlength=4),
        "~histogram": lambda v, m, t: np.histogram(m),
        "~histogram edges": lambda v, m, t: np.histogram(m, [0.0, 2.0, 4.0, 11.25]),
        "histogram weights": lambda v, m, t: np.histogram(M, 5, (1.0, 9.0), weights=m)[0],
        "histogram density": lambda v, m, t: np.histogram(V, 3, weights=v, density=True)[0],
        "histogram_bin_edges": lambda v, m, t: np.histogram_bin_edges(m, 3),
    },
    "samples": {
        "interp": lambda v, m, t: np.interp(m, np.sort(v) * 2.0, v),
        "interp ends": lambda v, m, t: np.interp(v, m[0].cumsum(), m[1], left=v[0], right=-1.0),
        "interp known": lambda v, m, t: np.interp(v + 0.3, np.arange(6.0), np.arange(6.0) ** 2),
        "interp period": lambda v, m, t: np.interp(m, [1.9, 0.6, 3.3], v[:3], period=4.1),
        "gradient": lambda v, m, t: np.gradient(v),
        "gradient axes": lambda v, m, t: np.gradient(m, 0.5, v[0]),
        "gradient points": lambda v, m, t: np.gradient(v, np.cumsum(v)),
        "gradient edges": lambda v, m, t: np.gradient(m, v[0], axis=1, edge_order=2),
        "gradient points and edges": lambda v, m, t: np.gradient(
            m, np.cumsum(v[:3]), axis=0, edge_order=2
        ),
        "polyval": lambda v, m, t: np.polyval(v / 10, m / 100),
        "polyval list": lambda v, m, t: np.polyval([1.0, v[0], 2.0], v),
        "convolve": lambda v, m, t: np.convolve(v, m[0]),
        "convolve same": lambda v, m, t: np.convolve(m[1], v, "same"),
        "convolve valid": lambda v, m, t: np.convolve(v, [1.0, 2.0, -1.0], mode="valid"),
        "correlate": lambda v, m, t: np.correlate(m[0], v),
        "correlate full": lambda v, m, t: np.correlate(v, m[0], "full"),
        "clip": lambda v, m, t: np.clip(v, None, 2.7),
        "clip by name": lambda v, m, t: np.clip(m, a_min=v[0], a_max=None),
        "!clip method": lambda v, m, t: (v.clip(2.2), v.clip(max=2.7), m.clip(min=1.1, max=9.9)),
    },
    "ranges": {
        "linspace": lambda v, m, t: np.linspace(v[0], v[3], 4),
        "linspace arrays": lambda v, m, t: np.linspace(v[:4], m, 3, endpoint=False, axis=-1),
        "linspace step": lambda v, m, t: np.linspace(0.0, v[0], 6, retstep=True),
        "linspace one": lambda v, m, t: np.linspace(v[0], v[1], 1),
        "~linspace integers": lambda v, m, t: np.linspace(v[0], v[3], 4, dtype=int),
        "logspace": lambda v, m, t: np.logspace(v[0], 1.0, 4, base=2.0),
        "geomspace": lambda v, m, t: np.geomspace(v[0], m[0] + 1.0, 4),
        "geomspace below": lambda v, m, t: np.geomspace(-v[0], -10.0, 5, endpoint=False),
    },
    "stacks": {
        "hstack": lambda v, m, t: np.hstack([v, np.ones(2), v[0]]),
        "hstack matrices": lambda v, m, t: np.hstack((m, m[:, :1])),
        "vstack": lambda v, m, t: np.vstack([v, 2.0 * v, np.ones((2, 5))]),
        "dstack": lambda v, m, t: np.dstack([m, np.ones((3, 4))]),
        "dstack vectors": lambda v, m, t: np.dstack([v, v]),
        "column_stack": lambda v, m, t: np.column_stack([v[:3], m, np.zeros(3)]),
        "block": lambda v, m, t: np.block([[m, np.ones((3, 1))], [v]]),
        "block vectors": lambda v, m, t: np.block([v, 2.0, v]),
        "atleast_1d": lambda v, m, t: np.atleast_1d(v[0], m),
        "atleast_2d": lambda v, m, t: np.atleast_2d(v),
        "atleast_3d": lambda v, m, t: np.atleast_3d(v, m, t),
        "array_split": lambda v, m, t: np.array_split(v, 3),
        "hsplit": lambda v, m, t: np.hsplit(m, 2),
        "vsplit": lambda v, m, t: np.vsplit(m, [1]),
        "dsplit": lambda v, m, t: np.dsplit(t, 2),
        "!array": lambda v, m, t: np.array([[v[0], 1.0], [2.0, m[1, 1]]]),
        "append": lambda v, m, t: np.append(v, [1.0, 2.0]),
        "append all": lambda v, m, t: np.append(m, v),
        "append rows": lambda v, m, t: np.append(m, m[:1], axis=0),
    },
    "turns": {
        "roll": lambda v, m, t: np.roll(v, 2),
        "roll far": lambda v, m, t: np.roll(v, -12),
        "roll all": lambda v, m, t: np.roll(m, 3),
        "roll axes": lambda v, m, t: np.roll(t, (1, -2), axis=(0, -1)),
        "roll twice": lambda v, m, t: np.roll(m, (1, 2), axis=1),
        "!roll by a traced distance": lambda v, m, t: np.roll(m, m.argmax(), axis=1),
        "rot90": lambda v, m, t: np.rot90(m),
        "rot90 back": lambda v, m, t: np.rot90(t, -1, (2, 1)),
        "rot90 twice": lambda v, m, t: np.rot90(m, 2),
        "rot90 not": lambda v, m, t: np.rot90(m, 4),
        "fliplr": lambda v, m, t: np.fliplr(m),
        "flipud": lambda v, m, t: np.flipud(m),
        "moveaxis": lambda v, m, t: np.moveaxis(t, 0, -1),
        "moveaxis of two": lambda v, m, t: np.moveaxis(t, (0, 1), (-1, 0)),
        "rollaxis": lambda v, m, t: np.rollaxis(t, 2),
        "rollaxis after": lambda v, m, t: np.rollaxis(t, 0, 3),
        "swapaxes": lambda v, m, t: np.swapaxes(t, 0, -1),
        "matrix_transpose": lambda v, m, t: np.matrix_transpose(t),
        "permute_dims": lambda v, m, t: np.permute_dims(t, (2, 0, 1)),
        "ravel": lambda v, m, t: np.ravel(m.T),
        "flatten": lambda v, m, t: (t.flatten(), m.ravel(), m.copy(), t.swapaxes(0, 2)),
    },
    "repeats": {
        "tile": lambda v, m, t: np.tile(v, 2),
        "tile rows": lambda v, m, t: np.tile(m, (2, 1)),
        "tile new axes": lambda v, m, t: np.tile(v, (2, 1, 3)),
        "tile last": lambda v, m, t: np.tile(t, 2),
        "tile once": lambda v, m, t: np.tile(m, 1),
        "repeat": lambda v, m, t: np.repeat(m, 2),
        "repeat rows": lambda v, m, t: np.repeat(t, 3, axis=1),
        "repeat unlike": lambda v, m, t: np.repeat(m, [1, 0, 2], axis=0),
        "repeat method": lambda v, m, t: v.repeat(2),
        "resize": lambda v, m, t: np.resize(v, (2, 4)),
        "kron": lambda v, m, t: np.kron(m, v),
        "kron matrices": lambda v, m, t: np.kron(m, m[:2, :2]),
        "meshgrid": lambda v, m, t: np.meshgrid(v, v[:2]),
        "meshgrid ij": lambda v, m, t: np.meshgrid(v, 2.0, m[0], indexing="ij"),
        "meshgrid sparse": lambda v, m, t: np.meshgrid(v, m[0], sparse=True),
        "broadcast_arrays": lambda v, m, t: np.broadcast_arrays(v, v[:, None], 1.0),
    },
    "diagonals": {
        "diag": lambda v, m, t: np.diag(v),
        "diag above": lambda v, m, t: np.diag(v, 2),
        "diag below": lambda v, m, t: np.diag(v, -1),
        "diag of a matrix": lambda v, m, t: np.diag(m),
        "diagflat": lambda v, m, t: np.diagflat(m[:2, :2]),
        "diagonal": lambda v, m, t: np.diagonal(m, 1),
        "diagonal below": lambda v, m, t: np.diagonal(m, -2),
        "diagonal far": lambda v, m, t: np.diagonal(m, 7),
        "diagonal method": lambda v, m, t: t.diagonal(0, 1, 2),
        "diagonal axes": lambda v, m, t: np.diagonal(t, 1, 2, 0),
        "trace": lambda v, m, t: np.trace(m),
        "trace method": lambda v, m, t: t.trace(1),
        "triu": lambda v, m, t: np.triu(m, 1),
        "triu below": lambda v, m, t: np.triu(t, -1),
        "tril": lambda v, m, t: np.tril(m),
        "!eye": lambda v, m, t: np.eye(len(v), 4, 1) * v[0],
        "!identity": lambda v, m, t: np.identity(v.shape[0] - 1) * v[0],
        "!tri": lambda v, m, t: np.tri(m.shape[0], k=-1) * v[0],
        "!tril_indices_from": lambda v, m, t: m[:3, :3][np.tril_indices_from(M[:3, :3])] * v[0],
        "!triu_indices_from": lambda v, m, t: m[np.triu_indices_from(m, 1)],
        "!diag_indices_from": lambda v, m, t: m[:, :3][np.diag_indices_from(m[:, :3])],
    },
    "polynomials": {
        "polyadd": lambda v, m, t: (np.polyadd(v, m[0]), np.polyadd(m[0], v), np.polyadd(v, 2)),
        "polysub": lambda v, m, t: (np.polysub(v, m[0]), np.polysub([1, 2], v)),
        "polymul": lambda v, m, t: (np.polymul(v, m[0]), np.polymul(v, [0, 0, 1, 2])),
        "polyder": lambda v, m, t: (np.polyder(v), np.polyder(v, 2), np.polyder(v, 0) * v),
        "~polyder of none": lambda v, m, t: np.polyder(v, 7),
        "polyint": lambda v, m, t: (np.polyint(v), np.polyint(v, 2, 3.0)),
        "polyint constants": lambda v, m, t: np.polyint(m[0], 2, [v[0], 1.0]),
        "poly": lambda v, m, t: np.poly(v),
    },
    "members": {
        "~isin": lambda v, m, t: (np.isin(m, v), np.isin(v, [1.0, 5.0, 7.0]), np.isin(v, [])),
        "~isin inverted": lambda v, m, t: np.isin(m, v[:2], invert=True),
        "unwrap": lambda v, m, t: (np.unwrap(3 * v), np.unwrap(5 * m, axis=0)),
        "unwrap period": lambda v, m, t: np.unwrap(v, discont=2.5, period=3),
        "~unravel_index": lambda v, m, t: np.unravel_index(np.argsort(m, 0), (2, 3)),
        "~unravel_index F": lambda v, m, t: np.unravel_index(np.argmax(v), (3, 2), order="F"),
        "~ravel_multi_index": lambda v, m, t: np.ravel_multi_index(
            (np.argsort(v), ROWS[0]), (5, 3)),
        "~ravel_multi_index modes": lambda v, m, t: np.ravel_multi_index(
            (np.argsort(v), np.argsort(v)), (4, 3), mode=("wrap", "clip"), order="F"),
        "piecewise": lambda v, m, t: np.piecewise(
            v, [v < 2.7, v >= 2.7], [lambda x: np.sqrt(2.7 - x), lambda x: np.log(x) * 2]),
        "!piecewise default": lambda v, m, t: np.piecewise(
            m, [m > 4], [lambda x, a: x * a, lambda x, a: -x], 3),
        "!~piecewise numbers": lambda v, m, t: np.piecewise(v, v < 2, [1, 2]),
    },
    "boxes": {
        "~histogram2d": lambda v, m, t: np.histogram2d(v, m[0, 0] + v, [3, [0.0, 2.0, 9.0]]),
        "histogram2d weights": lambda v, m, t: np.histogram2d(V, V[::-1], 2, weights=v)[0],
        "histogramdd": lambda v, m, t: np.histogramdd(
            T.reshape(-1, 3), (2, 3, 1), weights=t[0, :2].ravel())[0],
        "histogramdd density": lambda v, m, t: np.histogramdd(
            [V, -V], 3, [(0.0, 5.0), (-4.0, 0.0)], density=True, weights=v)[0],
    },
    "along": {
        "apply_along_axis": lambda v, m, t: np.apply_along_axis(np.sum, 1, t),
        "apply_along_axis shapes": lambda v, m, t: np.apply_along_axis(
            lambda r: np.outer(r, r), 1, t),
        "apply_along_axis loop": lambda v, m, t: np.apply_along_axis(weighed, 0, m, v[0]),
        "apply_over_axes": lambda v, m, t: np.apply_over_axes(np.sum, t, [0, -1]),
    },
    "by name": {
        "vander": lambda v, m, t: np.vander(x=v, N=3),
        "tril": lambda v, m, t: np.tril(m=m, k=-1),
        "take": lambda v, m, t: np.take(a=m, indices=[0], axis=1),
        "insert": lambda v, m, t: np.insert(arr=m, obj=1, values=3.0, axis=1),
        "~array_equal": lambda v, m, t: np.array_equal(a1=v, a2=v),
        "~searchsorted by name": lambda v, m, t: np.searchsorted(a=np.sort(v), v=v[0]),
    },
    "as they are": {
        "!asanyarray": lambda v, m, t: (np.asanyarray(v) * 2, np.asanyarray([v[0], v[1]])),
        "!orders": lambda v, m, t: (np.asfortranarray(m) * 2, np.require(m, None, ["C"]) * 2),
        "astype": lambda v, m, t: np.astype(v, np.complex128),
        "~iscomplexobj": lambda v, m, t: (v * np.iscomplexobj(v), m * np.isrealobj(m)),
    },
}  # fmt: skip

#: What nbta does not do with complex numbers.
OF_ORDERED = {
    "!known array",
    "!roll by a traced distance", "~linspace integers", "geomspace", "geomspace below", "~lexsort",
    "~lexsort rows", "~digitize", "~digitize down", "~digitize known",
    "~bincount", "bincount weights", "bincount traced", "histogram weights", "histogram density",
    "~histogram", "~histogram edges", "interp", "interp ends", "interp period", "clip",
    "clip by name", "!clip method", "interp known", "polyfit",
    "polyfit weights", "!lists of points", "!lists", "histogram_bin_edges", "poly", "unwrap",
    "unwrap period", "~unravel_index", "~unravel_index F", "~ravel_multi_index", "~histogram2d",
    "~ravel_multi_index modes", "piecewise", "!piecewise default", "!~piecewise numbers",
    "histogram2d weights", "histogramdd", "histogramdd density", "~isin", "~isin inverted",
}  # fmt: skip


def weighed(row, factor):
    total = 0.0 * row[0]
    for k in range(len(row)):
        total += row[k] * row[k] * factor
    return total


def sorted_in_place(x):
    y = x * 2.0
    y.sort(axis=0)
    y[:, 1:3].sort()
    return y


def put(x, values):
    y = x * 2.0
    np.put_along_axis(y, np.argsort(x, 0)[:1], values[:4], axis=0)
    np.put_along_axis(y[1:], np.array([[0], [-1]]), 3.0, axis=1)
    return y


def put_in_a_row(x, values):
    y = x * 2.0
    np.put(y, [1, -1, 5], values[:3])
    np.put(y[:2], ROWS, 7.5)
    return y


def written_wide(x, values):
    y = x * 2.0
    y[ROWS, None] = values[:4]
    y[:, None, ROWS[:2]] += 1.0
    return y


def masked(x):
    y = x * 2.0
    np.putmask(y, x > 4, 1.5)
    return y


def written(x):
    y = x * 2.0
    y[V > 2] = x[:4]
    y[V > 4] *= 3.0
    return y


def scattered(x, values):
    y = x * 2.0
    y[ROWS, ROWS] = values[:3]
    y[:, ROWS[:2]] += 1.0
    return y


def all_of(family, v, m, t):
    """Every result of a family."""
    found = []
    for function in family.values():
        result = function(v, m, t)
        found += result if isinstance(result, list | tuple) else [result]
    return found


def given(dtype="float64"):
    return [x.astype(dtype) for x in (V, M, T)]


def hold(got, want):
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert np.shape(got) == np.shape(want)
    single = np.asarray(got).dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(got, want, *[1e-6 if single else 1e-13] * 2)


def wants(family, dtype="float64"):
    return [(name, wanted) for name, function in family.items()
            for wanted in all_of({name: function}, *given(dtype))]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_plain_code_gives_what_numpy_gives(family, compiled):
    family = FAMILIES[family]
    function = nbta.function(lambda v, m, t: all_of(family, v, m, t), compiled=compiled)
    for got, (name, want) in zip(function(*given()), wants(family), strict=True):
        np.testing.assert_equal(np.shape(got), np.shape(want), name)
        hold(got, want)


@pytest.mark.parametrize("family", FAMILIES)
def test_tensors_take_the_functions_too(family):
    family = {k: f for k, f in FAMILIES[family].items() if "!" not in k}
    function = nbta.function(functools.partial(all_of, family), convert=False, compiled=False)
    for got, (_, want) in zip(function(*given()), wants(family), strict=True):
        hold(got, want)


@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
@pytest.mark.parametrize("family", FAMILIES)
def test_dtypes_are_numpys(family, dtype):
    ordered = dtype != "complex64"
    family = {k: f for k, f in FAMILIES[family].items() if ordered or k not in OF_ORDERED}
    function = nbta.function(lambda v, m, t: all_of(family, v, m, t), compiled=False)
    for got, (_, want) in zip(function(*given(dtype)), wants(family, dtype), strict=True):
        hold(got, want)


def differentiable(family):
    return {k: f for k, f in FAMILIES[family].items() if "~" not in k}


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients(family):
    family = differentiable(family)
    check_grads(lambda v, m, t: all_of(family, v * v, m * m, t * t), given(), order=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "name"), [(f, name) for f in FAMILIES for name in differentiable(f)]
)
def test_second_derivatives(family, name):
    function = FAMILIES[family][name]
    check_grads(lambda v, m, t: function(v * v, m * m, t * t), given())


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_gradients_are_those_of_the_reference(family):
    family = differentiable(family)

    def loss(v, m, t):
        return sum(np.sum(np.real(part * np.sin(part))) for part in all_of(family, v, m, t))

    found = [nbta.grad(loss, argnums=(0, 1, 2), compiled=compiled)(*given())
             for compiled in (False, True)]  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_members_of_what_has_no_order():
    def some(z, x):
        return np.isin(z, z[:2]), np.isin(x, x), np.isin(z, []), np.isin(x, 1.0)

    given = np.array([1j, 2.0, 3.0, 1j]), np.array([np.nan, 1.0, -0.0, 0.0, np.inf])
    for compiled in (False, True):
        found = nbta.function(some, compiled=compiled)(*given)
        for one, other in zip(found, some(*given), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("code", "bhilBHIL")
def test_bits_are_counted(code):
    limits = np.iinfo(code)
    x = np.array([0, 1, 2, 3, limits.max, limits.min, limits.max // 3, 100], code)
    for compiled in (False, True):
        found = nbta.function(lambda x: np.bitwise_count(x), compiled=compiled)(x)
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, np.bitwise_count(x))
    with pytest.raises(nbta.InvalidArgumentError, match="float64 has no bits to count"):
        nbta.function(lambda x: np.bitwise_count(x))(x.astype(float))


def test_wrappers_of_what_is_not_finite():
    x, edges = np.array([np.nan, 0.0, 0.5, 2.0, -1.0, 3.0, -5.0, np.inf]), [-1.0, 0.0, 0.5, 2.0]
    found = nbta.function(lambda x: np.histogram2d(x, x[::-1], edges))(x)
    np.testing.assert_array_equal(found[0], np.histogram2d(x, x[::-1], edges)[0])


def test_a_piece_is_not_asked_for_items_of_others():
    def roots(x, a):
        return np.sum(np.piecewise(x, [x < 0, x >= 0], [lambda y: a * np.sqrt(-y), np.sqrt]))

    x = np.array([-1.0, 4.0, 0.25])
    dx, da = nbta.grad(roots, argnums=(0, 1))(x, 2.0)
    np.testing.assert_allclose(dx, [-1.0, 0.25, 1.0])
    assert da == 1.0


@pytest.mark.parametrize(
    ("message", "function"),
    [
        ("uses Mean, which is not elementwise",
         lambda v: np.piecewise(v, [v > 3], [lambda x: x - np.mean(x)])),
        ("1 conditions and 3 functions", lambda v: np.piecewise(v, [v > 3], [1.0, 2.0, 3.0])),
        ("leading coefficient is 0, which NumPy drops", lambda v: np.polymul(v * 0.0, v)),
        ("m must be 0 or more, not -1", lambda v: np.polyder(v, -1)),
        ("3 constants for 2 integrals", lambda v: np.polyint(v, 2, [1.0, 2.0, 3.0])),
        ("coefficients have rank 2", lambda v: np.polyadd(v, v[None])),
        ("poly takes real roots in one row", lambda v: np.poly(v * 1j)),
        ("not from 0 to 8, the last of shape",
         lambda v: np.unravel_index(np.argsort(v) + 5, (3, 3))),
        ("not from 0 to 3; see mode=",
         lambda v: np.ravel_multi_index((np.argsort(v), np.argsort(v)), (4, 6))),
        ("2 indices for 1 axes", lambda v: np.ravel_multi_index((np.argsort(v), 0), (4,))),
        ("not 'around'",
         lambda v: np.ravel_multi_index((np.argsort(v),), (4,), "around")),
        ("order must be 'C' or 'F', not 'A'", lambda v: np.unravel_index(np.argsort(v), (5,), "A")),
        ("period is known only in a run", lambda v: np.unwrap(v, period=v[0])),
        ("give bins and a range for each of 2 axes", lambda v: np.histogramdd([v, v], [2, 3, 4])),
        ("sample has rank 3; give points in rows", lambda v: np.histogramdd(v[None, None])),
        ("all of whose axes have one length", lambda v: np.diag_indices_from(v[None])),
        ("of rank 1; give a matrix", lambda v: np.tril_indices_from(v)),
    ],
)  # fmt: skip
def test_what_is_not_taken(message, function):
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.function(function)(V)


def named_calls():
    """Functions of NumPy's that nbta has, with what NumPy calls their first argument."""
    for module in (np, np.linalg, np.fft):
        for name in sorted(set(dir(module)) & {*OF_NUMPY, *_OF_NUMPY}):
            function = getattr(module, name)
            if not callable(function) or isinstance(function, np.ufunc | type):
                continue
            with suppress(ValueError):
                first = next(iter(inspect.signature(function).parameters.values()))
                if first.kind is first.POSITIONAL_OR_KEYWORD:
                    yield function, first.name


def test_first_arguments_may_be_given_by_numpys_names():
    matrix, seen = np.array([[4.0, 1.0], [1.0, 3.0]]), 0
    for function, name in named_calls():
        for given in (matrix, matrix[0], 2.0):
            try:
                expected = nbta.function(lambda x, f=function: f(x), compiled=False)(given)
            except Exception:
                continue
            call = nbta.function(lambda x, f=function, n=name: f(**{n: x}), compiled=False)
            for one, other in zip(leaves(call(given)), leaves(expected), strict=True):
                np.testing.assert_array_equal(one, other)
            seen += 1
            break
    assert seen > 100


def put_over_and_over(x):
    y = np.zeros((3, 2))
    np.putmask(y, y == 0, x[:3].reshape(3, 1))
    return y


def placed_over_and_over(x):
    y = x * 2.0
    np.place(y, y > 2.5, x[:2])
    return y


@pytest.mark.parametrize("f", [put_over_and_over, placed_over_and_over])
def test_values_that_are_put_over_and_over(f):
    x = np.array([1.2, 0.5, 2.0, 1.5, 3.0])
    np.testing.assert_array_equal(nbta.function(f)(x), f(x))
    nbta.testing.check_grads(lambda x: np.sum(f(x) ** 2), (x,), order=1)


@pytest.mark.parametrize("kind", [float, int, complex])
def test_numbers_of_arrays_of_several_items(kind):
    f = nbta.function(lambda x: kind(x) + 1)
    with pytest.raises(TypeError, match="one item"):
        f(np.array([1.0, 2.0]))
    assert f(2.0) == 3


def copies_of_numbers(x):
    parts = np.copy([x[0], 2.0])
    parts[0] = 5.0
    before = np.copy(x[1])
    for k in range(12):
        before = np.copy(before * x[0] + k)
    return before * parts + np.copy(3) * x + np.copy([[1, 2], [3, 4]])[1]


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_and_lists_are_copied(compiled):
    x = np.array([0.5, 2.0])
    found = nbta.function(copies_of_numbers, compiled=compiled)(x)
    np.testing.assert_allclose(found, copies_of_numbers(x), rtol=1e-14)
    steps = 1e-6 * np.eye(2)
    central = [(copies_of_numbers(x + s) - copies_of_numbers(x - s)) / 2e-6 for s in steps]
    jacobian = nbta.jacobian(copies_of_numbers, compiled=compiled)(x)
    np.testing.assert_allclose(jacobian, np.transpose(central), rtol=1e-7, atol=1e-7)
