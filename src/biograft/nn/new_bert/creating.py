"""Make a small BERT from scratch: a tokenizer learnt from texts, weights drawn by a seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from biograft.errors import ConfigError
from biograft.nn.loading import MaskedLM
from biograft.nn.new_bert.config import NewBert
from biograft.nn.new_bert.first_vectors import vectors_of_places, vectors_of_tokens

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PADDING, _FIRST, _SEPARATOR = 0, 2, 3
_UNKNOWN, _FURTHER = "[UNK]", "##"
_AT_ONCE = 1024
_RAREST = 2
"""A character or piece that occurs less often is unknown."""


def create_bert(config: NewBert, texts: Iterable[str], seed: int) -> MaskedLM:
    """Make a model whose word pieces are learnt from some texts."""
    texts = list(texts)
    tokenizer = _learn_tokenizer(config, texts)
    if len(tokenizer) <= len(_SPECIAL):
        raise ConfigError("new: there is no text to learn a tokenizer from")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForMaskedLM(_bert_config(config, len(tokenizer)))
    if config.informed:
        _begin_informed(model, tokenizer, texts, seed)
    return MaskedLM(model, tokenizer, new_head=True)


@torch.no_grad()
def _begin_informed(
    model: BertForMaskedLM, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], seed: int
) -> None:
    """Replace the random vectors of tokens and places."""
    vectors = model.bert.embeddings
    sequences = (found.ids for found in _encoded(tokenizer.backend_tokenizer, texts))
    width = vectors.word_embeddings.embedding_dim
    tokens = vectors_of_tokens(sequences, len(tokenizer), width, seed)
    tokens[_PADDING] = 0.0
    vectors.word_embeddings.weight.copy_(tokens)
    places = vectors.position_embeddings
    places.weight.copy_(vectors_of_places(places.num_embeddings, width))


def _learn_tokenizer(config: NewBert, texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Learn word pieces; equal texts in the same order give the same tokenizer."""
    pieces = _choose_pieces(config, texts, _learn_pieces(config, texts))
    vocabulary = {piece: row for row, piece in enumerate([*_SPECIAL, *pieces])}
    tokenizer = _splitting(models.WordPiece(vocabulary, unk_token=_UNKNOWN), config)
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", _FIRST), ("[SEP]", _SEPARATOR)],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=config.max_length,
        pad_token="[PAD]",
        unk_token=_UNKNOWN,
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _learn_pieces(config: NewBert, texts: Sequence[str]) -> list[str]:
    """Learn which characters belong together, as byte pairs are learnt.

    The trainer of word pieces that there is numbers its pieces in another order each time.
    """
    tokenizer = _splitting(models.BPE(), config)
    trainer = trainers.BpeTrainer(
        vocab_size=config.n_tokens,
        min_frequency=_RAREST,
        limit_alphabet=config.n_tokens,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return sorted(tokenizer.get_vocab())


def _choose_pieces(config: NewBert, texts: Sequence[str], learnt: Sequence[str]) -> list[str]:
    """Choose the pieces that are used most, at the beginning of words or further on.

    Every letter of a piece is one itself, so that words fall into letters rather than be unknown.
    """
    both = [_UNKNOWN, *learnt, *(f"{_FURTHER}{piece}" for piece in learnt)]
    everything = {piece: row for row, piece in enumerate(both)}
    tokenizer = _splitting(models.WordPiece(everything, unk_token=_UNKNOWN), config)
    counts: Counter[str] = Counter()
    for encoding in _encoded(tokenizer, texts):
        counts.update(encoding.tokens)
    del counts[_UNKNOWN]
    for piece in [piece for piece in counts if len(piece) > 1]:
        for letter in piece.removeprefix(_FURTHER):
            counts[letter] += _RAREST
            counts[f"{_FURTHER}{letter}"] += _RAREST
    used = [piece for piece, count in counts.items() if count >= _RAREST]
    used.sort(key=lambda piece: (len(piece.removeprefix(_FURTHER)) > 1, -counts[piece], piece))
    return used[: config.n_tokens - len(_SPECIAL)]


def _encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Any]:
    """Give the tokens of each text, none of them special."""
    for start in range(0, len(texts), _AT_ONCE):
        yield from tokenizer.encode_batch(texts[start : start + _AT_ONCE], add_special_tokens=False)


def _splitting(model: Any, config: NewBert) -> Tokenizer:
    """Make a tokenizer that splits texts as BERT's does: at blanks, signs, Chinese characters."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=config.lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _bert_config(config: NewBert, n_tokens: int) -> BertConfig:
    return BertConfig(
        vocab_size=n_tokens,
        hidden_size=config.width,
        initializer_range=config.spread,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.feed_forward,
        max_position_embeddings=config.max_length,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        pad_token_id=_PADDING,
    )
