from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from biograft.errors import ConfigError
from biograft.linking import WordPieceTokenizer, read_tokenizer
from biograft.linking.static import TokenizerSettings

pytest.importorskip("tokenizers")
WORDS = "Type 2 diabetes mellitus, non-insulin-dependent (NIDDM) naïve Ménière's β-thalassæmia"
CHINESE = "糖尿病 2型糖尿病 心脏病(急性) ﬁbrosis İstanbul ΟΔΟΣ Straße \u200bx\ufffd\x01 ½ ①"
ALPHABET = (
    "aeioubdnrst ABÉéñßΣσЖжİıﬁ0123456789 -_/()[]"
    "'’“”…,.;:+*%&糖尿病心脏㐀豈𠀀\u0301\u200b\xa0\xad½№→α"
)


def make_names(n: int) -> list[str]:
    rng = random.Random(0)
    words = [*WORDS.split(), *CHINESE.split()]
    mixed = ["".join(rng.choices(ALPHABET, k=rng.randint(1, 24))) for _ in range(n // 2)]
    return mixed + [" ".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(n // 2)]


def bert_tokenizer(**settings):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    pieces = {*"abcdefghijklmnopqrstuvwxyzéñßσж0123456789糖尿病心()-'", "type", "diabetes", "mell"}
    pieces |= {f"##{piece}" for piece in pieces} | {"##itus", "Type", "2", "niddm", "β", "thal"}
    vocabulary = {token: row for row, token in enumerate(["[UNK]", *sorted(pieces)])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(**settings)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lowercase": False},
        {"lowercase": False, "strip_accents": True},
        {"strip_accents": False},
        {"handle_chinese_chars": False},
    ],
    ids=str,
)
def test_tokens_are_those_of_the_tokenizers_library(settings):
    reference = bert_tokenizer(**settings)
    tokenizer = read_tokenizer(json.loads(reference.to_str()), "teacher")
    names = make_names(4000)
    expected = [encoded.tokens for encoded in reference.encode_batch(names)]
    assert [tokenizer.tokenize(name) for name in names] == expected
    rows, starts = tokenizer.rows_of(names, 1000)
    ids = [rows[start:end].tolist() for start, end in pairwise(starts)]
    assert ids == [encoded.ids for encoded in reference.encode_batch(names)]


def test_a_name_is_cut_at_the_maximum_length():
    tokenizer = WordPieceTokenizer(["[UNK]", "a", "b", "##c"])
    rows, starts = tokenizer.rows_of(["a b a b", "", "ac"], 3)
    assert (rows.tolist(), starts.tolist()) == ([1, 2, 1, 1, 3], [0, 3, 3, 5])


def test_a_word_is_a_token_beside_its_pieces_whatever_surrounds_it():
    tokenizer = WordPieceTokenizer(["[UNK]", "flu", "in", "##flu", "##enza", "("], ["influenza"])
    assert tokenizer.rows_of_part("(Influenza") == (5, 2, 3, 4, 6)
    assert tokenizer.rows_of(["flu influenza"], 9)[0].tolist() == [1, 2, 3, 4, 6]
    assert tokenizer.tokenize("influenza") == ["in", "##flu", "##enza"]


def test_each_chinese_character_is_a_word():
    tokenizer = WordPieceTokenizer(["[UNK]", "糖", "尿", "病", "2", "型"])
    assert tokenizer.tokenize("2型糖尿病") == ["2", "型", "糖", "尿", "病"]


def test_a_long_word_and_one_of_unknown_characters_are_unknown():
    tokenizer = WordPieceTokenizer(["[UNK]", "a", "##a"])
    settings = TokenizerSettings(max_input_chars_per_word=3)
    short = WordPieceTokenizer(["[UNK]", "a", "##a"], (), settings)
    assert tokenizer.tokenize("aaaa ab") == ["a", "##a", "##a", "##a", "[UNK]"]
    assert short.tokenize("aaaa aaa") == ["[UNK]", "a", "##a", "##a"]


def test_the_cache_is_bounded(monkeypatch):
    from biograft.linking import static as tokens

    monkeypatch.setattr(tokens, "_CACHE_SIZE", 2)
    tokenizer = WordPieceTokenizer(["[UNK]", "a", "b", "c"])
    assert tokenizer.rows_of(["a b c a", "c b a"], 9)[0].tolist() == [1, 2, 3, 1, 3, 2, 1]
    assert len(tokenizer._cache) <= 2


def test_another_kind_of_tokenizer_is_refused():
    from tokenizers import Tokenizer, models

    described = json.loads(Tokenizer(models.BPE({"a": 0}, [])).to_str())
    with pytest.raises(ConfigError, match=r"tokenizer of BERT .*that of roberta is BPE"):
        read_tokenizer(described, "roberta")
