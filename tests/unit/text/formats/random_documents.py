"""Hypothesis strategy for documents with gaps, nesting, unusual characters, relations, passages."""

from __future__ import annotations

from hypothesis import strategies as st

from biograft.text.documents import Document, Mention, Passage, Relation

ANY = st.characters(exclude_categories=["Cs"])
TEXT = st.text(st.one_of(st.sampled_from("ab .?|-é中文😀\u0301\n\t"), ANY), max_size=30)
LINE = st.text(st.sampled_from("ab é中-"), max_size=6).map(str.strip)
WORD = st.text(st.sampled_from("aB1:é中"), min_size=1, max_size=5)


@st.composite
def mentions(draw, text):
    bounds = draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6, unique=True))
    bounds = sorted(bounds)[: len(bounds) // 2 * 2]
    fragments = tuple(zip(bounds[::2], bounds[1::2], strict=True))
    return Mention(
        bounds[0],
        bounds[-1],
        " ".join(text[a:b] for a, b in fragments),
        tuple(draw(st.lists(WORD, max_size=2))),
        draw(LINE),
        fragments if len(fragments) > 1 else (),
        tuple(draw(st.lists(WORD, max_size=2))),
        draw(st.sampled_from(["", "T1", "T2", "T3", "x"])),
    )


@st.composite
def relations(draw):
    of = draw(st.sampled_from(["mentions", "concepts"]))
    refs = st.sampled_from(["T1", "T2", "x", "D1"])
    pairs = draw(st.lists(st.tuples(LINE, refs), min_size=1, max_size=3))
    return Relation(draw(LINE), tuple(pairs), draw(st.sampled_from(["", "R1", "R7"])), of)


@st.composite
def documents(draw):
    text = draw(TEXT)
    annotated, passages = [], []
    if len(text) > 1:
        annotated = draw(st.lists(mentions(text), max_size=4))
        position = st.integers(0, len(text))
        for a, b in draw(st.lists(st.tuples(position, position), max_size=3)):
            kind = draw(st.sampled_from(["title", "abstract", "sentence", "tokens"]))
            passages.append(Passage(min(a, b), max(a, b), kind))
    return Document(
        draw(WORD.filter(lambda word: ":" not in word)),
        text,
        tuple(annotated),
        draw(st.sampled_from(["", "en"])),
        tuple(draw(st.lists(relations(), max_size=3))),
        tuple(passages),
    )
