"""Dictionary matching: find all names of a store in text with an Aho-Corasick automaton.

Names and text are compared in a normalised form (see :mod:`biograft.corpus.tokens`). English
*function words* never match, even if a store has a concept of that name (``NO``, ``was``). *Common
words* with unusual capitals match only in the case of the name (``CAT``, ``cAMP``), while a plain
``Skin`` matches in any case.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import ahocorasick_rs
import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biograft.corpus.tokens import (
    NAME_SEPARATOR,
    Tokens,
    is_invisible,
    mark_joined,
    mark_names,
    separates_words,
)
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.languages import language_code
from biograft.sources.files import read_lines
from biograft.text import APOSTROPHES, normalise

FUNCTION_WORDS = frozenset(
    """
    a about above after again against all almost alone along also although always am among an
    and another any anyone anything are around as at away be became because been before being
    below between both but by can cannot could did do does doing done down during each either
    else enough etc even ever every everyone everything few for from further had has have having
    he hence her here hers herself him himself his how however i if in indeed into is it its
    itself just least less like made many may me might mine more most much must my myself near
    neither never next no nobody none nor nos not nothing now of off often on once one only onto
    or other others our ours ourselves out over own per perhaps quite rather really same several
    shall she should since so some someone something still such than that the their theirs them
    themselves then there therefore these they this those though through throughout thus to
    together too toward towards two under until up upon us very via was we well were what
    whatever when where whether which while who whoever whole whom whose why will with within
    without would yet you your yours yourself yourselves
    """.split()
)

COMMON_WORDS = frozenset(
    """
    act acts add age aged aim aims aid aids air animal ant anti arc area arm art ask ate atom
    back bad bag ball band bar base bat bear beat bed best better bid big bin bird bit black blue
    boat body book born box boy brain bring bus buy call came camp cap car card care case cat
    cell center chap chart check chip chose city clam class clear clip clock close coal coat cod
    code cold come cope copy cost crash cream cup cut dad dam dark data date day days deal deep
    den dig dim dip dog door dot draw dream drive drop drug due ear early east easy eat edge eel
    egg end era evening eye face fact fail fall family far farm fast fat fed feel feet fell felt
    fig file fill find fine fire fish fit five flag flat flu fly foot form found four fox free
    front full fun gain game gap gas gate gave gel gene get gift girl give goal gold good got gray
    great green group grow gun half ham hand hard harm hat head heart heat held help hen high
    hill hip hit hold home hop hot hour house huge human ice idea impact ink iron job join joint
    jump keep key kid kind king kit knee know lab lack lady lake lamp land large last late law
    lay lead leaf learn leg lens let level lid life light lime line link lip list live load lob
    long look loss lost lot love low mad main make male man map mark mask mass mat match mean
    meet men mice mid mild mile milk mill mind mint mix mode moderate mole month mood moon mouse
    move mum mute name nap neck need net new news nice night nine node normal nose note nut oak
    obese oil old open order pack page pain pair palm pan park part pass past patch path patient
    patients pattern pay pear peel peg pen pet phone pick pig pill pin pit place plan plant play
    plot point pole poll pool poor port post pot power press prior public pull pump pure push put
    race rack rain ran range rap rare rash rat rate raw reach read real recall red rest rice rich
    ride right ring rise risk road rob rock rod role roof room root rose row run sac sad safe
    said salt sand sat save saw say scale school sea seal seat see seed seem seen self sell send
    sense sent set seven sex ship shop short show side sign simple sit site six size skin sleep
    slow small snail soft soil son soon sort speed spot stage star start state stay step stop
    study sum sun swan table tag take talk tall tank tap task tax tea team tell ten term test
    text tide tie time tip tired today toe told tone took tool top town track trap tree trend
    trial tube type unit use used van view visit wait walk wall want war warm wash waste water
    wave way week weight west wet white wide wife win wind wish woman word work world worse year
    yes young zone
    """.split()
)


OVERLAPS = ("longest", "all")
NAMES_PER_BATCH = 100_000
_CACHE_SIZE = 1 << 18
"""Patterns whose rows are cached, since texts repeat names."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class DictionaryConfig:
    """Which names are searched, and how."""

    languages: tuple[str, ...] = ()
    """Languages of the names; all by default."""
    overlap: str = "longest"
    """``longest``: of overlapping matches the leftmost, then the longest; ``all``: all of them."""
    min_length: int = 2
    """Minimum number of letters and digits of a name."""
    plurals: bool = True
    """Whether a name also matches with an *s* appended to its last word."""
    acronym_length: int = 4
    """Upper-case names up to this length match only in upper case; so do common words with unusual
    capitals (``cAMP``, ``GRACE``)."""
    stop_words: tuple[str, ...] = ()
    """Names never to match, besides English function words."""

    def __post_init__(self) -> None:
        if self.overlap not in OVERLAPS:
            raise ConfigError(
                f"overlap: expected one of {', '.join(OVERLAPS)}, found {self.overlap!r}"
            )
        for field, low in (("min_length", 1), ("acronym_length", 0)):
            value = getattr(self, field)
            if value < low:
                raise ConfigError(f"{field}: expected {low} or more, found {value}")


