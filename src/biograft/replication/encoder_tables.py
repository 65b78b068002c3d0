"""Tables of pre-trained encoders: on held-out text, on tasks, and in probes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from biograft.metrics import paired_t
from biograft.replication.experiment import Experiment, TableConfig
from biograft.replication.linking_tables import markdown
from biograft.replication.results import Row, without_fold

_SETTINGS = ("seeds", "epochs", "max_examples", "task_changes")


def encoder_tasks(name: str, result: Mapping[str, Any]) -> str:
    """Return the table of an experiment of kind ``encoder_tasks``."""
    table = Experiment.load(name).table
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


def cloze(result: Mapping[str, Any]) -> str:
    """Return macro recall of encoders in a cloze probe, with intervals."""
    answers = result["answers"]
    models = next(iter(answers.values()))["models"]
    lines = []
    for name, answer in answers.items():
        cells = [f"{m['all']['recall']:.2f} {_interval(m['all'])}" for m in answer["models"]]
        found = answer["differences"][0]["all"]
        difference = f"{found['difference']:+.2f} ({found['p']:.3f})"
        lines.append([name, f"{answer['n_queries']:,}", *cells, difference])
    labels = (model["model"] for model in models)
    return markdown(["store", "queries", *labels, "difference (p)"], lines)


def _interval(metrics: Mapping[str, Any], digits: int = 2) -> str:
    low, high = metrics["interval"]
    return f"({low:.{digits}f} to {high:.{digits}f})"


_QUERY_SETS = ("D1", "D2", "D3")


def similar_names(result: Mapping[str, Any]) -> str:
    """Return acc@1 of encoders among names that look similar."""
    answers = result["answers"]
    columns = [(name, part) for name in answers for part in _QUERY_SETS]
    sizes = (f"{answers[name]['encoders'][0][part]['n']:,}" for name, part in columns)
    labels = dict.fromkeys(e["label"] for of in answers.values() for e in of["encoders"])
    lines = (
        [label, *(_accuracy(answers[name], label, part) for name, part in columns)]
        for label in labels
    )
    head = ["encoder", *(f"{name}, {part}" for name, part in columns)]
    return markdown(head, [["*queries*", *sizes], *lines])


def _accuracy(answer: Mapping[str, Any], label: str, part: str) -> str:
    for each in answer["encoders"]:
        if each["label"] == label and each[part]["n"]:
            interval = f" {_interval(each[part], 1)}" if part == "D1" else ""
            return f"{each[part]['acc@1']:.1f}{interval}"
    return ""


def attention_change(result: Mapping[str, Any]) -> str:
    """Return how far attention moves when another name replaces an entity."""
    lines = []
    for name, answer in result["answers"].items():
        n = answer["n_sentences"]
        for model in answer["models"]:
            means = [f"{model[kind]['mean']:.2f}" for kind in ("synonym", "random")]
            ratio = f"{model['n_synonym_nearer'] / n:.0%}"
            lines.append([f"{name} ({n})", model["encoder"], *means, ratio])
    head = ["text (sentences)", "encoder", "synonym", "another entity", "synonym nearer"]
    return markdown(head, lines)
