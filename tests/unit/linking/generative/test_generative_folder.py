"""The folder of a generative linker: round trip, another store, damage, plain encoder-decoders."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from generative_store import Query, query_in
from manifests import reseal

from biograft.errors import BiograftError, ConfigError, StoreError
from biograft.linking import (
    CandidatePool,
    Context,
    FusedSearch,
    GenerativeConfig,
    LexicalIndex,
    Linker,
    Mixing,
    NameTrie,
    Seq2SeqLinker,
    empty_pool,
    extend_pool,
    load_ranker,
)
from biograft.models import BeamConfig, Seq2SeqModel
from biograft.training.linkers.generative import (
    GENERATION_WEIGHTS,
    HeldOutScores,
    accuracy,
    fit_mixing,
    fit_weight,
    measure,
)

CONFIG = GenerativeConfig(context_words=5, beam=BeamConfig(beams=3), max_source=20, max_target=32)
TEXTS = ["cold", "heart attack", "is"]


@pytest.fixture(scope="module")
def small(seq2seq):
    return Seq2SeqModel(seq2seq.model, seq2seq.tokenizer, "small", max_source=20, max_target=32)


@pytest.fixture(scope="module")
def made(named, small, tmp_path_factory):
    """A folder that no test may change."""
    folder = tmp_path_factory.mktemp("made") / "linker"
    names, mixing = NameTrie.build(named, small, CONFIG.names), Mixing(0.6, 2, {"lexical": 1.0})
    Seq2SeqLinker(named, small, names, CONFIG, mixing).save(folder, {"n": 1}, {})
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "linker")


def test_what_was_written_is_opened(named, small, made):
    opened = load_ranker(made, named)
    assert opened.config == CONFIG
    assert opened.mixing == Mixing(0.6, 2, {"lexical": 1.0})
    assert (opened.seq2seq.max_source, opened.seq2seq.max_target) == (20, 32)
    assert isinstance(opened.names.rows.base, np.memmap)
    ranker = load_ranker(made, named)
    assert isinstance(ranker, Seq2SeqLinker)
    again = Seq2SeqLinker(named, opened.seq2seq, opened.names, CONFIG).generate(TEXTS)
    own = Seq2SeqLinker(named, small, NameTrie.build(named, small), CONFIG).generate(TEXTS)
    assert np.array_equal(ranker.generate(TEXTS).sequences, again.sequences)
    assert np.array_equal(again.sequences, own.sequences)
    assert np.allclose(again.scores, own.scores, atol=1e-5)


def test_with_another_store_its_names_are_written(other, made):
    opened = load_ranker(made, other)
    assert opened.names.kb is other
    ranker = load_ranker(made, other)
    for own in ranker.rank_candidates(TEXTS, empty_pool(3), []):
        assert {c.concept for c in own} <= {"X1", "X2"}
    linker = Linker.open(other, model=made)
    assert str(linker.search) == "lexical*1"  # a weight of 0.6 needs a search
    assert linker.score_source == "lexical*1 generative*0.6"
    assert linker("A headache.").mentions[0].candidates


def test_a_folder_without_trie_is_whole(named, folder):
    shutil.rmtree(folder / "trie")
    assert len(load_ranker(folder, named).names.rows) == named.n_names


def test_any_encoder_decoder_is_a_linker(named, seq2seq, tmp_path):
    seq2seq.save_pretrained(tmp_path / "bart")
    opened = load_ranker(tmp_path / "bart", named)
    assert opened.config == GenerativeConfig()
    linker = Linker.open(named, model=tmp_path / "bart")
    assert linker.search is None
    assert linker.score_source == "generative"
    assert len(linker.link_mentions(["cold"])[0]) > 1
    some = Linker.open(named, model=tmp_path / "bart", languages=("zh",))
    assert {c.name for c in some.link_mentions(["cold"])[0]} == {"2型糖尿病", "二甲双胍"}


def test_with_an_index_it_is_searched_all_the_same(named, seq2seq, tmp_path):
    from biograft.linking import build_index

    seq2seq.save_pretrained(tmp_path / "bart")
    build_index(named, tmp_path / "index")
    linker = Linker.open(named, tmp_path / "index", tmp_path / "bart")
    assert linker.score_source == "lexical*1 generative"


def _change(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    reseal(path)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda f: (f / "manifest.json").write_text("[]"), "not a trained linker"),
        (lambda f: _change(f / "manifest.json", version=4), "generative linker of version 4"),
        (lambda f: _change(f / "manifest.json", config={"beams": 3}), "damaged .*unknown key"),
        (
            lambda f: _change(f / "manifest.json", mixing={"generation_weight": 3}),
            "damaged .*a weight from 0",
        ),
        (lambda f: _change(f / "manifest.json", mixing=None), "damaged"),
        (lambda f: (f / "model/model.safetensors").write_bytes(b""), "damaged .expected"),
        (lambda f: (f / "model/tokenizer.json").unlink(), "damaged .expected"),
        (lambda f: (f / "trie/rows.npy").unlink(), "rows.npy: damaged .expected"),
        (lambda f: _change(f / "manifest.json", format="biograft-rank"), "did you mean 'biograft-"),
    ],
)
def test_damage_is_said_in_one_line(named, folder, damage, problem):
    damage(folder)
    with pytest.raises(StoreError, match=problem) as caught:
        load_ranker(folder, named)
    assert "\n" not in str(caught.value)


def test_a_foreign_folder_is_refused(named, tmp_path, tiny_encoder):
    folder = tiny_encoder(["cold"])
    with pytest.raises(BiograftError, match="not a trained linker"):
        load_ranker(folder, named)
    _change(folder / "config.json", is_encoder_decoder=True)
    with pytest.raises(BiograftError) as caught:
        load_ranker(folder, named)
    assert "\n" not in str(caught.value)


NOT = -np.inf


def scored(generated, *searched, names=("lexical", "dense")):
    n = len(generated)
    scores = np.array([*searched, generated], np.float32)[:, None, :]
    ranks = np.zeros(scores.shape, np.int32)
    return CandidatePool((*names[: len(searched)], "generative"), np.arange(n)[None], scores, ranks)


def test_the_score_is_the_sum_of_both_by_their_weights():
    one = scored([0.5, NOT, 0.25], [0.8, 0.4, NOT])
    assert Mixing(0.25)(one)[0] == pytest.approx([0.725, 0.3, 0.0625])
    assert Mixing(1.0)(one)[0].tolist() == [0.5, NOT, 0.25]
    assert Mixing(0.0)(one)[0] == pytest.approx([0.8, 0.4, 0.0])
    two = scored([0.5, NOT], [0.8, 0.4], [0.2, NOT])
    weights = {"lexical": 3.0, "dense": 1.0}
    assert Mixing(0.5, weights=weights)(two)[0] == pytest.approx([0.25 + 0.325, 0.15])
    assert Mixing(0.5)(two)[0] == pytest.approx([0.25 + 0.25, 0.1])


def test_where_nothing_was_searched_generation_counts_its_weight():
    assert Mixing(0.5)(scored([0.5, NOT]))[0] == pytest.approx([0.25, 0.0])


def test_padding_without_a_name_has_no_score():
    one = scored([0.5, NOT], [0.8, NOT])
    one = CandidatePool(one.generators, np.array([[4, -1]]), one.scores, one.ranks)
    assert Mixing(0.5)(one)[0].tolist() == [pytest.approx(0.65), NOT]


def test_a_weight_fitted_beside_another_search_is_refused():
    with pytest.raises(StoreError, match="was fitted beside lexical, the index has dense and lex"):
        Mixing(0.5, weights={"lexical": 1.0})(scored([0.5], [0.8], [0.2]))


@pytest.mark.parametrize(
    "values", [{"generation_weight": 1.5}, {"generation_weight": -0.1}, {"rescore": -1}]
)
def test_what_no_mixing_is(values):
    with pytest.raises(ValueError, match="expected a weight from 0 to 1"):
        Mixing(**values)


def held(query, generated, searched, right):
    arrays = (np.array(values, np.float32) for values in (generated, searched))
    return HeldOutScores(query, *arrays, np.array(right))


def test_the_fitted_weight_is_that_of_the_most_right_answers():
    mentions = [
        held(0, [0.9, 0.1], [0.0, 0.3], [True, False]),  # generation is right
        held(1, [0.5, 0.4], [0.1, 0.9], [False, True]),  # the search is right
        held(2, [0.5, NOT], [NOT, 0.4], [True, False]),
        held(3, [], [], []),  # nothing found: wrong whatever the weight
    ]
    weight, accuracies = fit_weight(mentions)
    by_hand = {s: accuracy(mentions, s) for s in GENERATION_WEIGHTS}
    assert by_hand[weight] == max(by_hand.values()) == 0.75
    assert weight == max(s for s in GENERATION_WEIGHTS if by_hand[s] == 0.75)
    assert accuracies == {"searched": 0.25, "generative": 0.5, "mixed": 0.75}
    assert GENERATION_WEIGHTS[0] == 0
    assert GENERATION_WEIGHTS[-1] == 1


def test_all_parts_of_a_mention_have_to_be_right():
    parts = [held(0, [1.0], [0.0], [True]), held(0, [1.0], [0.0], [False])]
    assert accuracy(parts, 1.0) == 0
    assert accuracy([parts[0], parts[0]], 1.0) == 1


def test_of_equal_scores_the_lower_row_comes_first():
    assert accuracy([held(0, [0.5, 0.5], [0.0, 0.0], [False, True])], 1.0) == 0


def test_without_mentions_there_is_nothing_to_fit():
    with pytest.raises(ConfigError, match="fit_weight: there is no held-out mention"):
        fit_weight([])


# ---- room for further names


def test_names_are_added_to_the_candidate_pool():
    rows = np.array([[2, 5, -1], [0, 7, 9]])
    scores = np.array([[[0.2, 0.5, NOT], [0.0, 0.7, 0.9]]], np.float32)
    ranks = np.array([[[1, 2, 0], [1, 2, 3]]], np.int32)
    wider = extend_pool(CandidatePool(("g",), rows, scores, ranks), np.array([[5, 1], [-1, -1]]))
    assert wider.rows.tolist() == [[1, 2, 5], [0, 7, 9]]
    assert wider.scores[0, 0].tolist() == pytest.approx([NOT, 0.2, 0.5])
    assert wider.ranks[0].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert wider.scores[0, 1].tolist() == pytest.approx([0.0, 0.7, 0.9])


def test_an_empty_pool_can_be_widened():
    wider = extend_pool(empty_pool(2), np.array([[3, -1], [1, 0]]))
    assert wider.rows.tolist() == [[3, -1], [0, 1]]
    assert empty_pool(2).scores.shape == wider.scores[:, :, :0].shape == (0, 2, 0)
    assert wider.scores.shape == wider.ranks.shape == (0, 2, 2)
    assert len(empty_pool(3)) == 3


# ---- measured on mentions held out

QUERIES = [
    query_in("a cold day", "cold", "D7"),
    Query(("ovarian cancer",), frozenset({"D3"})),
    Query(("heart attak",), frozenset({"D4"})),
    Query(("breast cancer", "ovarian cancer"), frozenset({"D2", "D3"})),
    Query(("mi",), frozenset({"D8"})),
    Query(("none of these",)),
    Query(("unknown",), frozenset({"D999"})),
]


@pytest.fixture
def ranker(named, seq2seq):
    config = GenerativeConfig(beam=BeamConfig(beams=30))
    return Seq2SeqLinker(named, seq2seq, NameTrie.build(named, seq2seq), config)


def test_recall_counts_names_and_a_shared_name_is_right_by_any_of_its_concepts(ranker):
    results = measure(ranker, None, QUERIES)
    queries = [query for query in QUERIES if query.gold]
    hits = {1: 0, 5: 0}
    for query in queries:
        firsts = []
        for part in query.parts:
            context = [Context(query.context, query.start or 0, query.end or 0)]
            sequences = ranker.generate([part], context).sequences[0].tolist()
            ids = [
                {_id_of_row(ranker.kb, row) for row in ranker.names.rows_of(s)} for s in sequences
            ]
            right = [position for position, own in enumerate(ids) if own & query.gold]
            firsts.append(min(right, default=99))
        for k in hits:
            hits[k] += max(firsts) < k
    assert results == {"n": 6, "recall@1": hits[1] / 6, "recall@5": hits[5] / 6}
    assert measure(ranker, None, [QUERIES[5]]) == {"n": 0, "recall@1": 0.0, "recall@5": 0.0}


def _id_of_row(kb, row):
    return kb.id_at(kb.table("names").column("concept")[row].as_py())


def test_a_weight_is_fitted_beside_a_search(ranker, named):
    search = FusedSearch([LexicalIndex.build(named)])
    mixing, results = fit_mixing(ranker, search, QUERIES)
    # a random model knows nothing, lexical search finds nearly all
    assert results["searched"] > results["generative"]
    assert results["mixed"] >= results["searched"]
    assert results["generation_weight"] == mixing.generation_weight < 1
    assert mixing.weights == {"lexical": 1.0}
    both = Seq2SeqLinker(named, ranker.seq2seq, ranker.names, ranker.config, mixing)
    assert measure(both, search, QUERIES)["recall@1"] >= measure(ranker, None, QUERIES)["recall@1"]
