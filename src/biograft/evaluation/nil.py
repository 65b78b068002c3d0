"""Say NIL in an evaluation where the linker itself would."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from biograft.evaluation.linking import EvaluationConfig
from biograft.linking.linker import Linker


def nil_as_linked(linker: Linker, config: EvaluationConfig | None = None) -> EvaluationConfig:
    """Take for NIL what the linker takes for it.

    That is by the threshold it was opened with, else by that of its calibration; a linker with
    neither threshold nor calibration leaves it to its ranker, some of which know a score.
    """
    config = config or EvaluationConfig()
    if linker.threshold is not None:
        return replace(config, nil_below=linker.threshold, nil_by_score=False)
    nil_below = getattr(linker.ranker, "nil_below", None)
    if linker.calibration is None and nil_below is not None and isfinite(nil_below):
        return replace(config, nil_below=float(nil_below), nil_by_score=True)
    return replace(config, nil_below=None, nil_by_score=False)
