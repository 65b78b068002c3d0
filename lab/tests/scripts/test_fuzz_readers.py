"""The script that fuzzes readers counts inputs over runs, and keeps what it finds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.long
def test_counts_add_up(tmp_path):
    command = [sys.executable, "-m", "biograft_lab.scripts.fuzz_readers", "--quick", "--json"]
    command += ["--readers", "llm-answer,wording"]
    command += ["--add", str(tmp_path / "fuzz.json"), "--found", str(tmp_path / "found")]
    runs = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    added = json.loads((tmp_path / "fuzz.json").read_text(encoding="utf-8"))
    for name in ("llm-answer", "wording"):
        inputs = [run["readers"][name]["inputs"] for run in runs]
        assert min(inputs) > 10
        assert added["readers"][name]["inputs"] == sum(inputs)
        assert added["readers"][name]["findings"] == 0
    assert not (tmp_path / "found").exists()
