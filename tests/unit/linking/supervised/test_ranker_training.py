"""Training a ranker: what it learns from mentions, what it hides, and that it repeats itself."""

from __future__ import annotations

import pytest
import torch

from biograft.errors import ConfigError, OutputError
from biograft.linking import (
    FusedSearch,
    LabelledMention,
    LexicalIndex,
    Linker,
    MentionMemory,
    TrainedRanker,
    assign_folds,
)
from biograft.training.linkers import grow_store, train_network
from biograft.training.linkers.supervised import _fit_network, _only_folds


def linker_of(kb, search, trained):
    names = [generator.name for generator in search.generators]
    return Linker(kb, search, ranker=TrainedRanker(kb, trained.network, trained.memory, names))


def first(linker, texts):
    return [found[0].concept for found in linker.link_mentions(texts)]


def test_a_name_of_two_concepts_means_what_it_meant_in_training(ward, config):
    assert first(Linker(ward.kb, ward.search), ["ms", "mi"]) != ["SCLEROSIS", "INFARCTION"]
    trained = train_network(ward.kb, ward.search, ward.mentions, config)
    linker = linker_of(ward.kb, ward.search, trained)
    assert first(linker, ["ms", "MI", "cold"]) == ["SCLEROSIS", "INFARCTION", "COLD"]
    assert first(linker, ["mitral stenosis"]) == ["STENOSIS"]
    assert trained.report["n_mentions"] == trained.report["n_with_concept"] == len(ward.mentions)
    assert trained.report["training_acc@1"] == 1


def test_what_is_meant_often_is_preferred_where_the_text_was_never_seen(store_of, config, tmp_path):
    """Names of pairs of concepts are equal; one of the two is always the one that is meant."""
    concepts, mentions = [], []
    for n in range(12):
        concepts += [
            {"id": f"{n}rare", "name": f"syndrome{n}", "names": [f"alpha{n}", f"beta{n}"]},
            {"id": f"{n}usual", "name": f"state{n}", "names": [f"alpha{n}", f"beta{n}"]},
        ]
        usual = frozenset({f"{n}usual"})
        mentions += [LabelledMention(f"state{n}", usual, f"s{n}{k}") for k in range(4)]
        if n < 8:
            mentions.append(LabelledMention(f"alpha{n}", usual, f"a{n}"))
    base = store_of(concepts)
    kb = grow_store(base, mentions, tmp_path / "G")
    search = FusedSearch([LexicalIndex.build(kb)])
    linker = linker_of(kb, search, train_network(kb, search, mentions, config))
    texts = [f"beta{n}" for n in range(8, 12)]
    assert first(Linker(kb, search), texts) == [f"{n}rare" for n in range(8, 12)]
    assert first(linker, texts) == [f"{n}usual" for n in range(8, 12)]


def test_the_same_seed_gives_the_same_weights(ward, config):
    a, b = (train_network(ward.kb, ward.search, ward.mentions, config).network for _ in range(2))
    for name, array in a.__dict__.items():
        assert array.tolist() == getattr(b, name).tolist()


def test_training_leaves_the_random_state_of_others_alone(ward, config):
    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    train_network(ward.kb, ward.search, ward.mentions[:14], config)
    assert torch.rand(3).tolist() == expected


def test_names_that_come_from_one_fold_only_are_excluded_in_it(store_of, tmp_path):
    base = store_of([{"id": "A", "name": "flu", "names": ["grippe"]}])
    gold = frozenset({"A"})
    labelled = [("flu like", "d1"), ("the grip", "d1"), ("the grip", "d2"), ("grippe", "d1")]
    mentions = [LabelledMention(text, gold, document) for text, document in labelled]
    kb = grow_store(base, mentions, tmp_path / "G")
    memory, folds = MentionMemory(len(kb)), assign_folds(["d1", "d2"], 2, 0)
    for mention in mentions:
        memory.add(mention.text, kb.rows_of(mention.concepts), folds[mention.document])
    pool = FusedSearch([LexicalIndex.build(kb)]).collect(["flu grip grippe the like"], 9)
    only_folds = _only_folds(kb, memory)
    names = {}
    for document, fold in folds.items():
        rows = pool.rows[0][only_folds[pool.rows[0]] != fold]
        names[document] = {kb.name(int(row)).text for row in rows if row >= 0}
    assert names == {
        "d1": {"flu", "grippe", "the grip"},
        "d2": {"flu", "grippe", "the grip", "flu like"},
    }


