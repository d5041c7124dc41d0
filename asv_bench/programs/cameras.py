"""Bundle adjustment: how far off a camera sees points from where they were found."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat
from .program import Program, rng

# A camera has eleven numbers (ADBench's): a rotation's axis times its angle, a centre, a focal
# length, a principal point, and two of radial distortion.


def adjustment(camera, points, weights, found):
    """Sum of squares of the weighted errors of one camera's points."""
    r, c, f, p, bent = camera[0:3], camera[3:6], camera[6], camera[7:9], camera[9:11]
    square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2]
    angle = nbta.sqrt(square)
    cos, sin = nbta.cos(angle), nbta.sin(angle)
    a, b, d = r[0] / angle, r[1] / angle, r[2] / angle

    def point(i, s):
        x, y, z = (points[i, k] - c[k] for k in range(3))
        along = (a * x + b * y + d * z) * (1.0 - cos)
        u = x * cos + (b * z - d * y) * sin + a * along
        v = y * cos + (d * x - a * z) * sin + b * along
        w = z * cos + (a * y - b * x) * sin + d * along
        u, v = u / w, v / w
        out = u * u + v * v
        lens = 1.0 + bent[0] * out + bent[1] * out * out
        off_u = weights[i] * (u * lens * f + p[0] - found[i, 0])
        off_v = weights[i] * (v * lens * f + p[1] - found[i, 1])
        return s + off_u * off_u + off_v * off_v

    return repeat(0, weights.shape[0], point, 0.0)


@njit(cache=True)
def adjustment_plain(camera, points, weights, found):
    r, c, f, p, bent = camera[0:3], camera[3:6], camera[6], camera[7:9], camera[9:11]
    angle = math.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
    cos, sin = math.cos(angle), math.sin(angle)
    a, b, d = r[0] / angle, r[1] / angle, r[2] / angle
    s = 0.0
    for i in range(len(weights)):
        x, y, z = points[i, 0] - c[0], points[i, 1] - c[1], points[i, 2] - c[2]
        along = (a * x + b * y + d * z) * (1.0 - cos)
        u = x * cos + (b * z - d * y) * sin + a * along
        v = y * cos + (d * x - a * z) * sin + b * along
        w = z * cos + (a * y - b * x) * sin + d * along
        u, v = u / w, v / w
        out = u * u + v * v
        lens = 1.0 + bent[0] * out + bent[1] * out * out
        off_u = weights[i] * (u * lens * f + p[0] - found[i, 0])
        off_v = weights[i] * (v * lens * f + p[1] - found[i, 1])
        s += off_u * off_u + off_v * off_v
    return s


def adjustment_in_jax(camera, points, weights, found):
    """A function of one point, for all by ``vmap``."""
    import jax
    import jax.numpy as jnp

    r, c, f, p, bent = camera[0:3], camera[3:6], camera[6], camera[7:9], camera[9:11]
    angle = jnp.sqrt(jnp.sum(r * r))
    axis, cos, sin = r / angle, jnp.cos(angle), jnp.sin(angle)

    def error(point, weight, found):
        x = point - c
        x = x * cos + jnp.cross(axis, x) * sin + axis * jnp.dot(axis, x) * (1.0 - cos)
        u = x[:2] / x[2]
        out = jnp.sum(u * u)
        lens = 1.0 + bent[0] * out + bent[1] * out * out
        return weight * (u * lens * f + p - found)

    return jnp.sum(jax.vmap(error)(points, weights, found) ** 2)


def adjustment_arguments(n):
    random = rng(n)
    camera = np.array([0.1, -0.2, 0.3, 0.1, 0.2, -4.0, 1.5, 0.1, 0.2, 0.05, -0.02])
    points, weights = random.normal(0, 0.5, (n, 3)), random.uniform(0.5, 1.5, n)
    return camera, points, weights, random.normal(0, 0.3, (n, 2))


PROGRAMS = [
    Program("bundle adjustment", adjustment, adjustment_plain, adjustment_arguments, 50_000, 3,
            (0, 1, 2), in_jax=adjustment_in_jax)
]  # fmt: skip
