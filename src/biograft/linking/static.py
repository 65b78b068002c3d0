"""A static encoder: names to vectors without torch, from a table of tokens and a small network.

The vector of a name is the mean of its tokens' vectors, weighted by the softmax of one learned
number a token, projected to the width of the teacher; a perceptron with one hidden layer is added,
and the sum scaled to length 1. The table has 8 bits a number and a scale a row.

The tokens are WordPiece tokens, made in pure Python, equal to those of BERT's tokenizer, whole
words, and pairs of neighbouring Chinese characters. A text is split at whitespace, then each part
is normalised (control characters removed, accents stripped, lowercased), split at punctuation and
Chinese characters, and each word into the longest tokens of the vocabulary. Words and pairs of a
second list are tokens, too, beside those that they consist of. The parts of a text are independent
of each other, so the tokens of each are cached.
By the scripts of texts, an encoder knows what it has not learned to read.
"""

from __future__ import annotations

import functools
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import Float32s, Int32s, Ints
from biograft.artifacts import (
    ArraySpec,
    ArtifactKind,
    open_arrays,
    save_arrays,
)
from biograft.compute import njit
from biograft.config import from_mapping
from biograft.errors import BiograftError, ConfigError
from biograft.models.settings import EncoderSettings, prepare_text
from biograft.progress import Progress

_MIN_SHARE = 1e-3
"""Least share of the training texts that have a letter of a script which is then known."""
_MIN_READABLE = 0.75
"""Least share of the letters of a text whose script must be known."""


@functools.cache
def script_of(letter: str) -> str:
    """Return the script of a letter, as the first word of its Unicode name; empty for others.

    >>> [script_of(char) for char in "aβ心3"]
    ['LATIN', 'GREEK', 'CJK', '']
    """
    return unicodedata.name(letter, "").split(" ", 1)[0] if letter.isalpha() else ""


def learned_scripts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the scripts that occur in a thousandth of the texts at least, in order of their names.

    >>> learned_scripts(["Crohn's disease", "克罗恩病"])
    ('CJK', 'LATIN')
    """
    counts: Counter[str] = Counter()
    n_texts = 0
    for n_texts, text in enumerate(texts, 1):  # noqa: B007 - the number is used after the loop
        counts.update({"LATIN"} if text.isascii() else {*map(script_of, text)} - {""})
    return tuple(sorted(name for name, count in counts.items() if count >= _MIN_SHARE * n_texts))


def is_readable(text: str, scripts: Collection[str]) -> bool:
    """Return whether at least three quarters of the letters of a text are of the given scripts.

    Args:
        text: A text.
        scripts: Names of scripts, such as ``LATIN``.

    >>> [is_readable(text, ["LATIN"]) for text in ("2型DM", "α-synuclein", "42")]
    [False, True, True]
    """
    if text.isascii() and "LATIN" in scripts:
        return True
    known = [script_of(char) in scripts for char in text if char.isalpha()]
    return sum(known) >= _MIN_READABLE * len(known)


Rows = Int32s
Starts = Ints

_CACHE_SIZE = 1 << 18
"""Parts of texts whose tokens are kept."""
_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
"""The blocks of which tokenizers splits each character; it, too, begins the sixth one late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerSettings:
    """Settings of a WordPiece tokenizer, named as in its files."""

    handle_chinese_chars: bool = True
    strip_accents: bool = True
    lowercase: bool = True
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: int = 100


