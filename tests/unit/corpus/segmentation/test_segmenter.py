"""Rules of splitting, and that pieces always part a text without touching its offsets."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from biograft.corpus.segmentation import CutPoint, SegmentationConfig
from biograft.corpus.segmentation.heads import HeadSegmenter
from biograft.corpus.segmentation.segmenter import ChineseSegmenter
from biograft.corpus.segmentation.words import Vocabulary, open_words, read_units, runs
from biograft.errors import ConfigError, MissingExtraError

POINTS = [CutPoint("性", "after", 0, 9, 1.0), CutPoint("小", "before", 9, 0, 1.0)]
NAMES = ["急性", "肝炎", "高血压", "心脏病", "急性肝炎", "高血压性心脏病", "阿司匹林"]
COUNTS = dict.fromkeys([*NAMES, "综合征", "慢性"], 3.0)


def make_chinese(words="own", points=POINTS, **options):
    config = SegmentationConfig(words=words, **options)
    vocabulary = Vocabulary(COUNTS, "zh")
    phrases = ["综合征", "慢性"]
    segmenter = ChineseSegmenter(vocabulary, open_words(words, vocabulary, phrases), points, config)
    segmenter.learn(NAMES)
    return segmenter


def make_english():
    kinds = ("", "type 2 ", "neonatal ", "gestational ")
    names = [f"{kind}diabetes mellitus" for kind in kinds]
    names += ["breast cancer", "lung cancer", "skin cancer", "ataxia"]
    segmenter = HeadSegmenter(Vocabulary({"optic nerve": 3.0}, "en"))
    segmenter.learn(names)
    return segmenter


CHINESE, ENGLISH = make_chinese(), make_english()


def split(segmenter, text):
    found = segmenter.segment(text)
    return [found.cut(piece) for piece in found.pieces]


def halves(segmenter, text):
    found = segmenter.segment(text)
    return found.cut(found.adjective), found.cut(found.head)


def test_a_long_entity_has_an_adjective_part_and_a_head():
    assert split(CHINESE, "慢性急性肝炎") == ["慢性", "急性", "肝炎"]
    assert halves(CHINESE, "慢性急性肝炎") == ("慢性急性", "肝炎")
    assert split(CHINESE, "高血压性心脏病") == ["高血压性", "心脏病"]


def test_short_and_unsplittable_entities_are_one_piece():
    for name in ("肝炎", "高血压", "阿司匹林", "COPD"):
        found = CHINESE.segment(name)
        assert not found.is_long
        assert (found.pieces, found.adjective, found.head) == (
            ((0, len(name)),), (0, 0), (0, len(name))
        )  # fmt: skip
    assert "阿司匹林" in CHINESE.short
    assert "急性肝炎" not in CHINESE.short


def test_an_entity_found_to_be_short_splits_longer_ones():
    assert split(CHINESE, "急性阿司匹林") == ["急性", "阿司匹林"]


def test_a_cut_tears_no_short_word():
    points = [*POINTS, CutPoint("心", "after", 0, 9, 1.0)]
    assert split(make_chinese(points=points), "急性心脏病") == ["急性", "心脏病"]


def test_without_cut_points_words_alone_decide():
    assert split(make_chinese(points=[]), "高血压性心脏病") == ["高血压", "性", "心脏病"]


def test_too_many_single_characters_mean_the_split_by_phrases():
    vocabulary = Vocabulary({"甲乙": 3.0, "丙丁": 3.0}, "zh")
    words = open_words("own", vocabulary, [])
    strict = ChineseSegmenter(vocabulary, words, [], SegmentationConfig(words="own"))
    assert split(strict, "甲乙丙丁") == ["甲乙", "丙丁"]
    lax = SegmentationConfig(words="own", max_single=1.0)
    assert len(split(ChineseSegmenter(vocabulary, words, [], lax), "甲乙丙丁")) == 4


def test_a_letter_stays_with_its_noun_and_a_bracket_is_no_head():
    assert split(CHINESE, "急性肝炎B") == ["急性", "肝炎B"]
    found = CHINESE.segment("急性肝炎（AH）")
    assert [found.cut(piece) for piece in found.pieces] == ["急性", "肝炎", "AH"]
    assert halves(CHINESE, "急性肝炎（AH）") == ("急性", "肝炎")


def test_a_bracket_in_a_bracket_belongs_to_neither_half():
    """What stood between the two openings was taken for a part of the name."""
    for bracket in ("（肝炎（AH））", "（肝炎(AH)）", "（（肝炎）AH）", "【肝炎（AH）】"):
        assert halves(CHINESE, f"急性肝炎{bracket}") == ("急性", "肝炎")
        assert split(CHINESE, f"急性肝炎{bracket}") == ["急性", "肝炎", "肝炎", "AH"]
    assert split(CHINESE, "急性肝炎）") == split(CHINESE, "急性肝炎（") == ["急性", "肝炎"]
    assert split(CHINESE, "（AH）急性肝炎") == ["AH", "急性", "肝炎"]


def test_own_words_are_shares_of_the_whole_vocabulary():
    """Shares of the phrases alone exceeded 1: the more pieces, the more probable."""
    vocabulary = Vocabulary({"甲乙": 3.0, "丙丁": 3.0, "甲乙丙丁": 3.0}, "zh")
    (run,) = runs("甲乙丙丁", "zh")
    for phrases in ([], ["甲乙"]):
        words = open_words("own", vocabulary, phrases)
        for word in vocabulary.counts:
            words.add(word)
        assert words.split(run) == vocabulary.split(run) == [run]


def test_rjieba_with_short_entities_as_dictionary():
    pytest.importorskip("rjieba")
    segmenter = make_chinese("rjieba")
    assert split(segmenter, "遗传性高血压性心脏病") == ["遗传性", "高血压性", "心脏病"]
    assert split(segmenter, "小儿Boder-Sedgwick综合征") == ["小儿", "Boder-Sedgwick", "综合征"]


def test_a_missing_rjieba_is_told_with_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtraError, match=r"words = 'own'.*pip install 'biograft\[zh\]'"):
        make_chinese("rjieba")


def test_an_unknown_segmenter_of_words_is_refused():
    with pytest.raises(ConfigError, match="words: expected one of rjieba, own, found 'jieba'"):
        SegmentationConfig(words="jieba")
    with pytest.raises(ConfigError, match="max_single: expected 0 to 1, found 2"):
        SegmentationConfig(max_single=2)


@pytest.mark.parametrize(
    ("text", "adjective", "head"),
    [
        ("carcinoma of the breast", "of the breast", "carcinoma"),
        ("acute infarction of the wall", "of the wall", "acute infarction"),
        ("carcinoma in situ", "in situ", "carcinoma"),
        ("early breast cancer", "early breast", "cancer"),
        ("neonatal diabetes mellitus", "neonatal", "diabetes mellitus"),
        ("type 2 diabetes mellitus", "type 2", "diabetes mellitus"),
        ("Diabetes Mellitus, Type 2", "Type 2", "Diabetes Mellitus"),
        ("Spinocerebellar ataxia 17", "Spinocerebellar", "ataxia 17"),
        ("non-small-cell lung cancer", "non-small-cell lung", "cancer"),
        ("optic nerve glioma", "optic nerve", "glioma"),
        ("diabetes mellitus", "", "diabetes mellitus"),
        ("ataxia", "", "ataxia"),
    ],
)
def test_english_heads(text, adjective, head):
    assert halves(ENGLISH, text) == (adjective, head)


def test_english_pieces_are_words_and_phrases():
    assert split(ENGLISH, "optic nerve cancer of the eye") == [
        "optic nerve",
        "cancer",
        "of the eye",
    ]


ALPHABET = "急性肝炎高血压心脏病小儿综合征a B2-（）()、。, ofthe,Ⅱ"


@given(st.text(ALPHABET, max_size=20), st.sampled_from(["zh", "en"]))
def test_pieces_part_the_text(text, language):
    found = (CHINESE if language == "zh" else ENGLISH).segment(text)
    place = 0
    for start, end in found.pieces:
        assert place <= start < end <= len(text)
        assert not read_units(text[place:start], language)
        place = end
    assert not read_units(text[place:], language)
    if found.is_long:
        assert found.adjective[0] < found.adjective[1]
        assert found.adjective[1] <= found.head[0] or found.head[1] <= found.adjective[0]
        edges = {edge for piece in found.pieces for edge in piece}
        assert {*found.adjective, *found.head} <= edges
