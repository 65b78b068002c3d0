"""What a dense index is made with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biograft.artifacts import Kind, file_sizes, hash_file
from biograft.errors import ConfigError

STORAGES = {
    "float32": "as the encoder gives them; 4 bytes a number",
    "float16": "2 bytes a number, about 3 decimal digits",
    "bfloat16": "2 bytes a number, about 2 decimal digits",
    "int8": "1 byte a number, each vector scaled by its largest",
}
SIMILARITIES = {
    "cosine": "inner product of vectors of length 1",
    "dot": "inner product of the vectors as they are (SapBERT's evaluation)",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DenseConfig:
    """What a dense index is made with."""

    storage: str = "float32"
    """How vectors are kept: ``float32``, ``float16``, ``bfloat16`` or ``int8``."""
    similarity: str = "cosine"
    """What scores are: ``cosine`` or ``dot``."""
    approximate: bool = False
    """Search a graph (HNSW) instead of all vectors: quicker from about a million names on."""
    languages: tuple[str, ...] = ()
    """Only names in these languages; none given: all."""
    batch_size: int = 64
    """How many names of usual length are encoded at once."""
    precision: str = "auto"
    """In which precision names and queries are encoded."""

    def __post_init__(self) -> None:
        for field, known in (("storage", STORAGES), ("similarity", SIMILARITIES)):
            value = getattr(self, field)
            if value not in known:
                raise ConfigError(f"{field}: expected one of {', '.join(known)}, found {value!r}")
        if self.batch_size < 1:
            raise ConfigError(f"batch_size: expected at least 1, found {self.batch_size}")


DENSE_INDEX = Kind(
    format="biograft-dense-index",
    version=1,
    called="dense index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "store", "encoder", "n_texts", "n_names", "dim", "largest_norm", "files"),
)


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write the manifest of a finished folder, with the size and hash of every file."""
    (folder / DENSE_INDEX.file).unlink(missing_ok=True)  # of an attempt that was not put in place
    files = {
        name: {"bytes": size, "sha256": hash_file(folder / name)}
        for name, size in file_sizes(folder).items()
    }
    DENSE_INDEX.write(folder, {**content, "files": files})


def check_hashes(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse an index of which a file is not as it was written."""
    for name, entry in manifest["files"].items():
        if hash_file(folder / name) != entry["sha256"]:
            raise DENSE_INDEX.damaged(folder / name, "not as it was written")
