"""Calibration of a linker: fit probabilities and the NIL threshold on held-out gold queries."""

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
from biograft.kb.fingerprints import store_fingerprint
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
    include queries without a concept then (``GoldConfig(keep_nil=True)``). Composite mentions are
    left out: their answers have several scores.
    """
    if linker.calibration is not None:
        raise ConfigError("calibration: this linker has one; open it without to fit another")
    single = [query for query in queries if len(query.parts) == 1]
    result = evaluate_linking(linker, kb, single, config=EvaluationConfig(ks=(1,), n_resamples=1))
    store = store_fingerprint(kb)
    return calibrate_result(result, linker.score_source, method, aim, store=store)


def calibrate_result(
    result: LinkingResult,
    search: str,
    method: str = "isotonic",
    aim: str | None = None,
    *,
    store: str,
) -> Calibration:
    """Fit a calibration to the answers of an evaluation.

    Args:
        result: The evaluation, without a threshold of NIL.
        search: Source of the scores (``Linker.score_source``).
        method: ``isotonic`` or ``platt``.
        aim: Criterion of the NIL threshold (``f1``, ``precision>=0.95``); None: no threshold.
        store: Fingerprint of the knowledge base that was searched (``store_fingerprint``).

    Raises:
        ConfigError: Answers were counted as NIL, or there are none.
    """
    if any(row.answered_nil and any(row.answers) for row in result.rows):
        raise ConfigError(
            "calibration: answers below a threshold were taken for NIL; evaluate without one "
            "(nil_below) to fit a calibration"
        )
    answers = _top_answers(result)
    calibration = fit_calibration(answers.scores, answers.right, method, search=search, store=store)
    if aim is None:
        return calibration
    threshold = choose_threshold(calibration(answers.scores), answers.right > 0, answers.nil, aim)
    return replace(calibration, threshold=threshold)


def calibration_gain(result: LinkingResult, method: str = "isotonic") -> tuple[float, float]:
    """Return the calibration error before and after calibration, cross-validated by document.

    Before are the probabilities of the answers, or their scores clipped to 0 to 1.
    """
    answers = _top_answers(result)
    before = np.where(
        np.isnan(answers.probability), np.clip(answers.scores, 0, 1), answers.probability
    )
    after = before.copy()
    for fold in range(_N_FOLDS):
        held_out = answers.folds == fold
        if held_out.any() and not held_out.all():
            calibration = fit_calibration(
                answers.scores[~held_out], answers.right[~held_out], method
            )
            after[held_out] = calibration(answers.scores[held_out])
    return calibration_error(before, answers.right), calibration_error(after, answers.right)


@dataclass(frozen=True, slots=True)
class _TopAnswers:
    scores: Floats
    right: Floats
    nil: npt.NDArray[np.bool_]
    """Whether the gold is NIL."""
    probability: Floats
    """NaN for answers without probability."""
    folds: npt.NDArray[np.int64]
    """All answers of a document are in one fold."""


def _top_answers(result: LinkingResult) -> _TopAnswers:
    """Return the first answers of mentions that are not composite."""
    answered = [row for row in result.rows if row.answers and row.answers[0]]
    rows = [row for row in answered if len(row.query.parts) == 1]
    if not rows:
        raise ConfigError("calibration: the linker has no answer to any query")
    answers = [row.answers[0][0] for row in rows]
    documents = [row.query.document or row.query.mention for row in rows]
    return _TopAnswers(
        scores=np.array([answer.score for answer in answers], np.float64),
        right=np.array([row.right for row in rows], np.float64),
        nil=np.array([row.query.is_nil for row in rows]),
        probability=np.array([answer.probability for answer in answers], np.float64),
        folds=np.array([zlib.crc32(name.encode()) % _N_FOLDS for name in documents]),
    )
