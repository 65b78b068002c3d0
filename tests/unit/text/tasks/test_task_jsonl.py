"""Task examples in JSON lines: round trips and malformed lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from biograft.text import (
    Answer,
    ClassExample,
    PairExample,
    RankingExample,
    RelationExample,
    TaskConfig,
    read_task,
    write_examples,
)
from biograft.text.documents import Mention

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
ANSWERS = st.builds(Answer, TEXT, st.integers(0, 9), TEXT)


@st.composite
def relations(draw):
    text = draw(TEXT.filter(lambda t: len(t) > 3))

    def mention():
        cuts = sorted(draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=4)))
        fragments = list(zip(cuts[::2], cuts[1::2], strict=False))
        covered = " ".join(text[start:end] for start, end in fragments)
        gaps = tuple(fragments) if len(fragments) > 1 else ()
        concepts = tuple(draw(st.lists(TEXT, max_size=2)))
        return Mention(
            fragments[0][0],
            fragments[-1][1],
            covered,
            concepts,
            draw(TEXT),
            fragments=gaps,
            id=draw(TEXT),
        )

    return RelationExample(text, mention(), mention(), draw(TEXT), draw(TEXT), draw(TEXT))


KINDS = [
    st.builds(PairExample, TEXT, TEXT, TEXT, TEXT),
    st.builds(RankingExample, TEXT, st.lists(ANSWERS, max_size=3).map(tuple), TEXT),
    st.builds(ClassExample, TEXT, st.lists(TEXT, max_size=3).map(tuple), TEXT, st.booleans(), TEXT),
    relations(),
]


@pytest.mark.parametrize("kind", KINDS, ids=["pair", "ranking", "class", "relation"])
def test_examples_round_trip(kind, tmp_path):
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(kind, min_size=1, max_size=3))
    def check(examples):
        path = tmp_path / "a.jsonl"
        assert write_examples(examples, path, overwrite=True) == len(examples)
        result = read_task(TaskConfig(path=path, format="jsonl"))
        assert result.examples == tuple(examples)
        assert not result.log.rejected.counts
        assert read_task(TaskConfig(path=path)).format == "jsonl"

    check()


MENTION = {"start": 0, "end": 1, "text": "a"}
BROKEN = [
    ({"first": "a", "second": 2}, "second is not a str"),
    ({"first": "a", "second": "b", "lable": "1"}, "the key 'lable' is unknown"),
    ({"other": "a"}, "no key of an example: candidates, first or text"),
    ({"text": "a", "labels": ["A"]}, "a class in a file of kind pair"),
    ({"query": "q", "candidates": ["a"]}, "not an object of a Answer"),
    ({"query": "q", "candidates": [{"text": "a", "relevance": True}]}, "relevance is not a int"),
    (
        {"text": "ab", "first": MENTION, "second": {**MENTION, "text": "b"}},
        "a mention that is not at its offsets",
    ),
    (
        {"text": "ab", "first": MENTION, "second": {**MENTION, "end": 5}},
        "a mention that is not at its offsets",
    ),
    (
        {"text": "ab", "first": MENTION, "second": {**MENTION, "fragments": [[0]]}},
        "fragments is not a list of start and end",
    ),
    (
        {"text": "ab", "first": MENTION, "second": {**MENTION, "fragments": [[0, 1], [1, 2]]}},
        "a mention whose fragments do not begin and end with it",
    ),
]


@pytest.mark.parametrize(("value", "reason"), BROKEN, ids=[reason for _, reason in BROKEN])
def test_malformed_lines_are_rejected(write, value, reason):
    lines = json.dumps({"first": "a", "second": "b"}) + "\n" + json.dumps(value) + "\n"
    result = read_task(TaskConfig(path=write("a.jsonl", lines), format="jsonl"))
    assert result.examples == (PairExample("a", "b"),)
    assert {r: examples[0].line for r, examples in result.log.rejected.examples.items()} == {
        reason: 2
    }
