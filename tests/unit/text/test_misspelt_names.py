"""Names with spelling errors: which words are near, and what is found in text."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from array_damage import put
from hypothesis import given, settings, strategies as st

from biograft.errors import StoreError
from biograft.kb.similar_characters import similar_characters
from biograft.text import MisspeltNames, NamesIndex, WordFinder
from biograft.text.spelling.corrections import LONG_WORD, MAX_NEAREST, MIN_LETTERS

NAMES = [
    "heart failure",
    "hypertension",
    "cold",
    "congestive heart failure",
    "asthma",
    "diabetes mellitus type 2",
    "granulocytosis",
    "myopia",
    "atypical lesion",
]


def found(text, names=NAMES):
    return [match.text for match in MisspeltNames(NamesIndex.build(names)).find(text)]


def plain_edits(a, b):
    """Edits by the full table: insertions, deletions, replacements."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return row[-1]


def is_exchanged(a, b):
    """Whether two neighbours are exchanged, and nothing else."""
    wrong = [k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) != len(b) or len(wrong) != 2 or wrong[1] != wrong[0] + 1:
        return False
    return (a[wrong[0]], a[wrong[1]]) == (b[wrong[1]], b[wrong[0]])


def plain_nearest(word, vocabulary):
    near = []
    for number, other in enumerate(vocabulary):
        edits = 1 if is_exchanged(word, other) else plain_edits(word, other)
        if len(other) >= MIN_LETTERS and edits <= (2 if len(other) >= LONG_WORD else 1):
            near.append((edits, number))
    return [(number, edits) for edits, number in sorted(near)[:MAX_NEAREST]]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.text("ab", min_size=1, max_size=12), min_size=1, max_size=40, unique=True),
    st.text("abc", min_size=1, max_size=13),
)
def test_the_nearest_words_are_those_of_a_plain_comparison(vocabulary, word):
    ends = np.cumsum([0, *map(len, vocabulary)])
    letters = np.frombuffer("".join(vocabulary).encode("utf-32-le"), np.dtype("<u4"))
    assert WordFinder.build(ends, letters).nearest(word) == plain_nearest(word, vocabulary)


@pytest.mark.parametrize(
    "text",
    [
        "hypertenson",
        "Hypertesnion",
        "hypertennsion",
        "hyprtnsion",
        "heartfailure",
        "asth ma",
        "hyper tension",
        "congestive heart failre",
        "dibetes melitus type 2",
        "heart failrues",
    ],
)
def test_a_misspelt_name_is_found(text):
    assert found(f"History of {text}, treated.") == [text]


@pytest.mark.parametrize(
    "text",
    [
        "could",
        "hypotension",
        "agranulocytosis",
        "myopic",
        "a typical lesion",
        "hypertension",
        "heart failures",
        "hypxrtxnsxon",
        "ASTMA",
        "hyper, tension",
    ],
)
def test_other_words_and_names_as_written_are_not_corrected(text):
    assert found(f"History of {text} treated.") == []


def test_a_word_that_a_text_repeats_is_meant():
    assert found("hypertenson; hypertenson") == ["hypertenson"] * 2
    assert found("hypertenson; hypertenson; hypertenson") == []


def test_a_short_proper_name_within_a_sentence_is_meant():
    assert found("She met Doctor Asthna. Astma was known.") == ["Astma"]


def test_of_overlapping_names_the_one_as_written_stays_unless_it_is_only_a_part():
    names = ["heart", "heart failure", "failure of growth"]
    both = MisspeltNames(NamesIndex.build(names)).find_many(["heart failre", "heart failureof"])
    assert [[m.text for m in each.misspelt] for each in both] == [["heart failre"], []]


def test_offsets_and_rows_of_several_texts():
    index = NamesIndex.build(["fever", "asthma"], rows=[7, 9])
    first, second = MisspeltNames(index).find_many(["no astma", "İ astmha"])
    assert [(m.start, m.end, m.name_rows) for m in first.misspelt] == [(3, 8, (9,))]
    assert [(m.start, m.end, m.text) for m in second.misspelt] == [(2, 8, "astmha")]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["hyperlipidemia", "hyperlipemia"], "hyperlipdemia"),
        (["胫骨骨折", "颈骨骨折"], "径骨骨折"),
    ],
)
def test_a_word_as_near_to_two_names_is_meant_if_both_are_of_one_concept(names, text):
    index = NamesIndex.build(names)
    one = MisspeltNames(index, concepts=np.array([4, 4])).find(text)
    assert [match.text for match in one] == [text]
    assert MisspeltNames(index, concepts=np.array([4, 5])).find(text) == []


def test_excluded_names_are_not_found_misspelt():
    index = NamesIndex.build(["asthma"])
    assert MisspeltNames(index.without([0])).find("astma") == []


@settings(max_examples=60, deadline=None)
@given(st.text("aehrt filup.-s", max_size=60))
def test_offsets_slice_to_the_mention_and_nothing_overlaps(text):
    index = NamesIndex.build(["heart failure", "failure", "asthma"])
    both = MisspeltNames(index).find_many([text])[0]
    assert both.exact == index.find(text)
    end = 0
    for match in both.misspelt:
        assert text[match.start : match.end] == match.text
        assert match.start >= end
        end = match.end


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # ordinary and medical words, which the names do not have
        ("concussion", ["confusion"]),
        ("timed", ["tired"]),
        ("constitution", ["constipation"]),
        ("strikes", ["stroke"]),
        ("rehydration", ["dehydration"]),
        ("intubated", ["incubated"]),
        # another kind of disease or opposite: the endings and beginnings are right
        ("meningismus", ["meningiomas"]),
        ("xylocytosis", ["xylocytoma", "xylocytitis"]),
        ("xylophagia", ["xylophasia"]),
        ("xylopenia", ["xylophilia"]),
        ("antixyloid", ["antexyloid"]),
        ("rexylation", ["dexylation"]),
    ],
)
def test_ordinary_words_and_other_kinds_are_no_errors(text, names):
    assert found(f"History of {text}.", names) == []


