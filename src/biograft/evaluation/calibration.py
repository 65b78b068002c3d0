"""Fit a linker's probabilities, and the threshold of NIL, on a gold standard held out for it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.evaluation.gold import LinkQuery
from biograft.evaluation.linking import EvaluationConfig, LinkingResult, evaluate_linking
from biograft.kb import KnowledgeBase
from biograft.linking.calibration import Calibration, choose_threshold, fit_calibration
from biograft.linking.linker import Linker
from biograft.metrics.calibration import calibration_error

_N_FOLDS = 5
Floats = npt.NDArray[np.float64]


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
    return calibrate_result(result, linker.described, method, aim)


def calibrate_result(
    result: LinkingResult, search: str, method: str = "isotonic", aim: str | None = None
) -> Calibration:
    """Fit a calibration to what was found already; ``search`` says what gave the scores."""
    if any(row.answered_nil and any(row.answers) for row in result.rows):
        raise ConfigError(
            "calibration: answers below a threshold were taken for NIL; evaluate without one "
            "(nil_below) to fit a calibration"
        )
    first = _first_answers(result)
    calibration = fit_calibration(first.scores, first.right, method, search=search)
    if aim is None:
        return calibration
    threshold = choose_threshold(calibration(first.scores), first.right > 0, first.nil, aim)
    return replace(calibration, threshold=threshold)


def calibration_gain(result: LinkingResult, method: str = "isotonic") -> tuple[float, float]:
    """Give the calibration error before and after: each answer by a fit to other documents.

    Before are the probabilities that the answers carry, or their scores brought to 0 to 1.
    """
    first = _first_answers(result)
    before = np.where(np.isnan(first.probability), np.clip(first.scores, 0, 1), first.probability)
    after = before.copy()
    for fold in range(_N_FOLDS):
        asked = first.folds == fold
        if asked.any() and not asked.all():
            fitted = fit_calibration(first.scores[~asked], first.right[~asked], method)
            after[asked] = fitted(first.scores[asked])
    return calibration_error(before, first.right), calibration_error(after, first.right)


@dataclass(frozen=True, slots=True)
class _FirstAnswers:
    scores: Floats
    right: Floats
    nil: npt.NDArray[np.bool_]
    """Where no concept fits."""
    probability: Floats
    """NaN where an answer carries none."""
    folds: npt.NDArray[np.int64]
    """Answers of one document are of one fold."""


def _first_answers(result: LinkingResult) -> _FirstAnswers:
    """Take the first answers of mentions that are not composite."""
    answered = [row for row in result.rows if row.answers and row.answers[0]]
    rows = [row for row in answered if len(row.query.parts) == 1]
    if not rows:
        raise ConfigError("calibration: the linker found nothing for any of the queries")
    first = [row.answers[0][0] for row in rows]
    documents = [row.query.document or row.query.mention for row in rows]
    return _FirstAnswers(
        scores=np.array([answer.score for answer in first], np.float64),
        right=np.array([row.right for row in rows], np.float64),
        nil=np.array([row.query.is_nil for row in rows]),
        probability=np.array([answer.probability for answer in first], np.float64),
        folds=np.array([zlib.crc32(name.encode()) % _N_FOLDS for name in documents]),
    )
