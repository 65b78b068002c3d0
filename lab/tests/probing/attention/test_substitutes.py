"""Substitutes from a store: synonyms and random names, by type, language and seed."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft_lab.probing.attention import (
    ReplacedSentence,
    SubstituteConfig,
    Substitutes,
    UnfitError,
)

CONCEPTS = [
    {
        "id": "D1",
        "names": {"en": ["Fever", "high temperature", "FEVER", "pyrexia"], "zh": ["发热", "发烧"]},
        "types": ["Symptom"],
    },
    {"id": "D2", "names": {"en": ["Headache", "head pain"]}, "types": ["Symptom"]},
    {"id": "D3", "names": {"en": ["Aspirin"], "zh": ["阿司匹林"]}, "types": ["Drug"]},
    {"id": "D4", "names": {"en": ["Pyrexia", "heat"]}, "types": ["Symptom"]},
    {"id": "D5", "names": {"en": ["Gout"]}, "types": ["Disease"]},
]
SENTENCE = ReplacedSentence("He has fever now", 7, 12)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("substitutes")
    path = folder / "concepts.jsonl"
    path.write_text("".join(json.dumps(c, ensure_ascii=False) + "\n" for c in CONCEPTS), "utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=path),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


def sample(store, sentence=SENTENCE, n=60, **config):
    """Count the sampled names over many seeds."""
    synonyms, others = Counter(), Counter()
    for seed in range(n):
        filled = Substitutes(store, SubstituteConfig(seed=seed, **config)).fill(sentence)
        assert replace(filled, synonym="", random="", concepts=()) == replace(sentence, concepts=())
        synonyms[filled.synonym] += 1
        others[filled.random] += 1
    return synonyms, others


def test_names_are_of_the_concept_and_of_others_that_share_no_name(store):
    synonyms, others = sample(store)
    assert set(synonyms) == {"high temperature", "pyrexia"}  # English, and no FEVER
    assert set(others) == {"Headache", "head pain", "Aspirin", "Gout"}  # D4 is called so too
    assert others["Aspirin"] > others["Headache"]  # each concept alike, not each name


def test_languages_of_the_entity_the_text_and_the_option(store):
    chinese = ReplacedSentence("患者发热", 2, 4)
    assert [set(each) for each in sample(store, chinese)] == [{"发烧"}, {"阿司匹林"}]
    chinese_text = replace(SENTENCE, language="zh")
    assert [set(each) for each in sample(store, chinese_text)] == [{"发热", "发烧"}, {"阿司匹林"}]
    both = sample(store, languages=("en", "zh"))
    assert set(both[0]) == {"high temperature", "pyrexia", "发热", "发烧"}
    assert "阿司匹林" in both[1]


def test_given_names_stay_and_change_no_other_sample(store):
    config = SubstituteConfig(seed=5)
    free = Substitutes(store, config).fill(SENTENCE)
    with_synonym = Substitutes(store, config).fill(replace(SENTENCE, synonym="hot"))
    assert (with_synonym.synonym, with_synonym.random) == ("hot", free.random)
    complete = replace(SENTENCE, synonym="hot", random="cold", concepts=("nowhere",))
    assert Substitutes(store, config).fill(complete) == complete


def test_a_sample_depends_on_the_sentence_and_the_seed_only(store):
    texts = [replace(SENTENCE, id=str(n)) for n in range(20)]
    filler = Substitutes(store, SubstituteConfig(seed=3))
    forward = [filler.fill(each) for each in texts]
    back = [Substitutes(store, SubstituteConfig(seed=3)).fill(each) for each in reversed(texts)]
    assert forward == back[::-1]
    assert len({each.random for each in forward}) > 1


def test_the_concept_of_the_sentence(store):
    meant = replace(SENTENCE, concepts=("D9", "D2"))
    assert set(sample(store, meant)[0]) == {"Headache", "head pain"}
    assert Substitutes(store, SubstituteConfig()).fill(meant).concepts == ("D2",)
    filler = Substitutes(store, SubstituteConfig())
    with pytest.raises(UnfitError, match="does not have the entity's concept: found D9"):
        filler.fill(replace(SENTENCE, concepts=("D9",)))
    with pytest.raises(UnfitError, match="does not know the entity: 'He has'"):
        filler.fill(replace(SENTENCE, start=0, end=6))
    with pytest.raises(UnfitError, match=r"has no synonym .* D5 'gout', in en"):
        filler.fill(ReplacedSentence("gout", 0, 4))
