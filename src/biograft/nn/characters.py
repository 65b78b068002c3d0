"""A very small BERT that reads letters, made on the spot: an encoder where there is none.

It needs no download and is trained in seconds to minutes. It knows nothing but what the synonyms
of a store teach it; a real linker begins with a pre-trained encoder.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from biograft.nn.loading import quiet_transformers

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_HEADS, _LONGEST = 4, 64


def make_character_encoder(
    names: Iterable[str], folder: Path, *, width: int = 96, layers: int = 2, seed: int = 33
) -> None:
    """Write an untrained encoder whose tokens are the characters of some names."""
    tokenizer = _tokenizer(names)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=_HEADS,
        intermediate_size=2 * width,
        max_position_embeddings=_LONGEST,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False)
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _tokenizer(names: Iterable[str]) -> PreTrainedTokenizerFast:
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    letters = sorted({letter for name in names for letter in normalizer.normalize_str(name)})
    vocabulary = {piece: row for row, piece in enumerate([*_SPECIAL, *letters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=_LONGEST,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
