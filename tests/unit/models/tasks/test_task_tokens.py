"""Task tokenisation: offsets of the original text, words, special tokens, text sequences."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tiny_tokenizers import byte_tokenizer, unigram_tokenizer
from transformers import AutoTokenizer

from biograft.errors import ConfigError
from biograft.models import EncoderSettings, TextEncoder, make_character_encoder
from biograft.models.tasks import (
    NerConfig,
    NerModel,
    SequenceTokenizer,
    TaskTokenizer,
)
from biograft.text import split_tokens
from biograft.text.documents import Document, Mention


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


ENGLISH = "acute cough, diabetes."
CHINESE = "糖尿病患者咳嗽。"
PIECES = ("▁acute", "▁cough", "▁diabetes", "糖尿病", "患者", "咳嗽", ".", ",", "...", "。")


@pytest.fixture
def reading(load):
    """Read words and their tokens with another tokenizer: ``reading(tokenizer)(text)``."""

    def make(tokenizer=None):
        encoder = load()
        encoder.tokenizer = tokenizer or encoder.tokenizer

        def read(text):
            document = Document("d", text, (Mention(0, len(text), text),))
            model = NerModel.from_examples(encoder, NerConfig(overlap=4), [document])
            windows, _ = model.training_items([document])
            words = [text[start:end] for start, end in split_tokens(text)]
            found = []
            for window in windows:
                bounds = [*window.positions, len(window.tokens) - 1]
                names = encoder.tokenizer.convert_ids_to_tokens(list(window.tokens))
                found += [names[first:end] for first, end in pairwise(bounds)]
            return list(zip(words, found, strict=True))

        return read

    return make


@pytest.mark.parametrize("style", ["xlm-r", "deberta-v3"])
def test_tokens_of_sentencepiece_come_to_our_words(style, reading):
    read = reading(unigram_tokenizer(style, PIECES))
    assert read(ENGLISH) == [
        ("acute", ["▁acute"]),
        ("cough", ["▁cough"]),
        (",", [","]),
        ("diabetes", ["▁diabetes"]),
        (".", ["."]),
    ]
    assert read(CHINESE)[1:] == [(char, [char]) for char in CHINESE[1:]]
    assert read("cough...")[1:] == [(".", ["."])] * 3
    assert read("") == []


def test_tokens_of_bytes_that_end_within_a_character(reading):
    """Of ``糖尾`` all bytes but the last are one token here, since ``糖尿`` is one."""
    tokenizer = byte_tokenizer([" cough", "糖尿"])
    assert tokenizer.tokenize("糖尾") != tokenizer.tokenize("糖") + tokenizer.tokenize("尾")
    read = reading(tokenizer)
    assert read("a cough, 糖尾")[1:3] == [("cough", ["Ġcough"]), (",", [","])]
    for together in ("糖尾", "糖尿"):
        alone = [pair for char in together for pair in read(char)]
        assert read(together) == alone


@pytest.mark.parametrize(
    "text",
    [
        "Fever of 3.5 and heart-attack (lung's).",
        "no café, no naïve pain; 糖尿 cancer",
        "CANCER/lung [fever] + 12,000 mg",
    ],
)
def test_words_of_bert_and_their_tokens_are_as_they_were(text, load, reading):
    """Where BERT's own words are ours, each has just the tokens that the tokenizer gives it."""
    tokenizer = load().tokenizer
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    expected: dict[int, list[int]] = {}
    bounds: dict[int, list[int]] = {}
    for number, token, (start, end) in zip(
        encoded.word_ids(), encoded["input_ids"], encoded["offset_mapping"], strict=True
    ):
        expected.setdefault(number, []).append(token)
        bounds.setdefault(number, [start, end])[1] = end
    assert [[*word] for word in split_tokens(text)] == list(bounds.values())
    names = [tokenizer.convert_ids_to_tokens(ids) for ids in expected.values()]
    assert [tokens for _, tokens in reading()(text)] == names


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
