"""Puts kernels as object files into a wheel, which makes it a wheel for one platform and Python.

Not into an editable installation, whose sources change: that compiles what it uses. With
``NBTA_BUILD_KERNELS=0`` the wheel is of Python files alone, and compiles at the first use, too.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Runs `nbta.kernels.ahead` of the sources that are built."""

    made = None

    def initialize(self, version, build_data):
        """Make the files, and say what kind of wheel it will be."""
        if version == "editable" or os.environ.get("NBTA_BUILD_KERNELS") == "0":
            return
        self.made = tempfile.mkdtemp(prefix="nbta-kernels-")
        paths = [self.root, os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-m", "nbta.kernels.ahead", self.made]
        if subprocess.run(command, env=environment, check=False).returncode:
            shutil.rmtree(self.made, ignore_errors=True)
            raise SystemExit("kernels could not be compiled; NBTA_BUILD_KERNELS=0 leaves them out")
        build_data["force_include"][self.made] = "nbta/objects"
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version, build_data, artifact_path):
        """Remove what is in the wheel now."""
        if self.made is not None:
            shutil.rmtree(self.made, ignore_errors=True)
