"""Tables of accuracy: linking, and encoders on tasks, from result files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from biograft.metrics import paired_t
from biograft_lab.replication.experiment import Experiment, TableConfig
from biograft_lab.replication.results import Row, without_fold

Rows = Sequence[Row]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def linking_cross_lingual(result: Mapping[str, Any]) -> str:
    """Return acc@1 and acc@5 on the test mentions whose concept is in the dictionary."""
    lines = []
    for row in result["rows"]:
        if row["split"] != "test":
            continue
        search, _, label = row["config"].partition(":")
        system = f"{label} + lexical" if search == "lexical+dense" else label or search
        part = row["reachable"]
        low, high = part["interval"]
        first = f"{part['acc@1']:.1f} ({low:.1f}–{high:.1f})"
        reachable = f"{part['n']:,} ({row['coverage']:.0f} %)"
        cells = [row["set"], system, f"{row['n']:,}", reachable, first, f"{part['acc@5']:.1f}"]
        lines.append(cells)
    head = ["set", "system", "mentions", "reachable", "acc@1, reachable", "acc@5, reachable"]
    return markdown(head, lines)


def learned_objectives(name: str, result: Mapping[str, Any]) -> str:
    """Return the accuracy of objectives on held-out text, beside chance and the standard error."""
    lines = []
    for row in result["rows"]:
        found = row["held_out"]
        for objective, label in Experiment.load(name).table.held_out.items():
            accuracy, chance, error, n = (
                found[f"{objective}.{each}"] for each in ("accuracy", "chance", "error", "n")
            )
            above = (accuracy - chance) / error if error else 0.0
            share = [f"{100 * accuracy:.1f} ± {100 * error:.1f}", f"{100 * chance:.1f}"]
            cells = [row["config"], str(row["pretraining_seed"]), label, f"{n:,.0f}"]
            lines.append([*cells, *share, f"{above:+.1f}"])
    head = ["encoder", "seed", "objective", "items", "accuracy, %", "chance, %", "errors above"]
    return markdown(head, lines)


_FULL = "names, then mentions"
_STARTS = ("names only", "mentions only", _FULL, "in their texts")
_TARGETS = {"similar": "most similar to the mention", "shortest": "shortest", "random": "random"}
_NAMES = {"all": "all", "shortest": "shortest", "random": "random"}


def generation_starts(result: Mapping[str, Any]) -> str:
    """Return recall with and without pre-training on names."""
    rows, sets = _united(result)
    lines = [
        [config, *(_both(_of(rows, name, config)) for name in sets)]
        for config in _STARTS
        if any(_of(rows, name, config) for name in sets)
    ]
    return markdown(["recall@1 / @5", *sets], lines)


def generation_targets(result: Mapping[str, Any]) -> str:
    """Return recall by the name that is learned and the names that may be generated."""
    rows, sets = _united(result)
    variants = Experiment.load("genbioel-linking").variants
    chosen = [
        label
        for label, variant in variants.items()
        if not {"search", "text"} & variant.keys() and label not in _STARTS[:2]
        if any(_of(rows, name, label) for name in sets)
    ]
    complete = [name for name in sets if all(_of(rows, name, label) for label in chosen)]
    lines = []
    for label in chosen:
        variant = variants[label]
        target = _TARGETS[variant.get("target", "similar")]
        names, prompt = _NAMES[variant.get("names", "all")], variant.get("prompt", True)
        cells = [target, names, "yes" if prompt else "no"]
        lines.append([*cells, *(_both(_of(rows, name, label)) for name in complete)])
    return markdown(["learned name", "allowed names", "prompt", *complete], lines)


def _united(result: Mapping[str, Any]) -> tuple[list[Row], list[str]]:
    """Return the rows with the folds of a set under one name, and the names of the sets."""
    rows = [{**row, "set": without_fold(row["set"])} for row in result["rows"]]
    return rows, list(dict.fromkeys(row["set"] for row in rows))


def _of(rows: Rows, name: str, config: str) -> Rows:
    return [row for row in rows if (row["set"], row["config"]) == (name, config)]


def _both(rows: Rows, keys: Iterable[str] = ("recall@1", "recall@5")) -> str:
    return " / ".join(_mean([row[key] for row in rows]) for key in keys) if rows else "–"


def _mean(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{fmean(values):.1f} ± {stdev(values):.1f}"


_SETTINGS = ("seeds", "epochs", "max_examples", "task_changes")


def encoder_tasks(name: str, result: Mapping[str, Any]) -> str:
    """Return the table of an experiment of kind ``encoder_tasks``, for its own sets."""
    table, result = Experiment.load(name).table, of_own_sets(name, result)
    by_sets = table.rows == "sets"
    return _sets_as_rows(table, result) if by_sets else _encoders_as_rows(table, result)


def _encoders_as_rows(table: TableConfig, result: Mapping[str, Any]) -> str:
    rows = unite_folds(result["rows"], table.reference)
    lines = []
    for label in dict.fromkeys(label for row in rows for label in row["encoders"]):
        held_out = _held_out(rows, label)
        cells = [f"{100 * held_out[key]:.1f}" if key in held_out else "" for key in table.held_out]
        lines.append([label, *cells, *(_score(row, label, table.reference) for row in rows)])
    names = [f"{name}, %" for name in table.held_out.values()]
    return markdown(["encoder", *names, *(row["set"] for row in rows)], lines)


def _sets_as_rows(table: TableConfig, result: Mapping[str, Any]) -> str:
    rows = result["rows"]
    labels = rows[0]["labels"]
    last = labels[-1]
    lines = []
    for row in rows:
        sizes = row["n_examples"]
        cells = [f"{row['set']} ({sizes['train']:,} / {sizes['test']:,})"]
        cells += [_mean_of(row["encoders"][label]["test"]) for label in labels]
        cells.append(_difference(row["differences"], last, table.reference))
        lines.append([*cells, _coverage(row.get("coverage"))])
    head = ["set (train / test)", *labels, f"{last} - {table.reference} (p)", "in store / table"]
    return markdown(head, lines)


def of_own_sets(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of the sets that an experiment has, not of those that it had."""
    sets = Experiment.load(name).sets
    return {**result, "rows": [row for row in result["rows"] if row["set"] in sets]}