class WordPieceTokenizer:
    """Splits names into rows of a table: first those of the vocabulary, then those of words.

    Args:
        vocabulary: Word pieces, in the order of the table's first rows.
        words: Whole words, which have the rows after these.
        settings: Settings of the tokenizer, such as its unknown token.

    >>> tokenizer = WordPieceTokenizer(["[UNK]", "flu", "in", "##flu", "##enza"], ["influenza"])
    >>> tokenizer.tokenize("Influenza (flu)")
    ['in', '##flu', '##enza', '[UNK]', 'flu', '[UNK]']
    >>> tokenizer.rows_of_part("Influenza")
    (2, 3, 4, 5)
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        words: Sequence[str] = (),
        settings: TokenizerSettings | None = None,
    ) -> None:
        self.vocabulary, self.words = tuple(vocabulary), tuple(words)
        self.settings = settings or TokenizerSettings()
        self._row_of = {token: row for row, token in enumerate(self.vocabulary)}
        if len(self._row_of) < len(self.vocabulary):
            raise ValueError("a token occurs twice in the vocabulary")
        if self.settings.unk_token not in self._row_of:
            raise ValueError(f"the vocabulary has no {self.settings.unk_token!r}")
        first = len(self.vocabulary)
        self._row_of_word = {word: row for row, word in enumerate(self.words, first)}
        self._longest = max(map(len, self.vocabulary))
        self._cache: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self.vocabulary) + len(self.words)

    def tokenize(self, text: str) -> list[str]:
        """Return the WordPiece tokens of a text, without special tokens."""
        words = (word for part in text.split() for word in self.split(part))
        return [self.vocabulary[row] for word in words for row in self._pieces(word)]

    def rows_of(self, texts: Sequence[str], max_length: int) -> tuple[Rows, Starts]:
        """Return the rows of all texts, those of text t from ``starts[t]`` to ``starts[t + 1]``.

        Args:
            texts: Names.
            max_length: Largest number of tokens of each.
        """
        flat: list[int] = []
        ends = [0]
        find, cache_size = self._cache.get, _CACHE_SIZE
        for text in texts:
            limit = len(flat) + max_length
            for part in text.split():
                rows = find(part)
                if rows is None:
                    if len(self._cache) >= cache_size:
                        self._cache.clear()
                    rows = self._cache[part] = self.rows_of_part(part)
                flat += rows
            if len(flat) > limit:
                del flat[limit:]
            ends.append(len(flat))
        return np.array(flat, np.int32), np.array(ends, np.int64)

    def rows_of_part(self, part: str) -> tuple[int, ...]:
        """Return the rows of the tokens and words of a text without whitespace."""
        rows: list[int] = []
        words = self.split(part)
        for word in words:
            rows += self._pieces(word)
            if word in self._row_of_word:
                rows.append(self._row_of_word[word])
        pairs = self.pairs(words) if self._row_of_word else ()
        return (*rows, *(self._row_of_word[pair] for pair in pairs if pair in self._row_of_word))

    def pairs(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the pairs of Chinese characters that are neighbours among the words of a text."""
        for one, other in pairwise(words):
            if len(one) == len(other) == 1 and _is_chinese(one) and _is_chinese(other):
                yield one + other

    def split(self, part: str) -> list[str]:
        """Normalise a text without whitespace and split it into words, before WordPiece."""
        settings = self.settings
        part = "".join(char for char in part if not _is_control(char))
        if settings.handle_chinese_chars:
            part = "".join(f" {char} " if _is_chinese(char) else char for char in part)
        if settings.strip_accents:
            decomposed = unicodedata.normalize("NFD", part)
            part = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
        if settings.lowercase:
            part = "".join(char.lower() for char in part)
        return [word for piece in part.split() for word in _split_punctuation(piece)]

    def is_split(self, word: str) -> bool:
        """Whether a word consists of several tokens."""
        return len(self.rows_of_part(word)) > 1

    def _pieces(self, word: str) -> list[int]:
        """Split a word into the longest tokens from its beginning; if one is missing, unknown."""
        settings, pieces, start = self.settings, [], 0
        unknown = [self._row_of[settings.unk_token]]
        if len(word) > settings.max_input_chars_per_word:
            return unknown
        while start < len(word):
            prefix = settings.continuing_subword_prefix if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                row = self._row_of.get(prefix + word[start:end])
                if row is not None:
                    break
            else:
                return unknown
            pieces.append(row)
            start = end
        return pieces


