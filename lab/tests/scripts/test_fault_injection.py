"""A full disk or a kill at any step leaves nothing wrong behind (a few of the steps)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="calls fail on Linux only")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, cc")
def test_a_store_and_a_mapping_are_whole_or_not_there(tmp_path):
    command = [sys.executable, "-m", "biograft_lab.scripts.fault_injection", "--json"]
    command += ["--max-steps", "4", "--folder", str(tmp_path)]
    command += ["--operations", "kb build,map", "--faults", "no space,killed"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    outcomes = result["operations"]
    assert {name: outcome["problems"] for name, outcome in outcomes.items()} == {
        "kb build": [],
        "map": [],
    }
    assert outcomes["kb build"]["steps"] > 50
    assert outcomes["kb build"]["refused"] > 0
    assert outcomes["kb build"]["killed"] > 0