class Patterns:
    """The normalised patterns of names, and the rows of the names of each pattern."""

    def __init__(
        self,
        names: Iterable[str],
        config: DictionaryConfig,
        rows: Sequence[int] | Ints | None = None,
    ) -> None:
        self.config = config
        self.skipped: Counter[str] = Counter()
        """Counts of names that are not searched, by reason."""
        self._stop = FUNCTION_WORDS.union(map(normalise, config.stop_words))
        self._case_sensitive: dict[int, str] = {}
        row_ids: list[int] = []
        chunks: list[pa.Array] = []
        for block, positions in self._batches(names, rows):
            marked = mark_names(block, plurals=config.plurals)
            searched = [key for key in marked if key]
            row_ids += [position for key, position in zip(marked, positions, strict=True) if key]
            self.skipped["no letters or digits"] += len(marked) - len(searched)
            chunks.append(pa.array(searched, pa.large_binary()))
        self.skipped = +self.skipped
        self.n_names = len(row_ids)
        keys = pa.chunked_array(chunks, pa.large_binary()).combine_chunks().dictionary_encode()
        self.keys: list[bytes] = keys.dictionary.to_pylist()
        """The patterns as UTF-8; their ids are their indices here."""
        patterns = keys.indices.to_numpy()
        order = np.array(row_ids, np.int64)
        # a memoryview, since reading single numbers from it is much faster than from an array
        self._rows = order[np.lexsort((order, patterns))].data
        self._row_ends = np.cumsum([0, *np.bincount(patterns, minlength=len(self.keys))]).data
        self._row_cache: dict[int, tuple[int, ...]] = {}

    def rows_of(self, pattern: int, text: str) -> tuple[int, ...]:
        """Return the rows of the names of a pattern that match a text in its case."""
        cached = self._row_cache.get(pattern)
        if cached is not None:
            return cached
        rows = self._rows[self._row_ends[pattern] : self._row_ends[pattern + 1]].tolist()
        if not self._case_sensitive.keys().isdisjoint(rows):
            return tuple(
                row for row in rows if row not in self._case_sensitive or self._same_case(row, text)
            )
        if len(self._row_cache) > _CACHE_SIZE:
            self._row_cache.clear()
        self._row_cache[pattern] = tuple(rows)
        return self._row_cache[pattern]

    def _same_case(self, row: int, text: str) -> bool:
        name, cased = self._case_sensitive[row], _with_case(text)
        return cased == name or (self.config.plurals and cased == f"{name}s")

    # ---- building

    def _batches(
        self, names: Iterable[str], rows: Sequence[int] | Ints | None
    ) -> Iterator[tuple[list[str], list[int]]]:
        """Yield batches of the names to search, with their rows."""
        texts = iter(names)
        done = 0
        while block := list(islice(texts, NAMES_PER_BATCH)):
            ids: list[int] = list(range(done, done + len(block)))
            if rows is not None:
                ids = np.asarray(rows[done : done + len(block)]).tolist()
            done += len(block)
            pairs = [pair for pair in zip(block, ids, strict=True) if self._is_searchable(*pair)]
            yield [text for text, _ in pairs], [row for _, row in pairs]

    def _is_searchable(self, name: str, row: int) -> bool:
        """Whether to search a name; notes the case that it must match in."""
        key = normalise(name)
        length = sum(map(str.isalnum, key))
        reason = ""
        if key in self._stop:
            reason = "stop word"
        elif length < self.config.min_length:
            reason = "short"
        elif key.replace(" ", "").isdecimal():
            reason = "number"
        if reason:
            self.skipped[reason] += 1
            return False
        capitals = name.isupper() and length <= self.config.acronym_length
        unusual = key in COMMON_WORDS and name not in (name.lower(), name.capitalize())
        if unusual or (capitals and " " not in name.strip()):
            self._case_sensitive[row] = _with_case(name)
        return True


