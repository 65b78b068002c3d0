"""Models from scratch, with tokenizers learnt from texts: BERT, BART, a character-level encoder.

A BERT may start with informed embeddings, because one with random embeddings long learns nothing
but token frequencies: token embeddings from the positive pointwise mutual information (PPMI) of
tokens at most four positions apart, reduced by a singular value decomposition, and sinusoidal
position embeddings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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

from biograft.arrays import Float32s, Floats, Ints
from biograft.errors import ConfigError
from biograft.models.pretrained import MaskedLM, quiet_transformers
from biograft.models.scratch_configs import NewBert, NewSeq2Seq
from biograft.models.seq2seq import Seq2SeqModel
from biograft.models.settings import EncoderSettings, write_settings

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PADDING, _FIRST, _SEPARATOR = 0, 2, 3
_UNKNOWN, _CONTINUES = "[UNK]", "##"
_BATCH_SIZE = 1024
_MIN_COUNT = 2
"""Minimum frequency of a character or subword in the vocabulary."""


def create_bert(config: NewBert, texts: Iterable[str], seed: int) -> MaskedLM:
    """Create a BERT with a WordPiece tokenizer learnt from some texts.

    Args:
        config: Size of the model and of its vocabulary.
        texts: Texts to learn the tokenizer from.
        seed: Seed of the weights.
    """
    texts = list(texts)
    tokenizer = _learn_bert_tokenizer(config, texts)
    if len(tokenizer) <= len(_SPECIAL):
        raise ConfigError("new: expected texts to learn a tokenizer from, found none")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForMaskedLM(_bert_config(config, len(tokenizer)))
    if config.informed:
        _initialise_embeddings(model, tokenizer, texts, seed)
    return MaskedLM(model, tokenizer, new_head=True)


@torch.no_grad()
def _initialise_embeddings(
    model: BertForMaskedLM, tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], seed: int
) -> None:
    """Replace random token and position embeddings with informed ones."""
    embeddings = model.bert.embeddings
    sequences = (encoding.ids for encoding in _encoded(tokenizer.backend_tokenizer, texts))
    width = embeddings.word_embeddings.embedding_dim
    tokens = ppmi_token_vectors(sequences, len(tokenizer), width, seed)
    tokens[_PADDING] = 0.0
    embeddings.word_embeddings.weight.copy_(tokens)
    positions = embeddings.position_embeddings
    positions.weight.copy_(sinusoidal_positions(positions.num_embeddings, width))


def _learn_bert_tokenizer(config: NewBert, texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Learn a WordPiece tokenizer; equal texts in the same order give the same one."""
    subwords = _select_subwords(config, texts, _learn_subwords(config, texts))
    vocabulary = {token: row for row, token in enumerate([*_SPECIAL, *subwords])}
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


def _learn_subwords(config: NewBert, texts: Sequence[str]) -> list[str]:
    """Learn subwords by byte-pair encoding; the WordPiece trainer is not deterministic."""
    tokenizer = _splitting(models.BPE(), config)
    trainer = trainers.BpeTrainer(
        vocab_size=config.n_tokens,
        min_frequency=_MIN_COUNT,
        limit_alphabet=config.n_tokens,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return sorted(tokenizer.get_vocab())


def _select_subwords(config: NewBert, texts: Sequence[str], learnt: Sequence[str]) -> list[str]:
    """Select the most frequent subwords, at the beginning of words and inside.

    Every character of a subword is selected, too, so that rare words split into characters.
    """
    both = [_UNKNOWN, *learnt, *(f"{_CONTINUES}{token}" for token in learnt)]
    candidates = {token: row for row, token in enumerate(both)}
    tokenizer = _splitting(models.WordPiece(candidates, unk_token=_UNKNOWN), config)
    counts: Counter[str] = Counter()
    for encoding in _encoded(tokenizer, texts):
        counts.update(encoding.tokens)
    del counts[_UNKNOWN]
    for token in [token for token in counts if len(token) > 1]:
        for char in token.removeprefix(_CONTINUES):
            counts[char] += _MIN_COUNT
            counts[f"{_CONTINUES}{char}"] += _MIN_COUNT
    frequent = [token for token, count in counts.items() if count >= _MIN_COUNT]
    frequent.sort(
        key=lambda token: (len(token.removeprefix(_CONTINUES)) > 1, -counts[token], token)
    )
    return frequent[: config.n_tokens - len(_SPECIAL)]


def _encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Any]:
    """Yield the encoding of each text, without special tokens."""
    for start in range(0, len(texts), _BATCH_SIZE):
        batch = texts[start : start + _BATCH_SIZE]
        yield from tokenizer.encode_batch(batch, add_special_tokens=False)


def _splitting(model: Any, config: NewBert) -> Tokenizer:
    """Return a tokenizer that splits like BERT: at whitespace, punctuation, Chinese characters."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=config.lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _bert_config(config: NewBert, n_tokens: int) -> BertConfig:
    return BertConfig(
        vocab_size=n_tokens,
        hidden_size=config.width,
        initializer_range=config.initial_std,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.feed_forward,
        max_position_embeddings=config.max_length,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        pad_token_id=_PADDING,
    )


_BART_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""In the order of BART, whose decoder also starts with </s>."""
_BOS, _BART_PADDING, _EOS = 0, 1, 2


