"""A checkpoint in KeBioLM's published layout, with random weights; and what the fixtures hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch

SIZES = {"vocab": 40, "width": 16, "inner": 24, "places": 32, "n_entities": 9, "dim": 6}
_WORDS = ["heart", "attack", "is", "bad", "for", "you", "@disease$"]


def published_folder(
    path: Path, *, text_layers: int = 2, fusion_layers: int = 1, head: bool = True, seed: int = 0
) -> Path:
    """Write the folder as it is published: a pickle of tensors, configuration, vocabulary, ids."""
    weights = published_weights(text_layers, fusion_layers, head=head, seed=seed)
    path.mkdir(parents=True)
    torch.save(weights, path / "pytorch_model.bin")
    config = {"model_type": "bert", "num_attention_heads": 4, "max_candidate_entities": 5}
    (path / "config.json").write_text(json.dumps(config | {"max_mentions": 15}))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
    vocabulary += [f"w{row}" for row in range(SIZES["vocab"] - len(vocabulary))]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    with (path / "entity.jsonl").open("w") as file:
        for row in range(SIZES["n_entities"]):
            file.write(json.dumps({"entity_name": f"C{row:07d}", "id": row}) + "\n")
    return path


def published_weights(text_layers, fusion_layers, *, head=True, seed=0):
    draw, width = torch.Generator().manual_seed(seed), SIZES["width"]
    shapes = {
        "bert.embeddings.word_embeddings.weight": (SIZES["vocab"], width),
        "bert.embeddings.position_embeddings.weight": (SIZES["places"], width),
        "bert.embeddings.token_type_embeddings.weight": (2, width),
        **_norm("bert.embeddings.LayerNorm", old=True),
        **_linear("bert.mention_detector", width, 3),
        "bert.entity_linker.entity_embeddings.weight": (SIZES["n_entities"], SIZES["dim"]),
        **_linear("bert.entity_linker.mention_to_entity_projection", 2 * width, SIZES["dim"]),
        **_linear("bert.entity_context_projection", SIZES["dim"], width),
        **_norm("bert.layer_norm"),
    }
    for part, n_layers in (("context", text_layers), ("recontext", fusion_layers)):
        for number in range(n_layers):
            shapes |= _layer(f"bert.{part}_encoder.layer.{number}.")
    if head:
        shapes |= {"cls.predictions.bias": (SIZES["vocab"],)}
        shapes |= _linear("cls.predictions.transform.dense", width, width)
        shapes |= _norm("cls.predictions.transform.LayerNorm")
    else:
        shapes |= _linear("classifier", width, 3)
    weights = {key: torch.randn(shape, generator=draw) * 0.3 for key, shape in shapes.items()}
    if head:
        weights["cls.predictions.decoder.weight"] = weights[
            "bert.embeddings.word_embeddings.weight"
        ]
        weights["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"]
    weights["bert.embeddings.position_ids"] = torch.arange(SIZES["places"])[None]
    return weights


def _layer(prefix):
    width, inner = SIZES["width"], SIZES["inner"]
    shapes = {}
    for name in ("query", "key", "value"):
        shapes |= _linear(f"{prefix}attention.self.{name}", width, width)
    shapes |= _linear(f"{prefix}attention.output.dense", width, width)
    shapes |= _norm(f"{prefix}attention.output.LayerNorm")
    shapes |= _linear(f"{prefix}intermediate.dense", width, inner)
    shapes |= _linear(f"{prefix}output.dense", inner, width)
    return shapes | _norm(f"{prefix}output.LayerNorm")


def _linear(name, n_in, n_out):
    return {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}


def _norm(name, *, old=False):
    names = ("gamma", "beta") if old else ("weight", "bias")
    return {f"{name}.{part}": (SIZES["width"],) for part in names}


def with_vocabulary(source: Path, path: Path, n_tokens: int) -> Path:
    """Copy a published folder that came without vocabulary, and give it one."""
    shutil.copytree(source, path)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary += [f"w{row}" for row in range(n_tokens - len(vocabulary))]
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    return path
