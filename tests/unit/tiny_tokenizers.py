"""Small tokenizers of the kinds of published encoders: Unigram and byte-level BPE."""

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


def unigram_tokenizer(style: str, tokens: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make a Unigram tokenizer of some tokens, the space mark, and each of their characters."""
    known = {"▁", *tokens}
    characters = {char for token in known for char in token}
    scores = {token: -2.0 if len(token) > 1 else -6.0 for token in sorted(known | characters)}
    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -10.0)]
    tokenizer = Tokenizer(models.Unigram([*special, *scores.items()], unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[style]
    return _framed(tokenizer)


def byte_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make a byte-level BPE tokenizer whose merges make each word one token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges: dict[tuple[str, str], None] = {}
    for word in words:
        [(text, _)] = pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False
        ).pre_tokenize_str(word)
        merges.update({(text[:k], text[k]): None for k in range(1, len(text))})
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *alphabet, *(a + b for a, b in merges)]
    vocabulary = {token: row for row, token in enumerate(dict.fromkeys(tokens))}
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