def _with_case(text: str) -> str:
    """Normalise hyphens and whitespace of a text, but not its case."""
    plain = unicodedata.normalize("NFKC", text)
    return plain if plain.isalnum() else " ".join("".join(map(_cased_char, plain)).split())


def _cased_char(char: str) -> str:
    if char in APOSTROPHES or is_invisible(char):
        return ""
    return " " if separates_words(char) else char


def read_stop_words(path: Path) -> tuple[str, ...]:
    """Read names never to match, one per line."""
    return tuple(line.strip() for _, line in read_lines(path) if line.strip())


_BATCH_CHARACTERS = 1 << 18
"""Characters searched per call: short texts are searched together."""


class DictionaryMatch(NamedTuple):
    """A span of text that matches names, with their rows in the store's table of names."""

    start: int
    end: int
    text: str
    name_rows: tuple[int, ...]


class PatternMatches(NamedTuple):
    """All matches of patterns in several texts, in columns, overlapping ones included.

    They are sorted by text and start; of one start the longer comes first, and of one span an exact
    match before a plural. :meth:`Patterns.rows_of` checks the case.
    """

    text: Ints
    """Index of the text."""
    start: Ints
    end: Ints
    pattern: Ints


class Spans(NamedTuple):
    """Spans of several documents, in columns."""

    document: Ints
    """Index of the document."""
    start: Ints
    end: Ints

    def take(self, rows: Ints | Flags) -> Spans:
        """Return the spans of some rows."""
        return Spans(*(column[rows] for column in self))


def select_disjoint(spans: Spans, scores: Floats) -> Ints:
    """Return the rows of spans that do not overlap, sorted by position.

    Of overlapping spans the longest is kept, of equally long ones the best-scored, then the first.
    """
    if not len(spans.start):
        return np.zeros(0, np.int64)
    # concatenate the documents, so that one array of characters serves all
    lengths = np.zeros(spans.document.max() + 2, np.int64)
    np.maximum.at(lengths, spans.document + 1, spans.end)
    shift = np.cumsum(lengths)[spans.document]
    start, end = spans.start + shift, spans.end + shift
    order = np.lexsort((start, -scores, start - end))
    kept: Flags = _disjoint(start[order], end[order], int(end.max()))
    chosen = order[kept]
    rows: Ints = chosen[np.argsort(start[chosen])]
    return rows


@numba.njit(cache=True)
def _disjoint(start: Ints, end: Ints, n_characters: int) -> Flags:
    """Take spans in order unless an end is covered by a taken one, which is at least as long."""
    taken = np.zeros(n_characters, np.bool_)
    kept = np.zeros(len(start), np.bool_)
    for n in range(len(start)):
        if not (taken[start[n]] or taken[end[n] - 1]):
            kept[n] = True
            taken[start[n] : end[n]] = True
    return kept


