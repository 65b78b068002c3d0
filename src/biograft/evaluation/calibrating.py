"""Fit a linker's probabilities, and the threshold of NIL, on a gold standard held out for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from biograft.errors import ConfigError
from biograft.evaluation.linking import EvaluationConfig, evaluate_linking
from biograft.evaluation.queries import LinkQuery
from biograft.kb import KnowledgeBase
from biograft.linking.calibration import Calibration, choose_threshold, fit_calibration
from biograft.linking.linker import Linker


def calibrate_linker(
    linker: Linker,
    queries: Sequence[LinkQuery],
    kb: KnowledgeBase,
    method: str = "isotonic",
    aim: str | None = None,
) -> Calibration:
    """Fit a calibration to a linker's first answers on training or development queries.

    With ``aim`` (``f1``, ``precision>=0.95``) the calibration also carries the threshold of NIL;
    ask queries without a concept too then (``GoldConfig(keep_nil=True)``). Composite mentions
    are left out: their answers have several scores.
    """
    if linker.calibration is not None:
        raise ConfigError("calibration: this linker has one; open it without to fit another")
    single = [query for query in queries if len(query.parts) == 1]
    result = evaluate_linking(linker, kb, single, config=EvaluationConfig(ks=(1,), n_resamples=1))
    rows = [row for row in result.rows if row.answers and row.answers[0]]
    if not rows:
        raise ConfigError("calibration: the linker found nothing for any of the queries")
    scores = np.array([row.answers[0][0].score for row in rows])
    right = np.array([row.right for row in rows])
    calibration = fit_calibration(scores, right, method, search=linker.described)
    if aim is None:
        return calibration
    nil = np.array([row.query.is_nil for row in rows])
    threshold = choose_threshold(calibration(scores), right > 0, nil, aim)
    return replace(calibration, threshold=threshold)
