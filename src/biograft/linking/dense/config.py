"""Configuration and manifest of a dense index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from biograft.artifacts import ArtifactKind
from biograft.config import AtLeast, Choice, Config, Option
from biograft.kb.names import language_codes

STORAGES = {
    "float32": "as the encoder computes them; 4 bytes per number",
    "float16": "2 bytes per number, about 3 decimal digits",
    "bfloat16": "2 bytes per number, about 2 decimal digits",
    "int8": "1 byte per number, each vector scaled by its maximum",
}
SIMILARITIES = {
    "cosine": "inner product of vectors of length 1",
    "dot": "inner product of the vectors as they are (SapBERT's evaluation)",
}
GENERATORS = {"cosine": "dense", "dot": "dense-dot"}
"""The name of dense search by each similarity: what is fitted to one is refused for the other."""


Languages = Annotated[
    tuple[str, ...], Option("Names in these languages only.", "--lang", "en,zh", language_codes)
]


@dataclass(frozen=True, kw_only=True, slots=True)
class DenseConfig(Config):
    """Settings of a dense index."""

    storage: Annotated[str, Choice(*STORAGES), Option("Data type of the vectors.")] = "float32"
    similarity: Annotated[
        str,
        Choice(*SIMILARITIES),
        Option("Similarity of dense search: cosine, or inner product of the vectors as they are."),
    ] = "cosine"
    approximate: Annotated[bool, Option("Approximate search (HNSW), for millions of names.")] = (
        False
    )
    languages: Languages = ()
    """Languages of the names to index; empty: all."""
    batch_size: Annotated[int, AtLeast(1)] = 64
    """Number of names of usual length encoded at once."""
    precision: str = "auto"
    """Precision in which names and queries are encoded."""


DENSE_INDEX = ArtifactKind(
    format="biograft-dense-index",
    version=1,
    called="dense index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "store", "encoder", "n_texts", "n_names", "dim", "largest_norm", "files"),
)
