"""Text preparation for NER: words with their tokens, windows of long texts, tag schemes.

A word is the unit that gets a label. Words are the tokens of a tokenised file (CoNLL); otherwise
texts are split by one rule for all encoders: runs of letters and digits, each punctuation
character, each Chinese character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError
from biograft.models.tasks.tokens import Ints, TaskTokenizer, TextTokens, tokens_of_words
from biograft.text.alignment import NONE, align_spans, split_tokens
from biograft.text.documents import Document, Mention, Passage
from biograft.text.formats.conll import OUTSIDE, TOKENS, Scheme, decode, encode, tokens_of
from biograft.text.sentences import split_sentences

WordSpan = tuple[int, int, str]
"""First word, end (exclusive), type."""


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A text that is encoded by itself: a passage, a sentence or a whole document."""

    document: int
    """Row of its document."""
    words: Ints
    """(words, 2): offsets in the document; words without tokens are left out."""
    tokens: tuple[tuple[int, ...], ...]
    """The tokens of each word."""


def split_texts(
    documents: Sequence[Document], tokenizer: TaskTokenizer, read: str
) -> list[TextUnit]:
    """Split documents into texts, and these into words."""
    sections = [
        (row, section)
        for row, document in enumerate(documents)
        for section in _sections(document, read)
    ]
    texts = [documents[row].text[section.start : section.end] for row, section in sections]
    return [
        _text_unit(row, documents[row], section, tokens, tokenizer)
        for (row, section), tokens in zip(sections, tokenizer.read(texts), strict=True)
    ]


def _sections(document: Document, read: str) -> Iterator[Passage]:
    """Yield disjoint sections in order; mentions outside of them are lost."""
    whole = Passage(0, len(document.text), "")
    passages = sorted(document.passages, key=lambda p: (p.start, -p.end)) or [whole]
    if read == "documents":
        in_tokens = all(passage.kind == TOKENS for passage in passages)
        passages = [Passage(0, len(document.text), TOKENS if in_tokens else "")]
    reached = 0
    for passage in passages:
        if passage.start < reached:
            continue  # inside the one before
        reached = passage.end
        if read == "sentences" and passage.kind != TOKENS:
            for start, end in split_sentences(document.text[passage.start : passage.end]):
                yield Passage(passage.start + start, passage.start + end, "")
        else:
            yield passage


def _text_unit(
    row: int, document: Document, section: Passage, tokens: TextTokens, tokenizer: TaskTokenizer
) -> TextUnit:
    text = document.text[section.start : section.end]
    spans = _given_tokens(document, section) if section.kind == TOKENS else split_tokens(text)
    words = np.array(spans, np.int64).reshape(-1, 2)
    if section.kind == TOKENS:
        words -= section.start
    of_words = tokens_of_words(text, words, tokens, tokenizer)
    has_tokens = np.array([bool(ids) for ids in of_words], bool)
    cut = tuple(tuple(ids[: tokenizer.room]) for ids in of_words if ids)
    return TextUnit(row, words[has_tokens] + section.start, cut)


def _given_tokens(document: Document, section: Passage) -> list[tuple[int, int]]:
    """Return the offsets of the whitespace-separated tokens of a tokenised section."""
    lines = [p for p in document.passages if section.start <= p.start and p.end <= section.end]
    return [span for line in lines or [section] for span in tokens_of(document, line)]


def find_spans(
    text: TextUnit, mentions: Sequence[Mention], *, nested: bool, lost: Counter[str]
) -> list[WordSpan]:
    """Return the word spans of the mentions of a text, in order; what is lost is counted.

    A mention whose bounds are not word bounds is widened to whole words, so that a prediction
    cannot match it exactly. Unless ``nested``, only the longest of overlapping mentions stays.
    """
    bounds = [(mention.start, mention.end) for mention in mentions]
    exact: dict[WordSpan, bool] = {}
    for mention, (first, last) in zip(mentions, align_spans(text.words, bounds), strict=True):
        if first == NONE:
            lost["mentions without any token"] += 1
            continue
        span = (int(first), int(last) + 1, mention.type)
        fits = (text.words[first, 0], text.words[last, 1]) == (mention.start, mention.end)
        if not fits:
            lost["mentions whose bounds are not those of words"] += 1
        exact[span] = exact.get(span, False) or fits
    return sorted(exact) if nested else _disjoint(exact, len(text.words), lost)


def _disjoint(exact: Mapping[WordSpan, bool], n_words: int, lost: Counter[str]) -> list[WordSpan]:
    """Keep the longest of overlapping spans; count the exact ones that are dropped."""
    taken = np.zeros(n_words, bool)
    disjoint = []
    for first, end, kind in sorted(exact, key=lambda span: (span[0] - span[1], span)):
        if not taken[first:end].any():
            taken[first:end] = True
            disjoint.append((first, end, kind))
        elif exact[first, end, kind]:
            lost["mentions that share words with a longer one"] += 1
    return sorted(disjoint)


