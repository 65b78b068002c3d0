"""Dictionary matching: find all names of a store in text.

Names and text are compared by the normal forms of their tokens (:mod:`biograft.text.tokens`,
:mod:`biograft.text.vocabulary`): case, hyphens, accents, character width, plurals, possessives,
British spelling, Greek letters and Roman numerals do not matter. Of names that differ in these,
those written as the text count. :mod:`biograft.text.name_rules` says which names are searched.

An index has the vocabulary of the names, a trie of their forms, and the rows of the names at each
node. Forms that begin a name have the first numbers, so that form ``t`` leads from the root of the
trie to node ``1 + t``. The arrays lie on disk; they are memory-mapped, and shared by all processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import compress, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from biograft.arrays import Bytes, Flags, Int32s, Ints, Uint64s, Uints
from biograft.artifacts import (
    ArraySpec,
    ArtifactKind,
    check_range,
    describe_files,
    new_folder,
    open_arrays,
    save_arrays,
)
from biograft.compute import njit
from biograft.config import from_mapping
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.arrow_file import TextChunk
from biograft.kb.names import language_code
from biograft.kb.tables import TextColumn
from biograft.progress import Progress
from biograft.text.chinese_words import at_borders
from biograft.text.name_rules import FUNCTION_WORDS, NamesIndexConfig, choose_names, with_case
from biograft.text.tokens import Codes, Spans, Tokens, find_tokens, join_texts, select_disjoint
from biograft.text.trie import build_levels
from biograft.text.vocabulary import (
    NUMERALS,
    TokenForms,
    Vocabulary,
    VocabularyBuilder,
    changed_forms,
    hash_surfaces,
    numeral_tokens,
    read_numerals,
    surface_of,
)

_ARRAYS = {
    "slots": ArraySpec("uint64", ("slots",)),
    "word_ends": ArraySpec("int64", ("words + 1",)),
    "letters": ArraySpec("uint32", ("letters",)),
    "forms": ArraySpec("int32", ("words",)),
    "tokens": ArraySpec("uint32", ("nodes",)),
    "children": ArraySpec("uint32", ("nodes + 1",), ends="nodes", first=1, outer=True),
    "row_starts": ArraySpec("uint32", ("nodes + 1",), ends="entries", outer=True),
    "rows": ArraySpec("uint32", ("entries",)),
    "surfaces": ArraySpec("uint32", ("entries",)),
    "cased": ArraySpec("uint32", ("cased",), below="entries", rising=True),
    "cased_ends": ArraySpec("int64", ("cased + 1",), ends="bytes"),
    "cased_bytes": ArraySpec("uint8", ("bytes",)),
}
"""Arrays that grow with the names are not read on opening: a search checks what it reads."""


Trie: TypeAlias = tuple[Uints, Uints, Uints]
"""The tokens, children and starts of rows of the nodes."""


class NameArrays(NamedTuple):
    """A names index, as stored on disk; none of its arrays is ever written to."""

    slots: Uint64s
    word_ends: Ints
    letters: Codes
    forms: Int32s
    """The number of the normal form of each token of the vocabulary; -1 if no name has it."""
    tokens: Uints
    """The form that leads to each node."""
    children: Uints
    """Offsets of the children of each node, one more than there are nodes."""
    row_starts: Uints
    """Offsets of the rows of the names that end at each node, one more than there are nodes."""
    rows: Uints
    """Rows of names, ascending within a node; a row has an *entry* here for each of its names."""
    surfaces: Uints
    """A hash of the tokens of each entry, as written: names of a node may differ in them."""
    cased: Uints
    """Entries of the names that match only as written, ascending."""
    cased_ends: Ints
    """End of the normalised case of each in ``cased_bytes``; the first number is 0."""
    cased_bytes: Bytes

    @property
    def trie(self) -> Trie:
        """The arrays along which compiled loops walk."""
        return self.tokens, self.children, self.row_starts

    @classmethod
    def open(cls, folder: Path) -> NameArrays:
        """Memory-map the arrays of a folder; ``ValueError`` if they do not belong together."""
        arrays = cls(**open_arrays(folder, _ARRAYS))
        Vocabulary(*arrays[:3]).check()
        check_range("children", arrays.children[1:2], 1, len(arrays.tokens))
        return arrays


_BLOCK = 100_000
"""Names that are folded at once, to bound memory."""


class NameBlock(NamedTuple):
    """Some of the names of which an index is built."""

    codes: Codes
    """The characters of all names, joined by separators."""
    rows: Ints
    text_at: Callable[[int], str]


def blocks_of_texts(names: Iterable[str], rows: Sequence[int] | Ints | None) -> Iterator[NameBlock]:
    """Yield blocks of names.

    Args:
        names: Names.
        rows: Id of each; None numbers them.
    """
    texts, done = iter(names), 0
    while block := list(islice(texts, _BLOCK)):
        numbers: Any = range(done, done + len(block)) if rows is None else rows
        own = numbers if rows is None else numbers[done : done + len(block)]
        done += len(block)
        yield NameBlock(join_texts(block), np.asarray(own, np.int64), block.__getitem__)


def blocks_of_column(column: TextColumn, rows: Ints) -> Iterator[NameBlock]:
    """Yield blocks of some rows, ascending, of a column of names, without an object for each.

    Args:
        column: Column of texts.
        rows: Rows of the names, ascending.
    """
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

    Args:
        blocks: Names and their rows, a block at a time.
        config: Settings of the index.
        n_names: Number of names for the progress; 0 where it is unknown.
        progress: Progress of building.
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
    parts: Iterable[Any] = (*vocabulary, forms, *trie, surfaces, *_cased(names.as_written, order))
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


def _flags(positions: Ints, n: int) -> Flags:
    flags = np.zeros(n, np.bool_)
    flags[positions] = True
    return flags


def _cased(as_written: dict[int, str], order: Ints) -> tuple[Uints, Ints, Bytes]:
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

    Args:
        words: Number of each token of the text, -1: unknown.
        stems: Number of the singular of each token, -1: none.
        tokens: Token that leads to each node of the trie.
        children: Start of the children of each node.
        row_starts: Start of the rows of each node; without rows no name ends there.
        out: Gets node, first token and last token of as many as it has columns: by first token, the
            longer first, and an exact match before that of a plural.
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


def collect(walk: Callable[..., int], n_rows: int, size: int, *arguments: Any) -> Ints:
    """Return all columns that a compiled loop finds: (rows, matches).

    Args:
        walk: Takes the arguments and an array to fill, and returns how many columns there are,
            which may be more than the array has.
        n_rows: The number of rows of the array.
        size: The number of its columns at first.
        arguments: The arguments.
    """
    while True:
        found = np.empty((n_rows, size), np.int64)
        n = walk(*arguments, found)
        if n <= size:
            return found[:, :n]
        size = n


@njit()
def has_rows(trie: Trie, node: Any) -> Any:
    """Return True if names end at a node.

    Args:
        trie: Tokens, children and row starts of the trie.
        node: The node.
    """
    return trie[2][node + 1] > trie[2][node]


@njit()
def child_by(trie: Trie, node: Any, word: Any) -> Any:
    """Return the child of a node by a token, 0 if there is none.

    Args:
        trie: Tokens, children and row starts of the trie.
        node: The node.
        word: The token.
    """
    tokens, children, _ = trie
    first, end = np.int64(children[node]), np.int64(children[node + 1])
    return child_of(tokens, first, end, word) if first < end else 0


@njit()
def node_before(trie: Trie, words: Int32s, begin: Any, end: Any) -> Any:
    """Return the node that a range of words leads to from the root; -1 if there is none.

    Args:
        trie: The trie.
        words: Numbers of words.
        begin: The first of them.
        end: The one behind the last.
    """
    node: Any = np.int64(0)
    for at in range(begin, end):
        node = child_by(trie, node, np.int64(words[at]))
        if not node:
            return np.int64(-1)
    return node


@njit()
def child_of(tokens: Uints, first: Any, end: Any, word: Any) -> Any:
    """Return the child by a token among the nodes of a range, 0 if there is none.

    Args:
        tokens: Token that leads to each node.
        first: First node of the range.
        end: End of the range.
        word: The token.
    """
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


NAMES_INDEX = ArtifactKind(
    format="biograft-names",
    version=2,
    called="names index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "made_from", "n_rows", "files"),
)
_CACHE_SIZE = 1 << 18
"""Patterns whose rows are cached, since texts repeat names."""
_BATCH_CHARACTERS = 1 << 18
"""Characters searched per call: short texts are searched together."""


class NameMatch(NamedTuple):
    """A span of text that matches names, with their rows in the store's table of names."""

    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """The text as written."""
    name_rows: tuple[int, ...]
    """Rows of the names that it matches."""


