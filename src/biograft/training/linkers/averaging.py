"""Average the weights of encoders that were trained from one start with several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from biograft.artifacts import ArtifactKind, new_folder
from biograft.errors import ConfigError
from biograft.linking.index import WEIGHTS, read_weights, write_weights
from biograft.models import TextEncoder
from biograft.models.pretrained import describe_tokenizer

AVERAGE = ArtifactKind(
    format="biograft-averaged-encoder",
    version=1,
    called="averaged encoder",
    remedy="average the encoders again",
    file="biograft_average.json",
)


def average_encoders(
    folders: Sequence[str | Path], out: str | Path, *, overwrite: bool = False
) -> dict[str, Any]:
    """Write the encoder whose weights are the mean of those of several; return its facts.

    All must have the same tokenizer, settings and sizes: the runs of one recipe with several
    seeds. A lexical weight, where all encoders bring one, is averaged, too.
    """
    if len(folders) < 2:
        raise ConfigError(f"averaging: expected at least two encoders, found {len(folders)}")
    first = TextEncoder.from_pretrained(Path(folders[0]))
    sums = {key: value.double() for key, value in first.model.state_dict().items()}
    fingerprints = [first.fingerprint()]
    for folder in folders[1:]:
        other = TextEncoder.from_pretrained(Path(folder))
        _check_alike(first, other)
        fingerprints.append(other.fingerprint())
        for key, value in other.model.state_dict().items():
            sums[key] += value.double()
    kinds = first.model.state_dict()
    first.model.load_state_dict(
        {key: (value / len(folders)).to(kinds[key].dtype) for key, value in sums.items()}
    )
    lexical, similarity = _lexical_weights([Path(folder) for folder in folders])
    facts: dict[str, Any] = {"n_encoders": len(folders), "encoders": fingerprints}
    with new_folder(Path(out), overwrite=overwrite) as work, torch.no_grad():
        first.save_pretrained(work, overwrite=True)
        if lexical:
            mean = facts["lexical_weight"] = sum(lexical) / len(lexical)
            write_weights(work, mean, {"averaged": lexical}, similarity=similarity)
        AVERAGE.write(work, facts)
    return {"checkpoint": str(out), **facts}


def _lexical_weights(folders: Sequence[Path]) -> tuple[list[float], str]:
    """Return the lexical weights of encoders and their similarity; none if one has no weight."""
    if not all((folder / WEIGHTS.file).exists() for folder in folders):
        return [], ""
    similarity = str(WEIGHTS.read(folders[0]).get("similarity"))
    weights = [read_weights(folder, similarity) or {} for folder in folders]
    return [each["lexical"] / each["dense"] for each in weights], similarity


def _check_alike(first: TextEncoder, other: TextEncoder) -> None:
    """Refuse encoders that differ in more than the values of their weights."""
    ours, theirs = first.model.state_dict(), other.model.state_dict()
    if first.settings != other.settings:
        what = f"their settings differ: {first.settings} and {other.settings}"
    elif describe_tokenizer(first.tokenizer) != describe_tokenizer(other.tokenizer):
        what = "their tokenizers differ"
    elif {key: value.shape for key, value in ours.items()} != {
        key: value.shape for key, value in theirs.items()
    }:
        what = "their weights have other names or shapes"
    else:
        return
    raise ConfigError(
        f"{other.name}: cannot be averaged with {first.name}, {what}; average runs of one recipe "
        "that differ in the seed"
    )
