"""Adds what the public home of the project decides to the metadata: links, and the README's."""

import importlib.util
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def _home(root):
    """Load the module beside this one: hatchling loads a hook by its path, without its folder."""
    path = Path(root) / "packaging" / "home.py"
    spec = importlib.util.spec_from_file_location("nbta_home", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class HomeHook(MetadataHookInterface):
    """Sets ``urls`` and ``readme``, which pyproject.toml declares as dynamic."""

    def update(self, metadata):
        """Called by hatchling with the table ``project``."""
        root = Path(self.root)
        module = _home(root)
        settings = module.settings(root)
        version = _VERSION.search((root / "nbta" / "__init__.py").read_text(encoding="utf-8"))[1]
        readme = (root / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = module.urls(**settings)
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": module.absolute(readme, settings["home"], version, root),
        }
