"""End-to-end evaluation: by hand, against plain loops, in batches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from biograft.errors import ConfigError
from biograft.evaluation import evaluate_text, read_gold_texts
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.metrics import Counts
from biograft.progress import Progress
from biograft.text.documents import Document, Mention


def document(text: str, *mentions: tuple[str, str], name: str = "d", shift: int = 0) -> Document:
    """Write a document and its mentions: ``("flu", "D1 D2")``, none: NIL."""
    found = []
    for part, ids in mentions:
        start = text.index(part) + shift
        found.append(Mention(start, start + len(part), part, tuple(ids.split())))
    return Document(name, text, tuple(found))


@pytest.fixture
def linker(base):
    return Linker.open(base)


def counts(linker, *documents):
    result = evaluate_text(linker, documents, n_resamples=5)
    return [result[level].counts for level in ("spans", "mentions", "documents")]


def test_spans_mentions_and_documents_by_hand(linker):
    found = document(
        "Grippe, then infectious disease; influenza again, and sickness.",
        ("Grippe", "D1"),  # right
        ("infectious disease", "D3"),  # found, another concept
        ("influenza", "D1"),  # right, the same concept again
        ("sickness", "D4"),  # not found
    )
    other = document("Viral infection of a cold.", ("cold", "D4"))  # the first is too much
    assert counts(linker, found, other) == [Counts(4, 1, 1), Counts(3, 2, 2), Counts(2, 2, 2)]


def test_gold_mentions_are_not_passed_to_the_linker(linker):
    """A linker links the mentions that a document has; here it gets none."""
    unknown = document("An influensa.", ("influensa", "D1"))
    assert linker(unknown).mentions[0].concept == "MESH:D1"
    assert counts(linker.with_settings(misspelt=False), unknown) == [Counts(0, 0, 1)] * 3


def test_a_concept_matches_by_any_of_its_own_ids(linker):
    for gold in ("D1", "MESH:D1", "OMIM:77", "MIM:77", "D1 OMIM:77"):
        assert counts(linker, document("Grippe.", ("Grippe", gold))) == [Counts(1, 0, 0)] * 3
    elsewhere = document("Grippe and influenza.", ("Grippe", "OMIM:77"), ("influenza", "D1"))
    assert counts(linker, elsewhere) == [Counts(2), Counts(2), Counts(1)]


def test_an_id_of_several_concepts_matches_each(store_of):
    base = store_of(
        [
            {"id": "A1", "name": "Redness", "ids": ["OMIM:9"]},
            {"id": "A2", "name": "Blueness", "ids": ["OMIM:9"]},
        ]
    )
    gold = document("Redness and blueness.", ("Redness", "OMIM:9"), ("blueness", "OMIM:9"))
    assert counts(Linker.open(base), gold) == [Counts(2), Counts(2), Counts(1)]
    primary = document("Redness and blueness.", ("Redness", "A1"), ("blueness", "OMIM:9"))
    assert counts(Linker.open(base), primary) == [Counts(2), Counts(2), Counts(2)]


def test_a_composite_needs_all_its_concepts_in_its_span(linker):
    """The dictionary finds a composite only where a name covers it, so a detector is used."""

    class CompositeDetector:
        def detect(self, documents):
            starts = [each.text.index("breast and ovarian cancer") for each in documents]
            return [[Mention(n, n + 25, "breast and ovarian cancer")] for n in starts]

    answered = Linker(linker.kb, linker.search, detector=CompositeDetector())
    text = "In breast and ovarian cancer."
    both = document(text, ("breast and ovarian cancer", "D5 D6"))
    assert counts(answered, both) == [Counts(1), Counts(1), Counts(2)]
    half = document(text, ("breast and ovarian cancer", "D5"))
    assert counts(answered, half) == [Counts(1), Counts(0, 1, 1), Counts(1, 1, 0)]
    # marked twice, once for each concept: one span with both
    (mention,) = half.mentions
    twice = replace(half, mentions=(mention, replace(mention, concepts=("D6",))))
    assert counts(answered, twice) == [Counts(1), Counts(1), Counts(2)]


def test_nil_is_a_span_and_no_concept(linker):
    gold = document("Grippe and sickness.", ("Grippe", ""), ("sickness", "-1"))
    result = evaluate_text(linker, [gold], n_resamples=5)
    assert result["spans"].counts == Counts(1, 0, 1)
    assert result["mentions"].counts == result["documents"].counts == Counts(0, 1, 0)
    assert (result.n_mentions, result.n_nil) == (2, 2)
    strict_linker = Linker.open(linker.kb, threshold=1.0)  # below it is all that is misspelt
    answered = document("An influensa.", ("influensa", "-1"))
    missed = document("An influensa.", ("influensa", "D1"), name="e")
    expected = [Counts(2), Counts(0, 0, 1), Counts(0, 0, 1)]
    assert counts(strict_linker, answered, missed) == expected


def by_plain_loops(gold, linked):
    """Count with plain loops; ids of the sample are primary ones."""
    spans, mentions, documents = [0, 0, 0], [0, 0, 0], [0, 0, 0]

    def count(into, expected, answered):
        for each in answered:
            into[0 if each in expected else 1] += 1
        for each in expected:
            into[2] += each not in answered

    for one, answer in zip(gold, linked, strict=True):
        spans_found = sorted({(m.start, m.end) for m in answer.mentions})
        answered = [
            (
                s,
                e,
                sorted({m.concept for m in answer.mentions if (m.start, m.end) == (s, e)} - {None}),
            )
            for s, e in spans_found
        ]
        expected = [(m.start, m.end, sorted(set(m.concepts))) for m in one.mentions]
        count(spans, [row[:2] for row in expected], [row[:2] for row in answered])
        count(mentions, [row for row in expected if row[2]], [row for row in answered if row[2]])
        flat = [sorted({i for row in rows for i in row[2]}) for rows in (expected, answered)]
        count(documents, *flat)
    return [Counts(*spans), Counts(*mentions), Counts(*documents)]


@pytest.mark.parametrize("threshold", [None, 0.9995])
def test_counts_agree_with_plain_loops(starter, threshold):
    kb, gold = KnowledgeBase.open(starter), read_gold_texts("starter", "sample").documents[:60]
    assert all(i in kb for one in gold for m in one.mentions for i in m.concepts)
    linker = Linker.open(kb, threshold=threshold)
    linked = list(linker.pipe([one.text for one in gold]))
    assert counts(linker, *gold) == by_plain_loops(gold, linked)


def test_documents_are_read_lazily(linker):
    """A generator of endless length is read no further than the batches that are linked."""
    n_read = []

    def endless():
        n = 0
        while True:
            n += 1
            n_read.append(n)
            if n > 100:
                raise KeyboardInterrupt
            yield document("Grippe.", ("Grippe", "D1"))

    class Counting(Progress):
        read_at = 0

        def advance(self, rows, fraction=None):
            self.read_at = self.read_at or len(n_read)

    progress = Counting(enabled=False)
    with pytest.raises(KeyboardInterrupt):
        evaluate_text(linker, endless(), progress=progress)
    assert progress.read_at < 100


def test_intervals_resample_documents_and_order_does_not_matter(linker):
    good = [document("Grippe.", ("Grippe", "D1"))] * 6
    bad = [document("A sickness.", ("sickness", "D1"))] * 6
    result = evaluate_text(linker, [*good, *bad], seed=1)
    recall = result["mentions"].intervals["recall"]
    assert recall.low < result["mentions"].counts.recall == 0.5 < recall.high
    assert evaluate_text(linker, [*good, *bad], seed=1) == result
    reversed_result = evaluate_text(linker, [*bad, *good])
    assert reversed_result["mentions"].counts == result["mentions"].counts


def test_no_document_at_all_is_refused(linker):
    with pytest.raises(ConfigError, match="expected at least one, found none"):
        evaluate_text(linker, [])
