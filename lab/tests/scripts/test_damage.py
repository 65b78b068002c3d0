"""Damaged files are refused, found by `biograft check`, or do no harm (a few files)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
def test_damage_is_never_silent_after_check(tmp_path):
    command = [sys.executable, "-m", "biograft_lab.scripts.damage", "--quick", "--json"]
    command += ["--folder", str(tmp_path), "--artefacts", "store;annotated text"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)["artefacts"]
    assert {name: outcome["problems"] for name, outcome in outcomes.items()} == {
        "store": [],
        "annotated text": [],
    }
    assert all(outcome["counts"]["refused"] for outcome in outcomes.values())
    assert all(outcome["damages"] >= 8 for outcome in outcomes.values())