def _split_punctuation(text: str) -> Iterator[str]:
    """Yield the words between punctuation, and each punctuation character."""
    start = 0
    for end, char in enumerate(text):
        if _is_punctuation(char):
            if start < end:
                yield text[start:end]
            yield char
            start = end + 1
    if start < len(text):
        yield text[start:]


def _is_punctuation(char: str) -> bool:
    """Whether BERT splits at a character: ASCII that is no letter or digit, or punctuation."""
    if char.isascii():
        return not char.isalnum()
    return unicodedata.category(char).startswith("P")


def _is_control(char: str) -> bool:
    return char in "\x00\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")


def _is_chinese(char: str) -> bool:
    return not char.isascii() and any(low <= ord(char) <= high for low, high in _CHINESE)


def read_tokenizer(described: Mapping[str, Any], name: str) -> WordPieceTokenizer:
    """Make the tokenizer that a ``tokenizer.json`` describes; only BERT's kind is known.

    Args:
        described: Content of ``tokenizer.json``.
        name: Name of the encoder, for errors.
    """
    model, normalizer = described.get("model") or {}, described.get("normalizer") or {}
    splitter = described.get("pre_tokenizer") or {}
    kinds = (model.get("type"), normalizer.get("type"), splitter.get("type"))
    known = ("WordPiece", "BertNormalizer", "BertPreTokenizer")
    if kinds != known or not normalizer["clean_text"]:
        raise ConfigError(
            f"encoder: a static encoder needs a teacher with the tokenizer of BERT (WordPiece), "
            f"and that of {name} is {', '.join(map(str, kinds))}"
        )
    lowercase, strip = bool(normalizer["lowercase"]), normalizer["strip_accents"]
    settings = TokenizerSettings(
        handle_chinese_chars=bool(normalizer["handle_chinese_chars"]),
        strip_accents=lowercase if strip is None else bool(strip),
        lowercase=lowercase,
        unk_token=str(model["unk_token"]),
        continuing_subword_prefix=str(model["continuing_subword_prefix"]),
        max_input_chars_per_word=int(model["max_input_chars_per_word"]),
    )
    vocabulary = sorted(model["vocab"], key=model["vocab"].__getitem__)
    if [model["vocab"][token] for token in vocabulary] != list(range(len(vocabulary))):
        raise ConfigError(f"encoder: the token ids of {name} are not the numbers from 0 on")
    return WordPieceTokenizer(vocabulary, (), settings)


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

Vectors = Float32s


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
    """Projection to the width of the teacher, (width, dim)."""
    expand: Vectors  # (dim, hidden)
    """First layer of the perceptron."""
    bias: Vectors  # (hidden,)
    """Bias of the first layer."""
    contract: Vectors  # (hidden, dim)
    """Second layer of the perceptron."""

    @property
    def n_outside_table(self) -> int:
        """The number of weights that are not of single tokens."""
        return sum(part.size for part in (self.projection, self.expand, self.bias, self.contract))


def quantise(table: Vectors) -> tuple[npt.NDArray[np.int8], Vectors]:
    """Round the rows of a table to 8 bits; return them and the scale of each row."""
    largest = np.abs(table).max(axis=1, initial=0)
    scales = (np.maximum(largest, np.finfo(np.float32).tiny) / _LARGEST_INT8).astype(np.float32)
    return np.rint(table / scales[:, None]).astype(np.int8), scales


