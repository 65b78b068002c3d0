"""NIL in an evaluation is NIL where the linker itself says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from biograft.documents import Document, Mention
from biograft.evaluation import EvaluationConfig, LinkQuery, evaluate_linking, nil_as_linked
from biograft.linking import FusedSearch, Linker
from biograft.linking.calibration import fit_calibration
from biograft.linking.config import LinkerConfig
from biograft.linking.lexical import LexicalIndex
from biograft.linking.rerank.reranker import SearchRanker

TEXTS = ("Influenza", "influensa", "grippe", "gripe", "ovarian cancer", "orvarian cancers", "zzz")


class Sceptic(SearchRanker):
    """Takes what is not quite the name for nothing; its probabilities say another thing."""

    nil_below = 0.95

    def rank_candidates(self, texts, gathered, contexts):
        ranked = super().rank_candidates(texts, gathered, contexts)
        return [[replace(c, probability=1 - c.score / 2) for c in each] for each in ranked]


@pytest.fixture
def linker_of(base):
    search = FusedSearch([LexicalIndex.build(base)])
    fitted = fit_calibration([1.0, 0.9, 0.8, 0.7, 0.5], [1, 1, 0.6, 0.5, 0])

    def build(kind=None, threshold=None, fitted_threshold=None):
        calibration = replace(fitted, threshold=fitted_threshold) if fitted_threshold else None
        return Linker(
            base,
            search,
            ranker=kind(base, search.weights) if kind else None,
            calibration=calibration,
            config=LinkerConfig(threshold=threshold),
        )

    return build


@pytest.mark.parametrize(
    ("kind", "threshold", "fitted_threshold", "expected"),
    [
        (None, None, None, (None, False)),
        (SearchRanker, None, None, (None, False)),
        (Sceptic, None, None, (0.95, True)),
        (None, 0.97, None, (0.97, False)),
        (Sceptic, 0.6, None, (0.6, False)),
        (None, None, 0.9, (0.9, False)),
        (Sceptic, None, 0.9, (0.9, False)),
        (Sceptic, 0.3, 0.9, (0.3, False)),
    ],
)
def test_the_evaluation_says_nil_where_linking_does(
    linker_of, base, kind, threshold, fitted_threshold, expected
):
    linker = linker_of(kind, threshold, fitted_threshold)
    config = nil_as_linked(linker, EvaluationConfig(n_resamples=5, seed=3))
    assert (config.nil_below, config.nil_by_score, config.seed) == (*expected, 3)
    result = evaluate_linking(linker, base, [LinkQuery(text) for text in TEXTS], config=config)
    documents = [Document("", text, (Mention(0, len(text), text),)) for text in TEXTS]
    linked = [document.mentions[0].concept is None for document in linker.pipe(documents)]
    assert [row.answered_nil for row in result.rows] == linked
    if expected[0] is not None:
        assert {True, False} == set(linked)


def test_a_calibration_without_threshold_says_no_nil_nor_does_the_ranker(linker_of):
    calibrated = linker_of(Sceptic, None, 0.9)
    calibrated.calibration = replace(calibrated.calibration, threshold=None)
    assert nil_as_linked(calibrated).nil_below is None
    assert nil_as_linked(calibrated, EvaluationConfig(nil_below=0.5)).nil_below is None