class PatternMatches(NamedTuple):
    """All matches of names in several texts, in columns, overlapping ones included.

    They are sorted by text and start; of one start the longer comes first, and of one span an exact
    match before a plural. :meth:`NamesIndex.rows_of` checks the case.
    """

    text: Ints
    """Index of the text."""
    start: Ints
    end: Ints
    pattern: Ints
    """The node of the names, which are equal once normalised."""


class TokensRead(NamedTuple):
    """The tokens of texts, and the numbers of their forms; -1 of those that no name has."""

    tokens: Tokens
    words: Int32s
    stems: Int32s
    """The form of a word without its plural *s*, where it is another."""


class NamesIndex:
    """Finds a fixed set of names in any text.

    Args:
        arrays: Arrays of the index.
        config: Settings that it was built with.
        skipped: Counts of names that are not searched, by reason.
        excluded: Rows of names that are never found.
        opened: Folder it was opened from, if any.
        only: Rows that may be found; default: all.
        whole_words: Chinese names are only found where words begin and end: 低血糖 in 低血糖症状,
            but not 低血糖症.

    >>> NamesIndex.build(["lung cancer", "AIDS"]).find("Lung-cancers, no aids")
    [NameMatch(start=0, end=12, text='Lung-cancers', name_rows=(0,))]
    """

    def __init__(
        self,
        arrays: NameArrays,
        config: NamesIndexConfig,
        skipped: Counter[str] | None = None,
        excluded: frozenset[int] = frozenset(),
        opened: _Opened | None = None,
        only: Flags | None = None,
        whole_words: bool = False,
    ) -> None:
        self.arrays, self.config = arrays, config
        self.skipped = skipped or Counter()
        """Counts of names that are not searched, by reason."""
        self._excluded, self._only, self._opened = excluded, only, opened
        self._whole_words = whole_words
        self._cache: dict[int, _Pattern] = {}
        self._latest: tuple[Sequence[str], TokensRead | None] = (), None
        self._forms = TokenForms(Vocabulary(*arrays[:3]), arrays.forms)

    @classmethod
    def build(
        cls,
        names: Iterable[str],
        config: NamesIndexConfig | None = None,
        *,
        rows: Sequence[int] | Ints | None = None,
    ) -> NamesIndex:
        """Build from names; ``rows`` are their ids (by default 0, 1, ...).

        Args:
            names: Names.
            config: Settings of the index.
            rows: Id of each name; default: 0, 1, ...
        """
        config = config or NamesIndexConfig()
        blocks = blocks_of_texts(names, rows)
        arrays, skipped = build_arrays(blocks, config, 0, Progress(enabled=False))
        return cls(arrays, config, skipped)

    @classmethod
    def from_store(
        cls,
        kb: KnowledgeBase,
        config: NamesIndexConfig | None = None,
        progress: Progress | None = None,
    ) -> NamesIndex:
        """Build from the names of a store.

        Args:
            kb: Knowledge base of the names.
            config: Settings of the index, such as languages.
            progress: Progress of building.
        """
        config = config or NamesIndexConfig()
        rows = np.arange(kb.n_names, dtype=np.int64)
        if config.languages:
            wanted = {language_code(tag) for tag in config.languages}
            tags = [index for index, tag in enumerate(kb.languages) if tag in wanted]
            rows = np.flatnonzero(np.isin(kb.numbers("names", "language"), tags))
        blocks = blocks_of_column(kb.texts("names", "text"), rows)
        progress = progress or Progress(enabled=False)
        arrays, skipped = build_arrays(blocks, config, len(rows), progress)
        return cls(arrays, config, skipped)

    def save(self, folder: Path, made_from: str, n_rows: int, *, overwrite: bool = False) -> None:
        """Write the index to a folder.

        Args:
            folder: Folder to write.
            made_from: Fingerprint of what its rows refer to.
            n_rows: Number of rows there.
            overwrite: Replace an index that exists.
        """
        with new_folder(folder, overwrite=overwrite) as work:
            save_arrays(work, self.arrays._asdict())
            content = {
                "config": asdict(self.config),
                "made_from": made_from,
                "n_rows": n_rows,
                "n_names": self.n_names,
                "skipped": dict(self.skipped),
                "files": describe_files(work),
            }
            NAMES_INDEX.write(work, content)

    @classmethod
    def open(cls, folder: Path, made_from: str) -> NamesIndex:
        """Open an index that was made from this; it stays on disk.

        Args:
            folder: Folder of the index.
            made_from: Fingerprint of what its rows refer to.
        """
        manifest = NAMES_INDEX.read(folder)
        if manifest["made_from"] != made_from:
            raise StoreError(f"{folder}: was built from other names; {NAMES_INDEX.remedy}")
        NAMES_INDEX.check_files(folder, manifest)
        try:
            arrays = NameArrays.open(folder)
            config = from_mapping(NamesIndexConfig, manifest["config"])
        except (OSError, ValueError) as error:
            raise NAMES_INDEX.damaged(folder, error) from error
        opened = _Opened(folder, int(manifest["n_rows"]))
        return cls(arrays, config, Counter(manifest.get("skipped", {})), opened=opened)

    @property
    def n_names(self) -> int:
        """The number of names that are searched."""
        return len(self.arrays.rows)

    def without(
        self,
        rows: Iterable[int],
        *,
        only: Flags | None = None,
        whole_words: bool = False,
    ) -> NamesIndex:
        """Return the same index without the names of some rows, such as stop words.

        Args:
            rows: Rows that are never found.
            only: Whether each row of the store is searched at all; default: all are.
            whole_words: Chinese names are only found where words begin and end.
        """
        excluded, opened = self._excluded.union(rows), self._opened
        return NamesIndex(
            self.arrays, self.config, self.skipped, excluded, opened, only, whole_words
        )

    # ---- finding names

    def find(self, text: str) -> list[NameMatch]:
        """Find the names in a text: of overlapping ones the leftmost, then the longest."""
        return self.find_many([text])[0]

    def among(self, texts: Sequence[str]) -> set[str]:
        """Return the texts that are names as a whole."""
        return {
            text
            for text, matches in zip(texts, self.find_many(texts), strict=True)
            if matches and (matches[0].start, matches[0].end) == (0, len(text))
        }

    def find_many(self, texts: Sequence[str]) -> list[list[NameMatch]]:
        """Find the names in each of several texts, which is faster than one by one."""
        return self._leftmost(texts, self.search(texts))

    def _leftmost(self, texts: Sequence[str], matches: PatternMatches) -> list[list[NameMatch]]:
        """Return the names of matches: of overlapping ones the leftmost, then the longest."""
        found: list[list[NameMatch]] = [[] for _ in texts]
        text_before, last_end = -1, -1
        columns = (column.tolist() for column in matches)
        for n, start, end, pattern in zip(*columns, strict=True):
            if n == text_before and start < last_end:
                continue
            matched = texts[n][start:end]
            if rows := self.rows_of(pattern, matched):
                found[n].append(NameMatch(start, end, matched, rows))
                text_before, last_end = n, end
        return found

    def find_disjoint(self, text: str) -> list[NameMatch]:
        """Find names in a text as annotation does: of overlapping ones the longest is kept."""
        found = [match for _, match in self.occurrences([text])]
        bounds = np.array([(match.start, match.end) for match in found], np.int64).reshape(-1, 2)
        spans = Spans(np.zeros(len(found), np.int64), bounds[:, 0], bounds[:, 1])
        return [found[row] for row in select_disjoint(spans, np.zeros(len(found))).tolist()]

    def occurrences(self, texts: Sequence[str]) -> Iterator[tuple[int, NameMatch]]:
        """Yield all matches of names, overlapping ones included, with the number of the text."""
        columns = (column.tolist() for column in self.search(texts))
        for n, start, end, pattern in zip(*columns, strict=True):
            matched = texts[n][start:end]
            if rows := self.rows_of(pattern, matched):
                yield n, NameMatch(start, end, matched, rows)

    def search(self, texts: Sequence[str]) -> PatternMatches:
        """Find all matches of names as columns, without an object per match."""
        parts = []
        for done, batch in batches_of(texts):
            try:
                text, *columns = self._search_in(batch, self.read(batch))
            except (ValueError, IndexError) as error:
                raise self.damaged(error) from error
            parts.append((text + done, *columns))
        if not parts:
            return PatternMatches(*(np.zeros(0, np.int64) for _ in PatternMatches._fields))
        return PatternMatches(*map(np.concatenate, zip(*parts, strict=True)))

    def read(self, texts: Sequence[str]) -> TokensRead:
        """Find the tokens of texts, with the numbers of their forms."""
        known, read = self._latest  # several searches of a batch follow each other
        if read is None or known != texts:
            tokens = find_tokens(join_texts(texts))
            read = TokensRead(tokens, *self._forms.of(tokens))
            self._latest = list(texts), read
        return read

    def find_in(self, texts: Sequence[str], read: TokensRead) -> list[list[NameMatch]]:
        """Find the names in texts that were read, as ``find_many`` does.

        Args:
            texts: Texts.
            read: Their tokens.
        """
        return self._leftmost(texts, self._search_in(texts, read))

    def _search_in(self, texts: Sequence[str], read: TokensRead) -> PatternMatches:
        arrays, (tokens, words, stems) = self.arrays, read
        found = collect(walk, 3, len(words) + 16, words, stems, *arrays.trie)
        if self._whole_words:
            found = found[:, at_borders(tokens, found[1], found[2])]
        pattern, begin, stop = found
        start, end = tokens.first[begin], tokens.last[stop]
        same = (begin[1:] == begin[:-1]) & (stop[1:] == stop[:-1])
        if ((start[1:] == start[:-1]) & (end[1:] >= end[:-1]) & ~same).any():
            # a character that is several tokens: the order of tokens is not that of characters
            plural = words[stop] != arrays.tokens[pattern]
            first_row = arrays.rows[arrays.row_starts[pattern]]
            order = np.lexsort((first_row, plural, -end, start))
            pattern, start, end = pattern[order], start[order], end[order]
        bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        text_of = np.searchsorted(bounds, start, "right") - 1
        return PatternMatches(text_of, start - bounds[text_of], end - bounds[text_of], pattern)

    def damaged(self, error: Exception) -> Exception:
        """Say that the index is damaged; the error itself if it is not from a folder."""
        return error if self._opened is None else NAMES_INDEX.damaged(self._opened.folder, error)

    def rows_of(self, pattern: int, text: str) -> tuple[int, ...]:
        """Return the rows of the names of a pattern that match a text in its case.

        If some are written as the text but for case and punctuation, only these. A text that is
        excluded, or a function word such as *his*, matches no other form of it.

        Args:
            pattern: Number of the pattern.
            text: Text that it was found as.
        """
        if text.lower() in FUNCTION_WORDS:
            return ()
        known = self._cache.get(pattern)
        if known is None:
            if len(self._cache) > _CACHE_SIZE:
                self._cache.clear()
            known = self._cache[pattern] = self._read_pattern(pattern)
        rows, surfaces = known.rows, known.surfaces
        if known.cases is not None:
            cased = with_case(text)
            fit = [case is None or cased in (case, f"{case}s") for case in known.cases]
            rows = tuple(compress(rows, fit))
            surfaces = surfaces and list(compress(surfaces, fit))
        if not surfaces or not (known.excluded or len(rows) > 1):
            return rows
        own = surface_of(text)
        exact = tuple(compress(rows, [each == own for each in surfaces]))
        return exact if exact or own in known.excluded else rows

    def _read_pattern(self, pattern: int) -> _Pattern:
        first, end = self.arrays.row_starts[pattern : pattern + 2].tolist()
        rows = self.arrays.rows[first:end].tolist()
        if self._opened is not None and (not rows or max(rows) >= self._opened.n_rows):
            raise self.damaged(ValueError("rows: numbers out of range"))
        cases: list[str | None] = [None] * len(rows)
        low, high = np.searchsorted(self.arrays.cased, np.array([first, end], np.uint32)).tolist()
        for k in range(low, high):
            begin, stop = self.arrays.cased_ends[k : k + 2].tolist()
            text = self.arrays.cased_bytes[begin:stop].tobytes()
            cases[int(self.arrays.cased[k]) - first] = text.decode(errors="replace")
        entries = [*zip(rows, cases, self.arrays.surfaces[first:end].tolist(), strict=True)]
        if self._only is not None:
            entries = [entry for entry in entries if self._only[entry[0]]]
        kept = [entry for entry in entries if entry[0] not in self._excluded]
        excluded = frozenset(entry[2] for entry in entries if entry[0] in self._excluded)
        return _Pattern(
            tuple(row for row, _, _ in kept),
            [case for _, case, _ in kept] if any(case is not None for _, case, _ in kept) else None,
            [surface for *_, surface in kept] if len({entry[2] for entry in entries}) > 1 else None,
            excluded,
        )


class _Opened(NamedTuple):
    """Folder of an index, and the number of rows of the table of names."""

    folder: Path
    n_rows: int


class _Pattern(NamedTuple):
    """The names of a node."""

    rows: tuple[int, ...]
    cases: list[str | None] | None
    """The case of each that matches only as written; None if there is none."""
    surfaces: list[int] | None
    """The hash of each as written; None if they are equal."""
    excluded: frozenset[int]
    """Hashes of names that never match."""


def batches_of(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield texts that are searched together, and the index of the first."""
    done = 0
    while done < len(texts):
        n, size = done, 0
        while n < len(texts) and (n == done or size + len(texts[n]) <= _BATCH_CHARACTERS):
            size += len(texts[n])
            n += 1
        yield done, texts[done:n]
        done = n
