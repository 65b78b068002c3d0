"""What a run of a task found, over its seeds, on disk and as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from biograft.errors import ConfigError
from biograft.manifests import Kind

RESULTS = Kind(
    format="biograft-task-results",
    version=1,
    called="run of a task",
    remedy="go on with the run (biograft finetune --resume)",
    absent="train one with biograft finetune",
    file="results.json",
    keys=("task", "seeds", "data"),
)
RESULT = Kind(
    format="biograft-task-result",
    version=1,
    called="result of one seed",
    remedy="remove its folder and go on with the run (--resume)",
    file="result.json",
    keys=("seed", "learning_rate", "dev"),
)


def summarise(reports: Sequence[Mapping[str, Any]], figures: Sequence[str]) -> dict[str, Any]:
    """Give mean, sample deviation (none of one run) and values of each figure over runs."""
    return {name: _spread([float(report[name]) for report in reports]) for name in figures}


def chance_of(reports: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Give the level of chance on each part, where reports state it; it is the same for all."""
    levels = {
        part: found[0]["chance"]
        for part, found in reports.items()
        if found and "chance" in found[0]
    }
    return {"chance": levels} if levels else {}


def keep_test(results: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Take over what was found on test before, if it was with the same seeds and rate."""
    kept = dict(results)
    if "test" not in before or any(before[key] != kept[key] for key in ("seeds", "learning_rate")):
        return kept
    kept["test"] = before["test"]
    for table in ("chance", "n_examples", "data"):
        if "test" in before.get(table, {}):
            kept[table] = {**kept.get(table, {}), "test": before[table]["test"]}
    return kept


def _spread(values: Sequence[float]) -> dict[str, Any]:
    deviation = stdev(values) if len(values) > 1 else None
    return {"mean": fmean(values), "deviation": deviation, "values": list(values)}


def figure_of(results: Mapping[str, Any]) -> str:
    """Name the main figure of the results of a run; the first ones did not say it."""
    return str(results.get("figure", "f1"))


def scores_of(run: Path, part: str) -> tuple[dict[str, Any], dict[int, float]]:
    """Give the results of a run, and its main figure on a part by seed."""
    results = RESULTS.read(run)
    if part not in results:
        raise ConfigError(f"{run}: was not measured on {part}; train it with --{part}")
    values = results[part][figure_of(results)]["values"]
    return results, dict(zip(results["seeds"], values, strict=True))
