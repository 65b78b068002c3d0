"""Evaluating rankers: what counts, what stays in the mean, NIL, intervals, comparison."""

from __future__ import annotations

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.evaluation import EvaluationConfig, LinkQuery, evaluate_linking, paired
from biograft.linking.candidates import NameHits

SMALL = EvaluationConfig(n_resamples=20)


def ask(mention: str, *gold: str, **more) -> LinkQuery:
    return LinkQuery(mention, frozenset(gold), **more)


def test_a_ranker_by_exact_name(base, exact):
    queries = [ask("grippe", "MESH:D1"), ask("Influenza", "OMIM:77"), ask("nothing", "D2")]
    result = evaluate_linking(exact, base, queries, "lenient", SMALL)
    assert result.n == 3
    assert result["acc@1"] == pytest.approx(2 / 3)
    assert [row.rank for row in result.rows] == [1, 1, None]
    assert result["recall@30"] == result["mrr"] == pytest.approx(2 / 3)


def test_a_ranker_that_forgets_queries_gains_nothing(base):
    class Forgetful:
        def rank(self, queries, k):
            return []

    result = evaluate_linking(Forgetful(), base, [ask("flu", "D1")] * 3, "lenient", SMALL)
    assert (result.n, result["acc@1"]) == (3, 0)


def test_equal_scores_count_half_under_the_strict_rule_only(base, exact):
    queries = [ask("flu", "D4")]
    strict = evaluate_linking(exact, base, queries, "strict", SMALL)
    assert strict["acc@1"] == 0.5
    assert strict["mrr"] == 0.75
    assert evaluate_linking(exact, base, queries, "lenient", SMALL)["acc@1"] in (0, 1)


def test_batches_change_nothing(base, ranker):
    table = {str(k): [("D1", 2.0), ("D2", 1.0)] for k in range(7)}
    queries = [ask(str(k), "D1" if k % 2 else "D2") for k in range(7)]
    results = [
        evaluate_linking(ranker(table), base, queries, "lenient", EvaluationConfig(batch=batch))
        for batch in (1, 3, 100)
    ]
    assert results[0].metrics == results[1].metrics == results[2].metrics
    assert results[0].intervals == results[1].intervals == results[2].intervals
    assert len(set(results[1].judgements.documents)) == 7


def test_the_queries_of_a_document_are_asked_together(base):
    asked = []

    class Listener:
        def rank(self, queries, k):
            asked.append([query.document for query in queries])
            return [[[]] for _ in queries]

    queries = [ask("x", "D1", document=document) for document in "abbbcc"]
    queries += [ask("x", "D1")] * 3
    evaluate_linking(Listener(), base, queries, "lenient", EvaluationConfig(batch=2))
    assert asked == [["a", "b", "b", "b"], ["c", "c"], ["", ""], [""]]


def test_a_search_for_names_is_a_ranker(base):
    texts = base.table("names").column("text").to_pylist()

    def search(asked, k):
        rows = np.full((len(asked), k), -1, dtype=np.int64)
        scores = np.full((len(asked), k), -np.inf, dtype=np.float32)
        for place, text in enumerate(asked):
            found = [row for row, name in enumerate(texts) if name == text][:k]
            rows[place, : len(found)], scores[place, : len(found)] = found, 1.0
        return NameHits(rows, scores)

    queries = [ask("flu", "D1"), ask("flu", "D4"), ask("none", "D2"), ask("flu", parts=())]
    result = evaluate_linking(search, base, queries[:3], "strict", SMALL)
    assert [row.right for row in result.rows] == [0.5, 0.5, 0]
    first = result.rows[0].answers[0][0]
    assert (first.concept, first.name, first.evidence[0].rank) == ("MESH:D1", "flu", 1)


def test_a_composite_is_right_when_its_parts_are(base, exact):
    parts = ("breast cancer", "ovarian cancer")
    query = ask("breast cancer|ovarian cancer", "D5", "D6", parts=parts)
    for scorer in ("lenient", "strict"):
        assert evaluate_linking(exact, base, [query], scorer, SMALL)["acc@1"] == 1
    twice = ask("breast cancer|breast cancers", "D5", "D6", parts=("breast cancer",) * 2)
    assert evaluate_linking(exact, base, [twice], "lenient", SMALL)["acc@1"] == 1
    assert evaluate_linking(exact, base, [twice], "strict", SMALL)["acc@1"] == 0


def test_nil_is_right_where_nothing_fits(base, ranker):
    table = {"flu": [("D1", 0.9)], "cold": [("D4", 0.2)], "x": [("D2", 0.1)]}
    queries = [ask("flu", "D1"), ask("cold", "D4"), ask("x"), ask("unheard")]
    config = EvaluationConfig(n_resamples=20, nil_below=0.5)
    result = evaluate_linking(ranker(table), base, queries, "lenient", config)
    assert [row.right for row in result.rows] == [1, 0, 1, 1]
    assert result["recall@1"] == 1
    assert (result["nil_precision"], result["nil_recall"]) == (2 / 3, 1)
    bare = evaluate_linking(ranker(table), base, queries, "lenient", SMALL)
    assert [row.right for row in bare.rows] == [1, 1, 0, 1]


