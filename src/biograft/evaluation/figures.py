"""Figures of a linking report as PNG: recall by k, accuracy by similarity, reliability."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from biograft.errors import MissingExtraError
from biograft.evaluation.analysis import Population
from biograft.evaluation.linking import LinkingResult
from biograft.metrics.linking import concept_answers, reliability

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError("report", "drawing figures") from error

_SIZE = (5.0, 3.4)
_COLOUR = "#1f5a85"


def draw_figures(result: LinkingResult, buckets: Sequence[Population]) -> dict[str, bytes]:
    """Draw all figures that the result has data for: name -> PNG.

    Args:
        result: The evaluation.
        buckets: Accuracy by similarity (``similarity_buckets``).
    """
    figures = {
        "recall": _png(lambda axes: _recall(axes, result)),
        "similarity": _png(lambda axes: _by_similarity(axes, buckets)),
    }
    if "ece" in result.metrics:
        figures["reliability"] = _png(lambda axes: _reliability(axes, result))
    return figures


def _png(plot: Callable[[Any], None]) -> bytes:
    # without pyplot: no window system, and no global state
    figure = Figure(figsize=_SIZE, dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    plot(axes)
    buffer = io.BytesIO()
    # no date and no version, so that equal results give equal files
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _recall(axes: Any, result: LinkingResult) -> None:
    ranks = np.arange(1, result.judgements.depth + 1)
    axes.plot(ranks, 100 * result.judgements.recall.mean(axis=0), color=_COLOUR, label="recall@k")
    axes.plot(
        ranks, 100 * result.judgements.right.mean(axis=0), "--", color="#c0561f", label="acc@k"
    )
    axes.set(xlabel="k", ylabel="percent", title="Recall and accuracy by number of answers")
    axes.legend(frameon=False, loc="lower right")


def _by_similarity(axes: Any, buckets: Sequence[Population]) -> None:
    filled = [bucket for bucket in buckets if bucket.n]
    positions = np.arange(len(filled))
    heights = np.array([100 * bucket.acc1 for bucket in filled])
    low = heights - [100 * bucket.interval.low for bucket in filled]
    high = [100 * bucket.interval.high for bucket in filled] - heights
    axes.bar(positions, heights, color=_COLOUR, yerr=np.clip([low, high], 0, None), capsize=3)
    axes.set_xticks(
        positions, [f"{bucket.name}\nn={bucket.n:,}" for bucket in filled], fontsize=6.5
    )
    axes.set(ylabel="acc@1, percent", ylim=(0, 105), title="Accuracy by similarity to a gold name")


def _reliability(axes: Any, result: LinkingResult) -> None:
    probability, right = concept_answers(result.judgements)
    bins = reliability(probability, right)
    axes.plot([0, 1], [0, 1], ":", color="grey")
    sizes = [20 + 180 * b.n / len(right) for b in bins]
    axes.scatter([b.probability for b in bins], [b.accuracy for b in bins], sizes, color=_COLOUR)
    axes.plot([b.probability for b in bins], [b.accuracy for b in bins], color=_COLOUR)
    axes.set(xlabel="probability", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_title("Reliability (size: number of answers)")
