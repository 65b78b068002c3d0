"""Whether one system is better than another, or than a published figure, over their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from biograft.errors import ConfigError
from biograft.metrics import TTest, one_sample_t, paired_t, welch_t
from biograft.tasks.results import figure_of, scores_of

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
