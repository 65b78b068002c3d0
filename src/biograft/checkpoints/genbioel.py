"""The published layout of GenBioEL: a BART as transformers saves it, often in 16 bits.

It becomes the same BART in 32 bits, in which no token is forced. Weights beside those of a BART
are named and left out, but soft prompts are refused: without them the model says something else.
"""

from __future__ import annotations

from collections.abc import Set

from transformers import BartConfig, BartForConditionalGeneration

from biograft.checkpoints.layouts import Converted
from biograft.checkpoints.published import Published, fill
from biograft.errors import InputError

_SHARED = "model.shared.weight"
_MARKS = frozenset({_SHARED, "model.decoder.layers.0.encoder_attn.q_proj.weight"})
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
"""Copies of the shared embeddings."""
_COPIES = frozenset({*_TIED, "final_logits_bias"})
_SOFT = ("soft_prompt_enc", "soft_prompt_dec")
_OFFSET = 2
"""BART numbers positions from here on."""


class GenBioEL:
    """GenBioEL as published."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights of these names are of the layout."""
        return keys >= _MARKS

    def convert(self, published: Published, *, as_published: bool) -> Converted:
        """Make the BART; its published code has no slip that its weights could keep."""
        _refuse_soft_prompts(published)
        config = _read_config(published)
        model = BartForConditionalGeneration(config)
        wanted = model.state_dict()
        own = {name: value for name, value in published.weights.items() if name in wanted}
        fill(model, own, published, called="a BART", copies=_COPIES)
        for told in (model.config, model.generation_config):
            told.forced_bos_token_id = told.forced_eos_token_id = None
            told.decoder_start_token_id = config.decoder_start_token_id
        return Converted(
            model=model,
            facts={
                "n_layers": config.encoder_layers,
                "n_decoder_layers": config.decoder_layers,
                "width": config.d_model,
                "n_tokens": config.vocab_size,
            },
            summary=f"{config.encoder_layers} layers that read, {config.decoder_layers} that "
            f"write, {config.d_model} wide, {config.vocab_size:,} tokens",
            left_out=tuple(sorted(published.weights.keys() - wanted.keys())),
        )


GENBIOEL = GenBioEL()


def _refuse_soft_prompts(published: Published) -> None:
    """Refuse weights that need vectors before the text to mean what they meant."""
    found = [key for key in published.weights if key.startswith(_SOFT)]
    if sum(published.weights[key].numel() for key in found):
        raise InputError(
            f"has soft prompts ({found[0]}), which no stock BART reads",
            path=published.file, remedy="expected weights that were trained without",
        )  # fmt: skip
    pickled = [name for name in _SOFT if (published.folder / f"{name}.pth").exists()]
    if pickled:
        raise InputError(
            f"has soft prompts in {pickled[0]}.pth, a pickled module, which is not run",
            path=published.folder, remedy="expected weights that were trained without",
        )  # fmt: skip


def _read_config(published: Published) -> BartConfig:
    """Take what the weights do not tell from the configuration, and sizes from the weights."""
    told, size = dict(published.config), published.size
    if told.get("model_type", "bart") != "bart":
        raise InputError(
            f"is a {told['model_type']}, expected a bart", path=published.folder / "config.json"
        )
    told |= {
        "vocab_size": size(_SHARED),
        "d_model": size(_SHARED, 1),
        "encoder_layers": _count_layers(published, "encoder"),
        "decoder_layers": _count_layers(published, "decoder"),
        "encoder_ffn_dim": size("model.encoder.layers.0.fc1.weight"),
        "decoder_ffn_dim": size("model.decoder.layers.0.fc1.weight"),
        "max_position_embeddings": size("model.encoder.embed_positions.weight") - _OFFSET,
        "forced_bos_token_id": None,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }
    told.pop("torch_dtype", None)
    told["decoder_start_token_id"] = told.get("eos_token_id", BartConfig().eos_token_id)
    return BartConfig.from_dict(told)


def _count_layers(published: Published, half: str) -> int:
    prefix = f"model.{half}.layers."
    numbers = {key.removeprefix(prefix).partition(".")[0] for key in published.weights
               if key.startswith(prefix)}  # fmt: skip
    return len(numbers)
