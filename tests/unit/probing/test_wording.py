"""How relations and names are put into words, and what counts as the same answer."""

import pytest

from biograft.errors import FormatError
from biograft.probing import ClozeQuery, gold_of, read_wording
from biograft.probing.cloze_queries import answer_key, clean_name, relation_text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("part_of", "is part of"),
        ("symptom-of", "is symptom of"),
        ("same-as", "is same as"),
        ("may_be_treated_by", "is may be treated by"),
        ("isa", "is a"),
        ("is-a", "is a"),
        ("is_a", "is a"),
        ("treats", "treats"),
        ("Of", "is Of"),
        ("thereof", "thereof"),
        ("located-in", "located in"),
        ("临床表现", "临床表现"),
    ],
)
def test_relations_in_words(name, words):
    assert relation_text(name) == words


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("Heart  Attack", "heart attack"),
        ("Diabetes (disorder)", "diabetes"),
        ("Beta-2 receptor", "beta 2 receptor"),
        ("Pain NOS chest", "pain chest"),
        ("NOS1", "nos1"),
        ("Diabetes NOS", "diabetes nos"),
        ("(R)-(-)", "(r)-(-)"),
        ("心脏（器官）", "心脏"),
        ("2-型糖尿病", "2 型糖尿病"),
    ],
)
def test_names_are_cleaned(name, cleaned):
    assert clean_name(name) == cleaned


@pytest.mark.parametrize(
    ("decoded", "name"),
    [
        ("Heart attack", "heart attack"),
        ("crohn ' s disease", "crohn's disease"),
        ("beta - 2 receptor", "beta 2 receptor"),
        ("糖 尿 病", "糖尿病"),
        ("2 型 糖 尿 病", "2型糖尿病"),
        ("2 型 糖 尿 病", "2 型糖尿病"),
        ("alzheimer disease , late onset", "alzheimer disease, late onset"),
        (" aspirin", "aspirin"),
    ],
)
def test_signs_and_characters_are_tokens_by_themselves(decoded, name):
    assert answer_key(decoded) == answer_key(name)


def test_different_names_stay_different():
    keys = ["heart attack", "heartattack", "heart, attack", "heart attacks"]
    assert len({answer_key(key) for key in keys}) == 4


def test_wording_of_ones_own(write):
    path = write("words.tsv", "treats\t用于 治疗\nis-a\t是\n")
    assert read_wording(path) == {"treats": "用于 治疗", "is-a": "是"}
    with pytest.raises(FormatError, match=r"bad\.tsv:2: expected a relation, tab, words"):
        read_wording(write("bad.tsv", "a\tb\nc\n"))


def test_right_answers_are_names_of_any_right_concept(base):
    query = ClozeQuery("aspirin treats [MASK]", "treats", ("D1", "D2"))
    gold = gold_of(base, query, ("en",))
    for right in ("Fever", "high temperature", "headache"):
        assert gold.accepts(right)
    assert gold.accepts("head ache")  # without its blanks it is a name
    assert not gold.accepts("hightemperature")  # with blanks it would be
    assert not gold.accepts("aspirin")
    assert not gold.accepts("发热")
    assert gold_of(base, query, ("zh",)).accepts("发 热")
    assert not gold_of(base, query, ("zh",)).accepts("fever")


@pytest.mark.parametrize(
    ("prompt", "given_away"),
    [
        ("aspirin treats [MASK]", False),
        ("dengue fever is a [MASK]", True),
        ("[MASK] is a symptom of Scarlet Fever", True),
        ("fev [MASK] er", False),  # no name reaches over the blank
    ],
)
def test_type_1_holds_a_name_of_the_answer(base, prompt, given_away):
    assert gold_of(base, ClozeQuery(prompt, "r", ("D1",)), ("en",)).given_away == given_away
