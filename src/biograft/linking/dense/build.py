"""Build a dense index: collect the distinct texts of names, and encode them shard by shard.

An interrupted build resumes at the last shard; an update copies the vectors of unchanged texts.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import new_file, new_folder, save_array, sole_writer
from biograft.errors import ConfigError, OutputError, StoreError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.dense.config import DENSE_INDEX, DenseConfig, write_manifest
from biograft.linking.dense.encoders import NameEncoder
from biograft.linking.dense.search import (
    SCALES,
    VECTORS,
    GraphSearch,
    Rows,
    Vectors,
    VectorTable,
    load_faiss,
)
from biograft.progress import Progress

if TYPE_CHECKING:  # an index is opened without it
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DistinctNames:
    """The distinct texts of a store's names, in the order of their first names.

    The names of text t are ``rows[starts[t]:starts[t + 1]]``, ascending rows of the names table.
    """

    texts: pa.Array
    starts: Rows
    rows: Rows

    def __len__(self) -> int:
        return len(self.texts)


def collect_texts(
    kb: KnowledgeBase, prepare: Callable[[str], str], languages: Sequence[str]
) -> DistinctNames:
    """Collect the distinct texts of a store's names, prepared for an encoder.

    Names that are empty after preparation are excluded.
    """
    import pyarrow as pa

    names = kb.table("names")
    rows = np.arange(names.num_rows)
    if languages:
        rows = rows[np.isin(names["language"].to_numpy(), _codes(kb, languages))]
    original = _combined(names["text"].take(pa.array(rows))).dictionary_encode()
    prepared = [prepare(text) or None for text in original.dictionary.to_pylist()]
    distinct = pa.array(prepared, pa.large_string()).dictionary_encode()
    texts = _indices(distinct.indices)[_indices(original.indices)]  # (names,): -1 for no text
    rows, texts = rows[texts >= 0], texts[texts >= 0]
    n_names = np.bincount(texts, minlength=len(distinct.dictionary))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(n_names)))
    return DistinctNames(distinct.dictionary, starts, rows[np.argsort(texts, kind="stable")])


def find_texts(texts: pa.Array, known: pa.Array) -> Rows:
    """Return the index of each text in ``known``; -1 if it is not there."""
    import pyarrow.compute as pc

    return _indices(pc.index_in(texts, value_set=known))


def _codes(kb: KnowledgeBase, languages: Sequence[str]) -> list[int]:
    for language in languages:
        if language not in kb.languages:
            raise ConfigError(
                f"languages: {kb.folder} has no names in {language!r}; "
                f"{nearest(language, kb.languages)}"
            )
    return [kb.languages.index(language) for language in languages]


def _combined(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def _indices(indices: pa.Array) -> Rows:
    import pyarrow.compute as pc

    filled: npt.NDArray[np.generic] = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64)


TEXTS, STARTS, ROWS, ENCODER = "texts.arrow", "name_starts.npy", "name_rows.npy", "encoder"
SHARD = 8192
"""Texts encoded between two saves: some seconds of work."""
_STATE, _CONTENT = "state.json", "index"
"""In ``FOLDER.partial``: the progress of the build, and the folder that becomes the index."""


@dataclass(frozen=True, slots=True)
class EncodedNames:
    """The texts and vectors of an earlier index."""

    texts: pa.Array
    vectors: VectorTable
    encoder: dict[str, Any]
    """The encoder as its manifest describes it."""


@dataclass(slots=True)
class IndexBuilder:
    """Builds one dense index."""

    kb: KnowledgeBase
    encoder: NameEncoder
    config: DenseConfig
    encoded: EncodedNames | None = None
    progress: Progress = field(default_factory=lambda: Progress(enabled=False))

    def build(self, folder: Path, *, overwrite: bool = False) -> None:
        """Encode all names and move the finished index to its folder."""
        with sole_writer(folder):
            _refuse_foreign(folder, overwrite)
            self._build(folder, overwrite=overwrite)

    def _build(self, folder: Path, *, overwrite: bool) -> None:
        if self.config.approximate:
            load_faiss()  # fail now rather than after hours of encoding
        names = collect_texts(self.kb, self.encoder.prepare, self.config.languages)
        provenance = self._provenance(names)
        partial = Path(os.path.realpath(folder)).with_name(f"{folder.name}.partial")
        vectors = self._encode_names(partial, names, provenance)
        self._finish(partial / _CONTENT, names, vectors, provenance)
        with new_folder(folder, overwrite=overwrite) as work:
            for path in (partial / _CONTENT).iterdir():
                path.rename(work / path.name)
        shutil.rmtree(partial)

    def _encode_names(
        self, partial: Path, names: DistinctNames, provenance: dict[str, Any]
    ) -> VectorTable:
        """Write the vectors shard by shard, continuing an interrupted build."""
        vectors, n_done = self._resume(partial, len(names), provenance)
        self.progress.start("encode names")
        for start in range(n_done, len(names), SHARD):
            rows = np.arange(start, min(start + SHARD, len(names)))
            self._fill(vectors, rows, names.texts[start : start + SHARD])
            vectors.flush()
            _write_state(partial, provenance, int(rows[-1]) + 1)
            self.progress.advance(len(rows), (rows[-1] + 1) / len(names))
        self.progress.finish()
        return vectors

    def _resume(
        self, partial: Path, n_texts: int, provenance: dict[str, Any]
    ) -> tuple[VectorTable, int]:
        """Open the vectors of an interrupted build of the same index, or start a new build."""
        n_done = _read_state(partial, provenance)
        if n_done:
            with contextlib.suppress(StoreError):
                vectors = VectorTable.open(partial / _CONTENT, self.config.storage, writable=True)
                if (vectors.n_rows, vectors.dim) == (n_texts, self.encoder.dim):
                    _keep_vectors(partial / _CONTENT)
                    return vectors, n_done
        if partial.exists():
            shutil.rmtree(partial)
        content = partial / _CONTENT
        content.mkdir(parents=True)
        return VectorTable.create(content, self.config.storage, n_texts, self.encoder.dim), 0

    def _provenance(self, names: DistinctNames) -> dict[str, Any]:
        config = asdict(self.config)
        return {
            "config": {**config, "languages": list(self.config.languages)},
            "store": {"fingerprint": store_fingerprint(self.kb)},
            "encoder": self.encoded.encoder if self.encoded else describe_encoder(self.encoder),
            "n_texts": len(names),
            "n_names": len(names.rows),
            "dim": self.encoder.dim,
        }

    def _fill(self, vectors: VectorTable, rows: Rows, texts: pa.Array) -> None:
        """Write one shard: vectors of an earlier index are copied, other texts encoded."""
        import pyarrow as pa

        matches = np.full(len(rows), -1, dtype=np.int64)
        if self.encoded is not None:
            matches = find_texts(texts, self.encoded.texts)
            vectors.copy(rows[matches >= 0], self.encoded.vectors, matches[matches >= 0])
        new = np.flatnonzero(matches < 0)
        if len(new):
            new_texts = texts.take(pa.array(new)).to_pylist()
            vectors.write(rows[new], encode(self.encoder, self.config, new_texts))

    def _finish(
        self, folder: Path, names: DistinctNames, vectors: VectorTable, provenance: dict[str, Any]
    ) -> None:
        """Write the rest of an index, the manifest last."""
        import pyarrow as pa

        table = pa.table({"text": names.texts})
        with (
            pa.OSFile(str(folder / TEXTS), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as writer,
        ):
            writer.write_table(table)
        save_array(folder / STARTS, names.starts)
        save_array(folder / ROWS, names.rows)
        self.encoder.save_pretrained(folder / ENCODER, overwrite=True)
        if self.config.approximate:
            self.progress.start("link neighbours")
            GraphSearch.build(vectors, folder)
            self.progress.finish()
        write_manifest(folder, {**provenance, "largest_norm": vectors.largest_norm()})


def describe_encoder(encoder: NameEncoder) -> dict[str, Any]:
    """Describe an encoder for a manifest: fingerprint, name, settings and their origins."""
    return {
        "fingerprint": encoder.fingerprint(),
        "name": encoder.name,
        "settings": asdict(encoder.settings),
        "origins": dict(encoder.origins),
    }


def encode(encoder: NameEncoder, config: DenseConfig, texts: Sequence[str]) -> Vectors:
    """Encode texts with the settings of an index."""
    return encoder.encode(
        texts,
        batch_size=config.batch_size,
        precision=config.precision,
        normalize=config.similarity == "cosine",
    )


def _refuse_foreign(folder: Path, overwrite: bool) -> None:
    """Refuse an output folder that may not be replaced, before the encoding starts."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise OutputError(
            f"{folder}: exists already; remove it, choose another folder, or allow it to be "
            "replaced (--overwrite)"
        )
    if not DENSE_INDEX.is_at(folder):
        raise OutputError(f"{folder}: not a dense index, so it is not replaced by one")


def _keep_vectors(content: Path) -> None:
    """Remove what an interrupted build wrote beside the vectors; it may be half-written."""
    for path in content.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in (VECTORS, SCALES):
            path.unlink()


def _read_state(partial: Path, provenance: dict[str, Any]) -> int | None:
    """Return the number of texts encoded by an interrupted build of the same index, if any."""
    try:
        state = json.loads((partial / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(state, dict) or state.get("provenance") != provenance:
        return None
    return int(state["n_done"])


def _write_state(partial: Path, provenance: dict[str, Any], n_done: int) -> None:
    content = json.dumps({"provenance": provenance, "n_done": n_done})
    with new_file(partial / _STATE, overwrite=True) as file:
        file.write(content.encode())
