from __future__ import annotations

from dataclasses import replace

import pytest

from biograft.errors import ConfigError
from biograft.linking import Candidate, Context
from biograft.training.linkers import collect_examples


class Fixed:
    """A ranker that gives each part the same names."""

    def __init__(self, *concepts):
        self.candidates = [
            Candidate(concept, concept, f"{concept} {k}", 1.0 - k)
            for k, concept in enumerate(concepts)
        ]

    def rank(self, queries, k):
        return [[self.candidates[:k] for _ in query.parts] for query in queries]


def example_of(bench, query, **values):
    ranker = Fixed("TEMP", "TEMP", "ILL", "HEAT")
    data = collect_examples(
        bench.kb, ranker, [bench.queries[0]], bench.config(**values), dev=[query]
    )
    return data.held_out[0]


def test_each_concept_comes_once_and_nil_is_right_where_nothing_else_is(bench):
    query = bench.queries[0]
    example = example_of(bench, query)
    assert [c.name for c in example.mention.candidates] == ["TEMP 0", "ILL 2", "HEAT 3"]
    assert example.right == (False, True, False, False)
    assert example.mention.context == Context(query.context, query.start, query.end)
    unknown = example_of(bench, replace(query, gold=frozenset({"X"})))
    assert unknown.right == (False, False, False, True)
    nil = example_of(bench, replace(query, gold=frozenset()))
    assert nil.right == (False, False, False, True)


def test_several_right_concepts_are_all_right(bench):
    query = replace(bench.queries[0], gold=frozenset({"ILL", "HEAT"}))
    assert example_of(bench, query).right == (False, True, True, False)


def test_a_mention_of_unknown_position_has_no_context(bench):
    query = replace(bench.queries[0], start=None, end=None)
    assert example_of(bench, query).mention.context == Context(query.context, 0, 0)


def test_what_is_counted(bench):
    plain = bench.queries[0]
    data = collect_examples(
        bench.kb,
        Fixed("ILL"),
        [
            plain,
            replace(plain, parts=("cold", "heat"), document="composite"),
            replace(plain, gold=frozenset({"HEAT"}), document="missed"),
            replace(plain, gold=frozenset(), document="nil"),
        ],
        bench.config(),
        dev=[],
    )
    assert vars_of(data.counts) == {"given": 4, "composite": 1, "nil": 1, "missed": 1}
    assert (len(data.train), data.held_out) == (3, ())


def vars_of(counts):
    return {name: getattr(counts, name) for name in ("given", "composite", "nil", "missed")}


def test_documents_are_held_out_whole_and_the_same_ones_each_time(bench):
    queries = [replace(q, document=q.document.split()[0]) for q in bench.queries]
    config = bench.config(held_out=0.2)
    data = collect_examples(bench.kb, bench.linker, queries, config)
    documents = {q.context: q.document for q in queries}
    sides = [
        {documents[e.mention.context.text] for e in side} for side in (data.train, data.held_out)
    ]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == 3
    again = collect_examples(bench.kb, bench.linker, queries, config)
    assert again.held_out == data.held_out
    assert again == data
    other = collect_examples(bench.kb, bench.linker, queries, bench.config(held_out=0.2, seed=1))
    assert other.held_out != data.held_out


def test_a_linker_says_what_ranked_first(bench):
    data = collect_examples(bench.kb, bench.linker, bench.queries, bench.config())
    assert (data.first_ranking, data.weights) == ("lexical*1", {"lexical": 1.0})


def test_ids_of_another_store_are_noticed(bench):
    queries = [replace(q, gold=frozenset({"X:1"})) for q in bench.queries]
    with pytest.raises(ConfigError, match=r"60 given, 54 are left .* are their ids those of this"):
        collect_examples(bench.kb, bench.linker, queries, bench.config())
