"""How well a linker says that no concept fits (NIL): precision, recall, F1."""

from __future__ import annotations

from biograft.metrics.counts import Counts
from biograft.metrics.judgements import Flags, Judgements
from biograft.metrics.metric import Measure


def nil_counts(gold: Flags, answered: Flags) -> Counts:
    """Count right, wrong and missed NIL answers."""
    return Counts(
        right=int((gold & answered).sum()),
        wrong=int((~gold & answered).sum()),
        missed=int((gold & ~answered).sum()),
    )


def _counts(judged: Judgements) -> Counts:
    return nil_counts(judged.nil, judged.answered_nil)


PRECISION = Measure(of_all=lambda judged, _: _counts(judged).precision)
RECALL = Measure(of_all=lambda judged, _: _counts(judged).recall)
F1 = Measure(of_all=lambda judged, _: _counts(judged).f1)
