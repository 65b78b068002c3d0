"""Encoders small enough for a test: random weights, and a tokenizer for the words of some texts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tiny_encoder_folder(
    path: Path, texts: Iterable[str], *, hidden: int = 32, layers: int = 2, seed: int = 0
) -> Path:
    """Write a random BERT as a transformers folder."""
    tokenizer = tiny_tokenizer(texts)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertModel(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=hidden,
                num_hidden_layers=layers,
                num_attention_heads=4,
                intermediate_size=2 * hidden,
                max_position_embeddings=64,
            )
        )
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def tiny_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make an uncased WordPiece tokenizer of each word and each character of some texts."""
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    words = {
        word
        for text in texts
        for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))
    }
    characters = {char for word in words for char in word}
    tokens = sorted(words | characters | {f"##{char}" for char in characters})
    vocabulary = {token: row for row, token in enumerate([*SPECIAL, *tokens])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