def test_known_mentions_are_counted_but_not_trained_on(ward, config):
    rest, known = ward.mentions[7:], [*ward.mentions[:7], LabelledMention("ms", frozenset({"x"}))]
    without = train_network(ward.kb, ward.search, rest, config)
    trained = train_network(ward.kb, ward.search, rest, config, known=known)
    assert trained.report["n_mentions"] == without.report["n_mentions"] == len(rest)
    sclerosis = ward.kb.row("SCLEROSIS")
    assert without.memory.linked("ms") == ({sclerosis: 5}, 5)
    assert trained.memory.linked("ms") == ({sclerosis: 6}, 7)
    for fold in range(config.folds):  # known mentions count in every fold
        assert trained.memory.linked("ms", fold)[1] >= 2
    only_folds = _only_folds(ward.kb, trained.memory)
    pool = ward.search.collect(["kidneys failing"], 9)
    assert (only_folds[pool.rows[0]] < 0).all()


def test_mentions_without_correct_candidates_are_refused(ward, config):
    strange = [LabelledMention("ms", frozenset({"none"}), "d1")]
    with pytest.raises(ConfigError, match="none has both correct and wrong candidates"):
        train_network(ward.kb, ward.search, strange, config)
    with pytest.raises(ConfigError, match="none has both correct and wrong candidates"):
        train_network(ward.kb, ward.search, [], config)


def test_padding_does_not_change_the_network(config):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(6, 4, 3, generator=generator)
    mask = torch.arange(4) < torch.tensor([2, 3, 4, 2, 3, 4])[:, None]
    right = torch.zeros_like(mask)
    right[:, 1] = True
    plain, filled = (
        _fit_network(inputs.masked_fill(~mask[..., None], filler), mask, right, config, seed=0)
        for filler in (0.0, 50.0)
    )
    for one, other in zip(plain, filled, strict=True):
        assert torch.isfinite(one.weight).all()
        assert torch.equal(one.weight, other.weight)


def names_of(kb, concept):
    return [(name.text, name.source) for name in kb[concept].names]


def test_mentions_become_names_once_and_behind_the_own_ones(store_of, tmp_path):
    base = store_of([{"id": "A", "name": "renal failure", "names": ["kidney failure"]}])
    gold = frozenset({"A"})
    texts = ["failing kidneys", " failing kidneys ", "kidney failure", "Kidney failure", " "]
    grown = grow_store(base, [LabelledMention(text, gold) for text in texts], tmp_path / "G")
    source = base["A"].names[0].source
    assert names_of(grown, "A") == [
        ("renal failure", source),
        ("kidney failure", source),
        ("failing kidneys", "mentions"),
        ("Kidney failure", "mentions"),
    ]
    assert grown.name_at(0) == "renal failure"


def test_names_are_in_the_language_of_the_concept(store_of, tmp_path):
    base = store_of([{"id": "A", "names": {"zh": ["感冒"]}}])
    gold = frozenset({"A"})
    grown = grow_store(base, [LabelledMention(t, gold) for t in ("伤风", "感冒")], tmp_path / "G")
    assert [(n.text, n.language) for n in grown["A"].names] == [("感冒", "zh"), ("伤风", "zh")]


def test_all_else_stays(kb, tmp_path):
    grown = grow_store(kb, [LabelledMention("sugar illness", frozenset({"D1"}))], tmp_path / "G")
    assert [c.id for c in grown] == [c.id for c in kb]
    assert [c for c in grown if c.id != "D1"] == [c for c in kb if c.id != "D1"]
    assert grown["D1"].definitions == kb["D1"].definitions
    assert grown["D1"].names[:-1] == kb["D1"].names
    assert grown.n_names == kb.n_names + 1


def test_mentions_without_a_concept_of_the_store_add_nothing(kb, tmp_path):
    mentions = [LabelledMention("x", frozenset({"none"})), LabelledMention("y", frozenset())]
    grown = grow_store(kb, mentions, tmp_path / "G")
    assert list(grown) == list(kb)
    with pytest.raises(OutputError, match="exists already"):
        grow_store(kb, [], tmp_path / "G")
    assert grow_store(kb, [], tmp_path / "G", overwrite=True).n_names == kb.n_names