def test_a_rare_word_may_be_an_error_within_a_longer_name():
    names = ["heart attack", "heart", "hearts"]
    assert found("a hart attack", names) == ["hart attack"]
    assert found("a hart and harts", names) == []


@pytest.mark.parametrize("text", ["nelanoma", "mmelanoma", "elanoma", "koint pain"])
def test_a_first_letter_may_be_wrong_in_a_word_of_six_letters(text):
    assert found(f"History of {text}.", ["melanoma", "joint pain"]) in ([text], [])
    assert found("History of nelanoma.", ["melanoma"]) == ["nelanoma"]
    assert found("History of selanoma.", ["melanoma"]) == []  # no neighbour on the keyboard


def test_an_exact_name_wins_unless_a_longer_one_is_clearly_meant():
    names = ["failure", "congestive heart failure", "hypersensitivity", "pain"]
    names += ["xylophorantic pain", "xylophorantic hypersensitivity"]
    assert found("a congestive haert failure", names) == ["congestive haert failure"]
    assert found("a xylophrantic pain", names) == ["xylophrantic pain"]
    assert found("a xylophranic pain", names) == ["xylophranic pain"]  # most of it is new
    assert found("a xylophranic hypersensitivity", names) == []  # two errors, and less is new


CHINESE = ["急性心肌梗死", "慢性阻塞性肺疾病", "高血压病", "糖尿病", "胸闷", "头痛", "2型糖尿病"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("患者急性心饥梗死入院", ["急性心饥梗死"]),  # the same sound
        ("高血鸭病", ["高血鸭病"]),
        ("唐尿病", ["唐尿病"]),
        ("有凶闷", ["凶闷"]),
        ("无头捅，", ["头捅"]),
        ("糖脲病", ["糖脲病"]),  # similar shape
        ("2型糖脲病", ["2型糖脲病"]),  # a name that has a number
        ("慢性阻阻塞性肺疾病", ["慢性阻阻塞性肺疾病"]),  # doubled
        ("慢性阻塞肺疾病", ["慢性阻塞肺疾病"]),  # missing
        ("急性心肌梗塞", []),  # another word
        ("头晕", []),
        ("糖雅病", []),  # neither sound nor shape
    ],
)
def test_a_wrong_character_in_a_chinese_name(text, expected):
    assert found(text, CHINESE) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("右髋疼痛", "右胁疼痛"),  # part of the body
        ("左膝疼痛", "右膝疼痛"),  # side
        ("甲型病毒性肝炎", "乙型病毒性肝炎"),  # type
        ("试验阳性反应", "试验阴性反应"),  # polarity
        ("高钠血症", "高钙血症"),  # substance
        ("颈抵抗阳性", "抗-HCVAg阳性"),  # not a character, but a word is missing
        ("萎缩性胃炎", "非萎缩性胃炎"),
        ("慢性缩窄性炎", "慢性缩窄性胃癌"),
        ("促进", "气促"),  # the end of one word and the beginning of another
    ],
)
def test_what_another_meaning_has_is_no_error(text, name):
    assert found(f"患者{text}。", [name]) == []


def test_sound_and_shape_of_characters():
    similar = similar_characters()
    assert "凶" in similar["胸"][0]
    assert "未" in similar["末"][1]
    assert "已" in similar["己"][1]
    assert all(len(char) == 1 for char in similar)


@pytest.mark.parametrize("name", ["word_ends", "slots"])
def test_damage_inside_an_array_is_refused_in_one_line(tmp_path, name):
    """A position in ``word_ends`` led a compiled loop out of the letters, or was an IndexError."""
    NamesIndex.build(NAMES).save(tmp_path / "names", "these", len(NAMES))
    array = np.load(tmp_path / "names" / f"{name}.npy")
    if name == "word_ends":
        array[3] = 1 << 43
    else:
        array[array > 0] |= np.uint64(0x7FFFFFFF)  # numbers of words that are not there
    put(tmp_path / "names", name, array)
    misspelt = MisspeltNames(NamesIndex.open(tmp_path / "names", "these"))
    text = "hert failure, hypertensoin, heart failure and diabetes melitus type 2 of the old man"
    if name == "word_ends":
        with pytest.raises(StoreError, match=r"damaged \(word_ends"):
            misspelt.find(text)
    else:
        with contextlib.suppress(StoreError):
            misspelt.find(text)


def test_a_short_chinese_name_beside_a_second_strange_place_is_none():
    names = MisspeltNames(NamesIndex.build(["布病", "疟疾", "哮喘"]))
    assert [each.text for each in names.find("无布症。")] == ["布症"]
    assert names.find("无佐布症、发热") == []
    found = names.find("虐疾涂片阴性，否认哮踹、癫痫。")
    assert [each.text for each in found] == ["虐疾", "哮踹"]


def test_a_word_that_is_as_near_to_two_names_is_neither():
    """*ezema* lacks a letter of *eczema*, and has one in place of another of *edema*."""
    names = ["eczema", "edema", "hypertension"]
    assert found("ezema and hypertenson", names) == ["hypertenson"]
    assert found("ezema", ["eczema"]) == ["ezema"]
    assert found("a dysphasgia", ["dysphagia", "dysphasia"]) == []
