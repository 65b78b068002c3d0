"""The published weights of SMedBERT, in two generations of its code: only its BERT is imported.

Its knowledge layer differs from the paper (several heads, no padding mask, every token infused, in
the first generation a second mixer) and needs neighbours and relations from files that were not
published; the code of neither generation runs. So the BERT is imported, with its token head if
there is one, and all other weights are reported.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from transformers import BertConfig, BertForMaskedLM, BertModel

from biograft.models.checkpoints.layouts import Converted
from biograft.models.checkpoints.published import Published, load_weights

_MIXER = "bert.encoder.two_hop_mixer."
_FIRST, _SECOND = "bert.encoder.one_hop_mixer.", f"{_MIXER}entity22entity4.weight"
_ENTITIES, _RELATIONS = "entity_embedding.weight", "transfer_matrix.weight"
_LAYER = "bert.encoder.layer."
_STACK = ("bert.embeddings.", _LAYER)
_HEAD = "cls.predictions."
_OPTIONAL = frozenset({"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"})
_AS_THEY_ARE = (
    *("num_attention_heads", "hidden_act", "layer_norm_eps", "initializer_range"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "pad_token_id"),
)
"""Fields that do not follow from the weights, with the same name in both configurations."""


class SMedBERT:
    """The published layout of SMedBERT."""

    def recognise(self, keys: Set[str]) -> bool:
        """Whether weights with these names have the layout."""
        return any(key.startswith(_MIXER) for key in keys)

    def convert(self, published: Published, *, as_published: bool) -> Converted:
        """Build the plain BERT; ``as_published`` changes nothing."""
        config = _read_config(published)
        has_head = "cls.predictions.transform.dense.weight" in published.weights
        own = (*_STACK, _HEAD) if has_head else _STACK
        weights = {key: value for key, value in published.weights.items() if key.startswith(own)}
        if has_head:
            model: Any = BertForMaskedLM(config)
        else:
            model = BertModel(config, add_pooling_layer=False)
            weights = {key.removeprefix("bert."): value for key, value in weights.items()}
        load_weights(model, weights, published, called="SMedBERT", optional=_OPTIONAL)
        left_out = sorted(key for key in published.weights if not key.startswith(own))
        return _describe(published, model, left_out)


SMEDBERT = SMedBERT()


def _describe(published: Published, model: Any, left_out: list[str]) -> Converted:
    weights, config = published.weights, model.config
    generation = "first" if any(key.startswith(_FIRST) for key in weights) else "second"
    known = generation == "first" or _SECOND in weights
    n_entities, dim = _shape(published, _ENTITIES)
    n_relations = max(0, _shape(published, _RELATIONS)[0] - 1)  # the first row is padding
    token_head = isinstance(model, BertForMaskedLM)
    notes = [
        "the knowledge layer is left out: it differs from the paper and needs files that were not "
        "published; biograft pretrain smedbert adds one"
    ]
    if not token_head:
        notes.append("no token head: a fine-tuned checkpoint, imported as an encoder")
    return Converted(
        model=model,
        facts={
            "n_layers": config.num_hidden_layers,
            "generation": generation if known else "unknown",
            "n_entities": max(0, n_entities - 1),
            "entity_dim": dim,
            "n_relations": n_relations,
            "token_head": token_head,
        },
        summary=f"{config.num_hidden_layers} layers, {config.hidden_size} wide, "
        f"{config.vocab_size:,} tokens: a plain BERT",
        notes=tuple(notes),
        left_out=tuple(left_out),
    )


def _shape(published: Published, ending: str) -> tuple[int, int]:
    """Return the shape of a weight by the end of its name; zeros if there is none."""
    for key, value in published.weights.items():
        if key.endswith(ending) and value.dim() == 2:
            return int(value.shape[0]), int(value.shape[1])
    return 0, 0


def _read_config(published: Published) -> BertConfig:
    config, size = published.config, published.size
    layers = {
        key.removeprefix(_LAYER).partition(".")[0]
        for key in published.weights
        if key.startswith(_LAYER)
    }
    return BertConfig(
        **{name: config[name] for name in _AS_THEY_ARE if name in config},
        vocab_size=size("bert.embeddings.word_embeddings.weight"),
        hidden_size=size("bert.embeddings.word_embeddings.weight", 1),
        max_position_embeddings=size("bert.embeddings.position_embeddings.weight"),
        type_vocab_size=size("bert.embeddings.token_type_embeddings.weight"),
        intermediate_size=size(f"{_LAYER}0.intermediate.dense.weight"),
        num_hidden_layers=len(layers),
    )
