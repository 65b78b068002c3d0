"""Names with spelling errors: which words are near, and what is found in text."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from array_damage import put
from hypothesis import given, settings, strategies as st

from biograft.errors import StoreError
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


CHINESE = ["急性心肌梗死", "慢性阻塞性肺疾病", "高血压病", "糖尿病"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("患者急性心饥梗死入院", ["急性心饥梗死"]),  # a wrong character
        ("慢性阻塞性肺疾", []),  # in the last character: only of longer text
        ("高血雅病", ["高血雅病"]),
        ("高血压雅", []),  # in the last character of a short name
        ("急性心肌梗塞", []),  # another word
        ("糖雅病", []),  # three characters
    ],
)
def test_a_wrong_character_in_a_chinese_name(text, expected):
    assert found(text, CHINESE) == expected


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
