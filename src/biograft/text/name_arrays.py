"""The arrays of a names index: vocabulary, trie of tokens, and the rows of the names at each node.

Names are sequences of normal forms of tokens. Forms that begin a name have the first numbers, so
that form ``t`` leads from the root of the trie to node ``1 + t``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.artifacts import (
    check_ends,
    check_length,
    check_outer_ends,
    check_range,
    open_array,
    save_array,
)
from biograft.compute import njit
from biograft.kb.arrow_file import TextChunk
from biograft.kb.tables import TextColumn
from biograft.progress import Progress
from biograft.text.name_rules import NamesIndexConfig, choose_names
from biograft.text.token_forms import (
    NUMERALS,
    changed_forms,
    hash_surfaces,
    numeral_tokens,
    read_numerals,
)
from biograft.text.tokens import Codes, Ints, find_tokens, join_texts
from biograft.text.trie import build_levels
from biograft.text.vocabulary import Int32s, Uints, Vocabulary, VocabularyBuilder

_KINDS: dict[str, type[np.generic]] = {
    "slots": np.uint64,
    "word_ends": np.int64,
    "forms": np.int32,
    "cased_ends": np.int64,
    "cased_bytes": np.uint8,
}
"""The type of each array, if not ``uint32``."""


class NameArrays(NamedTuple):
    """A names index, as stored on disk; none of its arrays is ever written to."""

    slots: npt.NDArray[np.uint64]
    word_ends: Ints
    letters: Codes
    forms: Int32s
    """The number of the normal form of each token of the vocabulary; -1 if no name has it."""
    tokens: Uints
    """The form that leads to each node."""
    children: Uints
    """Where the children of each node begin, one more than there are nodes."""
    row_starts: Uints
    """Where the rows of the names that end at each node begin, one more than there are nodes."""
    rows: Uints
    """Rows of names, ascending within a node; a row has an *entry* here for each of its names."""
    surfaces: Uints
    """A hash of the tokens of each entry, as written: names of a node may differ in them."""
    cased: Uints
    """Entries of the names that match only as written, ascending."""
    cased_ends: Ints
    """End of the normalised case of each in ``cased_bytes``; the first number is 0."""
    cased_bytes: npt.NDArray[np.uint8]

    def save(self, folder: Path) -> None:
        """Write the arrays into an existing folder."""
        for name, array in self._asdict().items():
            save_array(folder / f"{name}.npy", array)

    @classmethod
    def open(cls, folder: Path) -> NameArrays:
        """Memory-map the arrays of a folder; ``ValueError`` if they do not belong together."""

        def array(name: str) -> npt.NDArray[Any]:
            return np.asarray(open_array(folder / f"{name}.npy", _KINDS.get(name, np.uint32)))

        arrays = cls(*map(array, cls._fields))
        arrays._check()
        return arrays

    def _check(self) -> None:
        """Refuse arrays that do not belong together.

        What is as large as the names is not read here: a search checks what it reads of it.
        """
        Vocabulary(self.slots, self.word_ends, self.letters).check()
        n_words, n_nodes = len(self.word_ends) - 1, len(self.tokens)
        check_length("children", self.children, n_nodes + 1)
        check_outer_ends("children", self.children, n_nodes, first=1)
        check_range("children", self.children[1:2], 1, n_nodes)
        check_length("forms", self.forms, n_words)
        check_length("row_starts", self.row_starts, n_nodes + 1)
        check_outer_ends("row_starts", self.row_starts, len(self.rows))
        check_length("surfaces", self.surfaces, len(self.rows))
        check_range("cased", self.cased, 0, len(self.rows) - 1)
        if not bool((self.cased[1:] > self.cased[:-1]).all()):
            raise ValueError("cased: expected entries that rise")
        check_length("cased_ends", self.cased_ends, len(self.cased) + 1)
        check_ends("cased_ends", self.cased_ends, len(self.cased_bytes))


_BLOCK = 100_000
"""Names that are folded at once, to bound memory."""


class NameBlock(NamedTuple):
    """Some of the names of which an index is built."""

    codes: Codes
    """The characters of all names, joined by separators."""
    rows: Ints
    text_at: Callable[[int], str]


def blocks_of_texts(names: Iterable[str], rows: Sequence[int] | Ints | None) -> Iterator[NameBlock]:
    """Yield blocks of names; without ``rows`` they are numbered."""
    texts, done = iter(names), 0
    while block := list(islice(texts, _BLOCK)):
        numbers: Any = range(done, done + len(block)) if rows is None else rows
        own = numbers if rows is None else numbers[done : done + len(block)]
        done += len(block)
        yield NameBlock(join_texts(block), np.asarray(own, np.int64), block.__getitem__)


def blocks_of_column(column: TextColumn, rows: Ints) -> Iterator[NameBlock]:
    """Yield blocks of some rows, ascending, of a column of names, without an object for each."""
    for start in range(0, len(rows), _BLOCK):
        own = rows[start : start + _BLOCK]
        chunk = column.take(own)
        yield NameBlock(_join_column(chunk), own, TextColumn([chunk]).__getitem__)


def _join_column(texts: TextChunk) -> Codes:
    offsets, data = texts.offsets, np.frombuffer(texts.data, np.uint8)
    own = data[offsets[0] : offsets[-1]]
    if not own.all():
        own = np.where(own == 0, np.uint8(ord(" ")), own)
    joined = np.insert(own, offsets[1:-1] - offsets[0], np.uint8(0)).tobytes().decode()
    return np.frombuffer(joined.encode("utf-32-le"), np.dtype("<u4"))


class _Names:
    """The names chosen so far, as sequences of tokens."""

    def __init__(self, config: NamesIndexConfig) -> None:
        self.config = config
        self.skipped: Counter[str] = Counter()
        self.vocabulary = VocabularyBuilder()
        self.vocabulary.add(numeral_tokens())
        self.n = 0
        self.words: list[Int32s] = [np.zeros(0, np.int32)]
        self.lengths: list[Ints] = [np.zeros(0, np.int64)]
        self.rows: list[Ints] = [np.zeros(0, np.int64)]
        self.surfaces: list[Uints] = [np.zeros(0, np.uint32)]
        self.as_written: dict[int, str] = {}

    def add(self, block: NameBlock) -> None:
        """Add the names of a block that are searched."""
        choice = choose_names(block.codes, block.text_at, self.config, self.skipped)
        tokens = find_tokens(block.codes)
        words = self.vocabulary.add(tokens)
        read_numerals(words)
        is_word = words >= 0
        name_of = np.cumsum(~is_word)[is_word]  # separators have the number -1
        lengths = np.bincount(name_of, minlength=len(block.rows))
        kept = choice.searched & (lengths > 0)
        self.skipped["no letters or digits"] += int((choice.searched & ~kept).sum())
        positions = self.n + np.cumsum(kept) - 1
        self.as_written |= {
            int(positions[k]): text for k, text in choice.as_written.items() if kept[k]
        }
        self.words.append(words[is_word][kept[name_of]])
        self.lengths.append(lengths[kept])
        self.rows.append(block.rows[kept])
        self.surfaces.append(hash_surfaces(tokens.hashes)[kept])
        self.n += int(kept.sum())


def build_arrays(
    blocks: Iterable[NameBlock], config: NamesIndexConfig, n_names: int, progress: Progress
) -> tuple[NameArrays, Counter[str]]:
    """Build the arrays of names; also return why names were skipped, by reason.

    ``n_names`` is their number, where known, for the progress.
    """
    progress.start("names in text")
    names, done = _Names(config), 0
    for block in blocks:
        names.add(block)
        done += len(block.rows)
        progress.advance(len(block.rows), done / n_names if n_names else None)
    progress.start("trie of names")
    words, rows = np.concatenate(names.words), np.concatenate(names.rows)
    ends = np.cumsum(np.concatenate(names.lengths))
    names.words.clear()
    vocabulary, forms, numbers = _normalise_words(names.vocabulary, words, ends)
    tokens, children, at = build_levels(numbers[words], ends)
    order = np.lexsort((rows, at))
    row_starts = np.zeros(len(tokens) + 1, np.int64)
    np.cumsum(np.bincount(at, minlength=len(tokens)), out=row_starts[1:])
    surfaces = np.concatenate(names.surfaces)[order]
    trie = (array.astype(np.uint32) for array in (tokens, children, row_starts, rows[order]))
    parts: Iterable[Any] = (
        *vocabulary, forms, *trie, surfaces, *_cased(names.as_written, order)
    )  # fmt: skip
    arrays = NameArrays(*parts)
    for array in arrays:
        array.setflags(write=False)  # as those of a file: compiled loops tell them apart
    progress.finish()
    return arrays, +names.skipped


def _normalise_words(
    builder: VocabularyBuilder, words: Int32s, ends: Ints
) -> tuple[Vocabulary, Int32s, Ints]:
    """Number the forms of tokens, those that begin names first.

    Return the vocabulary, with all forms; the form of each of its tokens; and that of each token
    by its number in ``builder``.
    """
    used = np.zeros(builder.n_words, np.bool_)
    used[words] = True
    used[: len(NUMERALS)] = True
    kept = np.flatnonzero(used)  # the numerals stay the first
    changed, forms = changed_forms(builder.texts(kept))
    added = builder.add(find_tokens(join_texts(forms)))
    form_of = np.arange(builder.n_words)
    form_of[kept[changed]] = added[added >= 0]
    is_first, has_names = np.zeros((2, builder.n_words), np.bool_)
    is_first[form_of[words[_starts(ends)]]] = True
    has_names[form_of[words]] = True
    order = np.concatenate([np.flatnonzero(is_first), np.flatnonzero(has_names & ~is_first)])
    numbers = np.full(builder.n_words, -1, np.int64)
    numbers[order] = np.arange(len(order))
    kept = np.concatenate([kept, np.flatnonzero(has_names & ~_flags(kept, builder.n_words))])
    own = numbers[form_of]
    return builder.finish(kept), own[kept].astype(np.int32), own


def _starts(ends: Ints) -> Ints:
    """Return where each sequence begins."""
    return np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]


def _flags(positions: Ints, n: int) -> npt.NDArray[np.bool_]:
    flags = np.zeros(n, np.bool_)
    flags[positions] = True
    return flags


def _cased(as_written: dict[int, str], order: Ints) -> tuple[Uints, Ints, npt.NDArray[np.uint8]]:
    """Return the entries of names that match only as written, and their case."""
    positions = np.fromiter(as_written, np.int64, len(as_written))
    entry_of = np.empty(len(order), np.int64)
    entry_of[order] = np.arange(len(order))
    entries = entry_of[positions]
    texts = [text.encode() for text in as_written.values()]
    by_entry = np.argsort(entries)
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(texts[k]) for k in by_entry], out=ends[1:])
    joined = np.frombuffer(b"".join(texts[k] for k in by_entry), np.uint8).copy()
    return entries[by_entry].astype(np.uint32), ends, joined


@njit(work=lambda words, *_: 10 * len(words))
def walk(
    words: Int32s, stems: Int32s, tokens: Uints, children: Uints, row_starts: Uints, out: Ints
) -> int:
    """Find all names in a sequence of tokens; return their number.

    ``out`` gets the node, and the first and last token, of as many as it has columns: by first
    token, the longer first, and an exact match before that of a plural.
    """
    n, n_first = 0, np.int64(children[1]) - 1
    for begin in range(len(words)):
        if words[begin] < 0 and stems[begin] < 0:
            continue
        earlier, at = n, begin
        first, end = np.int64(1), n_first + 1
        while at < len(words) and first < end:
            word, stem = np.int64(words[at]), np.int64(stems[at])
            if stem >= 0:
                node = child_of(tokens, first, end, stem)
                if node and row_starts[node + 1] > row_starts[node]:
                    if n < out.shape[1]:
                        out[0, n], out[1, n], out[2, n] = node, begin, at
                    n += 1
            if word < 0:
                break
            node = child_of(tokens, first, end, word)
            if not node:
                break
            if row_starts[node + 1] > row_starts[node]:
                if n < out.shape[1]:
                    out[0, n], out[1, n], out[2, n] = node, begin, at
                n += 1
            first, end = np.int64(children[node]), np.int64(children[node + 1])
            if not node < first <= end <= len(tokens):
                raise ValueError("children: nodes out of range")
            at += 1
        if n - earlier > 1 and n <= out.shape[1]:
            for k in range((n - earlier) >> 1):
                a, b = earlier + k, n - 1 - k
                out[0, a], out[0, b] = out[0, b], out[0, a]
                out[2, a], out[2, b] = out[2, b], out[2, a]
    return n


@njit()
def child_of(tokens: Uints, first: Any, end: Any, word: Any) -> Any:
    """Return the child by a token among the nodes of a range, 0 if there is none."""
    if first == 1:  # of the root, which has the first tokens in their order
        return word + 1 if word < end - 1 else 0
    low, high = first, end
    while high - low > 8:
        middle = (low + high) >> 1
        if np.int64(tokens[middle]) <= word:
            low = middle
        else:
            high = middle
    while low < high and np.int64(tokens[low]) < word:
        low += 1
    return low if low < high and np.int64(tokens[low]) == word else 0
