"""Vectors that a new model begins with: of tokens by what stands beside them, of places as waves.

A model whose vectors begin at random first learns how often each token occurs, and for long nothing
else. Tokens that stand beside the same others begin alike here: positive pointwise mutual
information of tokens at most four places apart, near ones counting more, reduced to the width by a
singular value decomposition. Waves of many lengths let it tell from the start how far two places
are from each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from torch.nn.functional import normalize
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    PreTrainedTokenizerFast,
)

from biograft.errors import ConfigError
from biograft.nn.pretrained import MaskedLM, quiet_transformers
from biograft.nn.scratch_configs import NewBert, NewSeq2Seq
from biograft.nn.seq2seq import Namer

REACH = 4
"""How many places apart tokens may be to count as beside each other."""
_RARER = 0.75
"""Power of the counts that a token is expected with, so that rare ones do not stand out."""
_ROUNDS = 4
_LONGEST_WAVE = 10_000.0


def vectors_of_tokens(
    sequences: Iterable[Sequence[int]], n_tokens: int, width: int, seed: int
) -> Tensor:
    """Give a vector of length 1 for each token; one that stands beside none begins at random."""
    rows, columns, values = _information(_count(sequences, n_tokens), n_tokens)
    made = torch.randn(n_tokens, width, generator=torch.Generator().manual_seed(seed))
    kept = min(width, n_tokens)
    if len(values):
        matrix = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([rows, columns])),
            torch.from_numpy(values),
            (n_tokens, n_tokens),
            check_invariants=True,
        ).coalesce()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            left, sizes, _ = torch.svd_lowrank(matrix, q=kept, niter=_ROUNDS)
        known = torch.from_numpy(np.unique(rows))
        made[known] = 0.0
        made[known, :kept] = (left * sizes.sqrt())[known]
    return normalize(made, dim=1)


def vectors_of_places(n_places: int, width: int) -> Tensor:
    """Give a vector of length 1 for each place: sines and cosines of ever longer waves."""
    lengths = _LONGEST_WAVE ** (torch.arange((width + 1) // 2) * 2 / width)
    angles = torch.arange(n_places)[:, None] / lengths
    waves = torch.stack([angles.sin(), angles.cos()], dim=2).reshape(n_places, -1)[:, :width]
    return normalize(waves, dim=1)


_Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


def _count(sequences: Iterable[Sequence[int]], n_tokens: int) -> _Counts:
    """Count neighbours, both ways, a pair written as one number; d places apart it counts 1/d."""
    parts = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    tokens = np.concatenate(parts) if parts else np.empty(0, np.int64)
    of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    pairs, weights = [], []
    for distance in range(1, REACH + 1):
        together = of[distance:] == of[:-distance]
        first, second = tokens[:-distance][together], tokens[distance:][together]
        both = np.concatenate([first * n_tokens + second, second * n_tokens + first])
        found, counts = np.unique(both, return_counts=True)
        pairs.append(found)
        weights.append(counts / distance)
    found, where = np.unique(np.concatenate(pairs), return_inverse=True)
    totals = np.bincount(where, weights=np.concatenate(weights), minlength=len(found))
    return found.astype(np.int64), totals.astype(np.float64)


def _information(
    counts: _Counts, n_tokens: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Give the pairs that meet more often than by chance, and how much more."""
    pairs, joint = counts
    rows, columns = np.divmod(pairs, n_tokens)
    alone = np.bincount(rows, weights=joint, minlength=n_tokens)
    expected = alone**_RARER
    expected /= max(float(expected.sum()), 1e-12)
    more = np.log(joint / (alone[rows] * expected[columns]))
    above = more > 0
    return rows[above], columns[above], more[above].astype(np.float32)


_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PADDING, _FIRST, _SEPARATOR = 0, 2, 3
_UNKNOWN, _FURTHER = "[UNK]", "##"
_AT_ONCE = 1024
_RAREST = 2
"""A character or piece that occurs less often is unknown."""


def create_bert(config: NewBert, texts: Iterable[str], seed: int) -> MaskedLM:
    """Make a model whose word pieces are learnt from some texts."""
    texts = list(texts)
    tokenizer = _learn_bert_tokenizer(config, texts)
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


def _learn_bert_tokenizer(config: NewBert, texts: Sequence[str]) -> PreTrainedTokenizerFast:
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


_BART_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""In the order of BART's, whose decoder also begins with </s>."""
_BEGINS, _BART_PADDING, _ENDS = 0, 1, 2


def create_namer(config: NewSeq2Seq, texts: Iterable[str], seed: int) -> Namer:
    """Make a model whose byte-level tokenizer is learnt from some texts."""
    tokenizer = _learn_bart_tokenizer(config, texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BartForConditionalGeneration(_bart_config(config, len(tokenizer)))
    return Namer(model, tokenizer, "a new BART")


def _learn_bart_tokenizer(config: NewSeq2Seq, texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Learn byte pairs; equal texts in the same order give the same tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.n_tokens,
        min_frequency=2,
        special_tokens=list(_BART_SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((f" {text}" for text in texts), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", _BEGINS), ("</s>", _ENDS)],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=config.max_length,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        cls_token="<s>",
        sep_token="</s>",
    )


def _bart_config(config: NewSeq2Seq, n_tokens: int) -> BartConfig:
    return BartConfig(
        vocab_size=n_tokens,
        d_model=config.width,
        init_std=config.spread,
        encoder_layers=config.layers,
        decoder_layers=config.layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.feed_forward,
        decoder_ffn_dim=config.feed_forward,
        max_position_embeddings=config.max_length,
        dropout=config.dropout,
        attention_dropout=config.dropout,
        bos_token_id=_BEGINS,
        pad_token_id=_BART_PADDING,
        eos_token_id=_ENDS,
        decoder_start_token_id=_ENDS,
        forced_eos_token_id=None,
    )


_HEADS, _MAX_CHARACTERS = 4, 64


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
        max_position_embeddings=_MAX_CHARACTERS,
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
        model_max_length=_MAX_CHARACTERS,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
