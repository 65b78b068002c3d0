"""Make a small BART from scratch: a tokenizer learnt from texts, weights drawn by a seed."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

from biograft.nn.seq2seq.config import NewSeq2Seq
from biograft.nn.seq2seq.namer import Namer

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""In the order of BART's, whose decoder also begins with </s>."""
_BEGINS, _PADDING, _ENDS = 0, 1, 2


def create_namer(config: NewSeq2Seq, texts: Iterable[str], seed: int) -> Namer:
    """Make a model whose byte-level tokenizer is learnt from some texts."""
    tokenizer = _learn_tokenizer(config, texts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BartForConditionalGeneration(_bart_config(config, len(tokenizer)))
    return Namer(model, tokenizer, "a new BART")


def _learn_tokenizer(config: NewSeq2Seq, texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Learn byte pairs; equal texts in the same order give the same tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.n_tokens,
        min_frequency=2,
        special_tokens=list(_SPECIAL),
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
        pad_token_id=_PADDING,
        eos_token_id=_ENDS,
        decoder_start_token_id=_ENDS,
        forced_eos_token_id=None,
    )