class DictionaryMatcher:
    """Finds a fixed set of names in any text."""

    def __init__(
        self,
        names: Iterable[str],
        config: DictionaryConfig | None = None,
        *,
        rows: Sequence[int] | Ints | None = None,
    ) -> None:
        """Build from names; ``rows`` are their ids (by default 0, 1, ...)."""
        self.config = config or DictionaryConfig()
        self.patterns = Patterns(names, self.config, rows)
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            self.patterns.keys, matchkind=ahocorasick_rs.MATCHKIND_STANDARD
        )

    @classmethod
    def from_store(
        cls, base: KnowledgeBase, config: DictionaryConfig | None = None
    ) -> DictionaryMatcher:
        """Build from the names of a store."""
        config = config or DictionaryConfig()
        table = base.table("names")
        rows = np.arange(len(table), dtype=np.int64)
        if config.languages:
            wanted = {language_code(tag) for tag in config.languages}
            tags = [index for index, tag in enumerate(base.languages) if tag in wanted]
            rows = np.flatnonzero(np.isin(table.column("language").to_numpy(), tags))
        texts = table.column("text")
        blocks = (rows[k : k + NAMES_PER_BATCH] for k in range(0, len(rows), NAMES_PER_BATCH))
        names = (name for block in blocks for name in texts.take(block).to_pylist())
        return cls(names, config, rows=rows)

    def find(self, text: str) -> list[DictionaryMatch]:
        """Find the names in a text, sorted by start, the longer first."""
        return self.find_many([text])[0]

    def find_many(self, texts: Sequence[str]) -> list[list[DictionaryMatch]]:
        """Find the names in each of several texts, which is faster than one by one."""
        matches = self.search(texts)
        cuts = np.searchsorted(matches.text, np.arange(len(texts) + 1)).tolist()
        columns = [column.tolist() for column in (matches.pattern, matches.start, matches.end)]
        return [
            list(self._select(text, zip(*(column[cut:end] for column in columns), strict=True)))
            for text, cut, end in zip(texts, cuts, cuts[1:], strict=False)
        ]

    def find_disjoint(self, text: str) -> list[DictionaryMatch]:
        """Find names in a text as annotation does: of overlapping ones the longest is kept."""
        matches = self.search([text])
        columns = (matches.pattern.tolist(), matches.start.tolist(), matches.end.tolist())
        found = [
            DictionaryMatch(start, end, text[start:end], rows)
            for pattern, start, end in zip(*columns, strict=True)
            if (rows := self.patterns.rows_of(pattern, text[start:end]))
        ]
        bounds = np.array([(match.start, match.end) for match in found], np.int64).reshape(-1, 2)
        spans = Spans(np.zeros(len(found), np.int64), bounds[:, 0], bounds[:, 1])
        return [found[row] for row in select_disjoint(spans, np.zeros(len(found))).tolist()]

    def search(self, texts: Sequence[str]) -> PatternMatches:
        """Find all matches of patterns as columns, without an object per match."""
        parts = []
        done = 0
        while done < len(texts):
            n, size = done, 0
            while n < len(texts) and (n == done or size + len(texts[n]) <= _BATCH_CHARACTERS):
                size += len(texts[n])
                n += 1
            text, *columns = self._search_in(texts[done:n])
            parts.append((text + done, *columns))
            done = n
        if not parts:
            return PatternMatches(*(np.zeros(0, np.int64) for _ in PatternMatches._fields))
        return PatternMatches(*map(np.concatenate, zip(*parts, strict=True)))

    def _search_in(self, texts: Sequence[str]) -> PatternMatches:
        joined = NAME_SEPARATOR.join([text.replace(NAME_SEPARATOR, " ") for text in texts])
        tokens = mark_joined(joined, plurals=self.config.plurals)
        positions = self._automaton.find_matches_as_indexes(tokens.data.data, overlapping=True)
        bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        pattern, start, end = _to_columns(positions, tokens)
        text_of = np.searchsorted(bounds, start, "right") - 1
        return PatternMatches(text_of, start - bounds[text_of], end - bounds[text_of], pattern)

    def _select(
        self, text: str, matches: Iterable[tuple[int, int, int]]
    ) -> Iterator[DictionaryMatch]:
        """Yield the matches in the right case that, unless all are wanted, do not overlap."""
        previous = (-1, -1)
        last_end = -1
        longest = self.config.overlap == "longest"
        for pattern, start, end in matches:
            # the same span as before is a plural match, after the exact one
            if (longest and start < last_end) or (start, end) == previous:
                continue
            matched = text[start:end]
            rows = self.patterns.rows_of(pattern, matched)
            if rows:
                yield DictionaryMatch(start, end, matched, rows)
                previous, last_end = (start, end), end


def _to_columns(matches: list[tuple[int, int, int]], tokens: Tokens) -> tuple[Ints, Ints, Ints]:
    """Return sorted patterns, starts and ends in the original text for matches in the marked one.

    At one start the longer match comes first, and an exact match before a plural.
    """
    if not matches:
        none = np.zeros(0, np.int64)
        return none, none, none
    values = np.fromiter(chain.from_iterable(matches), np.int64, 3 * len(matches))
    pattern, begin, stop = values[::3], values[1::3], values[2::3]
    first = np.searchsorted(tokens.starts, begin)
    last = np.searchsorted(tokens.starts, stop) - 1
    whole = tokens.ends[last] == stop
    # drop matches that begin or end inside a token: on a character with a combining mark
    inside = first < len(tokens.starts)
    inside[inside] = tokens.starts[first[inside]] == begin[inside]
    inside &= whole | (tokens.stems[last] == stop)
    pattern, whole, first, last = pattern[inside], whole[inside], first[inside], last[inside]
    start, end = tokens.first[first], tokens.last[last]
    order = np.lexsort((pattern, ~whole, -end, start))
    return pattern[order], start[order], end[order]
