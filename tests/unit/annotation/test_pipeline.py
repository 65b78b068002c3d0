import random
from collections import Counter

import pytest

from biograft.annotation import AnnotationConfig, Annotator
from biograft.documents import Document
from biograft.errors import ConfigError


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


def test_names_of_one_concept_need_no_search(kb, annotator):
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


def test_a_name_of_several_concepts_is_for_the_linker(annotator):
    counts = Counter()
    (document,) = annotator.annotate([Document("1", "a cold")], counts)
    (best,) = annotator._linker.link_mentions(["cold"], 1)[0]
    assert [span.concept for span in document.spans] == [best.concept]
    assert best.concept in ("D4", "D5")
    assert counts == {
        "documents": 1, "characters": 6, "spans": 1, "by linker": 1
    }  # fmt: skip


def test_the_longest_of_overlapping_names_stays(annotator):
    assert spans(annotator, "breast cancer cell line of cells") == [("cancer cell line", "D8", 1.0)]
    assert spans(annotator, "breast cancers, line of cells") == [
        ("breast cancers", "D2", 0.99),
        ("line of cells", "D8", 1.0),
    ]


class TestAbbreviations:
    def test_one_takes_the_concept_of_its_long_form(self, annotator):
        text = "Breast cancer (BC) is common. BC and AD."
        assert spans(annotator, text) == [
            ("Breast cancer", "D2", 1.0),
            ("BC", "D2", 1.0),
            ("BC", "D2", 1.0),
            ("AD", "D6", 1.0),
        ]

    def test_one_that_means_something_else_here_is_no_name(self, annotator):
        counts = Counter()
        document = Document("1", "It is autosomal dominant (AD). AD cancer.")
        (found,) = annotator.annotate([document], counts)
        assert [span.concept for span in found.spans] == ["D3"]
        assert counts["below threshold"] == 2

    def test_another_document_knows_nothing_of_it(self, annotator):
        documents = [Document("1", "autosomal dominant (AD)"), Document("2", "AD")]
        assert [len(d.spans) for d in annotator.annotate(documents)] == [0, 1]

    def test_they_can_be_left_alone(self, kb):
        plain = Annotator.open(kb, AnnotationConfig(abbreviations=False))
        assert spans(plain, "autosomal dominant (AD)") == [("AD", "D6", 1.0)]


def test_the_threshold_decides(kb):
    strict = Annotator.open(kb, AnnotationConfig(threshold=1.0))
    assert spans(strict, "breast cancer, breast-cancers") == [("breast cancer", "D2", 1.0)]


def test_at_most_so_many_spans_the_best_first(kb):
    few = Annotator.open(kb, AnnotationConfig(max_spans=2))
    counts = Counter()
    text = "cancers, cancer, breast-cancer, heart attack, cancer"
    (document,) = few.annotate([Document("1", text)], counts)
    assert [text[s.start : s.end] for s in document.spans] == ["cancer", "heart attack"]
    assert counts["over the most spans"] == 3


def test_only_names_in_the_language_are_found(kb):
    chinese = Annotator.open(kb, AnnotationConfig(language="zh"))
    assert spans(chinese, "cancer 心肌梗死") == [("心肌梗死", "D7", 1.0)]
    (document,) = chinese.annotate([Document("1", "x")])
    assert document.language == "zh"


def test_empty_text_and_much_text(annotator):
    assert spans(annotator, "") == []
    many = spans(annotator, "cancer " * 100_000)
    assert len(many) == 100_000


def test_how_documents_are_batched_changes_nothing(kb, annotator):
    words = (
        "breast cancer (BC) AD cold type 2 diabetes-mellitus heart attacks of line cells".split()
    )
    rng = random.Random(3)
    documents = [Document(str(n), " ".join(rng.choices(words, k=20))) for n in range(60)]
    together = list(annotator.annotate(documents))
    fresh = Annotator.open(kb)
    alone = [found for document in documents[::-1] for found in fresh.annotate([document])]
    assert together == alone[::-1]


@pytest.mark.parametrize("options", [{"threshold": 1.2}, {"threshold": -1}, {"max_spans": -1}])
def test_impossible_settings_are_refused(options):
    with pytest.raises(ConfigError, match="expected 0"):
        AnnotationConfig(**options)