def create_bart(config: NewSeq2Seq, texts: Iterable[str], seed: int) -> Seq2SeqModel:
    """Create a BART with a byte-level BPE tokenizer learnt from some texts.

    Args:
        config: Size of the model and of its vocabulary.
        texts: Texts to learn the tokenizer from.
        seed: Seed of the weights.
    """
    tokenizer = _learn_bart_tokenizer(config, texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BartForConditionalGeneration(_bart_config(config, len(tokenizer)))
    return Seq2SeqModel(model, tokenizer, "a new BART")


def _learn_bart_tokenizer(config: NewSeq2Seq, texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE tokenizer; equal texts in the same order give the same one."""
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
        special_tokens=[("<s>", _BOS), ("</s>", _EOS)],
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
        init_std=config.initial_std,
        encoder_layers=config.layers,
        decoder_layers=config.layers,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.feed_forward,
        decoder_ffn_dim=config.feed_forward,
        max_position_embeddings=config.max_length,
        dropout=config.dropout,
        attention_dropout=config.dropout,
        bos_token_id=_BOS,
        pad_token_id=_BART_PADDING,
        eos_token_id=_EOS,
        decoder_start_token_id=_EOS,
        forced_eos_token_id=None,
    )


_HEADS, _MAX_CHARACTERS = 4, 64


def make_character_encoder(
    names: Iterable[str], folder: Path, *, width: int = 96, layers: int = 2, seed: int = 33
) -> None:
    """Write an untrained character-level encoder for the characters of some names.

    Args:
        names: Names whose characters are the vocabulary.
        folder: Folder to write.
        width: Width of the model.
        layers: Number of its layers.
        seed: Seed of the weights.
    """
    tokenizer = _character_tokenizer(names)
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
    settings = EncoderSettings(pooling="mean", max_length=_MAX_CHARACTERS, lower=True)
    write_settings(folder, settings)


def _character_tokenizer(names: Iterable[str]) -> PreTrainedTokenizerFast:
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    characters = sorted({char for name in names for char in normalizer.normalize_str(name)})
    vocabulary = {token: row for row, token in enumerate([*_SPECIAL, *characters])}
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


WINDOW = 4
"""Maximum distance of co-occurring tokens."""
_SMOOTHING = 0.75
"""Exponent of the context counts in PPMI, which lowers the weight of rare tokens."""
_SVD_ITERATIONS = 4
_MAX_WAVELENGTH = 10_000.0


def ppmi_token_vectors(
    sequences: Iterable[Sequence[int]], n_tokens: int, width: int, seed: int
) -> Tensor:
    """Return a unit vector for each token, from PPMI; it is random for tokens without context.

    Args:
        sequences: Token ids of texts.
        n_tokens: Size of the vocabulary.
        width: Length of the vectors.
        seed: Seed of the factorisation, and of random vectors.
    """
    rows, columns, values = _ppmi(_count_neighbours(sequences, n_tokens), n_tokens)
    vectors = torch.randn(n_tokens, width, generator=torch.Generator().manual_seed(seed))
    rank = min(width, n_tokens)
    if len(values):
        matrix = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([rows, columns])),
            torch.from_numpy(values),
            (n_tokens, n_tokens),
            check_invariants=True,
        ).coalesce()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            left, sizes, _ = torch.svd_lowrank(matrix, q=rank, niter=_SVD_ITERATIONS)
        known = torch.from_numpy(np.unique(rows))
        vectors[known] = 0.0
        vectors[known, :rank] = (left * sizes.sqrt())[known]
    return normalize(vectors, dim=1)


def sinusoidal_positions(n_positions: int, width: int) -> Tensor:
    """Return a unit vector for each position: sines and cosines of increasing wavelength.

    Args:
        n_positions: Number of positions.
        width: Length of the vectors.
    """
    lengths = _MAX_WAVELENGTH ** (torch.arange((width + 1) // 2) * 2 / width)
    angles = torch.arange(n_positions)[:, None] / lengths
    waves = torch.stack([angles.sin(), angles.cos()], dim=2).reshape(n_positions, -1)[:, :width]
    return normalize(waves, dim=1)


_Counts = tuple[Ints, Floats]


def _count_neighbours(sequences: Iterable[Sequence[int]], n_tokens: int) -> _Counts:
    """Count co-occurrences in both directions; a pair is one number, and distance d counts 1/d."""
    arrays = [np.asarray(sequence, dtype=np.int64) for sequence in sequences]
    tokens = np.concatenate(arrays) if arrays else np.empty(0, np.int64)
    sequence_of = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
    pairs, weights = [], []
    for distance in range(1, WINDOW + 1):
        together = sequence_of[distance:] == sequence_of[:-distance]
        first, second = tokens[:-distance][together], tokens[distance:][together]
        both = np.concatenate([first * n_tokens + second, second * n_tokens + first])
        distinct, counts = np.unique(both, return_counts=True)
        pairs.append(distinct)
        weights.append(counts / distance)
    distinct, inverse = np.unique(np.concatenate(pairs), return_inverse=True)
    totals = np.bincount(inverse, weights=np.concatenate(weights), minlength=len(distinct))
    return distinct.astype(np.int64), totals.astype(np.float64)


def _ppmi(counts: _Counts, n_tokens: int) -> tuple[Ints, Ints, Float32s]:
    """Return the pairs with positive pointwise mutual information, and its values."""
    pairs, joint = counts
    rows, columns = np.divmod(pairs, n_tokens)
    marginal = np.bincount(rows, weights=joint, minlength=n_tokens)
    expected = marginal**_SMOOTHING
    expected /= max(float(expected.sum()), 1e-12)
    information = np.log(joint / (marginal[rows] * expected[columns]))
    positive = information > 0
    return rows[positive], columns[positive], information[positive].astype(np.float32)
