"""Bundle adjustment: where cameras see points, and the sparse Jacobian of how far off that is.

A camera has eleven numbers: a rotation's axis times its angle, a centre, a focal length, a
principal point and two of radial distortion.
"""

import math

import numpy as np
from numba import njit

import nbta

from .evaluation import Eval, compiled, floats, gradient

CAMERA, POINT = 11, 3
#: Numbers that the two errors of an observation depend on: a camera, a point and a weight.
BLOCK = CAMERA + POINT + 1


@njit(cache=True)
def project(camera, point):
    """Where a camera sees a point."""
    x, y, z = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
    square = camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2
    if square != 0.0:
        angle = math.sqrt(square)
        cos, sin = math.cos(angle), math.sin(angle)
        a, b, c = camera[0] / angle, camera[1] / angle, camera[2] / angle
        along = (a * x + b * y + c * z) * (1.0 - cos)
        u = x * cos + (b * z - c * y) * sin + a * along
        v = y * cos + (c * x - a * z) * sin + b * along
        w = z * cos + (a * y - b * x) * sin + c * along
    else:
        u = x + camera[1] * z - camera[2] * y
        v = y + camera[2] * x - camera[0] * z
        w = z + camera[0] * y - camera[1] * x
    u, v = u / w, v / w
    out = u * u + v * v
    lens = camera[6] * (1.0 + camera[9] * out + camera[10] * out * out)
    return u * lens + camera[7], v * lens + camera[8]


@njit(cache=True)
def errors(cameras, points, weights, features):
    """The weighted errors (p, 2) of observations, each with a camera and a point of its own."""
    found = np.empty((len(weights), 2))
    for i in range(len(weights)):
        u, v = project(cameras[i], points[i])
        found[i, 0] = weights[i] * (u - features[i, 0])
        found[i, 1] = weights[i] * (v - features[i, 1])
    return found


def errors_in_numpy(cameras, points, weights, features):
    """The same, for all observations at once."""
    turn, off = cameras[:, :3], points - cameras[:, 3:6]
    square = np.sum(turn * turn, axis=1, keepdims=True)
    turned = square != 0.0
    angle = np.sqrt(np.where(turned, square, 1.0))
    cos, sin, axis = np.cos(angle), np.sin(angle), turn / angle
    along = np.sum(axis * off, axis=1, keepdims=True) * (1.0 - cos)
    far = off * cos + np.cross(axis, off) * sin + axis * along
    seen = np.where(turned, far, off + np.cross(turn, off))
    seen = seen[:, :2] / seen[:, 2:]
    out = np.sum(seen * seen, axis=1, keepdims=True)
    lens = cameras[:, 6:7] * (1.0 + cameras[:, 9:10] * out + cameras[:, 10:11] * out * out)
    return weights[:, None] * (seen * lens + cameras[:, 7:9] - features)


@njit(cache=True)
def sparse(of_cameras, of_points, of_weights, slopes, observations, n, m):
    """Rows (where each begins), columns and values, by row, of two rows for each observation."""
    p, before = len(observations), CAMERA * n + POINT * m
    rows, entries = np.arange(3 * p + 1), (2 * BLOCK + 1) * p
    columns, values = np.empty(entries, np.int64), np.empty(entries)
    place = 0
    for i in range(p):
        camera, point = CAMERA * observations[i, 0], CAMERA * n + POINT * observations[i, 1]
        for error in range(2):
            rows[2 * i + error] = place
            for k in range(CAMERA):
                columns[place + k], values[place + k] = camera + k, of_cameras[error, i, k]
            place += CAMERA
            for k in range(POINT):
                columns[place + k], values[place + k] = point + k, of_points[error, i, k]
            place += POINT
            columns[place], values[place] = before + i, of_weights[error, i]
            place += 1
    for i in range(p):
        rows[2 * p + i], columns[place + i], values[place + i] = place + i, before + i, slopes[i]
    rows[3 * p] = entries
    return rows, columns, values


def weight_errors(weights):
    """How far weights are from 1."""
    return 1.0 - weights * weights


def functions(errors):
    # An observation depends on its own numbers only: the gradients of the two sums have all rows.
    sums = nbta.jacobian(
        lambda *given: nbta.sum(errors(*given), axis=0), argnums=(0, 1, 2), compiled=True
    )
    slopes = gradient(lambda weights: nbta.sum(weight_errors(weights)))

    @compiled
    def objective(cameras, points, weights, observations, features):
        given = cameras[observations[:, 0]], points[observations[:, 1]]
        return errors(*given, weights, features), weight_errors(weights)

    def jacobian(cameras, points, weights, observations, features):
        given = cameras[observations[:, 0]], points[observations[:, 1]]
        blocks = sums(*given, weights, features)
        return sparse(*blocks, slopes(weights), observations, len(cameras), len(points))

    return {"objective": objective, "jacobian": jacobian}


def arguments(data):
    """As many cameras, points and observations as asked for, all alike."""
    n, m, p = data["n"], data["m"], data["p"]
    cameras, points, features = floats(data["cam"], data["x"], data["feat"])
    observations = np.stack((np.arange(p) % n, np.arange(p) % m), axis=1)
    return (
        np.tile(cameras, (n, 1)),
        np.tile(points, (m, 1)),
        np.full(p, float(data["w"])),
        observations,
        np.tile(features, (p, 1)),
    )


def objective_output(found):
    errors, off = found
    return {
        "reproj_error": {"elements": errors[0].tolist(), "repeated": len(errors)},
        "w_err": {"element": float(off[0]), "repeated": len(off)},
    }


def jacobian_output(found):
    """Of each list what one observation has, and the last entry."""
    kept = [[*each[: 2 * BLOCK].tolist(), each[-1].item()] for each in found]
    return dict(zip(("rows", "cols", "vals"), kept, strict=True))


def generate(n, m, p):
    """A camera some way off."""
    return {
        "n": n, "m": m, "p": p, "w": 0.9,
        "cam": [0.1, -0.2, 0.3, 0.1, 0.2, -4.0, 1.5, 0.1, 0.2, 0.05, -0.02],
        "x": [0.3, -0.2, 0.5], "feat": [0.1, 0.4],
    }  # fmt: skip


EVAL = Eval(
    objectives={"loops": errors, "numpy": errors_in_numpy},
    arguments=arguments,
    functions=functions,
    outputs={"objective": objective_output, "jacobian": jacobian_output},
    generate=generate,
    sizes=((21, 11_315, 36_455), (49, 7776, 31_843), (93, 61_203, 287_451)),
    small=(2, 3, 4),
)
