"""The curves of documents, drawn from their result files.

    python benchmarks/figures.py

Needs the extra `report`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from command_line import RESULTS
from matplotlib import rc_context
from matplotlib.figure import Figure
from pretraining_tables import folds_as_one

FIGURES = RESULTS.parents[1] / "docs" / "figures"
CURVES = {
    "told_share": ("share of the entities found that the model is told", "told "),
    "smedbert_neighbours_ablations": ("neighbours of an entity", " neighbours"),
}
"""Of each file of results, what its encoders' labels count, and the words beside the number."""


def curves(result: dict[str, Any], words: str) -> dict[str, list[tuple[float, float, float]]]:
    """Give of each set the points: the number of a label, the mean on test, its deviation."""
    return {
        row["set"]: sorted(
            (
                float(label.replace(words, "")),
                found["test"]["mean"],
                found["test"]["deviation"] or 0,
            )
            for label, found in row["encoders"].items()
        )
        for row in folds_as_one(result["rows"])
    }


def draw(result: dict[str, Any], about: str, words: str, out: Path) -> None:
    """Draw a curve with deviations for each set, side by side: their levels differ."""
    found = curves(result, words)
    figure = Figure(figsize=(4 * len(found), 3), layout="constrained")
    for place, (name, points) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        at, means, deviations = zip(*points, strict=True)
        place.errorbar(at, means, deviations, marker="o", capsize=3, color="#1f6f8b")
        place.set_title(name)
        place.set_xlabel(about)
        place.set_ylabel("on test, percent")
        place.grid(alpha=0.3)
    out.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": out.stem}):  # equal results give equal files
        figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Draw what there are results of."""
    for name, (about, words) in CURVES.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            out = FIGURES / f"{re.sub('_ablations$', '', name)}.svg"
            draw(json.loads(path.read_text(encoding="utf-8")), about, words, out)
            print(out.relative_to(FIGURES.parents[1]))


if __name__ == "__main__":
    main()
