from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.annotation import AnnotationConfig, Annotator, select_best
from biograft.text import Spans, select_disjoint
from biograft.text.documents import Document


@pytest.fixture(scope="module")
def annotator(kb):
    return Annotator.open(kb)


def spans(annotator, text):
    (document,) = annotator.annotate([Document("1", text)])
    assert document.text == text
    ends = [0, *(span.end for span in document.spans)]
    assert all(
        before <= span.start < span.end for before, span in zip(ends, document.spans, strict=False)
    )
    return [(text[s.start : s.end], s.concept, round(s.score, 2)) for s in document.spans]


def test_names_of_one_concept_are_not_searched(kb, annotator):
    class Silent:
        config = annotator._linker.config

        def link_mentions(self, texts, k):
            assert not texts
            return []

    quiet = Annotator(kb, Silent())
    assert spans(quiet, "Breast Cancer and heart-attacks, 心肌梗死") == [
        ("Breast Cancer", "D2", 1.0),
        ("heart-attacks", "D7", 0.99),
        ("心肌梗死", "D7", 1.0),
    ]


def test_a_name_of_several_concepts_is_linked(annotator):
    counts = Counter()
    (document,) = annotator.annotate([Document("1", "a cold")], counts)
    (best,) = annotator._linker.link_mentions(["cold"], 1)[0]
    assert [span.concept for span in document.spans] == [best.concept]
    assert best.concept in ("D4", "D5")
    assert counts == {"documents": 1, "characters": 6, "spans": 1, "by linker": 1}


def test_the_longest_of_overlapping_names_is_kept(annotator):
    assert spans(annotator, "breast cancer cell line of cells") == [("cancer cell line", "D8", 1.0)]
    assert spans(annotator, "breast cancers, line of cells") == [
        ("breast cancers", "D2", 0.99),
        ("line of cells", "D8", 1.0),
    ]


class TestAbbreviations:
    def test_an_abbreviation_has_the_concept_of_its_long_form(self, annotator):
        text = "Breast cancer (BC) is common. BC and AD."
        assert spans(annotator, text) == [
            ("Breast cancer", "D2", 1.0),
            ("BC", "D2", 1.0),
            ("BC", "D2", 1.0),
            ("AD", "D6", 1.0),
        ]

    def test_an_abbreviation_with_another_meaning_is_no_name(self, annotator):
        counts = Counter()
        document = Document("1", "It is autosomal dominant (AD). AD cancer.")
        (annotated,) = annotator.annotate([document], counts)
        assert [span.concept for span in annotated.spans] == ["D3"]
        assert counts["below threshold"] == 2

    def test_a_definition_holds_for_its_document_only(self, annotator):
        documents = [Document("1", "autosomal dominant (AD)"), Document("2", "AD")]
        assert [len(d.spans) for d in annotator.annotate(documents)] == [0, 1]

    def test_abbreviations_can_be_disabled(self, kb):
        plain = Annotator.open(kb, AnnotationConfig(abbreviations=False))
        assert spans(plain, "autosomal dominant (AD)") == [("AD", "D6", 1.0)]


def test_threshold(kb):
    strict = Annotator.open(kb, AnnotationConfig(threshold=1.0))
    assert spans(strict, "breast cancer, breast-cancers") == [("breast cancer", "D2", 1.0)]


def test_a_plural_of_a_shared_name_is_linked_by_the_name(write, tmp_path):
    """*flus* was searched as written, scored 0.52, and was dropped."""
    source = SourceConfig(path=write("kb.txt", "D1||flu\nD2||flu\nD3||flux\n"), format="biosyn")
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    found = spans(Annotator.open(tmp_path / "kb"), "flus, flu")
    assert [(text, score) for text, _, score in found] == [("flus", 0.99), ("flu", 1.0)]
    assert {concept for _, concept, _ in found} <= {"D1", "D2"}


@pytest.mark.parametrize("text", ["brest cancer", "breasst cancer", "cancer breast"])
def test_text_that_is_only_similar_to_a_name_is_not_found(kb, text):
    lax = Annotator.open(kb, AnnotationConfig(threshold=0.0))
    assert "D2" not in [concept for _, concept, _ in spans(lax, text)]


def test_a_threshold_matters_only_where_scores_differ(kb):
    def matters(threshold, **options):
        return AnnotationConfig(threshold=threshold, **options).threshold_matters

    assert matters(0.5)
    assert matters(0.5, abbreviations=False, index=Path("index"))
    assert matters(1.0, abbreviations=False)
    assert not matters(0.99, abbreviations=False)
    text = "Breast cancer (BC), colds, cold, cancers, autosomal dominant (AD)"
    plain = [AnnotationConfig(threshold=t, abbreviations=False) for t in (0.0, 0.99)]
    one, other = (spans(Annotator.open(kb, config), text) for config in plain)
    assert one == other


