"""Hand tracking: how far a posed hand is from points that were seen, as in ADBench.

The 26 parameters are a rotation's axis times its angle, a translation, and the bends of five
fingers of three joints, of which the first also turns sideways. Each point belongs to a vertex of
the hand or, where there are coordinates ``us``, to a place in a triangle of vertices.
"""

import math

import numpy as np
from numba import njit

import nbta

from ..programs.program import rng
from .evaluation import Eval, compiled, floats

FINGERS, JOINTS = 5, 3
#: The first finger's first bone; a finger has a bone more than joints.
FIRST, BONES = 2, JOINTS + 1
PARAMETERS = 6 + FINGERS * BONES


@njit(cache=True)
def angles_of(theta, bones):
    """Bend and turn of each bone."""
    angles, place = np.zeros((bones, 2)), 6
    for finger in range(FINGERS):
        for joint in range(JOINTS):
            bone = FIRST + BONES * finger + joint
            angles[bone, 0] = theta[place]
            place += 1
            if joint == 0:
                angles[bone, 1] = theta[place]
                place += 1
    return angles


@njit(cache=True)
def product(a, b):
    """Of two matrices of four rows and columns."""
    c = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            for k in range(4):
                c[i, j] += a[i, k] * b[k, j]
    return c


@njit(cache=True)
def turned(angles):
    """The transform by a turn after a bend."""
    a, c = np.zeros((4, 4)), math.cos(angles[0])
    s, cos, sin = math.sin(angles[0]), math.cos(angles[1]), math.sin(angles[1])
    a[0, 0], a[0, 1], a[0, 2] = cos, -sin * c, sin * s
    a[1, 0], a[1, 1], a[1, 2] = sin, cos * c, -cos * s
    a[2, 1], a[2, 2], a[3, 3] = s, c, 1.0
    return a


@njit(cache=True)
def transforms_of(theta, parents, relatives, inverses):
    """Of each bone: of vertices in the hand's own position to those of its pose."""
    bones = len(parents)
    angles, absolutes = angles_of(theta, bones), np.zeros((bones, 4, 4))
    transforms = np.zeros((bones, 4, 4))
    for i in range(bones):
        posed = product(relatives[i], turned(angles[i]))
        if parents[i] >= 0:
            posed = product(absolutes[parents[i]], posed)
        absolutes[i] = posed
        transforms[i] = product(posed, inverses[i])
    return transforms


@njit(cache=True)
def rotation(theta):
    """The matrix of a rotation by its axis times its angle."""
    r, x, y, z = np.eye(3), theta[0], theta[1], theta[2]
    angle = math.sqrt(x * x + y * y + z * z)
    if angle >= 1e-4:
        x, y, z = x / angle, y / angle, z / angle
        s, c = math.sin(angle), math.cos(angle)
        d = 1.0 - c
        r[0, 0], r[0, 1], r[0, 2] = x * x * d + c, x * y * d - z * s, x * z * d + y * s
        r[1, 0], r[1, 1], r[1, 2] = x * y * d + z * s, y * y * d + c, y * z * d - x * s
        r[2, 0], r[2, 1], r[2, 2] = x * z * d - y * s, y * z * d + x * s, z * z * d + c
    return r


@njit(cache=True)
def vertices_of(theta, model):
    """Of the posed hand (v, 3): means of where bones take them, by weights."""
    parents, relatives, inverses, base, weights, mirror = model
    transforms, r = transforms_of(theta, parents, relatives, inverses), rotation(theta)
    vertices = np.zeros((len(base), 3))
    for v in range(len(base)):
        place = np.zeros(3)
        for b in range(len(parents)):
            for i in range(3):
                moved = 0.0
                for k in range(4):
                    moved += transforms[b, i, k] * base[v, k]
                place[i] += weights[v, b] * moved
        place[0] *= mirror
        for i in range(3):
            total = theta[3 + i]
            for k in range(3):
                total += r[i, k] * place[k]
            vertices[v, i] = total
    return vertices


@njit(cache=True)
def errors(theta, us, model, corners, points):
    """Differences (c, 3) of points and their places; ``corners`` (c, 3) are vertices.

    ``us`` (c, 2) are the first two coordinates of the places in the triangles of corners.
    """
    vertices, found = vertices_of(theta, model), np.empty((len(points), 3))
    for i in range(len(points)):
        a, b, c = corners[i]
        u, v = us[i]
        for j in range(3):
            place = u * vertices[a, j] + v * vertices[b, j] + (1.0 - u - v) * vertices[c, j]
            found[i, j] = points[i, j] - place
    return found


def turned_in_numpy(bends, sides):
    """The transforms of all bones (b, 4, 4)."""
    c, s, cos, sin = np.cos(bends), np.sin(bends), np.cos(sides), np.sin(sides)
    zero, one = np.zeros(len(bends)), np.ones(len(bends))
    rows = [
        [cos, -sin * c, sin * s, zero],
        [sin, cos * c, -cos * s, zero],
        [zero, s, c, zero],
        [zero, zero, zero, one],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_in_numpy(r):
    """By the cross product's matrix."""
    angle = np.sqrt(r @ r)
    if angle < 1e-4:
        return np.eye(3)
    x, y, z = r / angle
    cross = np.stack((0.0 * x, -z, y, z, 0.0 * x, -x, -y, x, 0.0 * x)).reshape(3, 3)
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)


