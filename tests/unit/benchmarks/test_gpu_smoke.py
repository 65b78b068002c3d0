"""The smoke run of all recipes: tiny models on the processor, and machines without a GPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from biograft.recipe import shipped_recipes

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "gpu_smoke.py"


def run(*arguments):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", *arguments],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, json.loads(done.stdout.splitlines()[-1])


def test_every_recipe_of_a_model_belongs_to_a_family(script):
    families = script("gpu_smoke").families()
    for kind in ("pretrain", "task", "linker", "graph"):
        for name in shipped_recipes(kind):
            stands_for = name.removesuffix("-cpu")
            if stands_for.startswith("genbioel-finetune"):
                stands_for = "genbioel-finetune"
            assert kind == families.get(name, families.get(stands_for))


def test_a_machine_without_a_gpu_is_told_so():
    done, result = run()
    assert done.returncode == 0
    assert "no GPU here" in done.stderr
    assert result == {"gpu": None, "families": {}}


@pytest.mark.long
def test_every_family_trains_with_tiny_models():
    done, result = run("--device", "cpu", "--quick")
    assert done.returncode == 0, done.stderr
    assert len(result["families"]) > 15
    for name, found in result["families"].items():
        assert found["ok"], (name, found)
        assert found["peak_gib"] > 0
        if name == "linker-ranker":
            continue  # it logs no losses
        assert math.isfinite(found["loss"])
        assert found["n_losses"] == (1 if name.startswith("trans") else 2)
        assert name.startswith("trans") or found["tokens_per_second"] > 0


def test_a_failing_family_is_reported(script, monkeypatch, tmp_path):
    smoke = script("gpu_smoke")

    class Failing:
        folder, meter = tmp_path, smoke.Meter(())

        def graph(self, name, out):
            raise ValueError("too large")

    found = smoke.measure(Failing(), "transe", "graph", "cpu")
    assert found == {"ok": False, "error": "ValueError: too large"}