def test_max_spans_keeps_the_best(kb):
    few = Annotator.open(kb, AnnotationConfig(max_spans=2))
    counts = Counter()
    text = "cancers, cancer, breast-cancer, heart attack, cancer"
    (document,) = few.annotate([Document("1", text)], counts)
    assert [text[s.start : s.end] for s in document.spans] == ["cancer", "heart attack"]
    assert counts["over max_spans"] == 3


def test_language(kb):
    chinese = Annotator.open(kb, AnnotationConfig(language="zh"))
    assert spans(chinese, "cancer 心肌梗死") == [("心肌梗死", "D7", 1.0)]
    (document,) = chinese.annotate([Document("1", "x")])
    assert document.language == "zh"


def test_empty_and_long_text(annotator):
    assert spans(annotator, "") == []
    many = spans(annotator, "cancer " * 100_000)
    assert len(many) == 100_000


def test_batching_does_not_change_the_result(kb, annotator):
    words = (
        "breast cancer (BC) AD cold type 2 diabetes-mellitus heart attacks of line cells".split()
    )
    rng = random.Random(3)
    documents = [Document(str(n), " ".join(rng.choices(words, k=20))) for n in range(60)]
    batched = list(annotator.annotate(documents))
    fresh = Annotator.open(kb)
    single = [each for document in documents[::-1] for each in fresh.annotate([document])]
    assert batched == single[::-1]


@pytest.mark.parametrize("options", [{"threshold": 1.2}, {"threshold": -1}, {"max_spans": -1}])
def test_invalid_settings_are_refused(options):
    with pytest.raises(ConfigError, match="expected"):
        AnnotationConfig(**options)


def random_spans(seed):
    """Sorted spans of five documents, and their scores."""
    rng = random.Random(seed)
    rows = sorted(
        (rng.randrange(5), start, start + rng.randint(1, 6))
        for start in (rng.randrange(40) for _ in range(60))
    )
    scores = np.array([rng.choice([0.9, 0.95, 1.0]) for _ in rows])
    return Spans(*np.array(rows, np.int64).T), scores


def disjoint_by_loop(spans, scores):
    rows = list(zip(*(column.tolist() for column in spans), scores, strict=True))
    order = sorted(range(len(rows)), key=lambda n: (rows[n][1] - rows[n][2], -rows[n][3], *rows[n]))
    kept = []
    for n in order:
        document, start, end, _ = rows[n]
        if all(rows[k][0] != document or rows[k][2] <= start or rows[k][1] >= end for k in kept):
            kept.append(n)
    return [rows[n][:3] for n in sorted(kept, key=lambda n: rows[n])]


@pytest.mark.parametrize("seed", range(20))
def test_select_disjoint_equals_a_plain_loop(seed):
    spans, scores = random_spans(seed)
    kept = spans.take(select_disjoint(spans, scores))
    assert list(zip(*map(np.ndarray.tolist, kept), strict=True)) == disjoint_by_loop(spans, scores)


@pytest.mark.parametrize("seed", range(5))
def test_select_best_of_each_document(seed):
    spans, scores = random_spans(seed)
    kept = select_best(spans, scores, 3).tolist()
    assert kept == sorted(kept)
    for document in range(5):
        rows = [n for n in range(len(scores)) if spans.document[n] == document]
        best = sorted(
            rows, key=lambda n: (-scores[n], spans.start[n] - spans.end[n], spans.start[n])
        )
        assert sorted(best[:3]) == [n for n in kept if spans.document[n] == document]


def test_no_spans():
    none = Spans(*np.zeros((3, 0), np.int64))
    assert select_disjoint(none, np.zeros(0)).tolist() == []
    assert select_best(none, np.zeros(0), 2).tolist() == []


def test_what_was_linked_before_changes_nothing(kb, monkeypatch):
    """Neither does starting anew, when more forms are kept than there is space for."""
    texts = ["Breast cancer (BC), a cold.", "BC and ad, AD", "(bc) breast-cancers a cold", "AD"] * 2
    annotator = Annotator.open(kb)
    kept = [spans(annotator, text) for text in texts]
    monkeypatch.setattr("biograft.linking.annotation.pipeline._CACHE_SIZE", 2)
    assert [spans(annotator, text) for text in texts] == kept
    assert [spans(Annotator.open(kb), text) for text in texts[:4]] * 2 == kept
