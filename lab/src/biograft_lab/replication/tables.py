"""Tables of accuracy from result files: linking, objectives, generation, findings, matching."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from biograft_lab.replication.experiment import Experiment
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
        for objective, label in Experiment.load(name).held_out.items():
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


_STORES = {"medic": "English, MEDIC", "chinese": "Chinese, built-in"}


def layout_invariance(result: Mapping[str, Any]) -> str:
    """Return the number of variants of each kind, and of those that changed a finding."""
    kinds = dict.fromkeys(kind for name in _STORES for kind in result[name]["kinds"])
    rows = [
        [kind, *(_changed(result[name]["kinds"].get(kind)) for name in _STORES)] for kind in kinds
    ]
    return markdown(("changed of all variants", *_STORES.values()), rows)


def _changed(of: Mapping[str, Any] | None) -> str:
    return "" if of is None else f"{of['changed']:,} of {of['variants']:,}"


_TOOLS = {
    "biograft match": "biograft",
    "labels": "equal labels, then equal synonyms",
    "lexmatch": "OAK lexmatch",
}


def match_ontologies(result: Mapping[str, Any]) -> str:
    """Return the rows of each tool; thresholds between which it answers the same are left out."""
    rows = []
    for name, title in _TOOLS.items():
        last: object = None
        for row in result["found"].get(name, ()):
            if row["recall"] and (row["precision"], row["recall"]) != last:
                last = (row["precision"], row["recall"])
                rows.append([title, str(row["threshold"]), _with_interval(row, "precision")])
                rows[-1].append(_with_interval(row, "recall"))
    heads = ("Disease Ontology to MEDIC", "confidence from", "precision", "recall")
    return markdown(heads, rows)


def _with_interval(row: Mapping[str, Any], of: str) -> str:
    low, high = row[f"{of}_interval"]
    return f"{row[of]:.1f} ({low:.1f}–{high:.1f})"
