"""Rules of the Chinese and the head segmenter; property: segments cover all units of a text."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from biograft.errors import MissingExtraError
from biograft.text import (
    ChineseSegmenter,
    CutPoint,
    HeadSegmenter,
    SegmentationConfig,
    UnigramVocabulary,
)
from biograft.text.segmentation.words import open_word_segmenter, read_units, runs

POINTS = [CutPoint("性", "after", 0, 9, 1.0), CutPoint("小", "before", 9, 0, 1.0)]
NAMES = ["急性", "肝炎", "高血压", "心脏病", "急性肝炎", "高血压性心脏病", "阿司匹林"]
COUNTS = dict.fromkeys([*NAMES, "综合征", "慢性"], 3.0)


def make_chinese(word_segmenter="unigram", points=POINTS, **options):
    config = SegmentationConfig(word_segmenter=word_segmenter, **options)
    vocabulary = UnigramVocabulary(COUNTS, "zh")
    phrases = ["综合征", "慢性"]
    segmenter = ChineseSegmenter(
        vocabulary, open_word_segmenter(word_segmenter, vocabulary, phrases), points, config
    )
    segmenter.learn(NAMES)
    return segmenter


def make_english():
    kinds = ("", "type 2 ", "neonatal ", "gestational ")
    names = [f"{kind}diabetes mellitus" for kind in kinds]
    names += ["breast cancer", "lung cancer", "skin cancer", "ataxia"]
    segmenter = HeadSegmenter(UnigramVocabulary({"optic nerve": 3.0}, "en"))
    segmenter.learn(names)
    return segmenter


CHINESE, ENGLISH = make_chinese(), make_english()


def split(segmenter, text):
    entity = segmenter.segment(text)
    return [entity.cut(segment) for segment in entity.segments]


def halves(segmenter, text):
    entity = segmenter.segment(text)
    return entity.cut(entity.adjective), entity.cut(entity.head)


def test_a_long_entity_has_an_adjective_part_and_a_head():
    assert split(CHINESE, "慢性急性肝炎") == ["慢性", "急性", "肝炎"]
    assert halves(CHINESE, "慢性急性肝炎") == ("慢性急性", "肝炎")
    assert split(CHINESE, "高血压性心脏病") == ["高血压性", "心脏病"]


def test_short_and_unsplittable_entities_are_one_segment():
    for name in ("肝炎", "高血压", "阿司匹林", "COPD"):
        entity = CHINESE.segment(name)
        assert not entity.is_long
        assert (entity.segments, entity.adjective, entity.head) == (
            ((0, len(name)),),
            (0, 0),
            (0, len(name)),
        )
    assert "阿司匹林" in CHINESE.short
    assert "急性肝炎" not in CHINESE.short


def test_a_short_entity_splits_longer_ones():
    assert split(CHINESE, "急性阿司匹林") == ["急性", "阿司匹林"]


def test_a_cut_point_splits_no_short_word():
    points = [*POINTS, CutPoint("心", "after", 0, 9, 1.0)]
    assert split(make_chinese(points=points), "急性心脏病") == ["急性", "心脏病"]


def test_too_many_single_characters_mean_the_split_by_phrases():
    vocabulary = UnigramVocabulary({"甲乙": 3.0, "丙丁": 3.0}, "zh")
    words = open_word_segmenter("unigram", vocabulary, [])
    strict = ChineseSegmenter(vocabulary, words, [], SegmentationConfig(word_segmenter="unigram"))
    assert split(strict, "甲乙丙丁") == ["甲乙", "丙丁"]
    lax = SegmentationConfig(word_segmenter="unigram", max_single=1.0)
    assert len(split(ChineseSegmenter(vocabulary, words, [], lax), "甲乙丙丁")) == 4


def test_a_letter_stays_with_its_noun_and_a_bracket_is_no_head():
    assert split(CHINESE, "急性肝炎B") == ["急性", "肝炎B"]
    entity = CHINESE.segment("急性肝炎（AH）")
    assert [entity.cut(segment) for segment in entity.segments] == ["急性", "肝炎", "AH"]
    assert halves(CHINESE, "急性肝炎（AH）") == ("急性", "肝炎")


def test_a_bracket_in_a_bracket_belongs_to_neither_half():
    """What stood between the two openings was taken for a part of the name."""
    for bracket in ("（肝炎（AH））", "（肝炎(AH)）", "（（肝炎）AH）", "【肝炎（AH）】"):
        assert halves(CHINESE, f"急性肝炎{bracket}") == ("急性", "肝炎")
        assert split(CHINESE, f"急性肝炎{bracket}") == ["急性", "肝炎", "肝炎", "AH"]
    assert split(CHINESE, "急性肝炎）") == split(CHINESE, "急性肝炎（") == ["急性", "肝炎"]
    assert split(CHINESE, "（AH）急性肝炎") == ["AH", "急性", "肝炎"]


def test_unigram_probabilities_are_ratios_of_the_whole_vocabulary():
    """Ratios of the phrases alone exceeded 1: more segments were more probable."""
    vocabulary = UnigramVocabulary({"甲乙": 3.0, "丙丁": 3.0, "甲乙丙丁": 3.0}, "zh")
    (run,) = runs("甲乙丙丁", "zh")
    for phrases in ([], ["甲乙"]):
        words = open_word_segmenter("unigram", vocabulary, phrases)
        for word in vocabulary.counts:
            words.add(word)
        assert words.split(run) == vocabulary.split(run) == [run]


def test_rjieba_with_short_entities_as_dictionary():
    pytest.importorskip("rjieba")
    segmenter = make_chinese("rjieba")
    assert split(segmenter, "遗传性高血压性心脏病") == ["遗传性", "高血压性", "心脏病"]
    assert split(segmenter, "小儿Boder-Sedgwick综合征") == ["小儿", "Boder-Sedgwick", "综合征"]


def test_a_missing_rjieba_is_reported_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtraError, match=r"unigram.*pip install 'biograft\[zh\]'"):
        make_chinese("rjieba")


@pytest.mark.parametrize(
    ("text", "adjective", "head"),
    [
        ("carcinoma of the breast", "of the breast", "carcinoma"),
        ("early breast cancer", "early breast", "cancer"),
        ("neonatal diabetes mellitus", "neonatal", "diabetes mellitus"),
        ("Diabetes Mellitus, Type 2", "Type 2", "Diabetes Mellitus"),
        ("Spinocerebellar ataxia 17", "Spinocerebellar", "ataxia 17"),
        ("non-small-cell lung cancer", "non-small-cell lung", "cancer"),
        ("optic nerve glioma", "optic nerve", "glioma"),
        ("diabetes mellitus", "", "diabetes mellitus"),
    ],
)
def test_english_heads(text, adjective, head):
    assert halves(ENGLISH, text) == (adjective, head)


ALPHABET = "急性肝炎高血压心脏病小儿综合征a B2-（）()、。, ofthe,Ⅱ"


@given(st.text(ALPHABET, max_size=20), st.sampled_from(["zh", "en"]))
def test_segments_cover_all_units(text, language):
    entity = (CHINESE if language == "zh" else ENGLISH).segment(text)
    position = 0
    for start, end in entity.segments:
        assert position <= start < end <= len(text)
        assert not read_units(text[position:start], language)
        position = end
    assert not read_units(text[position:], language)
    if entity.is_long:
        assert entity.adjective[0] < entity.adjective[1]
        assert entity.adjective[1] <= entity.head[0] or entity.head[1] <= entity.adjective[0]
        edges = {edge for segment in entity.segments for edge in segment}
        assert {*entity.adjective, *entity.head} <= edges
