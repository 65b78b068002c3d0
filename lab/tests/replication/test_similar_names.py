"""Similar names: how often names are in text, the parts, and that arms share the queries."""

from __future__ import annotations

from collections import defaultdict

import pytest

from biograft.errors import ConfigError
from biograft_lab.probing.similarity import SimilarityQuery
from biograft_lab.replication.differences import Arms, find_difference
from biograft_lab.replication.similar_names import (
    SimilarNameVariant,
    count_in_text,
    order_by_entities,
)


def test_names_are_counted_in_all_texts_and_the_longest_counts(write):
    path = write("texts.txt", "胃炎和慢性胃炎\n" * 3000 + "没有\n")
    counts = count_in_text(["胃炎", "慢性胃炎", "肺炎"], path)
    assert (counts["胃炎"], counts["慢性胃炎"], counts["肺炎"]) == (3000, 3000, 0)


def test_queries_of_the_same_entities_are_together():
    pairs = [("a", "b"), ("c", "c"), ("b", "a")]
    queries = [SimilarityQuery("x", "y", ("z",), pair) for pair in pairs]
    ordered = [query.concepts for query in order_by_entities(queries)]
    assert ordered == [("a", "b"), ("b", "a"), ("c", "c")]


@pytest.mark.long
def test_arms_answer_the_same_queries_and_parts(smoke_rows):
    rows = smoke_rows("similar-names-seeds")
    seeds = defaultdict(list)
    for row in rows:
        seeds[row["config"]].append(row.get("seed"))
        assert row["parts"] == rows[0]["parts"]
        assert len(row["right"]) == row["n"] == sum(map(int, row["documents"].split()))
        assert set(row["of_parts"]) == set(row["parts"]) <= set(rows[0]["parts"])
    assert seeds["lexical"] == seeds["sgns-words"] == [None]
    assert seeds["SMedBERT"] == [1, 2]
    part = next(name for name in rows[0]["parts"] if name.startswith("frequency"))
    arms = Arms(set="D1", of="SMedBERT", against="sgns", part=part)
    assert find_difference(arms, {"rows": rows}, {"rows": rows}).n_seeds == 2


def test_a_variant_is_an_encoder_or_a_baseline():
    for given in ({}, {"encoder": "runs", "baseline": "lexical"}):
        with pytest.raises(ConfigError, match="baseline"):
            SimilarNameVariant(**given)
