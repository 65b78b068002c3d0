"""Queries of a store: against plain loops over its triples."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from biograft.errors import ConfigError, FormatError
from biograft_lab.probing import (
    ClozeQuery,
    QueryConfig,
    build_queries,
    cloze_gold,
    read_wording,
)
from biograft_lab.probing.cloze_queries import answer_key, clean_name, relation_text


def plain_queries(base, language, words):
    """All queries of a store, by going through its triples one by one."""
    names_of = {}
    for concept in base:
        names = [name.text for name in concept.names if name.language == language]
        if names:
            names_of[concept.id] = names[0].lower().replace(" (symptom)", "")
    answers_of = defaultdict(set)
    for row in range(len(base)):
        head = base.id_at(row)
        for relation, tail, _ in base.outgoing(row):
            if head in names_of and tail in names_of:
                answers_of[f"{names_of[head]} {words[relation]} [MASK]", relation].add(tail)
                answers_of[f"[MASK] {words[relation]} {names_of[tail]}", relation].add(head)
    return {key: tuple(sorted(answers)) for key, answers in answers_of.items()}


WORDS = {"treats": "treats", "is-a": "is a", "same_as": "is same as"}


def as_table(queries):
    return {(query.prompt, query.relation): query.answers for query in queries}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_queries_equal_plain_loops(base, language):
    result = build_queries(base, QueryConfig(languages=(language,)))
    expected = plain_queries(base, language, WORDS)
    assert as_table(result.queries) == expected
    assert result.n_different == len(result.queries) == len(expected)
    assert result.n_triples == 10
    assert result.n_nameless == {"en": 2, "zh": 6}[language]


def test_equal_queries_are_one_with_several_right_concepts(base):
    table = as_table(build_queries(base, QueryConfig()).queries)
    assert table["aspirin treats [MASK]", "treats"] == ("D1", "D2", "D5", "D7")
    assert table["[MASK] treats fever", "treats"] == ("D3", "D4")
    assert table["aspirin is same as [MASK]", "same_as"] == ("D4",)


def test_a_name_in_the_first_language_that_has_one(base):
    table = as_table(build_queries(base, QueryConfig(languages=("en", "zh"))).queries)
    assert ("布洛芬 treats [MASK]", "treats") in table
    table = as_table(build_queries(base, QueryConfig(languages=("zh", "en"))).queries)
    assert table["阿司匹林 treats [MASK]", "treats"] == ("D1", "D2", "D7")
    assert table["aspirin treats [MASK]", "treats"] == ("D1", "D5")
    assert build_queries(base, QueryConfig(languages=("de",))).queries == ()


def test_one_end_only_and_some_relations_only(base):
    config = QueryConfig(masked="head", relations=("is-a", "same_as"))
    result = build_queries(base, config, {"is-a": "is a kind of"})
    assert as_table(result.queries) == {
        ("[MASK] is a kind of pain", "is-a"): ("D2",),
        ("[MASK] is a kind of headache", "is-a"): ("D7",),
        ("[MASK] is same as aspirin", "same_as"): ("D3",),
    }
    assert result.n_triples == 3
    with pytest.raises(ConfigError, match=r"none is called 'treat'; did you mean 'treats'"):
        build_queries(base, QueryConfig(relations=("treat",)))


def test_sampling_depends_on_the_seed(base):
    everything = set(build_queries(base, QueryConfig(per_relation=0)).queries)
    samples = []
    for seed in range(20):
        result = build_queries(base, QueryConfig(per_relation=2, seed=seed))
        again = build_queries(base, QueryConfig(per_relation=2, seed=seed))
        assert result == again
        assert set(result.queries) <= everything
        assert Counter(q.relation for q in result.queries) == {"treats": 2, "is-a": 2, "same_as": 2}
        assert result.n_different == len(everything)
        single = build_queries(base, QueryConfig(per_relation=2, seed=seed, relations=("treats",)))
        assert single.queries == tuple(q for q in result.queries if q.relation == "treats")
        samples.append(result.queries)
    assert len(set(samples)) > 5
    assert {query for draw in samples for query in draw} == everything
    limited = build_queries(base, QueryConfig(limit=4)).queries
    assert len(limited) == 4
    assert set(limited) <= everything


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"masked": "tails"}, "masked: expected one of both, head, tail"),
        ({"per_relation": -1}, "per_relation: expected"),
        ({"limit": -1}, "limit: expected"),
        ({"seed": -1}, "seed: expected"),
    ],
)
def test_invalid_options_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        QueryConfig(**values)


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
def test_punctuation_and_characters_are_separate_tokens(decoded, name):
    assert answer_key(decoded) == answer_key(name)


def test_different_names_stay_different():
    keys = ["heart attack", "heartattack", "heart, attack", "heart attacks"]
    assert len({answer_key(key) for key in keys}) == 4


def test_custom_wording(write):
    path = write("words.tsv", "treats\t用于 治疗\nis-a\t是\n")
    assert read_wording(path) == {"treats": "用于 治疗", "is-a": "是"}
    with pytest.raises(FormatError, match=r"bad\.tsv:2: expected a relation, tab, words"):
        read_wording(write("bad.tsv", "a\tb\nc\n"))


def test_right_answers_are_names_of_any_right_concept(base):
    query = ClozeQuery("aspirin treats [MASK]", "treats", ("D1", "D2"))
    gold = cloze_gold(base, query, ("en",))
    for right in ("Fever", "high temperature", "headache"):
        assert gold.accepts(right)
    assert gold.accepts("head ache")  # a name without its space
    assert not gold.accepts("hightemperature")  # a name with its space
    assert not gold.accepts("aspirin")
    assert not gold.accepts("发热")
    assert cloze_gold(base, query, ("zh",)).accepts("发 热")
    assert not cloze_gold(base, query, ("zh",)).accepts("fever")


@pytest.mark.parametrize(
    ("prompt", "contains_answer"),
    [
        ("aspirin treats [MASK]", False),
        ("dengue fever is a [MASK]", True),
        ("[MASK] is a symptom of Scarlet Fever", True),
        ("fev [MASK] er", False),  # a name cannot span the blank
    ],
)
def test_type_1_queries_contain_a_name_of_the_answer(base, prompt, contains_answer):
    assert (
        cloze_gold(base, ClozeQuery(prompt, "r", ("D1",)), ("en",)).contains_answer
        == contains_answer
    )
