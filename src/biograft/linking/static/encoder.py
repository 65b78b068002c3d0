"""A static encoder: names to vectors without torch, from a table of tokens and a small network.

The vector of a name is the mean of its tokens' vectors, weighted by the softmax of one learned
number a token, projected to the width of the teacher; a perceptron with one hidden layer is added,
and the sum scaled to length 1. The table has 8 bits a number and a scale a row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.artifacts import (
    ArtifactKind,
    check_length,
    check_range,
    describe_files,
    new_folder,
    open_array,
    save_array,
)
from biograft.compute import njit
from biograft.config import from_mapping
from biograft.errors import BiograftError, ConfigError
from biograft.linking.static.scripts import is_readable
from biograft.linking.static.tokens import Rows, Starts, TokenizerSettings, WordPieceTokenizer
from biograft.models.settings import EncoderSettings, prepare_text
from biograft.progress import Progress

STATIC_ENCODER = ArtifactKind(
    format="biograft-static-encoder",
    version=2,
    called="static encoder",
    remedy="train it again, or copy it again from where it is whole",
    absent="train one with `biograft finetune linker-static`",
    keys=("settings", "tokenizer", "scripts", "n_tokens", "n_words", "files"),
)
TOKENS = "tokens.json"
POOLING = "attention"
_CHUNK = 1024
"""Names encoded at once, so that their vectors stay in the caches."""
_BLOCK = 16
"""Names multiplied at once: always as many, since a product of another size rounds differently."""
_LARGEST_INT8 = 127
_MAX_WEIGHT = 1e4
"""Bound of a weight that is read: products of a table, a projection and a network stay finite."""

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticWeights:
    """The weights of a static encoder, by the names of their files."""

    table: npt.NDArray[np.int8]
    """The vectors of tokens, then of words: (rows, width)."""
    scales: Vectors
    """The factor of each row of the table: (rows,)."""
    importance: Vectors
    """The logarithm of the weight of each token in the mean: (rows,)."""
    projection: Vectors  # (width, dim)
    expand: Vectors  # (dim, hidden)
    bias: Vectors  # (hidden,)
    contract: Vectors  # (hidden, dim)

    @property
    def n_outside_table(self) -> int:
        """The number of weights that are not of single tokens."""
        return sum(part.size for part in (self.projection, self.expand, self.bias, self.contract))

    def check(self, n_rows: int) -> None:
        """Refuse arrays that do not belong together, and weights out of range."""
        (width, dim), hidden = self.projection.shape, len(self.bias)
        check_length("table", self.table, n_rows, width)
        check_length("scales", self.scales, n_rows)
        check_length("importance", self.importance, n_rows)
        check_length("expand", self.expand, dim, hidden)
        check_length("contract", self.contract, hidden, dim)
        check_range("scales", self.scales, 0, _MAX_WEIGHT)
        for name in ("importance", "projection", "expand", "bias", "contract"):
            check_range(name, getattr(self, name), -_MAX_WEIGHT, _MAX_WEIGHT)


def quantise(table: Vectors) -> tuple[npt.NDArray[np.int8], Vectors]:
    """Round the rows of a table to 8 bits; return them and the scale of each row."""
    largest = np.abs(table).max(axis=1, initial=0)
    scales = (np.maximum(largest, np.finfo(np.float32).tiny) / _LARGEST_INT8).astype(np.float32)
    return np.rint(table / scales[:, None]).astype(np.int8), scales


class StaticEncoder:
    """A static encoder of names, for dense search without torch.

    >>> encoder = StaticEncoder.from_pretrained("RUN/encoder")  # doctest: +SKIP
    >>> encoder.encode(["heart attack", "myocardial infarction"])  # doctest: +SKIP
    """

    def __init__(
        self,
        tokenizer: WordPieceTokenizer,
        weights: StaticWeights,
        settings: EncoderSettings,
        name: str,
        scripts: Sequence[str] = (),
    ) -> None:
        weights.check(len(tokenizer))
        self.tokenizer, self.weights, self.settings, self.name = tokenizer, weights, settings, name
        self.scripts = tuple(scripts)
        """The scripts that it learned to read (``LATIN``); empty means all."""
        self.folder: Path | None = None
        """The folder it was loaded from, if any."""
        self.origins = dict.fromkeys(("pooling", "max_length", "lower"), "files")
        """Where each setting comes from."""

    def __repr__(self) -> str:
        return (
            f"StaticEncoder({self.name!r}, dim={self.dim}, tokens={len(self.tokenizer)}, "
            f"max_length={self.settings.max_length}, lower={self.settings.lower})"
        )

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> StaticEncoder:
        """Load an encoder from its folder; weights are memory-mapped, and every file is checked."""
        path = Path(folder)
        manifest = STATIC_ENCODER.read(path)
        STATIC_ENCODER.check_files(path, manifest, hashes=True)
        try:
            settings = from_mapping(EncoderSettings, manifest["settings"], "settings.")
            encoder = cls(
                _read_tokenizer(path, manifest),
                _read_weights(path),
                settings,
                str(folder),
                _read_scripts(manifest),
            )
            if settings.pooling != POOLING:
                raise ValueError(f"settings.pooling: expected {POOLING}")
        except (ValueError, TypeError, KeyError, BiograftError) as error:
            raise STATIC_ENCODER.damaged(path, error) from error
        encoder.folder = path
        return encoder

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""
        return int(self.weights.projection.shape[1])

    def prepare(self, text: str) -> str:
        """Normalise whitespace, and lowercase if so set; a text of another script becomes empty."""
        if self.scripts and not is_readable(text, self.scripts):
            return ""
        return prepare_text(text, lower=self.settings.lower)

    def encode(
        self,
        texts: Sequence[str],
        *,
        batch_size: int = 64,
        precision: str = "auto",
        normalize: bool = True,
        progress: Progress | None = None,
    ) -> Vectors:
        """Compute one vector for each text, in the order given: (texts, dim).

        All vectors have length 1, and a text without tokens gives zeros. The options of a
        transformers encoder change nothing: there is one precision, and the length of an output
        has no meaning.
        """
        if batch_size < 1:
            raise ConfigError(f"batch_size: expected at least 1, found {batch_size}")
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(texts), _CHUNK):
            chunk = [self.prepare(text) for text in texts[start : start + _CHUNK]]
            rows, starts = self.tokenizer.rows_of(chunk, self.settings.max_length)
            vectors[start : start + len(chunk)] = self._embed(rows, starts)
            if progress:
                progress.advance(len(chunk), (start + len(chunk)) / len(texts))
        return vectors

    def _embed(self, rows: Rows, starts: Starts) -> Vectors:
        """Compute the vectors of tokenised texts: (texts, dim)."""
        weights = self.weights
        pooled = np.zeros((len(starts) - 1, weights.table.shape[1]), np.float32)
        _pool(rows, starts, weights.table, weights.scales, weights.importance, pooled)
        vectors = np.empty((len(pooled), self.dim), np.float32)
        for first in range(0, len(pooled), _BLOCK):
            block = pooled[first : first + _BLOCK]
            vectors[first : first + _BLOCK] = self._project(block)[: len(block)]
        vectors[starts[1:] == starts[:-1]] = 0
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.maximum(norms, np.finfo(np.float32).tiny)[:, None]
        return vectors

    def _project(self, pooled: Vectors) -> Vectors:
        """Apply the network to at most a block of means, filled up with zeros: (block, dim)."""
        weights = self.weights
        if len(pooled) < _BLOCK:
            pooled = np.pad(pooled, ((0, _BLOCK - len(pooled)), (0, 0)))
        vectors: Vectors = pooled @ weights.projection
        hidden = vectors @ weights.expand
        hidden += weights.bias
        vectors += np.maximum(hidden, 0, out=hidden) @ weights.contract
        return vectors

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Save the encoder."""
        arrays = {field.name: getattr(self.weights, field.name) for field in fields(StaticWeights)}
        with new_folder(Path(folder), overwrite=overwrite) as work:
            for name, array in arrays.items():
                save_array(work / _file_of(name), np.asarray(array))
            content = json.dumps([self.tokenizer.vocabulary, self.tokenizer.words])
            (work / TOKENS).write_text(content, encoding="utf-8")
            STATIC_ENCODER.write(work, {**self._description, "files": describe_files(work)})

    def fingerprint(self) -> str:
        """Compute the SHA-256 of weights, tokens and settings, which decide the vectors."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        tokens = [self._description, self.tokenizer.vocabulary, self.tokenizer.words]
        digest = hashlib.sha256(json.dumps(tokens, sort_keys=True).encode())
        for field in fields(StaticWeights):
            array = np.ascontiguousarray(getattr(self.weights, field.name))
            digest.update(f"{field.name} {array.dtype} {array.shape}".encode())
            digest.update(array.data)
        return digest.hexdigest()

    @property
    def _description(self) -> dict[str, Any]:
        """The manifest, without the files."""
        return {
            "settings": asdict(self.settings),
            "tokenizer": asdict(self.tokenizer.settings),
            "scripts": list(self.scripts),
            "n_tokens": len(self.tokenizer.vocabulary),
            "n_words": len(self.tokenizer.words),
            "dim": self.dim,
        }


def _file_of(name: str) -> str:
    return f"{name}.npy"


def _read_weights(folder: Path) -> StaticWeights:
    kinds: dict[str, tuple[type[np.generic], int]] = {
        "table": (np.int8, 2),
        "scales": (np.float32, 1),
        "importance": (np.float32, 1),
        "projection": (np.float32, 2),
        "expand": (np.float32, 2),
        "bias": (np.float32, 1),
        "contract": (np.float32, 2),
    }
    arrays = {
        name: np.asarray(open_array(folder / _file_of(name), kind, n_axes=n_axes))
        for name, (kind, n_axes) in kinds.items()
    }
    return StaticWeights(**arrays)


def _read_scripts(manifest: dict[str, Any]) -> list[str]:
    scripts = manifest["scripts"]
    if not isinstance(scripts, list) or not all(isinstance(script, str) for script in scripts):
        raise ValueError(f"scripts: expected a list of names, found {scripts!r}")
    return scripts


def _read_tokenizer(folder: Path, manifest: dict[str, Any]) -> WordPieceTokenizer:
    content = json.loads((folder / TOKENS).read_text(encoding="utf-8"))
    expected = [manifest["n_tokens"], manifest["n_words"]]
    if not isinstance(content, list) or not all(isinstance(part, list) for part in content):
        raise ValueError(f"{TOKENS}: expected two lists")
    if [len(part) for part in content] != expected:
        raise ValueError(f"{TOKENS}: expected {expected} tokens and words")
    if not all(isinstance(token, str) for part in content for token in part):
        raise ValueError(f"{TOKENS}: expected texts")
    settings = from_mapping(TokenizerSettings, manifest["tokenizer"], "tokenizer.")
    return WordPieceTokenizer(content[0], content[1], settings)


@njit(work=lambda rows, *_: 4 * len(rows))
def _pool(
    rows: Rows,
    starts: Starts,
    table: npt.NDArray[np.int8],
    scales: Vectors,
    importance: Vectors,
    pooled: Vectors,
) -> None:
    """Add the weighted mean of the rows of each text to ``pooled``, (texts, width)."""
    for text in range(len(starts) - 1):
        first, end = starts[text], starts[text + 1]
        largest = np.float32(-np.inf)
        for position in range(first, end):
            largest = max(largest, importance[rows[position]])
        total = np.float32(0)
        for position in range(first, end):
            total += np.float32(np.exp(np.float64(importance[rows[position]] - largest)))
        for position in range(first, end):
            row = rows[position]
            weight = np.float32(np.exp(np.float64(importance[row] - largest)))
            pooled[text] += weight / total * scales[row] * table[row].astype(np.float32)
