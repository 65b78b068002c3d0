"""Tokenizers as published encoders have them, made here: Unigram and byte-level BPE."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

PRE_TOKENIZERS = {
    "xlm-r": pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    ),
    "deberta-v3": pre_tokenizers.Metaspace(),
}


def unigram_tokenizer(style: str, pieces: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make one that knows some pieces, the mark of a blank, and each of their characters."""
    known = {"▁", *pieces}
    letters = {letter for piece in known for letter in piece}
    scores = {piece: -2.0 if len(piece) > 1 else -6.0 for piece in sorted(known | letters)}
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0)]
    tokenizer = Tokenizer(models.Unigram([*special, *scores.items()], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[style]
    return _framed(tokenizer)


def byte_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make one of byte-level BPE, whose merges give the words as whole tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        [(text, _)] = pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False
        ).pre_tokenize_str(word)
        merges.update({(text[:k], text[k]): None for k in range(1, len(text))})
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *alphabet, *(a + b for a, b in merges)]
    vocabulary = {piece: row for row, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _framed(tokenizer)


def _framed(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        bos_token="<s>",
        cls_token="<s>",
        sep_token="</s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )
