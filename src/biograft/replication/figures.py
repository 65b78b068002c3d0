"""Figures of documents: curves over the variants of an experiment. Needs the extra ``report``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

from biograft.errors import MissingExtraError
from biograft.replication.experiment import REPOSITORY, RESULTS
from biograft.replication.results import read_result
from biograft.replication.tables import unite_folds

FIGURES = REPOSITORY / "docs" / "figures"
CURVES = {
    "entity-coverage": ("fraction of mentions with an entity input", "coverage "),
    "smedbert-neighbours": ("neighbours of an entity", " neighbours"),
}
"""Of each experiment the quantity that its labels give, and the words beside the number."""


Curves = dict[str, list[tuple[float, float, float]]]
"""Of each encoder the points of its curve."""
_COLOURS = ("#1f6f8b", "#c1572b", "#4c7a34", "#6b4e8e")


def points(result: Mapping[str, Any], words: str) -> dict[str, Curves]:
    """Return the curves of each set: the number of a label, the mean on test, its deviation.

    A label is a number with its words, perhaps after an encoder: ``ERNIE, coverage 0.5``.
    """
    curves: dict[str, Curves] = {}
    for row in unite_folds(result["rows"], ""):
        of_set = curves.setdefault(row["set"], {})
        for label, found in row["encoders"].items():
            encoder, _, number = label.rpartition(", ")
            test = found["test"]
            point = (float(number.replace(words, "")), test["mean"], test["deviation"] or 0)
            of_set.setdefault(encoder, []).append(point)
    return {name: {k: sorted(v) for k, v in each.items()} for name, each in curves.items()}


def draw(result: Mapping[str, Any], quantity: str, words: str, out: Path) -> None:
    """Draw curves with deviations, a panel for each set, because their levels differ."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("report", "a figure") from error
    curves = points(result, words)
    figure = Figure(figsize=(4 * len(curves), 3), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (name, of_set) in zip(panels, curves.items(), strict=True):
        for (encoder, values), colour in zip(of_set.items(), cycle(_COLOURS), strict=False):
            at, means, deviations = zip(*values, strict=True)
            axes.errorbar(at, means, deviations, marker="o", capsize=3, color=colour, label=encoder)
        if len(of_set) > 1:
            axes.legend()
        axes.set_title(name)
        axes.set_xlabel(quantity)
        axes.set_ylabel("on test, percent")
        axes.grid(alpha=0.3)
    out.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": out.stem}):  # equal results give equal files
        figure.savefig(out, metadata={"Date": None})


def draw_all(folder: Path = FIGURES) -> list[Path]:
    """Draw every figure that has results; return the files."""
    drawn = []
    for name, (quantity, words) in CURVES.items():
        path, out = RESULTS / f"{name}.json", folder / f"{name}.svg"
        if path.exists():
            draw(read_result(path), quantity, words, out)
            drawn.append(out)
    return drawn
