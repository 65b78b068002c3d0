"""Task tokenisation: offsets of the original text, words, special tokens, text sequences."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from tiny_tokenizers import byte_tokenizer, unigram_tokenizer
from transformers import AutoTokenizer, BertConfig, BertModel

from biograft.corpus import split_tokens
from biograft.errors import ConfigError
from biograft.nn import EncoderSettings, TextEncoder, make_character_encoder
from biograft.tasks import LengthBatches, LinearHead, SequenceTokenizer, TaskNetwork, TaskTokenizer
from biograft.tasks.tokens import tokens_of_words


def test_a_text_is_read_whole_and_framed_as_the_tokenizer_does(load):
    encoder = load(max_length=12)
    tokenizer = TaskTokenizer(encoder)
    [tokens] = tokenizer.read(["fever and pain " * 30])
    assert len(tokens.ids) == 90
    assert (tokenizer.room, tokenizer.n_before) == (10, 1)
    [short] = tokenizer.read(["Fever and"])
    assert tokenizer.frame(short.ids) == encoder.tokenizer.encode("Fever and")
    assert short.offsets.tolist() == [[0, 5], [6, 9]]
    assert tokenizer.read([]) == []


def test_lower_case_moves_no_offset(load):
    """One Turkish letter becomes two when lowercased; it is left as it is."""
    plain = load()
    settings = EncoderSettings(pooling="mean", max_length=32, lower=True)
    encoder = TextEncoder(plain.model, plain.tokenizer, settings, "lowering")
    text = "İ FEVER"
    [tokens] = TaskTokenizer(encoder).read([text])
    assert text[slice(*tokens.offsets[-1])] == "FEVER"


def test_a_tokenizer_without_offsets_is_refused(load):
    class Slow:
        """What a tokenizer in Python says of itself."""

        is_fast = False

    encoder = load()
    encoder.tokenizer = Slow()
    with pytest.raises(ConfigError, match="gives no character offsets"):
        TaskTokenizer(encoder)


ENGLISH = "acute cough, diabetes."
CHINESE = "糖尿病患者咳嗽。"
PIECES = ("▁acute", "▁cough", "▁diabetes", "糖尿病", "患者", "咳嗽", ".", ",", "...", "。")


@pytest.fixture
def reading(load):
    """Make an encoder's tokenizer; nothing else of the encoder is used."""

    def make(tokenizer):
        encoder = load()
        encoder.tokenizer = tokenizer
        return TaskTokenizer(encoder), tokenizer

    return make


def read(text, tokenizer):
    reader, names = tokenizer
    [tokens] = reader.read([text])
    words = np.array(split_tokens(text), np.int64).reshape(-1, 2)
    found = tokens_of_words(text, words, tokens, reader)
    return [
        (text[start:end], names.convert_ids_to_tokens(ids))
        for (start, end), ids in zip(words.tolist(), found, strict=True)
    ]


@pytest.mark.parametrize("style", ["xlm-r", "deberta-v3"])
def test_tokens_of_sentencepiece_come_to_our_words(style, reading):
    tokenizer = reading(unigram_tokenizer(style, PIECES))
    assert read(ENGLISH, tokenizer) == [
        ("acute", ["▁acute"]),
        ("cough", ["▁cough"]),
        (",", [","]),
        ("diabetes", ["▁diabetes"]),
        (".", ["."]),
    ]
    assert read(CHINESE, tokenizer)[1:] == [(char, [char]) for char in CHINESE[1:]]
    assert read("cough...", tokenizer)[1:] == [(".", ["."])] * 3
    assert read("", tokenizer) == []


def test_tokens_of_bytes_that_end_within_a_character(reading):
    """Of ``糖尾`` all bytes but the last are one token here, since ``糖尿`` is one."""
    tokenizer = reading(byte_tokenizer([" cough", "糖尿"]))
    assert tokenizer[1].tokenize("糖尾") != tokenizer[1].tokenize("糖") + tokenizer[1].tokenize(
        "尾"
    )
    assert read("a cough, 糖尾", tokenizer)[1:3] == [("cough", ["Ġcough"]), (",", [","])]
    for together in ("糖尾", "糖尿"):
        alone = [pair for char in together for pair in read(char, tokenizer)]
        assert read(together, tokenizer) == alone


