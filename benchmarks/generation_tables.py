"""The tables of linking by generation, from their result files."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from result_rows import without_fold

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
    rows = [{**row, "set": without_fold(row["set"])} for row in result["rows"]]
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


def trie(result: dict[str, Any]) -> str:
    """Say what keeping to the names of a trie costs, beside the published way."""
    sizes = {int(n): _with_bytes(int(n), found) for n, found in result["sizes"].items()}
    heads = " | ".join(f"{n:,} names" for n in sizes)
    rows = [
        ("memory, MiB: flat / nested dictionaries", "{mib:.0f} / {dict_mib:,.0f}"),
        ("bytes a name: flat / nested / a vector of 768 numbers in 16 bits", "{bytes_a_name}"),
        ("built in seconds", "{build_seconds:.1f} / {dict_build_seconds:.1f}"),
        ("look-ups of a step, ratio", "{mask_ratio:.0f}"),
        ("constraint of a step, ratio to callback and mask", "{step_ratio:.0f}"),
        ("time of constrained over unconstrained generation", "{constrained_over_unconstrained}"),
        ("mentions a second over the published way", "{over_published:.1f}"),
    ]
    lines = [
        f"| {label} | {' | '.join(cell.format(**found) for found in sizes.values())} |"
        for label, cell in rows
    ]
    same = "the same answers" if result["same_answers"] else "other answers"
    return f"""Against what was published (nested dictionaries, a callback for each hypothesis, one
mention at a time without a cache), with {same}, on {result["machine"]["n_cores"]} cores: names of
random tokens, a random BART of 2 + 2 layers, {result["mentions"]} mentions of {result["beams"]}
beams; unconstrained is `generate` of transformers for as many tokens
([result](../benchmarks/results/trie.json), `python benchmarks/trie.py`):

| | {heads} |
|---{"|---" * len(sizes)}|
{chr(10).join(lines)}
"""


def _with_bytes(n: int, found: dict[str, Any]) -> dict[str, Any]:
    each = [found[key] * 2**20 / n for key in ("mib", "dict_mib")]
    return {**found, "bytes_a_name": f"{each[0]:.0f} / {each[1]:,.0f} / {768 * 2:,}"}
