"""Sentences about concepts: exactly those that the rules allow, all of them, by seed and number."""

from __future__ import annotations

import itertools
import json

import pytest

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.text import clean_name
from biograft.training.pretraining import NameTemplates, NameTemplatesConfig

CONCEPTS = {
    "A": (["Alpha-One", "alpha one", "Beta", "Gamma"], ["First &lt;Thing>, at last."]),
    "B": (["Only (b)"], ["x one.", "y two.", "z three."]),
    "C": (["C First", "C-Second"], []),
    "D": (["d1", "d2", "d3", "d4", "d5"], []),
    "E": (["Alone!"], []),
}
ODD = ["A-B", " (+) (-) ", "Ünï_code\u00a0x", "tab\there", "ΣΑΣ", "2型,糖尿病", "a\\b`c"]
"""Each of which becomes another name where names are cleaned."""
DEFINED = (
    "START {a} END is defined as {c}",
    "START {a} END is described as {c}",
    "{c} are the definitions of START {a} END",
    "{c} describe START {a} END",
)
SEVERAL = (
    "{c} are the synonyms of START {a} END",
    "{c} indicate the same concept as START {a} END",
    "START {a} END has synonyms such as {c}",
    "START {a} END refers to the same concepts as {c}",
)
SINGLE = (
    "{c} is START {a} END",
    "{c} is the same as START {a} END",
    "START {a} END is {c}",
    "START {a} END is the same as {c}",
)


def possible(names, definitions, target, *, synonyms=3, limit=2):
    """Give all that may be said where one of a concept's (cleaned) names is the target."""
    others = [name for name in names if name != target]
    for a in others or [target]:
        if definitions:
            templates, chosen = (
                DEFINED,
                itertools.permutations(definitions, min(limit, len(definitions))),
            )
            known = [" ".join(some) for some in chosen]
        elif others:
            unused = [name for name in others if name != a] or [target]
            chosen = itertools.permutations(unused, min(synonyms, len(unused)))
            templates, known = SEVERAL, [", ".join(some) for some in chosen]
        else:
            templates, known = SINGLE, [a]
        for template, c in itertools.product(templates, known):
            yield template.format(a=a, c=c), f"{a} is", target


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    return make(tmp_path_factory.mktemp("kb"), CONCEPTS)


def make(folder, concepts):
    lines = [
        {
            "id": identifier,
            "names": [_tagged(name) for name in names],
            "definitions": [_tagged(text) for text in definitions],
        }
        for identifier, (names, definitions) in concepts.items()
    ]
    (folder / "kb.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    build_store(BuildConfig(sources=(SourceConfig(path=folder / "kb.jsonl"),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def _tagged(text):
    text, _, language = text.partition("@")
    return {"text": text, "language": language or "en"}


def triple(example):
    return example.source, example.prompt, example.target


def plain(identifier):
    names, definitions = CONCEPTS[identifier]
    cleaned = list(dict.fromkeys(clean_name(name) for name in names))
    return cleaned, [text.replace("&lt;", "<").lower() for text in definitions]


def test_every_name_is_a_target_once(kb):
    templates = NameTemplates(kb)
    expected = sorted(name for identifier in CONCEPTS for name in plain(identifier)[0])
    assert sorted(templates.example(0, n).target for n in range(len(templates))) == expected
    assert templates.counts.to_json() == {
        "n_names": 12,
        "n_concepts": 5,
        "n_defined": 2,
        "n_several": 2,
        "n_single": 1,
        "n_definitions": 4,
    }


@pytest.mark.parametrize("identifier", list(CONCEPTS))
def test_all_that_the_rules_allow_is_said_and_nothing_else(kb, identifier):
    templates = NameTemplates(kb)
    names, definitions = plain(identifier)
    number = next(n for n in range(len(templates)) if templates.example(0, n).target == names[-1])
    allowed = set(possible(names, definitions, names[-1]))
    seen = {triple(templates.example(epoch, number)) for epoch in range(700)}
    assert seen == allowed


def test_an_example_follows_from_seed_epoch_and_number(kb):
    one, two = NameTemplates(kb), NameTemplates(kb)
    all_of = [
        [triple(t.example(epoch, n)) for n in range(len(t)) for epoch in range(3)]
        for t in (one, two)
    ]
    assert all_of[0] == all_of[1]
    other = NameTemplates(kb, NameTemplatesConfig(seed=34))
    sampled = [[triple(t.example(epoch, 8)) for epoch in range(20)] for t in (one, other)]
    assert sampled[0] != sampled[1]
    assert len(set(sampled[0])) > 10


def test_options(kb):
    few = NameTemplates(kb, NameTemplatesConfig(max_synonyms=1, max_definitions=1, prompt=False))
    names, definitions = plain("B")
    number = next(n for n in range(len(few)) if few.example(0, n).target == "only b")
    allowed = {
        (source, "", target)
        for source, _, target in possible(names, definitions, "only b", limit=1)
    }
    assert {triple(few.example(epoch, number)) for epoch in range(200)} == allowed
    names, _ = plain("D")
    number = next(n for n in range(len(few)) if few.example(0, n).target == "d1")
    allowed = {(source, "", target) for source, _, target in possible(names, [], "d1", synonyms=1)}
    assert {triple(few.example(epoch, number)) for epoch in range(400)} == allowed
    cased = NameTemplates(kb, NameTemplatesConfig(lower=False))
    assert cased.counts.n_names == 13  # Alpha One is not alpha one
    assert {"Alpha One", "alpha one", "Only b"} <= {
        cased.example(0, n).target for n in range(len(cased))
    }


def test_long_definitions_keep_the_words_nearest_the_mention(kb):
    templates = NameTemplates(kb, NameTemplatesConfig(definition_words=3))
    number = next(n for n in range(len(templates)) if templates.example(0, n).target == "beta")
    seen = {templates.example(epoch, number).source for epoch in range(100)}
    assert "START gamma END is defined as first <thing>, at" in seen
    assert "<thing>, at last. describe START gamma END" in seen
    assert all(len(source.split()) <= 3 + 4 + 4 for source in seen)


def test_languages(tmp_path):
    concepts = {
        "A": (["flu", "grippe@fr", "influenza"], ["une maladie@fr"]),
        "B": (["rhume@fr"], ["a cold"]),
    }
    kb = make(tmp_path, concepts)
    english = NameTemplates(kb, NameTemplatesConfig(languages=("en",)))
    assert english.counts.to_json() == {
        "n_names": 2,
        "n_concepts": 1,
        "n_defined": 0,
        "n_several": 1,
        "n_single": 0,
        "n_definitions": 0,
    }
    french = NameTemplates(kb, NameTemplatesConfig(languages=("fr",)))
    assert (french.counts.n_names, french.counts.n_defined) == (2, 1)
    assert NameTemplates(kb).counts.n_defined == 2
    with pytest.raises(ConfigError, match="no names in 'de'"):
        NameTemplates(kb, NameTemplatesConfig(languages=("de",)))


@pytest.mark.parametrize("lower", [True, False])
def test_names_are_cleaned(tmp_path, lower):
    kb = make(tmp_path, {f"O{row}": ([name], []) for row, name in enumerate(ODD)})
    templates = NameTemplates(kb, NameTemplatesConfig(lower=lower))
    found = sorted(templates.example(0, n).target for n in range(len(templates)))
    assert found == sorted(clean_name(name, lower=lower) for name in ODD)
