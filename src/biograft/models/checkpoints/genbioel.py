"""The published weights of GenBioEL: a BART of transformers, often in 16 bits.

They become the same BART in 32 bits, without forced tokens. Further weights are reported and left
out, but soft prompts are refused: without them the outputs of the model differ.
"""

from __future__ import annotations

from collections.abc import Set

from transformers import BartConfig, BartForConditionalGeneration

from biograft.errors import InputError
from biograft.models.checkpoints.layouts import Converted
from biograft.models.checkpoints.published import Published, load_weights

_SHARED = "model.shared.weight"
_REQUIRED = frozenset({_SHARED, "model.decoder.layers.0.encoder_attn.q_proj.weight"})
_TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
"""Copies of the shared embeddings."""
_OPTIONAL = frozenset({*_TIED, "final_logits_bias"})
_SOFT_PROMPTS = ("soft_prompt_enc", "soft_prompt_dec")
_POSITION_OFFSET = 2
"""BART's embedding of the first position is in this row."""


class GenBioEL:
    """The published layout of GenBioEL."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights with these names have the layout."""
        return keys >= _REQUIRED

    def convert(self, published: Published, *, as_published: bool) -> Converted:
        """Build the BART; ``as_published`` changes nothing."""
        _refuse_soft_prompts(published)
        config = _read_config(published)
        model = BartForConditionalGeneration(config)
        wanted = model.state_dict()
        own = {name: value for name, value in published.weights.items() if name in wanted}
        load_weights(model, own, published, called="a BART", optional=_OPTIONAL)
        for each in (model.config, model.generation_config):
            each.forced_bos_token_id = each.forced_eos_token_id = None
            each.decoder_start_token_id = config.decoder_start_token_id
        return Converted(
            model=model,
            facts={
                "n_layers": config.encoder_layers,
                "n_decoder_layers": config.decoder_layers,
                "width": config.d_model,
                "n_tokens": config.vocab_size,
            },
            summary=f"{config.encoder_layers} encoder layers, {config.decoder_layers} decoder "
            f"layers, width {config.d_model}, {config.vocab_size:,} tokens",
            left_out=tuple(sorted(published.weights.keys() - wanted.keys())),
        )


GENBIOEL = GenBioEL()


def _refuse_soft_prompts(published: Published) -> None:
    """Refuse weights that were trained with soft prompts."""
    keys = [key for key in published.weights if key.startswith(_SOFT_PROMPTS)]
    if sum(published.weights[key].numel() for key in keys):
        raise InputError(
            f"has soft prompts ({keys[0]}), which a plain BART does not support",
            path=published.file,
            remedy="expected weights trained without them",
        )
    pickled = [name for name in _SOFT_PROMPTS if (published.folder / f"{name}.pth").exists()]
    if pickled:
        raise InputError(
            f"has soft prompts in {pickled[0]}.pth, a pickled module, which is not run",
            path=published.folder,
            remedy="expected weights trained without them",
        )


def _read_config(published: Published) -> BartConfig:
    """Return the published configuration with the sizes of the weights."""
    values, size = dict(published.config), published.size
    if values.get("model_type", "bart") != "bart":
        raise InputError(
            f"is a {values['model_type']}, expected a bart", path=published.folder / "config.json"
        )
    values |= {
        "vocab_size": size(_SHARED),
        "d_model": size(_SHARED, 1),
        "encoder_layers": _count_layers(published, "encoder"),
        "decoder_layers": _count_layers(published, "decoder"),
        "encoder_ffn_dim": size("model.encoder.layers.0.fc1.weight"),
        "decoder_ffn_dim": size("model.decoder.layers.0.fc1.weight"),
        "max_position_embeddings": size("model.encoder.embed_positions.weight") - _POSITION_OFFSET,
        "forced_bos_token_id": None,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }
    values.pop("torch_dtype", None)
    values["decoder_start_token_id"] = values.get("eos_token_id", BartConfig().eos_token_id)
    return BartConfig.from_dict(values)


def _count_layers(published: Published, half: str) -> int:
    prefix = f"model.{half}.layers."
    layers = {
        key.removeprefix(prefix).partition(".")[0]
        for key in published.weights
        if key.startswith(prefix)
    }
    return len(layers)