def test_a_part_that_is_nil_is_missing_in_the_answer(base, ranker):
    table = {"breast cancer": [("D5", 0.9)], "ovarian cancer": [("D6", 0.2)]}
    query = ask("both", "D5", "D6", parts=tuple(table))
    config = EvaluationConfig(n_resamples=20, nil_below=0.5)
    for scorer in ("lenient", "strict"):
        (row,) = evaluate_linking(ranker(table), base, [query], scorer, SMALL).rows
        assert (row.right, row.answered_nil) == (1, False)
        result = evaluate_linking(ranker(table), base, [query], scorer, config)
        assert (result.rows[0].right, result.rows[0].answered_nil) == (0, False)
        assert result["recall@1"] == 1


def test_nil_by_score_where_there_are_probabilities(base, ranker):
    found = ranker({"flu": [("D1", -2.0)]}, probability=0.9)
    config = EvaluationConfig(n_resamples=20, nil_below=0.0)
    (row,) = evaluate_linking(found, base, [ask("flu")], "lenient", config).rows
    assert (row.answered_nil, row.right) == (False, 0)
    by_score = EvaluationConfig(n_resamples=20, nil_below=0.0, nil_by_score=True)
    (row,) = evaluate_linking(found, base, [ask("flu")], "lenient", by_score).rows
    assert (row.answered_nil, row.right) == (True, 1)


def test_answers_of_nil_need_no_probability(base, ranker):
    table = {"flu": [("D1", 1.0)]}
    queries = [ask("flu", "D1"), ask("unheard"), ask("unheard of", "D2")]
    result = evaluate_linking(ranker(table, probability=0.75), base, queries, "lenient", SMALL)
    assert result["ece"] == pytest.approx(0.25)
    nothing = evaluate_linking(ranker({}, probability=0.75), base, queries, "lenient", SMALL)
    assert "ece" not in nothing.metrics


def test_probabilities_are_judged_where_all_answers_have_them(base, ranker):
    table = {"flu": [("D1", 1.0)], "cold": [("D2", 1.0)]}
    queries = [ask("flu", "D1"), ask("cold", "D4")]
    with_them = evaluate_linking(ranker(table, probability=0.75), base, queries, "lenient", SMALL)
    assert with_them["ece"] == pytest.approx(0.25)
    assert with_them["brier"] == pytest.approx((0.25**2 + 0.75**2) / 2)
    assert "ece" not in evaluate_linking(ranker(table), base, queries, "lenient", SMALL).metrics


def test_the_plain_values_are_in_percent(base, exact):
    found = evaluate_linking(exact, base, [ask("grippe", "D1", document="d")], "strict", SMALL)
    values = found.to_json()
    assert values["acc@1"] == values["acc@5"] == values["recall@30"] == values["mrr"] == 100
    assert values["intervals"]["acc@1"] == [100, 100]
    assert (values["n"], values["scorer"], values["n_documents"]) == (1, "strict", 1)


def test_unknown_gold_counts_as_wrong_and_is_told(base, exact):
    result = evaluate_linking(exact, base, [ask("flu", "D1"), ask("flu", "Q9")], "lenient", SMALL)
    assert result["acc@1"] == 0.5
    assert result.to_json()["n_unknown_gold"] == result.to_json()["n_unreachable"] == 1


def test_two_runs_are_compared_query_by_query(base, ranker):
    queries = [ask(str(k), "D1", document=f"d{k // 2}") for k in range(60)]
    good = ranker({str(k): [("D1", 1.0)] for k in range(60)})
    bad = ranker({str(k): [("D1", 1.0)] for k in range(20)})
    a, b = (evaluate_linking(r, base, queries, "lenient", SMALL) for r in (good, bad))
    found = paired(a, b)
    assert found.bootstrap.difference == pytest.approx(2 / 3)
    assert max(found.bootstrap.p, found.randomisation_p, found.mcnemar_p) < 0.01
    assert paired(a, a).mcnemar_p == 1


def test_comparing_needs_the_same_queries_and_whole_values(base, exact):
    a = evaluate_linking(exact, base, [ask("flu", "D4")], "strict", SMALL)
    b = evaluate_linking(exact, base, [ask("cold", "D4")], "strict", SMALL)
    assert paired(a, a).mcnemar_p is None
    with pytest.raises(ConfigError, match="same queries"):
        paired(a, b)
    with pytest.raises(ConfigError, match="no value for each query"):
        paired(a, a, "nil_f1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": ()}, "ks: expected numbers from 1"),
        ({"ks": (0,)}, "ks: expected numbers from 1"),
        ({"level": 95}, "level: expected a number between 0 and 1, found 95"),
        ({"n_resamples": 0}, "n_resamples: expected at least 1, found 0"),
        ({"batch": 0}, "batch: expected at least 1, found 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        EvaluationConfig(**options)


def test_nothing_to_ask_is_refused(base, exact):
    with pytest.raises(ConfigError, match="queries: expected at least one"):
        evaluate_linking(exact, base, [])
    with pytest.raises(ConfigError, match="scorer: expected one of lenient, strict"):
        evaluate_linking(exact, base, [ask("a", "D1")], "loose")
