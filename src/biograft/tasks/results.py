"""What a run of a task found, over its seeds, on disk and as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from biograft.artifacts import Kind
from biograft.errors import ConfigError
from biograft.metrics import TTest, one_sample_t, paired_t, welch_t

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


_COUNTING = {
    "ner": ("types",),
    "relation": ("negative",),
    "matching": ("positive",),
    "ranking": ("questions",),
}
"""Of each kind of task, the settings that say what its figure counts."""


def compare_runs(a: str | Path, b: str | Path, part: str = "test") -> dict[str, Any]:
    """Compare two runs of one kind of task on the same examples, by the figure of the kind.

    Runs whose settings let the figure count different things, such as types of entities, are
    refused.
    Welch's test takes the seeds as drawn apart; the paired test, of runs with the same seeds,
    takes those of one seed together.
    """
    results_a, scores_a = scores_of(Path(a), part)
    results_b, scores_b = scores_of(Path(b), part)
    figure = figure_of(results_a)
    if results_a["task"] != results_b["task"]:
        tasks = f"{results_a['task']} and {results_b['task']}"
        raise ConfigError(f"{a} and {b} are runs of different tasks ({tasks})")
    if results_a["data"].get(part) != results_b["data"].get(part):
        raise ConfigError(f"{a} and {b} were measured on different examples ({part})")
    _refuse_other_counting(a, b, results_a, results_b)
    values_a, values_b = list(scores_a.values()), list(scores_b.values())
    shared = [seed for seed in scores_a if seed in scores_b]
    compared: dict[str, Any] = {
        "part": part,
        "figure": figure,
        figure: fmean(values_a),
        "against": fmean(values_b),
        "difference": fmean(values_a) - fmean(values_b),
        "welch": _plain(welch_t(values_a, values_b)),
    }
    if len(shared) == len(scores_a) == len(scores_b):
        ordered = ([scores[seed] for seed in shared] for scores in (scores_a, scores_b))
        compared["paired"] = _plain(paired_t(*ordered))
    return compared


def compare_with_figure(run: str | Path, figure: float, part: str = "test") -> dict[str, Any]:
    """Compare the main figure of a run with a published one, a share of 1.

    The test is a one-sample t-test.
    """
    if not 0 <= figure <= 1:
        raise ConfigError(f"figure: expected a share from 0 to 1, found {figure}")
    results, scores = scores_of(Path(run), part)
    test = one_sample_t(list(scores.values()), figure)
    return {
        "part": part,
        "figure": figure_of(results),
        figure_of(results): fmean(scores.values()),
        "against": figure,
        "difference": test.difference,
        "one_sample": _plain(test),
    }


def _refuse_other_counting(
    a: str | Path, b: str | Path, results_a: Mapping[str, Any], results_b: Mapping[str, Any]
) -> None:
    for name in _COUNTING.get(results_a["task"], ()):
        in_a, in_b = (
            results.get("recipe", {}).get("config", {}).get(name)
            for results in (results_a, results_b)
        )
        if _in_order(in_a) != _in_order(in_b):
            raise ConfigError(
                f"{a} and {b} count different things: config.{name} is {in_a!r} in the one and "
                f"{in_b!r} in the other; compare runs with the same"
            )


def _in_order(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value


def _plain(test: TTest) -> dict[str, Any]:
    """Give a test as plain values; a t beyond all bounds (no spread at all) as none."""
    return {**asdict(test), "t": test.t if isfinite(test.t) else None}
