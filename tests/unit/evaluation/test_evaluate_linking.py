"""Evaluating rankers: what counts, what stays in the mean, NIL, intervals, comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.evaluation import (
    EvaluationConfig,
    LinkQuery,
    ScoredQueries,
    compare,
    evaluate_linking,
    nil_as_linked,
    paired,
    save_answers,
)
from biograft.linking import (
    FusedSearch,
    LexicalIndex,
    Linker,
    LinkerConfig,
    NameHits,
    SearchRanker,
    fit_calibration,
)
from biograft.text.documents import Document, Mention

SMALL = EvaluationConfig(n_resamples=20)


def query(mention: str, *gold: str, **more) -> LinkQuery:
    return LinkQuery(mention, frozenset(gold), **more)


def test_a_ranker_by_exact_name(base, exact):
    queries = [query("grippe", "MESH:D1"), query("Influenza", "OMIM:77"), query("nothing", "D2")]
    result = evaluate_linking(exact, base, queries, "lenient", SMALL)
    assert result.n == 3
    assert result["acc@1"] == pytest.approx(2 / 3)
    assert [row.rank for row in result.rows] == [1, 1, None]
    assert result["recall@30"] == result["mrr"] == pytest.approx(2 / 3)


def test_missing_answers_are_wrong(base):
    class EmptyRanker:
        def rank(self, queries, k):
            return []

    result = evaluate_linking(EmptyRanker(), base, [query("flu", "D1")] * 3, "lenient", SMALL)
    assert (result.n, result["acc@1"]) == (3, 0)


def test_equal_scores_count_half_under_the_strict_rule_only(base, exact):
    queries = [query("flu", "D4")]
    strict = evaluate_linking(exact, base, queries, "strict", SMALL)
    assert strict["acc@1"] == 0.5
    assert strict["mrr"] == 0.75
    assert evaluate_linking(exact, base, queries, "lenient", SMALL)["acc@1"] in (0, 1)


def test_batches_change_nothing(base, ranker):
    table = {str(k): [("D1", 2.0), ("D2", 1.0)] for k in range(7)}
    queries = [query(str(k), "D1" if k % 2 else "D2") for k in range(7)]
    results = [
        evaluate_linking(ranker(table), base, queries, "lenient", EvaluationConfig(batch=batch))
        for batch in (1, 3, 100)
    ]
    assert results[0].metrics == results[1].metrics == results[2].metrics
    assert results[0].intervals == results[1].intervals == results[2].intervals
    assert len(set(results[1].judgements.documents)) == 7
    assert all([row.query for row in result.rows] == queries for result in results)


def test_the_queries_of_a_document_are_in_one_batch(base):
    batches = []

    class Recorder:
        def rank(self, queries, k):
            batches.append([query.document for query in queries])
            return [[[]] for _ in queries]

    queries = [query("x", "D1", document=document) for document in "abbbcc"]
    queries += [query("x", "D1")] * 3
    evaluate_linking(Recorder(), base, queries, "lenient", EvaluationConfig(batch=2))
    assert batches == [["a", "b", "b", "b"], ["c", "c"], ["", ""], [""]]


def test_a_search_for_names_is_a_ranker(base):
    texts = base.table("names").column("text").to_pylist()

    def search(batches, k):
        rows = np.full((len(batches), k), -1, dtype=np.int64)
        scores = np.full((len(batches), k), -np.inf, dtype=np.float32)
        for index, text in enumerate(batches):
            result = [row for row, name in enumerate(texts) if name == text][:k]
            rows[index, : len(result)], scores[index, : len(result)] = result, 1.0
        return NameHits(rows, scores)

    queries = [query("flu", "D1"), query("flu", "D4"), query("none", "D2"), query("flu", parts=())]
    result = evaluate_linking(search, base, queries[:3], "strict", SMALL)
    assert [row.right for row in result.rows] == [0.5, 0.5, 0]
    first = result.rows[0].answers[0][0]
    assert (first.concept, first.name, first.evidence[0].rank) == ("MESH:D1", "flu", 1)


def test_the_linker_splits_mentions_itself(base, exact):
    linker, config = Linker.open(base), EvaluationConfig(n_resamples=20, split_mentions=True)
    both = query("breast cancer and ovarian cancer", "D5", "D6", parts=("breast cancer",))
    one = query("breast cancer and ovarian cancer", "D5")
    result = evaluate_linking(linker, base, [both, one], "strict", config)
    assert [row.right for row in result.rows] == [1, 0]
    assert [len(row.answers) for row in result.rows] == [2, 2]
    with pytest.raises(ConfigError, match="split_mentions: expected a linker"):
        evaluate_linking(exact, base, [both], "strict", config)


def test_nil_is_right_where_nothing_fits(base, ranker):
    table = {"flu": [("D1", 0.9)], "cold": [("D4", 0.2)], "x": [("D2", 0.1)]}
    queries = [query("flu", "D1"), query("cold", "D4"), query("x"), query("unheard")]
    config = EvaluationConfig(n_resamples=20, nil_below=0.5)
    result = evaluate_linking(ranker(table), base, queries, "lenient", config)
    assert [row.right for row in result.rows] == [1, 0, 1, 1]
    assert result["recall@1"] == 1
    assert (result["nil_precision"], result["nil_recall"]) == (2 / 3, 1)
    bare = evaluate_linking(ranker(table), base, queries, "lenient", SMALL)
    assert [row.right for row in bare.rows] == [1, 1, 0, 1]


def test_a_part_that_is_nil_is_missing_in_the_answer(base, ranker):
    table = {"breast cancer": [("D5", 0.9)], "ovarian cancer": [("D6", 0.2)]}
    composite = query("both", "D5", "D6", parts=tuple(table))
    config = EvaluationConfig(n_resamples=20, nil_below=0.5)
    for scorer in ("lenient", "strict"):
        (row,) = evaluate_linking(ranker(table), base, [composite], scorer, SMALL).rows
        assert (row.right, row.answered_nil) == (1, False)
        result = evaluate_linking(ranker(table), base, [composite], scorer, config)
        assert (result.rows[0].right, result.rows[0].answered_nil) == (0, False)
        assert result["recall@1"] == 1


def test_nil_by_score_where_there_are_probabilities(base, ranker):
    result = ranker({"flu": [("D1", -2.0)]}, probability=0.9)
    config = EvaluationConfig(n_resamples=20, nil_below=0.0)
    (row,) = evaluate_linking(result, base, [query("flu")], "lenient", config).rows
    assert (row.answered_nil, row.right) == (False, 0)
    by_score = EvaluationConfig(n_resamples=20, nil_below=0.0, nil_by_score=True)
    (row,) = evaluate_linking(result, base, [query("flu")], "lenient", by_score).rows
    assert (row.answered_nil, row.right) == (True, 1)


def test_answers_of_nil_need_no_probability(base, ranker):
    table = {"flu": [("D1", 1.0)]}
    queries = [query("flu", "D1"), query("unheard"), query("unheard of", "D2")]
    result = evaluate_linking(ranker(table, probability=0.75), base, queries, "lenient", SMALL)
    assert result["ece"] == pytest.approx(0.25)
    nothing = evaluate_linking(ranker({}, probability=0.75), base, queries, "lenient", SMALL)
    assert "ece" not in nothing.metrics


def test_two_runs_are_compared_query_by_query(base, ranker):
    queries = [query(str(k), "D1", document=f"d{k // 2}") for k in range(60)]
    good = ranker({str(k): [("D1", 1.0)] for k in range(60)})
    bad = ranker({str(k): [("D1", 1.0)] for k in range(20)})
    a, b = (evaluate_linking(r, base, queries, "lenient", SMALL) for r in (good, bad))
    result = paired(a, b)
    assert result.bootstrap.difference == pytest.approx(2 / 3)
    assert max(result.bootstrap.p, result.randomisation_p, result.mcnemar_p) < 0.01
    assert paired(a, a).mcnemar_p == 1


def test_saved_answers_are_compared_like_results(base, ranker, tmp_path):
    queries = [query(str(k), "D1", document="d", start=k, end=k + 1) for k in range(9)]
    queries.append(query("x", gold_names=("Cold", "Influenza")))
    some = [ranker({str(k): [("D1", 1.0)] for k in range(n)}) for n in (9, 5)]
    a, b = (evaluate_linking(r, base, queries, "lenient", SMALL) for r in some)
    save_answers(a, tmp_path / "a.json")
    saved = ScoredQueries.load(tmp_path / "a.json")
    assert saved.queries == ScoredQueries.of(a).queries
    assert compare(saved, b) == compare(a, saved.of(b)) == compare(a, b)
    assert paired(saved, b).bootstrap.difference == pytest.approx(0.4)


def test_comparing_needs_the_same_queries_and_whole_values(base, exact):
    a = evaluate_linking(exact, base, [query("flu", "D4")], "strict", SMALL)
    b = evaluate_linking(exact, base, [query("cold", "D4")], "strict", SMALL)
    assert paired(a, a).mcnemar_p is None
    with pytest.raises(ConfigError, match=r"'flu'.*'cold'"):
        paired(a, b)
    with pytest.raises(ConfigError, match="no value for each query"):
        paired(a, a, "nil_f1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": ()}, "ks: expected numbers from 1"),
        ({"level": 95}, "level: expected a number between 0 and 1, found 95"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        EvaluationConfig(**options)


TEXTS = ("Influenza", "influensa", "grippe", "gripe", "ovarian cancer", "orvarian cancers", "zzz")


def test_no_queries_are_refused(base, exact):
    with pytest.raises(ConfigError, match="queries: expected at least one"):
        evaluate_linking(exact, base, [])
    with pytest.raises(ConfigError, match="scorer: expected one of lenient, strict"):
        evaluate_linking(exact, base, [query("a", "D1")], "loose")


class Sceptic(SearchRanker):
    """Takes what is not quite the name for nothing; its probabilities say another thing."""

    nil_below = 0.95

    def rank_candidates(self, texts, pool, contexts):
        ranked = super().rank_candidates(texts, pool, contexts)
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
        (Sceptic, None, None, (0.95, True)),
        (Sceptic, 0.6, None, (0.6, False)),
        (None, None, 0.9, (0.9, False)),
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


class ReadsContext(Linker):
    """A linker whose answers depend on the text around a mention."""

    uses_context = True


def test_a_linker_that_reads_texts_refuses_gold_without_them(base):
    linker = ReadsContext(base, LexicalIndex.build(base))
    query = LinkQuery("flu", frozenset({"D4"}), start=2, end=5)
    with pytest.raises(ConfigError, match=r"queries: none of the 1 has a text.*--no-context"):
        evaluate_linking(linker, base, [query])
    alone = evaluate_linking(linker, base, [query], config=EvaluationConfig(context=False))
    read = evaluate_linking(linker, base, [replace(query, context="a flu")])
    assert alone["acc@5"] == read["acc@5"] == 1
