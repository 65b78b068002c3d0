"""Figures of documents: effects of claims, and curves over sizes of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from biograft.metrics import Verdict
from biograft_lab.places import BENCHMARKS, DOCS, LAB_DOCS
from biograft_lab.replication.claims import OWN, PAPERS, JudgedClaim, judge_claims
from biograft_lab.replication.results import read_result

_MEMORY = {
    "resident_mib": "resident",
    "unique_mib": "unique",
    "unique_mib_of_eight": "of eight, each",
}


_VERDICTS = {
    Verdict.REPRODUCED: "#1f6f8b",
    Verdict.SAME_SIGN: "#7fb3c4",
    Verdict.NO_EFFECT: "#9a9a9a",
    Verdict.OPPOSITE: "#c1572b",
    Verdict.NOT_LEARNED: "#b59ad1",
}


def draw_start(result: Mapping[str, Any], out: Path) -> None:
    """Draw the time and the memory of a process that links one sentence, by number of names."""
    parts = [part for part in result["parts"].values() if "cold_start_seconds" in part]
    parts.sort(key=lambda part: part["n_names"])
    names = [part["n_names"] for part in parts]
    figure, (time, memory) = _panels(2)
    for key, label in (("cold_start_seconds", "wall"), ("cold_start_processor_seconds", "CPU")):
        time.plot(names, [part[key] for part in parts], marker="o", label=label)
    time.set_ylabel("seconds")
    for key, label in _MEMORY.items():
        memory.plot(names, [part[key] for part in parts], marker="o", label=label)
    memory.set_ylabel("MiB")
    for axes, title in ((time, "cold start: link one sentence"), (memory, "memory")):
        axes.set_title(title)
        axes.set_xlabel("names in the index")
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.legend()
        axes.grid(alpha=0.3)
    _save(figure, out)


def draw_peers(result: Mapping[str, Any], out: Path) -> None:
    """Draw abstracts per second and F1 of biograft and its peers on GSC+."""
    rows = [each for each in result["tables"]["text"].items() if "per_second" in each[1]]
    figure, (axes,) = _panels(1, (6, 3.4))
    for name, row in rows:
        colour = "tab:red" if name.startswith("biograft") else "tab:gray"
        axes.plot(row["per_second"], row["f1"], "o", color=colour)
        place = {"xytext": (5, 4), "textcoords": "offset points", "fontsize": "small"}
        axes.annotate(name, (row["per_second"], row["f1"]), **place)
    axes.set_xscale("log")
    axes.set_xlabel("abstracts per second of a processor")
    axes.set_ylabel("F1 of phenotypes, GSC+")
    axes.margins(x=0.2, y=0.15)
    axes.grid(alpha=0.3)
    _save(figure, out)


def _panels(n: int, size: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """Return a figure with panels beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size or (4 * n, 3), layout="constrained")
    return figure, figure.subplots(1, n, squeeze=False)[0]


def _save(figure: Any, out: Path) -> None:
    from matplotlib import rc_context

    out.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": out.stem}):  # equal results give equal files
        figure.savefig(out, metadata={"Date": None})


def draw_claims(folder: Path) -> list[Path]:
    """Draw the effects of each paper's claims with their intervals; return the files."""
    judged = judge_claims()
    drawn = []
    for paper in PAPERS:
        known = [each for each in judged if each.claim.whose == paper and each.evidence]
        if known:
            out = folder / f"claims-{'ours' if paper == OWN else paper.lower()}.svg"
            _draw(known, out)
            drawn.append(out)
    return drawn


def _draw(judged: Sequence[JudgedClaim], out: Path) -> None:
    """Draw one line a claim: the effect and its interval, coloured by the verdict."""
    figure, (axes,) = _panels(1, (7, 0.8 + 0.28 * len(judged)))
    for row, each in enumerate(reversed(judged)):
        evidence = each.evidence
        if evidence is None:
            continue
        error = [[evidence.effect - evidence.low], [evidence.high - evidence.effect]]
        axes.errorbar(
            [evidence.effect], [row], xerr=error, fmt="o", capsize=3, color=_VERDICTS[each.verdict]
        )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(judged)), [each.claim.name for each in reversed(judged)])
    axes.set_xlabel("percentage points, above 0 as claimed; 95 % interval")
    axes.grid(axis="x", alpha=0.3)
    present = {each.verdict for each in judged}
    for verdict, colour in _VERDICTS.items():
        if verdict in present:
            axes.plot([], [], "o", color=colour, label=str(verdict))
    axes.legend(loc="best", fontsize="small")
    _save(figure, out)


def draw_all(folder: Path | None = None) -> list[Path]:
    """Draw every figure that has results, in ``folder`` or where the documents have them."""
    drawn = draw_claims(folder or LAB_DOCS / "figures")
    folder = folder or DOCS / "figures"
    speed = read_result(BENCHMARKS / "linking_speed.json")
    if any("cold_start_processor_seconds" in part for part in speed["parts"].values()):
        draw_start(speed, folder / "cold-start.svg")
        drawn.append(folder / "cold-start.svg")
    draw_peers(read_result(BENCHMARKS / "compare_peers.json"), folder / "peers.svg")
    return [*drawn, folder / "peers.svg"]
