"""Figures of a probe: against plain loops, and what is kept of each answer."""

import random

import numpy as np
import pytest

from biograft.probing import PARTS, ClozeQuery, ClozeReport, DecodingConfig, Gold, ask, gold_of
from biograft.probing.cloze import QueryAnswers, example
from biograft.probing.cloze_decoding import Filling, decode

RELATIONS = ("treats", "is-a", "causes", "same-as", "part-of")


@pytest.fixture
def drawn():
    rng = random.Random(3)
    queries = [ClozeQuery("[MASK]", rng.choice(RELATIONS), ("D1",)) for _ in range(60)]
    queries.append(ClozeQuery("[MASK]", "alone", ("D1",)))
    given = [rng.random() < 0.4 for _ in queries[:-1]]
    gold = [Gold(frozenset(), away) for away in [*given, True]]
    hits = [np.array([rng.random() < share for _ in queries]) for share in (0.3, 0.8)]
    return ClozeReport(queries, gold), hits


def macro(report, hits, part):
    by_relation = {}
    for query, gold, hit in zip(report.queries, report.gold, hits, strict=True):
        if part == "all" or gold.given_away == (part == "type 1"):
            by_relation.setdefault(query.relation, []).append(hit)
    means = [sum(values) / len(values) for values in by_relation.values()]
    return sum(means) / len(means), len(means), sum(map(len, by_relation.values()))


@pytest.mark.parametrize("part", PARTS)
def test_recall_is_the_mean_over_relations_that_have_queries(drawn, part):
    report, (hits, better) = drawn
    expected, n_relations, n_queries = macro(report, hits, part)
    found = report.recall(hits, part)
    assert found.value == pytest.approx(expected)
    assert (found.n_relations, found.n_queries) == (n_relations, n_queries)
    assert n_relations == (5 if part == "type 2" else 6)
    assert found.interval.low < found.value < found.interval.high
    difference = report.compare(better, hits, part)
    assert difference.difference == pytest.approx(macro(report, better, part)[0] - expected)
    assert difference.p < 0.05


def test_recall_of_each_relation(drawn):
    report, (hits, _) = drawn
    rows = report.relations(hits)
    assert [row.relation for row in rows] == sorted([*RELATIONS, "alone"])
    for row in rows:
        own = [k for k, query in enumerate(report.queries) if query.relation == row.relation]
        assert row.parts["all"] == (pytest.approx(np.mean(hits[own])), len(own))
        first = [k for k in own if report.gold[k].given_away]
        assert row.parts["type 1"] == (pytest.approx(np.mean(hits[first])), len(first))
    assert rows[0].to_json()["type 2"] == {"n": 0}


def test_a_part_without_queries_is_0():
    report = ClozeReport([ClozeQuery("[MASK]", "r", ("D1",))], [Gold(frozenset(), False)])
    found = report.recall(np.array([True]), "type 1")
    assert (found.value, found.n_queries, found.n_relations) == (0.0, 0, 0)


def test_a_query_is_right_if_any_filling_of_any_length_is(base, tiny_lm):
    config = DecodingConfig(lengths=(1, 2), beam=5)
    prompt = "aspirin treats [MASK]"
    filled = {n: f for _, n, f in decode(tiny_lm, [prompt], config)}
    for n, k in ((1, 0), (1, 4), (2, 4)):
        text = filled[n][k].text
        queries = [ClozeQuery(prompt, "treats", ("D1",))] * 2
        gold = [Gold(frozenset({text}), False), Gold(frozenset({"nothing"}), False)]
        answers = ask(tiny_lm, queries, gold, config)
        assert answers.right[:, n - 1].tolist() == [True, False]
        assert answers.hits.tolist() == [True, False]
        assert answers.answers[0].right == (text,)
        assert answers.answers[0].single == filled[1][0]
        assert (answers.answers[0].several, answers.answers[0].n_masks) == (filled[2][0], 2)
    assert answers.n_too_long == 0
    told = ClozeReport(queries, gold).to_json(answers)
    assert told["by_length"]["2"] == 50.0
    assert told["all"]["recall"] == told["type 2"]["recall"] == 50.0


def test_what_is_too_long_is_wrong_and_counted(base, tiny_lm):
    query = ClozeQuery("pain " * 36 + "[MASK]", "treats", ("D1",))
    gold = gold_of(base, query, ("en",))
    answers = ask(tiny_lm, [query], [gold], DecodingConfig(lengths=(1, 2, 3, 4)))
    assert answers.n_too_long == 2
    assert answers.right[0, 2:].tolist() == [False, False]


def test_examples_show_the_best_by_the_mean_of_their_tokens():
    answers = QueryAnswers()
    for n_masks, score in ((1, -2.0), (2, -3.0), (4, -5.0), (3, -4.5)):
        answers.see(n_masks, Filling(f"of {n_masks}", score))
    shown = example(answers, Gold(frozenset({"of 4"}), False))
    assert shown == {
        "right": [],
        "single": {"text": "of 1", "masks": 1, "log_probability": -2.0, "right": False},
        "several": {"text": "of 4", "masks": 4, "log_probability": -5.0, "right": True},
    }
    assert example(QueryAnswers(), Gold(frozenset(), False)) == {"right": []}
