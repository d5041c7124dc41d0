"""Two processes write the same source for a program: code on the disk is found by it."""

import json
import os
import subprocess
import sys

import printed_sources
import pytest


def start(seed, nests, folder):
    environment = os.environ | {"PYTHONHASHSEED": str(seed), "NBTA_CACHE_DIR": str(folder)}
    command = [sys.executable, printed_sources.__file__, str(seed), str(nests)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "nests"), [(6, 0), (3, 25)])
def test_processes_write_the_same_source(tmp_path, processes, nests):
    started = [start(seed, nests, tmp_path / str(seed)) for seed in range(processes)]
    found = [json.loads(process.communicate(timeout=300)[0]) for process in started]
    assert len(found[0]) == nests + 2
    for other in found[1:]:
        assert [name for name in other if other[name] != found[0][name]] == []