@dataclass(frozen=True, slots=True)
class Window:
    """A sequence of consecutive words of a text; windows of a text overlap."""

    text: int
    """Index of the text."""
    first: int
    """Index of the first word in the text."""
    own: tuple[int, int]
    """The words of the text, end exclusive, whose tags are taken from this window."""
    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    """The first token of each word."""
    tags: tuple[int, ...] = ()
    """The gold tag of each word, for training."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """The gold entities, for training: first word of the window, last word (inclusive), type."""
    n_after: int = 0
    """Number of special tokens after the text."""

    @property
    def n_words(self) -> int:
        """The number of words."""
        return len(self.positions)

    def holds(self, first: int, last: int) -> bool:
        """Whether the window holds the words of the text from ``first`` to ``last`` inclusive."""
        return self.first <= first and last < self.first + self.n_words

    def context(self, first: int, last: int) -> int:
        """Count the context tokens of words, on the side that has fewer."""
        end, after = len(self.tokens) - self.n_after, last + 1 - self.first
        next_word = self.positions[after] if after < self.n_words else end
        return min(self.positions[first - self.first] - self.positions[0], end - next_word)


def cut_windows(
    index: int, text: TextUnit, tokenizer: TaskTokenizer, overlap: int
) -> Iterator[Window]:
    """Yield the windows of a text; none for a text without words."""
    if 2 * overlap > tokenizer.room:
        raise ConfigError(
            f"overlap: expected at most half of the {tokenizer.room} tokens read at once, "
            f"found {overlap}"
        )
    if not text.tokens:
        return
    ends = np.cumsum([len(ids) for ids in text.tokens], dtype=np.int64)
    starts = ends - np.array([len(ids) for ids in text.tokens], np.int64)
    bounds = _bounds(starts, ends, tokenizer.room, overlap)
    cuts = [0, *_cuts(bounds, starts, ends), len(ends)]
    for (first, end), own in zip(bounds, pairwise(cuts), strict=True):
        ids = [i for word in text.tokens[first:end] for i in word]
        tokens = tokenizer.frame(ids)
        positions = starts[first:end] - starts[first] + tokenizer.n_before
        n_after = len(tokens) - tokenizer.n_before - len(ids)
        yield Window(index, first, own, tuple(tokens), tuple(positions.tolist()), n_after=n_after)


def owner_of(windows: Sequence[Window], first: int, last: int) -> int:
    """Return the index of the window that holds words with the most context, or ``NONE``.

    The first of equal windows is chosen.
    """
    holding = [index for index, window in enumerate(windows) if window.holds(first, last)]
    return max(holding, key=lambda index: windows[index].context(first, last), default=NONE)


def _bounds(starts: Ints, ends: Ints, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return the first and the end word of each window."""
    bounds: list[tuple[int, int]] = []
    first, n_words = 0, len(starts)
    while first < n_words:
        end = int(np.searchsorted(ends, starts[first] + room, side="right"))
        bounds.append((first, end))
        if end == n_words:
            break
        back = int(np.searchsorted(starts, ends[end - 1] - overlap, side="left"))
        first = min(max(back, first + 1), end)
    return bounds


def _cuts(bounds: list[tuple[int, int]], starts: Ints, ends: Ints) -> Iterator[int]:
    """Yield, for each window but the first, its first word with more context than before."""
    reached = 0
    for (_, end), (first, _) in pairwise(bounds):
        before = starts[first:end] - starts[first]
        after = ends[end - 1] - ends[first:end]
        reached = max(reached, first + int(np.searchsorted(before > after, True)))
        yield reached


Flags = npt.NDArray[np.bool_]
_SCHEMES = {"bio": (Scheme.IOB2, "BI"), "bioes": (Scheme.IOBES, "BIES")}
_CONTINUES, _ENDS = "IE", "ES"


@dataclass(frozen=True, slots=True)
class TagSet:
    """The tags of some entity types in a scheme, by index; 0 is outside."""

    types: tuple[str, ...]
    scheme: str

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, such as ``B-Disease``; the prefix alone for a type without a name."""
        prefixes = _SCHEMES[self.scheme][1]
        inside = [
            f"{prefix}-{kind}" if kind else prefix for kind in self.types for prefix in prefixes
        ]
        return (OUTSIDE, *inside)

    def encode(self, n_words: int, spans: Sequence[WordSpan]) -> list[int]:
        """Return the tag of each word; spans are in order and disjoint."""
        index = {tag: row for row, tag in enumerate(self.tags)}
        return [index[tag] for tag in encode(n_words, spans, _SCHEMES[self.scheme][0])]

    def decode(self, tags: Sequence[int]) -> list[WordSpan]:
        """Return the spans of tags; an ``I`` without a ``B`` also begins an entity."""
        names = self.tags
        return decode(names[tag] for tag in tags)

    def may_follow(self) -> tuple[Flags, Flags, Flags]:
        """Return the allowed transitions (from, to), and the allowed first and last tags."""
        names = self.tags
        begins = np.array([tag[0] not in _CONTINUES for tag in names])
        # in BIO any tag may be the last of an entity
        open_ends = self.scheme == "bio"
        ends = np.array([open_ends or tag == OUTSIDE or tag[0] in _ENDS for tag in names])
        follows = ends[:, None] & begins[None, :]
        for before, tag in enumerate(names):
            if tag != OUTSIDE and tag[0] not in _ENDS:
                for after, other in enumerate(names):
                    if other[0] in _CONTINUES and other[1:] == tag[1:]:
                        follows[before, after] = True
        return follows, begins, ends
