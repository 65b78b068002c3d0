"""The dense index of a store: nearest names by the vectors of an encoder, memory-mapped.

To build one, the distinct texts of names are collected, and encoded shard by shard. An interrupted
build resumes at the last shard; an update copies the vectors of unchanged texts.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from biograft.artifacts import (
    check_ends,
    check_range,
    describe_files,
    new_file,
    new_folder,
    save_array,
    sole_writer,
)
from biograft.config import check_choice, from_mapping
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import NameHits, Scores, names_in
from biograft.linking.dense.config import (
    DENSE_INDEX,
    GENERATORS,
    SIMILARITIES,
    DenseConfig,
)
from biograft.linking.dense.encoders import NameEncoder, load_encoder
from biograft.linking.dense.search import (
    SCALES,
    VECTORS,
    ExactSearch,
    GraphSearch,
    RowHits,
    Rows,
    UnitVectorTable,
    Vectors,
    VectorTable,
    load_array,
    load_faiss,
    no_hits,
    rescore,
)
from biograft.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa


TEXTS, STARTS, ROWS, ENCODER = "texts.arrow", "name_starts.npy", "name_rows.npy", "encoder"
SHARD = 8192
"""Texts encoded between two saves: some seconds of work."""
_STATE, _CONTENT = "state.json", "index"
"""In ``FOLDER.partial``: the progress of the build, and the folder that becomes the index."""


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
    """Collect the distinct texts of a store's names.

    Args:
        kb: The store.
        prepare: Prepares a name for an encoder; a name that is empty then is excluded.
        languages: Names in these languages only; none: all.

    Returns:
        The texts, and the names that have each.

    Raises:
        ConfigError: The store has no names in a language.
    """
    import pyarrow as pa

    names = kb.table("names")
    rows = np.flatnonzero(names_in(kb, languages))
    column = names["text"].take(pa.array(rows)).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    original = column.dictionary_encode()
    prepared = [prepare(text) or None for text in original.dictionary.to_pylist()]
    distinct = pa.array(prepared, pa.large_string()).dictionary_encode()
    texts = _indices(distinct.indices)[_indices(original.indices)]  # (names,): -1 for no text
    rows, texts = rows[texts >= 0], texts[texts >= 0]
    n_names = np.bincount(texts, minlength=len(distinct.dictionary))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(n_names)))
    return DistinctNames(distinct.dictionary, starts, rows[np.argsort(texts, kind="stable")])


def _indices(indices: pa.Array) -> Rows:
    import pyarrow.compute as pc

    filled: npt.NDArray[np.generic] = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    return filled.astype(np.int64)


class EncodedNames(NamedTuple):
    """The texts and vectors of an earlier index."""

    texts: pa.Array
    vectors: VectorTable
    encoder: dict[str, Any]
    """The encoder as its manifest describes it."""


def encode(
    encoder: NameEncoder, config: DenseConfig, texts: Sequence[str], prompt_name: str
) -> Vectors:
    """Encode texts with the settings of an index.

    Args:
        encoder: The encoder.
        config: Similarity, batch size and precision.
        texts: Names or mentions.
        prompt_name: ``document`` for names, ``query`` for mentions.

    Returns:
        One vector for each text: (texts, dim).
    """
    return encoder.encode(
        texts,
        prompt_name=prompt_name,
        batch_size=config.batch_size,
        precision=config.precision,
        normalize=config.similarity == "cosine",
    )


def _build(
    kb: KnowledgeBase,
    encoder: NameEncoder,
    config: DenseConfig,
    folder: Path,
    *,
    encoded: EncodedNames | None = None,
    overwrite: bool,
    progress: Progress | None,
) -> None:
    """Encode all names of a store, or those not ``encoded`` before, and write the index."""
    import pyarrow as pa

    progress = progress or Progress(enabled=False)
    with sole_writer(folder):
        _refuse_foreign(folder, overwrite)
        if config.approximate:
            load_faiss()  # fail now rather than after hours of encoding
        names = collect_texts(kb, encoder.prepare, config.languages)
        provenance = {
            "config": {**asdict(config), "languages": list(config.languages)},
            "store": {"fingerprint": store_fingerprint(kb)},
            "encoder": encoded.encoder
            if encoded
            else {
                "fingerprint": encoder.fingerprint(),
                "name": encoder.name,
                "settings": encoder.settings.to_json(),
                "origins": dict(encoder.origins),
            },
            "n_texts": len(names),
            "n_names": len(names.rows),
            "dim": encoder.dim,
        }
        partial = Path(os.path.realpath(folder)).with_name(f"{folder.name}.partial")
        content = partial / _CONTENT
        vectors, n_done = _resume(partial, config.storage, provenance)
        progress.start("encode names")
        for start in range(n_done, len(names), SHARD):
            texts = names.texts[start : start + SHARD]
            rows = np.arange(start, start + len(texts))
            _encode_shard(encoder, config, vectors, rows, texts, encoded)
            vectors.flush()
            state = {"provenance": provenance, "n_done": int(rows[-1]) + 1}
            with new_file(partial / _STATE, overwrite=True) as file:
                file.write(json.dumps(state).encode())
            progress.advance(len(rows), (rows[-1] + 1) / len(names))
        progress.finish()
        table = pa.table({"text": names.texts})
        with (
            pa.OSFile(str(content / TEXTS), "wb") as sink,
            pa.ipc.new_file(sink, table.schema) as writer,
        ):
            writer.write_table(table)
        save_array(content / STARTS, names.starts)
        save_array(content / ROWS, names.rows)
        encoder.save_pretrained(content / ENCODER, overwrite=True)
        if config.approximate:
            progress.start("link neighbours")
            GraphSearch.build(vectors, content)
            progress.finish()
        largest = {"largest_norm": vectors.largest_norm()}
        DENSE_INDEX.write(content, {**provenance, **largest, "files": describe_files(content)})
        with new_folder(folder, overwrite=overwrite) as work:
            for path in content.iterdir():
                path.rename(work / path.name)
        shutil.rmtree(partial)


def _refuse_foreign(folder: Path, overwrite: bool) -> None:
    """Refuse an output folder that may not be replaced, before the encoding starts."""
    if DENSE_INDEX.is_free(folder):
        return
    if not overwrite:
        raise OutputError(
            f"{folder}: exists already; remove it, choose another folder, or allow it to be "
            "replaced (--overwrite)"
        )
    if not DENSE_INDEX.is_at(folder):
        raise OutputError(f"{folder}: not a dense index, so it is not replaced by one")


def _resume(partial: Path, storage: str, provenance: Mapping[str, Any]) -> tuple[VectorTable, int]:
    """Open the vectors of an interrupted build of the same index, or start a new build.

    What was written beside the vectors may be half-written, and is removed.
    """
    content, shape = partial / _CONTENT, (provenance["n_texts"], provenance["dim"])
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, StoreError):
        state = json.loads((partial / _STATE).read_text(encoding="utf-8"))
        vectors = VectorTable.open(content, storage, writable=True)
        if state["provenance"] == provenance and (vectors.n_rows, vectors.dim) == shape:
            for path in content.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name not in (VECTORS, SCALES):
                    path.unlink()
            return vectors, int(state["n_done"])
    if partial.exists():
        shutil.rmtree(partial)
    content.mkdir(parents=True)
    return VectorTable.create(content, storage, *shape), 0


def _encode_shard(
    encoder: NameEncoder,
    config: DenseConfig,
    vectors: VectorTable,
    rows: Rows,
    texts: pa.Array,
    encoded: EncodedNames | None,
) -> None:
    """Write one shard: vectors of an earlier index are copied, other texts encoded."""
    import pyarrow as pa
    import pyarrow.compute as pc

    matches = np.full(len(rows), -1, dtype=np.int64)
    if encoded is not None:
        matches = _indices(pc.index_in(texts, value_set=encoded.texts))
        vectors.copy(rows[matches >= 0], encoded.vectors, matches[matches >= 0])
    new = np.flatnonzero(matches < 0)
    if len(new):
        new_texts = texts.take(pa.array(new)).to_pylist()
        vectors.write(rows[new], encode(encoder, config, new_texts, "document"))


_SAMPLED_VECTORS = 10_000
"""Vectors of names whose lengths are averaged."""


class DenseIndex:
    """Finds the names of a store whose vectors are nearest to the vector of a text.

    Scores of texts are from -1 to 1, so that they can be fused with others: the cosine, or the
    inner product divided by the norm of the text's vector and the largest norm of a name's vector,
    which leaves its order.

    Args:
        folder: Folder of the index.
        manifest: Its manifest.
        kb: Knowledge base that it was built from.
        encoder: Encoder of queries; default: the copy in the folder, loaded on first use.
        similarity: ``cosine`` or ``dot``; default: that of the index.
    """

    def __init__(
        self,
        folder: Path,
        manifest: dict[str, Any],
        kb: KnowledgeBase,
        encoder: NameEncoder | None = None,
        similarity: str | None = None,
    ) -> None:
        self.folder, self.manifest, self.kb = folder, manifest, kb
        self.config = from_mapping(DenseConfig, manifest["config"], f"{folder}: config.")
        self.vectors = VectorTable.open(folder, self.config.storage)
        self.largest_norm = float(manifest["largest_norm"])
        if similarity is not None and similarity != self.config.similarity:
            self._compare_by(similarity)
        self.name = GENERATORS[self.config.similarity]
        self._starts = cast("Rows", load_array(folder / STARTS, np.int64))
        self._rows = cast("Rows", load_array(folder / ROWS, np.int64))
        self._encoder = encoder
        self._encoded_last: tuple[tuple[str, ...], Vectors, Rows] | None = None
        self._check_shapes()
        self._search: ExactSearch | GraphSearch
        if self.config.approximate:
            self._search = GraphSearch.open(self.vectors, folder)
        else:
            self._search = ExactSearch(self.vectors, self.largest_norm)

    @classmethod
    def build(
        cls,
        kb: KnowledgeBase,
        encoder: NameEncoder,
        folder: str | Path,
        config: DenseConfig | None = None,
        *,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> DenseIndex:
        """Encode every distinct name of a store, or resume an interrupted build; open the index.

        Args:
            kb: Knowledge base of the names.
            encoder: Encoder of the names; a copy is kept in the folder.
            folder: Folder to write.
            config: Settings of the index.
            overwrite: Replace an index that exists.
            progress: Progress of encoding.
        """
        config, folder = config or DenseConfig(), Path(folder)
        _build(kb, encoder, config, folder, overwrite=overwrite, progress=progress)
        return cls.open(folder, kb, encoder)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        kb: KnowledgeBase,
        encoder: NameEncoder | None = None,
        *,
        similarity: str | None = None,
    ) -> DenseIndex:
        """Open an index of this store; without an encoder, with the copy in its folder.

        Args:
            folder: Folder of the index.
            kb: Knowledge base in the state that it was built from.
            encoder: Encoder of queries; default: the copy in the folder.
            similarity: ``cosine`` or ``dot`` in place of that of the index; only vectors kept as
                they are have both.
        """
        folder = Path(folder)
        manifest = DENSE_INDEX.read(folder)
        if manifest["store"]["fingerprint"] != store_fingerprint(kb):
            raise StoreError(
                f"{folder}: was built from another state of the knowledge base than {kb.folder}; "
                "run `biograft index` again, or update the index"
            )
        if encoder is not None:
            _check_encoder(folder, manifest, encoder)
        DENSE_INDEX.check_files(folder, manifest)
        return cls(folder, manifest, kb, encoder, similarity)

    @classmethod
    def update(
        cls,
        folder: str | Path,
        kb: KnowledgeBase,
        encoder: NameEncoder | None = None,
        *,
        out: str | Path | None = None,
        progress: Progress | None = None,
    ) -> DenseIndex:
        """Update an index to the current state of its store, encoding only new texts.

        Args:
            folder: Folder of the index.
            kb: Knowledge base in its current state.
            encoder: The encoder that it was built with; default: the copy in the folder.
            out: Folder of the updated index, replacing one; default: ``folder`` itself.
            progress: Progress of encoding.
        """
        folder, out = Path(folder), Path(out or folder)
        manifest = DENSE_INDEX.read(folder)
        DENSE_INDEX.check_files(folder, manifest)
        encoder = encoder or load_encoder(folder / ENCODER)
        _check_encoder(folder, manifest, encoder)
        config = from_mapping(DenseConfig, manifest["config"], f"{folder}: config.")
        vectors = VectorTable.open(folder, config.storage)
        encoded = EncodedNames(_read_texts(folder), vectors, manifest["encoder"])
        _build(kb, encoder, config, out, encoded=encoded, overwrite=True, progress=progress)
        return cls.open(out, kb, encoder)

    @functools.cached_property
    def encoder(self) -> NameEncoder:
        """The encoder of the names, loaded on first use."""
        if self._encoder is None:
            self._encoder = load_encoder(self.folder / ENCODER)
            _check_encoder(self.folder, self.manifest, self._encoder)
        return self._encoder

    def __len__(self) -> int:
        return len(self._starts) - 1

    @property
    def n_names(self) -> int:
        """Number of indexed names."""
        return len(self._rows)

    @property
    def texts(self) -> pa.Array:
        """The distinct texts of the indexed names, in the order of their vectors."""
        return _read_texts(self.folder)

    def verify(self) -> None:
        """Check every file against its recorded hash."""
        DENSE_INDEX.check_files(self.folder, self.manifest, hashes=True)

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k nearest names of each text; an empty text has none.

        Args:
            texts: Texts to search for.
            k: Number of names of each.
        """
        vectors, vector_of = self._encode(texts)
        vector_hits = self.search_vectors(vectors, k)
        hits, encoded = no_hits(len(texts), k), vector_of >= 0
        own = vector_of[encoded]
        hits.rows[encoded] = vector_hits.rows[own]
        hits.scores[encoded] = vector_hits.scores[own] / self._scales(vectors)[own]
        return NameHits(*hits)

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score the given names for each text, as a search would: (texts, names).

        Args:
            texts: Texts.
            rows: Rows of names for each text, padded with -1.
        """
        vectors, vector_of = self._encode(texts)
        scores = np.full(rows.shape, -np.inf, dtype=np.float32)
        names = np.where(rows >= 0, self._text_of_name[rows], -1)
        if len(vectors) and len(self):
            encoded = vector_of >= 0
            own = vector_of[encoded]
            scores[encoded] = rescore(self.vectors, vectors[own], names[encoded])
            scores[encoded] /= self._scales(vectors)[own]
        return scores

    def search_vectors(self, vectors: Vectors, k: int) -> NameHits:
        """Find the k nearest names of each vector, best first; ties go to the lower row.

        Scores are the inner products with the vectors of the names.

        Args:
            vectors: Query vectors: (queries, dim).
            k: Number of names of each.
        """
        if k < 1:
            raise ConfigError(f"k: expected at least 1, found {k}")
        vectors = np.asarray(vectors, dtype=np.float32)
        if vectors.ndim != 2 or vectors.shape[1] != self.vectors.dim:
            raise ConfigError(
                f"query vectors: expected (queries, {self.vectors.dim}), found {vectors.shape}"
            )
        faulty = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(faulty):
            raise ConfigError(f"query vectors: row {faulty[0]} holds NaN or infinity")
        return self._names_of(self._search.search(vectors, k), k)

    def vectors_of(self, name_rows: npt.ArrayLike) -> Vectors:
        """Return the vectors of rows of the names table, (rows, dim); zeros for excluded names."""
        texts = self._text_of_name[np.asarray(name_rows, dtype=np.int64)]
        vectors = np.zeros((len(texts), self.vectors.dim), dtype=np.float32)
        vectors[texts >= 0] = self.vectors.take(texts[texts >= 0])
        return vectors

    def _encode(self, texts: Sequence[str]) -> tuple[Vectors, Rows]:
        """Encode the distinct texts; also return the vector of each text, -1 for an empty one.

        The last vectors are cached: the texts that were searched are then scored.
        """
        prepared = tuple(self.encoder.prepare(text) for text in texts)
        last = self._encoded_last
        if last is not None and last[0] == prepared:
            return last[1], last[2]
        index_of = {text: i for i, text in enumerate(dict.fromkeys(filter(None, prepared)))}
        vector_of = np.array([index_of.get(text, -1) for text in prepared], dtype=np.int64)
        vectors = encode(self.encoder, self.config, list(index_of), "query")
        self._encoded_last = (prepared, vectors, vector_of)
        return vectors, vector_of

    def _scales(self, vectors: Vectors) -> Vectors:
        """Return the largest possible inner product of each vector with a name: (vectors, 1)."""
        if self.config.similarity == "cosine":
            return np.ones((len(vectors), 1), np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float64)
        scales = np.maximum(norms * self.largest_norm, np.finfo(np.float32).tiny)
        rounded: Vectors = scales.astype(np.float32)
        return rounded

    def mean_scale(self) -> float:
        """Compute what scores are divided by, for a text that is as long as the mean of names."""
        if self.config.similarity == "cosine" or not len(self):
            return 1.0
        some = self.vectors.take(np.arange(min(len(self), _SAMPLED_VECTORS)))
        return float(self._scales(some).mean())

    def _compare_by(self, similarity: str) -> None:
        """Compare vectors that were kept as they are by their cosine."""
        check_choice("similarity", similarity, SIMILARITIES)
        if similarity != "cosine" or self.config.approximate:
            reason = "is an approximate index for inner products"
            if not self.config.approximate:
                reason = "holds vectors of length 1"
            raise ConfigError(
                f"similarity: {self.folder} {reason}, so it has no search by {similarity}; "
                f"make an index for it with `biograft index --similarity {similarity}`"
            )
        self.config = replace(self.config, similarity=similarity)
        self.vectors = UnitVectorTable(self.vectors)
        self.largest_norm = 1 + 2.0**-20  # norms are rounded

    @functools.cached_property
    def _text_of_name(self) -> Rows:
        texts = np.full(self.kb.n_names, -1, dtype=np.int64)
        texts[self._rows] = np.repeat(np.arange(len(self)), np.diff(self._starts))
        return texts

    def _names_of(self, text_hits: RowHits, k: int) -> NameHits:
        """Replace each text by its names; of equal scores, the lower row first.

        Texts are in the order of their first names, so the k best texts hold the k best names.
        """
        queries, ranks = np.nonzero(text_hits.rows >= 0)
        texts, scores = text_hits.rows[queries, ranks], text_hits.scores[queries, ranks]
        n_names = np.minimum(self._starts[texts + 1] - self._starts[texts], k)
        queries, scores = np.repeat(queries, n_names), np.repeat(scores, n_names)
        rows = self._rows[np.repeat(self._starts[texts], n_names) + _count_up(n_names)]
        order = np.lexsort((rows, -scores, queries))
        rank = _count_up(np.bincount(queries, minlength=len(text_hits.rows)))
        order, rank = order[rank < k], rank[rank < k]
        hits = no_hits(len(text_hits.rows), k)
        hits.rows[queries[order], rank] = rows[order]
        hits.scores[queries[order], rank] = scores[order]
        return NameHits(*hits)

    def _check_shapes(self) -> None:
        expected = (self.manifest["n_texts"], self.manifest["dim"])
        shape = (self.vectors.n_rows, self.vectors.dim)
        if shape != expected or len(self._starts) != shape[0] + 1:
            raise StoreError(
                f"{self.folder}: damaged: its files do not belong together; "
                "run `biograft index` again"
            )
        try:
            check_ends("name_starts", self._starts, len(self._rows))
            check_range("name_rows", self._rows, 0, self.kb.n_names - 1)
        except ValueError as error:
            raise DENSE_INDEX.damaged(self.folder, error) from error


def _count_up(lengths: npt.NDArray[np.integer[Any]]) -> Rows:
    """Concatenate the ranges 0 to n - 1 of the given lengths n."""
    ends = np.cumsum(lengths)
    counts: Rows = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return counts


def _check_encoder(folder: Path, manifest: dict[str, Any], encoder: NameEncoder) -> None:
    if encoder.fingerprint() != manifest["encoder"]["fingerprint"]:
        raise StoreError(
            f"{folder}: was built with another encoder ({manifest['encoder'].get('name')}) than "
            f"{encoder.name}; run `biograft index` again"
        )


def _read_texts(folder: Path) -> pa.Array:
    import pyarrow as pa

    try:
        with pa.memory_map(str(folder / TEXTS)) as source:
            column = pa.ipc.open_file(source).read_all()["text"]
        column.validate(full=True)  # reading texts trusts their offsets
    except (pa.ArrowException, OSError, KeyError) as error:
        raise StoreError(f"{folder / TEXTS}: damaged; run `biograft index` again") from error
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