@pytest.mark.parametrize(
    "text",
    [
        "Fever of 3.5 and heart-attack (lung's).",
        "no café, no naïve pain; 糖尿 cancer",
        "CANCER/lung [fever] + 12,000 mg",
    ],
)
def test_words_of_bert_and_their_tokens_are_as_they_were(text, load):
    """Where BERT's own words are ours, each has just the tokens that the tokenizer gives it."""
    encoder = load()
    reader, tokenizer = TaskTokenizer(encoder), encoder.tokenizer
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    expected: dict[int, list[int]] = {}
    bounds: dict[int, list[int]] = {}
    for number, token, (start, end) in zip(
        encoded.word_ids(), encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        expected.setdefault(number, []).append(token)
        bounds.setdefault(number, [start, end])[1] = end
    words = np.array(split_tokens(text), np.int64)
    assert words.tolist() == list(bounds.values())
    [tokens] = reader.read([text])
    assert tokens_of_words(text, words, tokens, reader) == list(expected.values())


TEXTS = [("no fever",), ("aspirin and fever", "he took aspirin"), ("",), ("a cold", "")]


def test_texts_are_framed_as_the_tokenizer_frames_them(load, encoder_folder):
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    for texts, sequence in zip(TEXTS, SequenceTokenizer(load()).read(TEXTS), strict=True):
        expected = tokenizer(*([text] for text in texts), return_token_type_ids=True)
        assert [[*sequence.tokens]] == expected["input_ids"]
        assert [[*sequence.segments]] == expected["token_type_ids"]
        assert not sequence.cut
        assert sequence.positions == (0,)
    assert SequenceTokenizer(load()).read([]) == []


def test_the_longer_text_is_cut_and_that_is_counted(load):
    reader = SequenceTokenizer(load(12))
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
    batch = network.collate(SequenceTokenizer(encoder).read(TEXTS))
    types = batch.inputs["token_type_ids"]
    assert types.shape == batch.inputs["input_ids"].shape
    assert types.sum(1).tolist() == [0, 4, 0, 1]


def test_an_encoder_of_one_segment_is_given_none(encoder_folder, tmp_path):
    folder = tmp_path / "single"
    shutil.copytree(encoder_folder, folder)
    config = BertConfig.from_pretrained(encoder_folder, type_vocab_size=1)
    BertModel(config).save_pretrained(folder)
    encoder = TextEncoder.from_pretrained(folder)
    sequences = SequenceTokenizer(encoder).read(TEXTS)
    assert not any(sequence.segments for sequence in sequences)
    network = TaskNetwork(encoder, LinearHead(encoder.dim, 2), 0.0)
    assert "token_type_ids" not in network.collate(sequences).inputs
    assert len(list(network.predict(sequences, "fp32"))) == len(TEXTS)


def test_too_small_a_room_for_two_texts_is_refused(load):
    with pytest.raises(ConfigError, match="leaves 5 tokens for two texts"):
        SequenceTokenizer(load(8))


def test_a_cls_token_is_required(load, tmp_path):
    encoder = load()
    encoder.tokenizer.backend_tokenizer.post_processor = None
    for texts in TEXTS:
        with pytest.raises(ConfigError, match=r"puts no \[CLS\] token"):
            SequenceTokenizer(encoder).read([texts])
    make_character_encoder(["fever"], tmp_path / "characters", width=16)
    tokenizer = SequenceTokenizer(TextEncoder.from_pretrained(tmp_path / "characters"))
    assert len(tokenizer.read([("fever",)])[0].tokens) == 7
    with pytest.raises(ConfigError, match="before two texts"):
        tokenizer.read([("fever", "fever")])


def test_an_epoch_reads_what_is_chosen_for_it_alone(load):
    items = SequenceTokenizer(load()).read([("fever " * n,) for n in range(1, 21)])
    chosen = []

    def choose(given, rng):
        chosen.append(rng.integers(1000))
        return given[::-1]

    source = LengthBatches(items, 4, seed=1, sample_epoch=choose)
    plain = LengthBatches(items[::-1], 4, seed=1)
    for epoch in (0, 1, 0):
        assert list(source.batches(epoch)) == list(plain.batches(epoch))
    assert chosen[0] == chosen[2] != chosen[1]
