"""Which tokens are of one word, whatever the tokenizer takes for a word."""

from __future__ import annotations

import pytest
from tiny_tokenizers import byte_tokenizer, unigram_tokenizer

from biograft.corpus.shards import AnnotatedDocument
from biograft.pretraining.substitution import NumberedDocument
from biograft.pretraining.tokenisation import DocumentTokenizer, PackingCounts

TEXT = "acute cough, 糖尿病。"
PIECES = ["▁ac", "ute", "▁cough", "糖尿"]
TOKENIZERS = {
    "xlm-r": lambda: unigram_tokenizer("xlm-r", [*PIECES, ",", "病", "。"]),
    "deberta-v3": lambda: unigram_tokenizer("deberta-v3", [*PIECES, ",", "病", "。"]),
    "bytes": lambda: byte_tokenizer(["ute", " cough", "糖尿病"]),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_end_at_signs_and_chinese_characters(name):
    tokenizer = TOKENIZERS[name]()
    document = NumberedDocument(0, AnnotatedDocument("one", TEXT))
    [found] = DocumentTokenizer(tokenizer, {}, 0.0).tokenise([document], PackingCounts())
    encoding = tokenizer(TEXT, add_special_tokens=False, return_offsets_mapping=True)
    assert found.tokens.tolist() == encoding["input_ids"]
    words = {}
    for (start, end), number in zip(encoding["offset_mapping"], found.words.tolist(), strict=True):
        if TEXT[start:end].strip():
            words.setdefault(number, set()).update(range(start, end))
    texts = ["".join(TEXT[k] for k in sorted(places)).strip() for places in words.values()]
    assert texts[:3] == ["acute", "cough", ","]
    assert all(len(text) <= 3 for text in texts[3:])
    assert "".join(dict.fromkeys("".join(texts[3:]))) == "糖尿病。"
    assert sorted(words) == list(words)


def test_nothing_has_no_words():
    document = NumberedDocument(0, AnnotatedDocument("none", ""))
    tokenizer = TOKENIZERS["xlm-r"]()
    [found] = DocumentTokenizer(tokenizer, {}, 0.0).tokenise([document], PackingCounts())
    assert found.words.tolist() == []
