"""The folder of a generative linker: round trip, another store, damage, plain encoder-decoders."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from biograft.errors import BiograftError, StoreError
from biograft.linking import Linker
from biograft.linking.fusion import empty_pool
from biograft.linking.generative import GenerativeConfig, Mixing, NameTrie, Seq2SeqLinker
from biograft.linking.generative.folder import LinkerMetadata, open_folder, write_folder
from biograft.linking.rankers import load_ranker
from biograft.nn.generation import BeamConfig
from biograft.nn.seq2seq import Seq2SeqModel

CONFIG = GenerativeConfig(context_words=5, beam=BeamConfig(beams=3), max_source=20, max_target=32)
TEXTS = ["cold", "heart attack", "is"]


@pytest.fixture(scope="module")
def small(seq2seq):
    return Seq2SeqModel(seq2seq.model, seq2seq.tokenizer, "small", max_source=20, max_target=32)


@pytest.fixture(scope="module")
def made(named, small, tmp_path_factory):
    """A folder that no test may change."""
    folder = tmp_path_factory.mktemp("made") / "linker"
    described = LinkerMetadata(
        config=CONFIG, mixing=Mixing(0.6, 2, {"lexical": 1.0}), report={"n": 1}, provenance={}
    )
    write_folder(folder, NameTrie.build(named, small, CONFIG.names), described)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "linker")


def test_what_was_written_is_opened(named, small, made):
    opened = open_folder(made, named)
    assert opened.config == CONFIG
    assert opened.mixing == Mixing(0.6, 2, {"lexical": 1.0})
    assert (opened.seq2seq.max_source, opened.seq2seq.max_target) == (20, 32)
    assert isinstance(opened.names.rows, np.memmap)
    ranker = load_ranker(made, named)
    assert isinstance(ranker, Seq2SeqLinker)
    again = Seq2SeqLinker(named, opened.seq2seq, opened.names, CONFIG).generate(TEXTS)
    own = Seq2SeqLinker(named, small, NameTrie.build(named, small), CONFIG).generate(TEXTS)
    assert np.array_equal(ranker.generate(TEXTS).sequences, again.sequences)
    assert np.array_equal(again.sequences, own.sequences)
    assert np.allclose(again.scores, own.scores, atol=1e-5)


def test_with_another_store_its_names_are_written(other, made):
    opened = open_folder(made, other)
    assert opened.names.kb is other
    ranker = load_ranker(made, other)
    for own in ranker.rank_candidates(TEXTS, empty_pool(3), []):
        assert {c.concept for c in own} <= {"X1", "X2"}
    linker = Linker.open(other, model=made)
    assert str(linker.search) == "lexical*1"  # a share of 0.6: letters are searched, too
    assert linker.score_source == "lexical*1 generative*0.6"
    assert linker("A headache.").mentions[0].candidates


def test_a_folder_without_trie_is_whole(named, folder):
    shutil.rmtree(folder / "trie")
    assert len(open_folder(folder, named).names.rows) == named.n_names


def test_any_encoder_decoder_is_a_linker(named, seq2seq, tmp_path):
    seq2seq.save_pretrained(tmp_path / "bart")
    opened = open_folder(tmp_path / "bart", named)
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


def _retell(path, **values):
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda f: (f / "manifest.json").write_text("[]"), "no trained linker"),
        (lambda f: _retell(f / "manifest.json", version=2), "generative linker of version 2"),
        (lambda f: _retell(f / "manifest.json", config={"beams": 3}), "damaged .*unknown key"),
        (lambda f: _retell(f / "manifest.json", mixing={"share": 3}), "damaged .*a share from 0"),
        (lambda f: _retell(f / "manifest.json", mixing=None), "damaged"),
        (lambda f: (f / "model/model.safetensors").write_bytes(b""), "damaged .expected"),
        (lambda f: (f / "model/tokenizer.json").unlink(), "damaged .expected"),
        (lambda f: (f / "trie/rows.npy").unlink(), "rows.npy: damaged .expected"),
        (lambda f: _retell(f / "manifest.json", format="biograft-rank"), "did you mean 'biograft-"),
    ],
)
def test_damage_is_said_in_one_line(named, folder, damage, problem):
    damage(folder)
    with pytest.raises(StoreError, match=problem) as caught:
        load_ranker(folder, named)
    assert "\n" not in str(caught.value)


def test_a_foreign_folder_is_refused(named, tmp_path, tiny_encoder):
    folder = tiny_encoder(["cold"])
    with pytest.raises(BiograftError, match="no trained linker"):
        load_ranker(folder, named)
    _retell(folder / "config.json", is_encoder_decoder=True)
    with pytest.raises(BiograftError) as caught:
        load_ranker(folder, named)
    assert "\n" not in str(caught.value)
