"""Metrics of the cloze probe against plain loops, and example answers."""

import random

import numpy as np
import pytest

from biograft_lab.probing import (
    QUERY_TYPES,
    ClozeGold,
    ClozeQuery,
    ClozeReport,
    DecodingConfig,
    answer_queries,
    cloze_gold,
)
from biograft_lab.probing.cloze import QueryAnswers, example_answers
from biograft_lab.probing.cloze_decoding import Filling, decode

RELATIONS = ("treats", "is-a", "causes", "same-as", "part-of")


@pytest.fixture
def report_and_hits():
    rng = random.Random(3)
    queries = [ClozeQuery("[MASK]", rng.choice(RELATIONS), ("D1",)) for _ in range(60)]
    queries.append(ClozeQuery("[MASK]", "alone", ("D1",)))
    contained = [rng.random() < 0.4 for _ in queries[:-1]]
    gold = [ClozeGold(frozenset(), contains) for contains in [*contained, True]]
    hits = [np.array([rng.random() < p for _ in queries]) for p in (0.3, 0.8)]
    return ClozeReport(queries, gold), hits


def macro(report, hits, query_type):
    by_relation = {}
    for query, gold, hit in zip(report.queries, report.gold, hits, strict=True):
        if query_type == "all" or gold.contains_answer == (query_type == "type 1"):
            by_relation.setdefault(query.relation, []).append(hit)
    means = [sum(values) / len(values) for values in by_relation.values()]
    return sum(means) / len(means), len(means), sum(map(len, by_relation.values()))


@pytest.mark.parametrize("query_type", QUERY_TYPES)
def test_recall_is_the_mean_over_relations_that_have_queries(report_and_hits, query_type):
    report, (hits, better) = report_and_hits
    expected, n_relations, n_queries = macro(report, hits, query_type)
    result = report.recall(hits, query_type)
    assert result.value == pytest.approx(expected)
    assert (result.n_relations, result.n_queries) == (n_relations, n_queries)
    assert n_relations == (5 if query_type == "type 2" else 6)
    assert result.interval.low < result.value < result.interval.high
    difference = report.compare(better, hits, query_type)
    assert difference.difference == pytest.approx(macro(report, better, query_type)[0] - expected)
    assert difference.p < 0.05


def test_recall_of_each_relation(report_and_hits):
    report, (hits, _) = report_and_hits
    rows = report.relations(hits)
    assert [row["relation"] for row in rows] == sorted([*RELATIONS, "alone"])
    for row in rows:
        own = [k for k, query in enumerate(report.queries) if query.relation == row["relation"]]
        recall = pytest.approx(100 * np.mean(hits[own]), abs=0.01)
        assert row["all"] == {"recall": recall, "n": len(own)}
    assert rows[0]["type 2"] == {"n": 0}


def test_a_type_without_queries_is_0():
    report = ClozeReport([ClozeQuery("[MASK]", "r", ("D1",))], [ClozeGold(frozenset(), False)])
    result = report.recall(np.array([True]), "type 1")
    assert (result.value, result.n_queries, result.n_relations) == (0.0, 0, 0)


def test_a_query_is_right_if_any_filling_of_any_length_is(base, tiny_lm):
    config = DecodingConfig(lengths=(1, 2), beam=5)
    prompt = "aspirin treats [MASK]"
    fillings = {n: f for _, n, f in decode(tiny_lm, [prompt], config)}
    for n, k in ((1, 0), (1, 4), (2, 4)):
        text = fillings[n][k].text
        queries = [ClozeQuery(prompt, "treats", ("D1",))] * 2
        gold = [ClozeGold(frozenset({text}), False), ClozeGold(frozenset({"nothing"}), False)]
        answers = answer_queries(tiny_lm, queries, gold, config)
        assert answers.right[:, n - 1].tolist() == [True, False]
        assert answers.hits.tolist() == [True, False]
        assert answers.answers[0].right == (text,)
        assert answers.answers[0].single == fillings[1][0]
        assert (answers.answers[0].several, answers.answers[0].n_masks) == (fillings[2][0], 2)
    assert answers.n_too_long == 0
    results = ClozeReport(queries, gold).to_json(answers)
    assert results["by_length"]["2"] == 50.0
    assert results["all"]["recall"] == results["type 2"]["recall"] == 50.0


def test_too_long_queries_are_wrong_and_counted(base, tiny_lm):
    query = ClozeQuery("pain " * 36 + "[MASK]", "treats", ("D1",))
    gold = cloze_gold(base, query, ("en",))
    answers = answer_queries(tiny_lm, [query], [gold], DecodingConfig(lengths=(1, 2, 3, 4)))
    assert answers.n_too_long == 2
    assert answers.right[0, 2:].tolist() == [False, False]


def test_examples_show_the_best_by_the_mean_of_their_tokens():
    answers = QueryAnswers()
    for n_masks, score in ((1, -2.0), (2, -3.0), (4, -5.0), (3, -4.5)):
        answers.add(n_masks, Filling(f"of {n_masks}", score))
    example = example_answers(answers, ClozeGold(frozenset({"of 4"}), False))
    assert example == {
        "right": [],
        "single": {"text": "of 1", "masks": 1, "log_probability": -2.0, "right": False},
        "several": {"text": "of 4", "masks": 4, "log_probability": -5.0, "right": True},
    }
    assert example_answers(QueryAnswers(), ClozeGold(frozenset(), False)) == {"right": []}
