"""The tables of what probes find in models, from their result files."""

from __future__ import annotations

from typing import Any


def kebiolm_probe(result: dict[str, Any]) -> str:
    """Say what the probe finds in both encoders."""
    stores = result["stores"]
    lines = ["| store | queries | mlm | kebiolm | difference (p) |", "|---|---|---|---|---|"]
    for name, found in stores.items():
        cells = [f"{m['all']['recall']:.2f} {_interval(m['all'])}" for m in found["models"]]
        told = found["differences"][0]["all"]
        by = f"{told['difference']:+.2f} ({told['p']:.3f})"
        lines.append(f"| {name} | {found['n_queries']:,} | {' | '.join(cells)} | {by} |")
    lengths = next(iter(stores.values()))["lengths"]
    tokens = f"{lengths[0]} to {lengths[-1]} tokens"
    return f"""Macro recall@5 in percent with 95 % intervals, blanks of {tokens}
([result](../benchmarks/results/kebiolm_probe.json), `{result["command"]}`):

{chr(10).join(lines)}
"""


def _interval(figures: dict[str, Any], digits: int = 2) -> str:
    low, high = figures["interval"]
    return f"({low:.{digits}f} to {high:.{digits}f})"


def similar_names(result: dict[str, Any]) -> str:
    """Say which encoder tells another name of a thing from names that look alike."""
    stores = result["asked"]
    sizes = [
        f"{name}: {', '.join(f'{part} {_asked(found, part):,}' for part in _PARTS)}"
        for name, found in stores.items()
    ]
    columns = [f"{name}, {part}" for name in stores for part in _PARTS]
    lines = [f"| encoder | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    labels = dict.fromkeys(each["label"] for of in stores.values() for each in of["encoders"])
    for label in labels:
        cells = [_right(of, label, part) for of in stores.values() for part in _PARTS]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return f"""acc@1 in percent with 95 % intervals on D1; by chance
{next(iter(stores.values()))["chance"]:.0f}. Queries of {"; of ".join(sizes)}
([result](../benchmarks/results/similar_names.json), `{next(iter(stores.values()))["command"]}`):

{chr(10).join(lines)}
"""


_PARTS = ("D1", "D2", "D3")


def _asked(found: dict[str, Any], part: str) -> int:
    return int(found["encoders"][0][part]["n"])


def _right(found: dict[str, Any], label: str, part: str) -> str:
    for each in found["encoders"]:
        if each["label"] == label and each[part]["n"]:
            around = f" {_interval(each[part], 1)}" if part == "D1" else ""
            return f"{each[part]['acc@1']:.1f}{around}"
    return ""


def attention_change(result: dict[str, Any]) -> str:
    """Say how far attention moves when another name stands in an entity's place."""
    lines = ["| text | encoder | a synonym | another entity | synonym nearer |", "|---" * 5 + "|"]
    for name, found in result["asked"].items():
        for model in found["models"]:
            means = [f"{model[kind]['mean']:.2f}" for kind in ("synonym", "random")]
            share = f"{model['n_synonym_nearer'] / found['n_sentences']:.0%}"
            cells = [f"{name} ({found['n_sentences']})", model["encoder"], *means, share]
            lines.append(f"| {' | '.join(cells)} |")
    return f"""Mean absolute change of the attention that the context pays to the entity's place,
and in how many sentences the synonym's curve is the nearer
([result](../benchmarks/results/attention_change.json), `{found["command"]}`):

{chr(10).join(lines)}
"""
