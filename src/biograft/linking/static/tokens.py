"""WordPiece tokens of names in pure Python, equal to those of BERT's tokenizer, and whole words.

A text is split at whitespace, then each part is normalised (control characters removed, accents
stripped, lowercased), split at punctuation and Chinese characters, and each word into the longest
tokens of the vocabulary. Words of a second list are tokens, too, beside those that they consist of.
The parts of a text are independent of each other, so the tokens of each are cached.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError

Rows = npt.NDArray[np.int32]
Starts = npt.NDArray[np.int64]

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
        """Return the rows of all texts, those of text t from ``starts[t]`` to ``starts[t + 1]``."""
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
        for word in self.split(part):
            rows += self._pieces(word)
            if word in self._row_of_word:
                rows.append(self._row_of_word[word])
        return tuple(rows)

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
        return len(self._pieces(word)) > 1

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
    """Make the tokenizer that a ``tokenizer.json`` describes; only BERT's kind is known."""
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
