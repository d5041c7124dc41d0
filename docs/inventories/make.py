"""Write the inventories that builds without a network use: ``python docs/inventories/make.py``.

An inventory says where a project documents a name. These have the names that nbta's pages refer to
and no others; a build with a network fetches the projects' own.
"""

import re
import zlib
from pathlib import Path

NUMPY_PAGE = "reference/generated/{name}.html#{name}"
CLASSES = ("numpy.ndarray", "numpy.dtype")
SOURCES = Path(__file__).parents[2] / "nbta"
NUMBA = {
    ("py:function", "numba.jit"): "reference/jit-compilation.html#numba.jit",
    ("py:function", "numba.njit"): "reference/jit-compilation.html#numba.njit",
    ("py:function", "numba.set_num_threads"): "user/threading-layer.html#numba.set_num_threads",
}


def inventory(project, entries):
    """An inventory of version 2; entries are (role, name) -> address."""
    head = (
        "# Sphinx inventory version 2\n"
        f"# Project: {project}\n"
        "# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    lines = [f"{name} {role} 1 {address} -\n" for (role, name), address in sorted(entries.items())]
    return head.encode() + zlib.compress("".join(lines).encode(), 9)


def main():
    """Write both files beside this one."""
    texts = [path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"(?<!`)`(numpy\.[\w.]+)`", text)}
    functions = {"numpy.matmul", *named}.difference(CLASSES)
    roles = [("py:class", one) for one in CLASSES] + [("py:function", one) for one in functions]
    numpy = {(role, name): NUMPY_PAGE.format(name=name) for role, name in roles}
    folder = Path(__file__).parent
    for project, entries in (("numpy", numpy), ("numba", NUMBA)):
        (folder / f"{project}.inv").write_bytes(inventory(project, entries))


if __name__ == "__main__":
    main()