def fine_tuning(result: Mapping[str, Any]) -> str:
    """Return in a line over what the means are, and how many examples were learned from."""
    rows = unite_folds(result["rows"], "")
    seeds = max(len(row["seeds"]) for row in rows)
    sizes = (f"{row['set']} {row['n_examples']['train']:,} x {row['epochs']}" for row in rows)
    return f"{seeds} seeds; training examples x epochs: {'; '.join(sizes)}"


def _held_out(rows: Iterable[Row], label: str) -> dict[str, float]:
    """Return the metrics of an encoder on held-out text, from the first row that has them."""
    found: Iterable[dict[str, float]] = (row.get("held_out", {}).get(label, {}) for row in rows)
    return next((metrics for metrics in found if metrics), {})


def unite_folds(rows: Sequence[Row], reference: str) -> list[Row]:
    """Replace the folds of a set, measured in the same way, by one row."""
    united: dict[str, list[Row]] = {}
    for index, row in enumerate(rows):
        name = without_fold(row["set"])
        settings = [row.get(key) for key in _SETTINGS]
        if name == row["set"]:  # no fold: a row of its own, whatever others there are
            settings.append(index)
        united.setdefault(json.dumps([name, settings]), []).append(row)
    return [of[0] if len(of) == 1 else _over_folds(of, reference) for of in united.values()]


def _over_folds(folds: Sequence[Row], reference: str) -> Row:
    values = {
        label: [row["encoders"][label]["test"]["mean"] for row in folds]
        for label in folds[0]["encoders"]
    }
    return {
        **folds[0],
        "set": f"{without_fold(folds[0]['set'])}, {len(folds)} folds",
        "folds": len(folds),
        "encoders": {
            label: {"test": {"values": of, "mean": fmean(of), "deviation": stdev(of)}}
            for label, of in values.items()
        },
        "differences": [
            {"of": reference, "against": label, "p": {"paired": paired_t(values[reference], of).p}}
            for label, of in values.items()
            if reference in values and label != reference
        ],
    }


def _score(row: Row, label: str, reference: str) -> str:
    found = row["encoders"].get(label)
    return _mean_of(found["test"]) + _p_value(row, label, reference) if found else ""


def _p_value(row: Row, label: str, reference: str) -> str:
    """Return the p of the difference to the reference: Welch's over seeds, paired over folds."""
    pair = {label, reference}
    found = [each for each in row["differences"] if {each["of"], each["against"]} == pair]
    test = "paired" if "folds" in row else "welch"
    return f" ({found[0]['p'][test]:.2f})" if found else ""


def _mean_of(metrics: Mapping[str, Any]) -> str:
    if len(metrics["values"]) == 1:
        return f"{metrics['mean']:.1f}"
    return f"{metrics['mean']:.1f} ± {metrics['deviation']:.1f}"


def _difference(differences: Iterable[Row], of: str, against: str) -> str:
    for each in differences:
        if (each["of"], each["against"]) == (of, against):
            return f"{each['by']:+.1f} ({each['p']['welch']:.2f})"
    return ""


def _coverage(ratios: Mapping[str, Any] | None) -> str:
    return f"{ratios['in_store']:.0%} / {ratios['in_table']:.0%}" if ratios else ""
