"""Sub-populations, similarity to gold names, and kinds of error."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import pytest

from biograft.evaluation import (
    ErrorCause,
    ErrorKind,
    EvaluationConfig,
    LinkQuery,
    count_causes,
    count_kinds,
    evaluate_linking,
    find_mistakes,
    name_similarity,
    score_reachable,
    sub_populations,
)

SMALL = EvaluationConfig(n_resamples=20)


def query(mention: str, *gold: str, **more) -> LinkQuery:
    return LinkQuery(mention, frozenset(gold), **more)


QUERIES = [
    query("grippe", "D1"),
    query("common cold", "D4"),
    query("bad cold", "D4"),
    query("tumour", "D5"),
]


@pytest.fixture
def result(base, exact):
    return evaluate_linking(exact, base, QUERIES, "lenient", SMALL)


def test_populations_by_hand(base, result):
    training = [query("GRIPPE", "MESH:D1"), query("chill", "D4")]
    mistakes = {p.name: (p.n, p.acc1) for p in sub_populations(result, base, training)}
    assert mistakes == {
        "overall": (4, 0.5),
        "single word": (2, 0.5),
        "multi word": (2, 0.5),
        "not a direct match": (2, 0),
        "unseen mention": (3, pytest.approx(1 / 3)),
        "unseen concept": (1, 0),
        "top 100 concepts": (3, pytest.approx(2 / 3)),
    }


def test_gaps_of_the_store_are_told_from_errors_of_the_linker(base, exact):
    queries = [query("grippe", "D1"), query("bad cold", "D4"), query("grippe", "unknown")]
    result = evaluate_linking(exact, base, queries, "lenient", SMALL)
    (known,) = [p for p in sub_populations(result, base) if p.name == "concept in the store"]
    assert (known.n, known.acc1) == (2, 0.5)
    assert known == score_reachable(result)
    assert result["acc@1"] == pytest.approx(1 / 3)


def cosine(a, b):
    """Cosine of 3-gram counts, in plain loops."""
    first, second = (Counter([f" {t} "[k : k + 3] for k in range(len(t) + 2 - 2)]) for t in (a, b))
    product = sum(first[g] * second[g] for g in set(first) | set(second))
    lengths = sqrt(sum(n**2 for n in first.values())) * sqrt(sum(n**2 for n in second.values()))
    return product / lengths


def test_similarity_is_the_nearest_gold_name(base):
    assert name_similarity(query("Common-Cold", "D4"), base) == 1
    expected = max(cosine("bad cold", name) for name in ("cold", "common cold", "flu"))
    assert name_similarity(query("bad cold", "D4"), base) == pytest.approx(expected)
    assert name_similarity(query("x", "unknown"), base) == 0


def test_kinds_of_error(base, ranker):
    rows = [
        ("a", ["D3"], [("D2", 2.0), ("D3", 1.0)], ErrorKind.BROADER),
        ("b", ["D2"], [("D3", 1.0)], ErrorKind.NARROWER),
        ("c", ["D6"], [("D5", 1.0)], ErrorKind.NOT_FOUND),
        ("d", ["D6"], [("D5", 2.0), ("D6", 1.0)], ErrorKind.RANKED_LOWER),
        ("f", ["D6"], [], ErrorKind.NO_ANSWER),
        ("g", [], [("D1", 1.0)], ErrorKind.NIL_MISSED),
        ("h", ["Q9"], [("D2", 1.0)], ErrorKind.NOT_IN_STORE),
        ("t", ["D6"], [("D2", 1.0), ("D6", 1.0)], ErrorKind.TIED),
    ]
    table = {mention: answers for mention, _, answers, _ in rows}
    queries = [query(mention, *gold) for mention, gold, _, _ in rows]
    queries.append(query("e", "D5", "D6", parts=("c", "g")))
    queries.append(query("right", "D5", parts=("c",)))
    mistakes = find_mistakes(evaluate_linking(ranker(table), base, queries, "strict", SMALL), base)
    expected = [(mention, kind) for mention, _, _, kind in rows]
    assert [(m.mention, m.kind) for m in mistakes] == [*expected, ("e", ErrorKind.PART_MISSED)]
    assert (mistakes[0].gold_name, mistakes[0].predicted) == ("Viral infection", "D2")
    assert (mistakes[5].gold, mistakes[6].gold_name) == ("NIL", "(not in the store)")
    assert sum(count_kinds(mistakes).values()) == 9


def test_answers_below_the_threshold_differ_from_not_found(base, ranker):
    config = EvaluationConfig(n_resamples=5, nil_below=0.5)
    mistakes = ranker({"flu": [("D1", 0.2)]})
    queries = [query("flu", "D1"), query("unheard", "D1")]
    mistakes = find_mistakes(evaluate_linking(mistakes, base, queries, "strict", config), base)
    assert [m.kind for m in mistakes] == [ErrorKind.NIL_GIVEN, ErrorKind.NO_ANSWER]


def test_a_name_of_both_concepts_is_reported(base, exact):
    result = evaluate_linking(
        exact, base, [query("flu", "D1"), query("flu", "D4")], "lenient", SMALL
    )
    assert [m.kind for m in find_mistakes(result, base)] == [ErrorKind.SAME_NAME]


def test_every_error_has_one_cause(base, ranker):
    rows = [
        (query("ovarian and breast cancer", "D5", "D6"), ErrorCause.COMPOSITE),
        (query("flu", "D1"), ErrorCause.AMBIGUOUS),
        (query("flu", "D4"), ErrorCause.AMBIGUOUS),
        (query("shivers", "D4"), ErrorCause.ANNOTATION),
        (query("Shivers", "D1"), ErrorCause.ANNOTATION),
        (query("BC", "D5"), ErrorCause.ABBREVIATION),
        (query("oc", "D6"), ErrorCause.ABBREVIATION),
        (query("grippe", "D4"), ErrorCause.OTHERS_NAME),
        (query("cancers, breast", "D5"), ErrorCause.SPELLING),
        (query("rhinitis", "D4"), ErrorCause.NO_NAME),
        (query("unknown", "Q9"), ErrorCause.NO_NAME),
        (query("cold", "D4"), ErrorCause.OTHER),
        (query("nothing"), ErrorCause.OTHER),
    ]
    queries = [each for each, _ in rows]
    table = {each.mention: [("D7", 1.0)] for each in queries}
    result = evaluate_linking(ranker(table), base, queries, "lenient", SMALL)
    mistakes = find_mistakes(result, base)
    assert [mistake.cause for mistake in mistakes] == [cause for _, cause in rows]
    assert list(count_causes(mistakes)) == list(ErrorCause)