_WEIGHTS = {
    "table": ArraySpec("int8", ("rows", "width")),
    "scales": ArraySpec("float32", ("rows",), low=0, high=_MAX_WEIGHT),
    "importance": ArraySpec("float32", ("rows",), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
    "projection": ArraySpec("float32", ("width", "dim"), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
    "expand": ArraySpec("float32", ("dim", "hidden"), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
    "bias": ArraySpec("float32", ("hidden",), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
    "contract": ArraySpec("float32", ("hidden", "dim"), low=-_MAX_WEIGHT, high=_MAX_WEIGHT),
}


class StaticEncoder:
    """A static encoder of names, for dense search without torch.

    Args:
        tokenizer: Splits names into rows of the table.
        weights: The table, and what its rows are multiplied by.
        settings: Settings of an encoder, such as the maximum number of tokens.
        name: Name in manifests and messages.
        scripts: Scripts that it learned to read (``LATIN``); empty means all.

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
        self.tokenizer, self.weights, self.settings, self.name = tokenizer, weights, settings, name
        self.scripts = tuple(scripts)
        """The scripts that it learned to read (``LATIN``); empty means all."""
        self.folder: Path | None = None
        """The folder it was loaded from, if any."""
        self.origins = dict.fromkeys(("pooling", "max_length", "lower"), "files")
        """Origin of each setting."""

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
            tokenizer = _read_tokenizer(path, manifest)
            arrays = open_arrays(path, _WEIGHTS, rows=len(tokenizer))
            scripts = manifest["scripts"]
            if not isinstance(scripts, list) or not all(isinstance(name, str) for name in scripts):
                raise ValueError(f"scripts: expected a list of names, found {scripts!r}")
            encoder = cls(
                tokenizer,
                StaticWeights(**arrays),
                settings,
                str(folder),
                scripts,
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
        prompt_name: str = "document",
        batch_size: int = 64,
        precision: str = "auto",
        normalize: bool = True,
        progress: Progress | None = None,
    ) -> Vectors:
        """Compute one vector for each text, in the order given: (texts, dim).

        All vectors have length 1, and a text without tokens gives zeros.

        Args:
            texts: Names.
            prompt_name: Changes nothing, since there are no prompts.
            batch_size: Changes nothing.
            precision: Changes nothing, since there is one.
            normalize: Changes nothing, since the length of an output has no meaning.
            progress: Progress to advance.
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
            n = len(block)
            if n < _BLOCK:
                block = np.pad(block, ((0, _BLOCK - n), (0, 0)))
            projected = block @ weights.projection
            hidden = projected @ weights.expand
            hidden += weights.bias
            projected += np.maximum(hidden, 0, out=hidden) @ weights.contract
            vectors[first : first + n] = projected[:n]
        vectors[starts[1:] == starts[:-1]] = 0
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors /= np.maximum(norms, np.finfo(np.float32).tiny)[:, None]
        return vectors

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Save the encoder.

        Args:
            folder: Folder to write.
            overwrite: Replace a folder that exists.
        """
        with STATIC_ENCODER.new(Path(folder), self._description, overwrite=overwrite) as work:
            save_arrays(work, {name: getattr(self.weights, name) for name in _WEIGHTS})
            content = json.dumps([self.tokenizer.vocabulary, self.tokenizer.words])
            (work / TOKENS).write_text(content, encoding="utf-8")

    def fingerprint(self) -> str:
        """Compute the SHA-256 of weights, tokens and settings, which decide the vectors."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        tokens = [self._description, self.tokenizer.vocabulary, self.tokenizer.words]
        digest = hashlib.sha256(json.dumps(tokens, sort_keys=True).encode())
        for name in _WEIGHTS:
            array = np.ascontiguousarray(getattr(self.weights, name))
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.data)
        return digest.hexdigest()

    @property
    def _description(self) -> dict[str, Any]:
        """The manifest, without the files."""
        return {
            "settings": self.settings.to_json(),
            "tokenizer": asdict(self.tokenizer.settings),
            "scripts": list(self.scripts),
            "n_tokens": len(self.tokenizer.vocabulary),
            "n_words": len(self.tokenizer.words),
            "dim": self.dim,
        }


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
            share = weight / total * scales[row]
            for column in range(pooled.shape[1]):
                pooled[text, column] += share * np.float32(table[row, column])
