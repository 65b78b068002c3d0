"""One text or two as a sequence: framed as the tokenizer does, cut, told apart by segments."""

from __future__ import annotations

import shutil

import pytest
from transformers import AutoTokenizer, BertConfig, BertModel

from biograft.errors import ConfigError
from biograft.nn import TextEncoder
from biograft.nn.scratch import make_character_encoder
from biograft.tasks.model import LengthBatches
from biograft.tasks.network import LinearHead, TaskNetwork
from biograft.tasks.tokens import TextReader

TEXTS = [("no fever",), ("aspirin and fever", "he took aspirin"), ("",), ("a cold", "")]


def test_texts_are_framed_as_the_tokenizer_frames_them(load, encoder_folder):
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    for texts, sequence in zip(TEXTS, TextReader(load()).read(TEXTS), strict=True):
        expected = tokenizer(*([text] for text in texts), return_token_type_ids=True)
        assert [[*sequence.tokens]] == expected["input_ids"]
        assert [[*sequence.segments]] == expected["token_type_ids"]
        assert not sequence.cut
        assert sequence.places == (0,)
    assert TextReader(load()).read([]) == []


def test_the_longer_text_is_cut_and_that_is_counted(load):
    reader = TextReader(load(12))
    long, short = "fever " * 20, "no cold"
    sequences = reader.read([(long, short), (short, long), (long,), (short,)])
    assert [len(sequence.tokens) for sequence in sequences] == [12, 12, 12, 4]
    assert [sequence.cut for sequence in sequences] == [True, True, True, False]
    # two words, and all but three special tokens for the other text
    assert [sum(s.segments) for s in sequences] == [3, 8, 0, 0]
    assert reader.count_cut(sequences) == {"texts cut to 12 tokens": 3}
    assert not reader.count_cut(sequences[3:])


def test_segments_reach_the_encoder_padded(load):
    encoder = load()
    network = TaskNetwork(encoder, LinearHead(encoder.dim, 2), 0.0)
    batch = network.collate(TextReader(encoder).read(TEXTS))
    types = batch.inputs["token_type_ids"]
    assert types.shape == batch.inputs["input_ids"].shape
    assert types.sum(1).tolist() == [0, 4, 0, 1]


def test_an_encoder_of_one_segment_is_given_none(encoder_folder, tmp_path):
    folder = tmp_path / "single"
    shutil.copytree(encoder_folder, folder)
    config = BertConfig.from_pretrained(encoder_folder, type_vocab_size=1)
    BertModel(config).save_pretrained(folder)
    encoder = TextEncoder.from_pretrained(folder)
    sequences = TextReader(encoder).read(TEXTS)
    assert not any(sequence.segments for sequence in sequences)
    network = TaskNetwork(encoder, LinearHead(encoder.dim, 2), 0.0)
    assert "token_type_ids" not in network.collate(sequences).inputs
    assert len(list(network.read(sequences, "fp32"))) == len(TEXTS)


def test_what_cannot_be_read_is_refused(load):
    with pytest.raises(ConfigError, match="leaves room for 5 tokens of two texts"):
        TextReader(load(8))


def test_an_opening_token_is_needed(load, tmp_path):
    encoder = load()
    encoder.tokenizer.backend_tokenizer.post_processor = None
    for texts in TEXTS:
        with pytest.raises(ConfigError, match="puts no token such as"):
            TextReader(encoder).read([texts])
    make_character_encoder(["fever"], tmp_path / "letters", width=16)
    letters = TextReader(TextEncoder.from_pretrained(tmp_path / "letters"))
    assert len(letters.read([("fever",)])[0].tokens) == 7
    with pytest.raises(ConfigError, match="in front of two texts"):
        letters.read([("fever", "fever")])


def test_an_epoch_reads_what_is_chosen_for_it_alone(load):
    items = TextReader(load()).read([("fever " * n,) for n in range(1, 21)])
    chosen = []

    def choose(given, draw):
        chosen.append(draw.integers(1000))
        return given[::-1]

    source = LengthBatches(items, 4, seed=1, choose=choose)
    plain = LengthBatches(items[::-1], 4, seed=1)
    for epoch in (0, 1, 0):
        assert list(source.batches(epoch)) == list(plain.batches(epoch))
    assert chosen[0] == chosen[2] != chosen[1]