def errors_in_numpy(theta, us, model, corners, points):
    """The same, by products of arrays of all bones and vertices."""
    parents, relatives, inverses, base, weights, mirror = model
    fingers = theta[6:].reshape(FINGERS, BONES)
    bends, sides = np.zeros((FINGERS, BONES)), np.zeros((FINGERS, BONES))
    bends[:, :JOINTS], sides[:, 0] = fingers[:, [0, 2, 3]], fingers[:, 1]
    none = np.zeros(FIRST)
    bends, sides = np.concatenate((none, bends.ravel())), np.concatenate((none, sides.ravel()))
    absolutes = relatives @ turned_in_numpy(bends, sides)
    for i in range(len(parents)):
        if parents[i] >= 0:
            absolutes[i] = absolutes[parents[i]] @ absolutes[i]
    transforms = (absolutes @ inverses)[:, :3]
    places = np.einsum("vb,bik,vk->vi", weights, transforms, base)
    places = places * np.array([1.0, 0.0, 0.0]) * mirror + places * np.array([0.0, 1.0, 1.0])
    vertices = places @ rotation_in_numpy(theta[:3]).T + theta[3:6]
    u, v = us[:, :1], us[:, 1:]
    a, b, c = vertices[corners[:, 0]], vertices[corners[:, 1]], vertices[corners[:, 2]]
    return points - (u * a + v * b + (1.0 - u - v) * c)


def functions(errors):
    @compiled
    def jacobian(theta, us, model, corners, points, directions):
        """Three rows for each point: by its own ``us``, if there are any, and by ``theta``."""

        def slope(direction):
            def moved(theta, us):
                return errors(theta, us, model, corners, points)

            tangents = direction[2:], np.zeros_like(us) + direction[:2]
            return nbta.jvp(moved, (theta, us), tangents)[1]

        slopes = nbta.vmap(slope)(directions)
        return slopes.reshape(len(directions), -1).T

    @compiled
    def objective(theta, us, model, corners, points, directions):
        return errors(theta, us, model, corners, points)

    return {"objective": objective, "jacobian": jacobian}


def arguments(data):
    """What `errors` takes, and the directions of the Jacobian."""
    hand, found = data["data"]["model"], data["data"]
    model = (
        np.array(hand["parents"]),
        *floats(
            hand["base_relatives"], hand["inverse_base_absolutes"], hand["base_positions"],
            hand["weights"],
        ),
        -1.0 if hand["is_mirrored"] else 1.0,
    )  # fmt: skip
    places, directions = np.array(found["correspondences"]), np.eye(2 + PARAMETERS)
    theta, us, points = floats(data["theta"], data["us"], found["points"])
    if len(us):
        corners = np.array(hand["triangles"])[places]
    else:
        # A vertex is the first corner of a triangle.
        corners, directions = np.stack((places,) * 3, axis=1), directions[2:]
        us = np.tile([1.0, 0.0], (len(places), 1))
    return theta, us, model, corners, points, directions


def generate(count, vertices=544, in_triangles=True):
    """A hand of random vertices, whose bones follow each other along the fingers."""
    random, bones = rng(count), FIRST + FINGERS * BONES
    parents = [-1, 0] + [1 if b % BONES == 0 else FIRST + b - 1 for b in range(FINGERS * BONES)]
    weights = random.random((vertices, bones)) * (random.random((vertices, bones)) < 0.1)
    turns = np.tile(np.eye(4), (bones, 1, 1))
    turns[:, :3] += 0.1 * random.normal(size=(bones, 3, 4))
    triangles = random.integers(0, vertices, (2 * vertices, 3))
    model = {
        "bone_count": bones, "bone_names": [f"bone {b}" for b in range(bones)], "parents": parents,
        "base_relatives": turns.tolist(), "inverse_base_absolutes": np.linalg.inv(turns).tolist(),
        "base_positions": np.c_[random.normal(size=(vertices, 3)), np.ones(vertices)].tolist(),
        "weights": weights.tolist(), "triangles": triangles.tolist(), "is_mirrored": False,
    }  # fmt: skip
    found = {
        "model": model,
        "correspondences": random.integers(0, vertices, count).tolist(),
        "points": random.normal(size=(count, 3)).tolist(),
    }
    us = random.random((count, 2)).tolist() if in_triangles else []
    return {"theta": random.normal(0, 0.3, PARAMETERS).tolist(), "data": found, "us": us}


EVAL = Eval(
    objectives={"loops": errors, "numpy": errors_in_numpy},
    arguments=arguments,
    functions=functions,
    outputs={"objective": lambda found: found.ravel().tolist()},
    generate=generate,
    sizes=((100,), (1600,), (12_800,)),
    small=(4, 6),
)
