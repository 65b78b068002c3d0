"""The tables of linking by generation, from the rows of genbioel_linking.json."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

Rows = Sequence[dict[str, Any]]

_STARTS = {
    "pretrained alone": "names learned, mentions not",
    "new-similar-all-prompt": "mentions alone",
    "pretrained-similar-all-prompt": "names, then mentions",
}
_TARGETS = {
    "pretrained-similar-all-prompt": ("most like the mention", "all", "yes"),
    "pretrained-shortest-all-prompt": ("shortest", "all", "yes"),
    "pretrained-random-all-prompt": ("drawn", "all", "yes"),
    "pretrained-shortest-shortest-prompt": ("shortest", "shortest", "yes"),
    "pretrained-random-random-prompt": ("drawn", "drawn", "yes"),
    "pretrained-similar-all-bare": ("most like the mention", "all", "no"),
}
_SEARCHES = ("lexical", "dense", "lexical+dense")


def genbioel_linking(result: dict[str, Any]) -> str:
    """Put starts, targets, searches and parts of the test sets in tables."""
    rows = [{**row, "set": _without_fold(row["set"])} for row in result["rows"]]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    parts = [
        f"""A BART of 2 + 2 layers from scratch, on the test parts, percent; {_said(rows)}. A name
counts, as in the paper: it is right if any of its concepts is
([result](../benchmarks/results/genbioel_linking.json), `{rows[0]["command"]}`):""",
        _starts(rows, sets),
        _targets(rows, sets),
        _searches(rows, sets),
        _populations(rows, sets),
        _memory(rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_LAST = "pretrained-similar-all-prompt"


def _without_fold(name: str) -> str:
    """Take the number of the fold off the name of a set that has several."""
    return re.sub(r"-\d$", "", name)


def _said(rows: Rows) -> str:
    seeds = len({row["seed"] for row in rows})
    over = ["5 folds of askapatient" if any(row["set"] == "askapatient" for row in rows) else ""]
    over.append(f"{seeds} seeds" if seeds > 1 else "")
    told = " or ".join(part for part in over if part)
    return (
        f"mean and deviation over {told} where a deviation is told, else one seed"
        if told
        else ("one seed")
    )


def _starts(rows: Rows, sets: Sequence[str]) -> str:
    lines = ["| recall@1 / @5 |" + "".join(f" {name} |" for name in sets)]
    lines.append("|---" * (1 + len(sets)) + "|")
    for config, label in _STARTS.items():
        cells = [_both(_of(rows, name, config)) for name in sets]
        if any(cells):
            lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _targets(rows: Rows, sets: Sequence[str]) -> str:
    asked = [n for n in sets if all(_of(rows, n, config) for config in _TARGETS)]
    if not asked:
        return ""
    lines = [
        "Which name of a concept is learned, which names may be written, with the prompt or not:",
        "",
        "| learned | may be written | prompt |" + "".join(f" {name} |" for name in asked),
        "|---" * (3 + len(asked)) + "|",
    ]
    for config, said in _TARGETS.items():
        cells = [*said, *(_both(_of(rows, name, config)) for name in asked)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _searches(rows: Rows, sets: Sequence[str]) -> str:
    asked = [n for n in sets if all(_of(rows, n, config) for config in _SEARCHES)]
    if not asked:
        return ""
    lines = [
        "Beside a search; here candidates count as in all linking (acc@1 / acc@5), the share of",
        "generation is fitted on dev:",
        "",
        "| |" + "".join(f" {name} |" for name in asked),
        "|---" * (1 + len(asked)) + "|",
    ]
    for config in (_LAST, *_SEARCHES, *(f"generative+{search}" for search in _SEARCHES)):
        cells = [_both(_of(rows, name, config), ("acc@1", "acc@5")) for name in asked]
        label = "generation" if config == _LAST else config.replace("generative", "generation")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _populations(rows: Rows, sets: Sequence[str]) -> str:
    """Compare with and without pre-training on parts of the mentions."""
    new = "new-similar-all-prompt"
    lines = [
        "acc@1 on parts of the mentions, without and with pre-training on names:",
        "",
        "| | of all |" + "".join(f" {name} |" for name in sets),
        "|---" * (2 + len(sets)) + "|",
    ]
    first = _of(rows, sets[0], _LAST)[0]
    for place, part in enumerate(first["populations"]):
        if part["name"] == "overall":
            continue
        share = part["n"] / first["populations"][0]["n"]
        cells = []
        for name in sets:
            both = [_of(rows, name, config) for config in (new, _LAST)]
            values = [[row["populations"][place]["acc@1"] for row in found] for found in both]
            cells.append(" / ".join(f"{statistics.fmean(v):.1f}" for v in values if v))
        lines.append(f"| {part['name']} | {share:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _memory(rows: Rows) -> str:
    trie = next((row for row in rows if row["config"] == _LAST), None)
    dense = next((row for row in rows if row["config"] == "dense" and trie
                  and row["set"] == trie["set"]), None)  # fmt: skip
    if trie is None or dense is None:
        return ""
    n, names = trie["n_concepts"], trie["n_names"]
    return (
        f"Of {trie['set']} ({n:,} concepts, {names:,} names) the trie takes "
        f"{trie['trie_bytes'] / n:,.0f} bytes a concept, vectors of 384 numbers in 32 bits with "
        f"what leads to names {dense['vectors_bytes'] / n:,.0f}."
    )


def _of(rows: Rows, name: str, config: str) -> Rows:
    return [row for row in rows if (row["set"], row["config"]) == (name, config)]


def _both(rows: Rows, keys: Iterable[str] = ("recall@1", "recall@5")) -> str:
    if not rows:
        return ""
    return " / ".join(_mean([row[key] for row in rows]) for key in keys)


def _mean(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}"
