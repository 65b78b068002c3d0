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
    table = {
        "a": [("D2", 2.0), ("D3", 1.0)],
        "b": [("D3", 1.0)],
        "c": [("D5", 1.0)],
        "d": [("D5", 2.0), ("D6", 1.0)],
        "e1": [("D5", 1.0)],
        "e2": [("D1", 1.0)],
        "g": [("D1", 1.0)],
        "h": [("D2", 1.0)],
        "t": [("D2", 1.0), ("D6", 1.0)],
    }
    queries = [
        query("a", "D3"),
        query("b", "D2"),
        query("c", "D6"),
        query("d", "D6"),
        query("e", "D5", "D6", parts=("e1", "e2")),
        query("f", "D6"),
        query("g"),
        query("h", "Q9"),
        query("t", "D6"),
        query("right", "D5", parts=("c",)),
    ]
    result = evaluate_linking(ranker(table), base, queries, "strict", SMALL)
    mistakes = find_mistakes(result, base)
    assert [(m.mention, m.kind) for m in mistakes] == [
        ("a", ErrorKind.BROADER),
        ("b", ErrorKind.NARROWER),
        ("c", ErrorKind.NOT_FOUND),
        ("d", ErrorKind.RANKED_LOWER),
        ("e", ErrorKind.PART_MISSED),
        ("f", ErrorKind.NO_ANSWER),
        ("g", ErrorKind.NIL_MISSED),
        ("h", ErrorKind.NOT_IN_STORE),
        ("t", ErrorKind.TIED),
    ]
    assert (mistakes[0].gold_name, mistakes[0].predicted) == ("Viral infection", "D2")
    assert mistakes[7].gold_name == "(not in the store)"
    assert mistakes[6].gold == "NIL"
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
    queries = [
        query("ovarian and breast cancer", "D5", "D6"),
        query("flu", "D1"),
        query("flu", "D4"),
        query("shivers", "D4"),
        query("Shivers", "D1"),
        query("BC", "D5"),
        query("oc", "D6"),
        query("grippe", "D4"),
        query("cancers, breast", "D5"),
        query("rhinitis", "D4"),
        query("unknown", "Q9"),
        query("cold", "D4"),
        query("nothing"),
    ]
    table = {each.mention: [("D7", 1.0)] for each in queries}
    result = evaluate_linking(ranker(table), base, queries, "lenient", SMALL)
    mistakes = find_mistakes(result, base)
    assert [mistake.cause for mistake in mistakes] == [
        ErrorCause.COMPOSITE,
        ErrorCause.AMBIGUOUS,
        ErrorCause.AMBIGUOUS,
        ErrorCause.ANNOTATION,
        ErrorCause.ANNOTATION,
        ErrorCause.ABBREVIATION,
        ErrorCause.ABBREVIATION,
        ErrorCause.OTHERS_NAME,
        ErrorCause.SPELLING,
        ErrorCause.NO_NAME,
        ErrorCause.NO_NAME,
        ErrorCause.OTHER,
        ErrorCause.OTHER,
    ]
    counts = count_causes(mistakes)
    assert list(counts) == list(ErrorCause)
    assert sum(counts.values()) == len(queries)
