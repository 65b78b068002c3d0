"""Results of a fine-tuning run over its seeds, and significance tests between runs.

``results.json`` holds the metrics of a run, ``result.json`` those of one seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from biograft.artifacts import ArtifactKind
from biograft.errors import ConfigError
from biograft.metrics import TTest, one_sample_t, paired_t, welch_t

RESULTS = ArtifactKind(
    format="biograft-task-results",
    version=1,
    called="task run",
    remedy="go on with the run (biograft finetune --resume)",
    absent="train one with biograft finetune",
    file="results.json",
    keys=("task", "metric", "seeds", "data"),
)
RESULT = ArtifactKind(
    format="biograft-task-result",
    version=1,
    called="result of one seed",
    remedy="remove its folder and go on with the run (--resume)",
    file="result.json",
    keys=("seed", "dev"),
)


def summarise(reports: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """Return mean, sample standard deviation (None for one run) and values of each metric.

    Args:
        reports: Metrics of each run.
        metrics: Names of the metrics.
    """
    return {name: _summary([float(report[name]) for report in reports]) for name in metrics}


def numbers_of(report: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a report with their dotted keys.

    Args:
        report: The report, a table of tables and values.
        before: Key of the report and a dot.
    """
    for name, value in report.items():
        if isinstance(value, Mapping):
            yield from numbers_of(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{before}{name}", value


def summarise_numbers(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return mean, deviation and values of each number that all reports have, by dotted key."""
    flat = [dict(numbers_of(report)) for report in reports]
    return summarise(flat, [name for name in flat[0] if all(name in each for each in flat)])


def _summary(values: Sequence[float]) -> dict[str, Any]:
    deviation = stdev(values) if len(values) > 1 else None
    return {"mean": fmean(values), "deviation": deviation, "values": list(values)}


def chance_of(reports: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the chance level of each split, where the reports have one."""
    levels = {
        split: of_seeds[0]["chance"]
        for split, of_seeds in reports.items()
        if of_seeds and "chance" in of_seeds[0]
    }
    return {"chance": levels} if levels else {}


def keep_test(results: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Copy earlier test results into new ones if the seeds are the same.

    Args:
        results: New results.
        before: Earlier results.
    """
    merged = dict(results)
    if "test" not in before or before["seeds"] != merged["seeds"]:
        return merged
    merged["test"] = before["test"]
    for table in ("chance", "n_examples", "data", "data_sets"):
        if "test" in before.get(table, {}):
            merged[table] = {**merged.get(table, {}), "test": before[table]["test"]}
    return merged


def main_metric_of(results: Mapping[str, Any]) -> str:
    """Return the name of the main metric of a run."""
    return str(results["metric"])


def scores_of(run: Path, split: str) -> tuple[dict[str, Any], dict[int, float]]:
    """Return the results of a run, and its main metric on a split by seed.

    Args:
        run: Folder of the run.
        split: ``test`` or ``dev``.
    """
    results = RESULTS.read(run)
    if split not in results:
        raise ConfigError(f"{run}: was not evaluated on {split}; train it with --{split}")
    values = results[split][main_metric_of(results)]["values"]
    return results, dict(zip(results["seeds"], values, strict=True))


def compare_runs(a: str | Path, b: str | Path, split: str = "test") -> dict[str, Any]:
    """Compare the main metric of two runs of one task on the same examples.

    Runs whose configuration makes the metric count different things, such as types of entities,
    are refused. Welch's test treats the seeds as independent samples; the paired test, for runs
    with the same seeds, pairs them.

    Args:
        a: Folder of the first run.
        b: Folder of the second run.
        split: Examples that they are compared on: ``test`` or ``dev``.
    """
    results_a, scores_a = scores_of(Path(a), split)
    results_b, scores_b = scores_of(Path(b), split)
    metric = main_metric_of(results_a)
    if results_a["task"] != results_b["task"]:
        tasks = f"{results_a['task']} and {results_b['task']}"
        raise ConfigError(f"{a} and {b} are runs of different tasks ({tasks})")
    if results_a["data"].get(split) != results_b["data"].get(split):
        raise ConfigError(f"{a} and {b} were evaluated on different examples ({split})")
    _check_counting(a, b, results_a, results_b)
    values_a, values_b = list(scores_a.values()), list(scores_b.values())
    shared = [seed for seed in scores_a if seed in scores_b]
    comparison: dict[str, Any] = {
        "split": split,
        "metric": metric,
        metric: fmean(values_a),
        "against": fmean(values_b),
        "difference": fmean(values_a) - fmean(values_b),
        "welch": _plain(welch_t(values_a, values_b)),
    }
    if len(shared) == len(scores_a) == len(scores_b):
        ordered = ([scores[seed] for seed in shared] for scores in (scores_a, scores_b))
        comparison["paired"] = _plain(paired_t(*ordered))
    return comparison


def compare_with_value(run: str | Path, value: float, split: str = "test") -> dict[str, Any]:
    """Compare the main metric of a run with a published value from 0 to 1 (one-sample t-test).

    Args:
        run: Folder of the run.
        value: The published value.
        split: Examples that it is compared on: ``test`` or ``dev``.
    """
    if not 0 <= value <= 1:
        raise ConfigError(f"published value: expected a number from 0 to 1, found {value}")
    results, scores = scores_of(Path(run), split)
    metric = main_metric_of(results)
    test = one_sample_t(list(scores.values()), value)
    return {
        "split": split,
        "metric": metric,
        metric: fmean(scores.values()),
        "against": value,
        "difference": test.difference,
        "one_sample": _plain(test),
    }


def _check_counting(
    a: str | Path, b: str | Path, results_a: Mapping[str, Any], results_b: Mapping[str, Any]
) -> None:
    """Refuse runs that differ in a setting of ``TaskKind.counting``."""
    for name in results_a.get("counting", ()):
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
    """Return a test as plain values; an infinite t (no variance) becomes None."""
    return {**asdict(test), "t": test.t if isfinite(test.t) else None}
