"""Programs run in every way there is: eagerly, traced, and as the fetches of a session."""

import importlib.util

import numpy as np

import nbta
from nbta.structure import leaves


def both(f, *args):
    """What a program gives eagerly, which must be what its graph gives."""
    eager, traced = f(*args), nbta.function(f)(*args)
    assert len(leaves(eager)) == len(leaves(traced))
    for one, other in zip(leaves(eager), leaves(traced), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    return traced


def checked(f, *args, order=2):
    """`both`, and derivatives up to an order; the value."""
    nbta.testing.check_grads(f, args, order=order)
    return both(f, *args)


def run(build, *values):
    """The values of what ``build`` gives for placeholders that are fed with ``values``."""
    with nbta.Graph().as_default() as graph:
        arrays = [np.asarray(value) for value in values]
        fed = [nbta.placeholder(a.dtype, a.shape, name=f"x{i}") for i, a in enumerate(arrays)]
        fetches = build(*fed)
    return nbta.Session(graph).run(fetches, dict(zip(fed, arrays, strict=True)))


def array(size=0, **options):
    """A float64 array of scalars that may be read often."""
    options = {"clear_after_read": False, "element_shape": (), **options}
    return nbta.TensorArray("float64", size=size, **options)


def written(folder, text, name="f"):
    """A function of a module that is made of a text, as users have theirs in files."""
    path = folder / "written.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
