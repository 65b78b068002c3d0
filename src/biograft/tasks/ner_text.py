"""Documents as texts to be read one by one: their words, and the tokens of each word.

A word is what one label is given to. Where a file comes in tokens (CoNLL), words are these; else
they are cut by our own rule, the same for all encoders: runs of letters and digits, each sign,
each Chinese character.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from biograft.corpus.alignment import NONE, align_spans, split_tokens
from biograft.corpus.formats.tokenised import OUTSIDE, TOKENS, Scheme, decode, encode, tokens_of
from biograft.corpus.sentences import split_sentences
from biograft.documents import Document, Mention, Passage
from biograft.errors import ConfigError
from biograft.tasks.tokens import Ints, TaskTokenizer, TextTokens, tokens_of_words

WordSpan = tuple[int, int, str]
"""First word, behind the last, type."""


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text that is read by itself."""

    document: int
    """Number of its document among those read."""
    words: Ints
    """(words, 2): where each stands in the document; those without any token are none."""
    tokens: tuple[tuple[int, ...], ...]
    """Of each word."""


def read_texts(
    documents: Sequence[Document], tokenizer: TaskTokenizer, read: str
) -> list[ReadText]:
    """Take documents apart into texts, and these into words."""
    sections = [
        (number, section)
        for number, document in enumerate(documents)
        for section in _sections(document, read)
    ]
    texts = [documents[number].text[part.start : part.end] for number, part in sections]
    return [
        _read(number, documents[number], part, tokens, tokenizer)
        for (number, part), tokens in zip(sections, tokenizer.read(texts), strict=True)
    ]


def _sections(document: Document, read: str) -> Iterator[Passage]:
    """Give what is read by itself, in order and disjoint; mentions outside are lost."""
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


def _read(
    number: int, document: Document, part: Passage, tokens: TextTokens, tokenizer: TaskTokenizer
) -> ReadText:
    text = document.text[part.start : part.end]
    places = _blank_parted(document, part) if part.kind == TOKENS else split_tokens(text)
    words = np.array(places, np.int64).reshape(-1, 2)
    if part.kind == TOKENS:
        words -= part.start
    pieces = tokens_of_words(text, words, tokens, tokenizer)
    held = np.array([bool(piece) for piece in pieces], bool)
    cut = tuple(tuple(piece[: tokenizer.room]) for piece in pieces if piece)
    return ReadText(number, words[held] + part.start, cut)


def _blank_parted(document: Document, part: Passage) -> list[tuple[int, int]]:
    """Say where tokens stand that blanks (between sentences: line ends) part."""
    lines = [p for p in document.passages if part.start <= p.start and p.end <= part.end]
    return [place for line in lines or [part] for place in tokens_of(document, line)]


def find_spans(
    text: ReadText, mentions: Sequence[Mention], *, nested: bool, lost: Counter[str]
) -> list[WordSpan]:
    """Give the words of the mentions of a text, in order; what cannot be learned is counted.

    Of a mention whose bounds are not those of words all its words are learned, though the answer
    will not be just it. Unless ``nested``, of mentions that share words the longest stays.
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
    """Choose the longest of spans that share words; those that were exact are lost by that."""
    taken = np.zeros(n_words, bool)
    kept = []
    for first, end, kind in sorted(exact, key=lambda span: (span[0] - span[1], span)):
        if not taken[first:end].any():
            taken[first:end] = True
            kept.append((first, end, kind))
        elif exact[first, end, kind]:
            lost["mentions that share words with a longer one"] += 1
    return sorted(kept)


@dataclass(frozen=True, slots=True)
class Window:
    """Some words of a text as one sequence."""

    text: int
    """Number of the text."""
    first: int
    """Number of its first word in the text."""
    own: tuple[int, int]
    """The words of the text, first and behind the last, that count from here."""
    tokens: tuple[int, ...]
    places: tuple[int, ...]
    """The first token of each word."""
    tags: tuple[int, ...] = ()
    """Of each word, where they are known and wanted."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """Of entities: first word here, last word (inclusive), type; where they are known."""
    n_after: int = 0
    """Special tokens behind the text."""

    @property
    def n_words(self) -> int:
        """How many words are read."""
        return len(self.places)

    def holds(self, first: int, last: int) -> bool:
        """Say whether words of the text, the last one included, are read here."""
        return self.first <= first and last < self.first + self.n_words

    def context(self, first: int, last: int) -> int:
        """Count the tokens beside words that are held, on the side where there are fewer."""
        end, behind = len(self.tokens) - self.n_after, last + 1 - self.first
        next_word = self.places[behind] if behind < self.n_words else end
        return min(self.places[first - self.first] - self.places[0], end - next_word)


def cut_windows(
    number: int, text: ReadText, tokenizer: TaskTokenizer, overlap: int
) -> Iterator[Window]:
    """Give the windows of a text; none for a text without words."""
    if 2 * overlap > tokenizer.room:
        raise ConfigError(
            f"overlap: expected at most half of the {tokenizer.room} tokens read at once, "
            f"found {overlap}"
        )
    if not text.tokens:
        return
    ends = np.cumsum([len(piece) for piece in text.tokens], dtype=np.int64)
    starts = ends - np.array([len(piece) for piece in text.tokens], np.int64)
    bounds = _bounds(starts, ends, tokenizer.room, overlap)
    cuts = [0, *_cuts(bounds, starts, ends), len(ends)]
    for (first, end), own in zip(bounds, pairwise(cuts), strict=True):
        held = [i for piece in text.tokens[first:end] for i in piece]
        tokens = tokenizer.frame(held)
        places = starts[first:end] - starts[first] + tokenizer.n_before
        n_after = len(tokens) - tokenizer.n_before - len(held)
        yield Window(number, first, own, tuple(tokens), tuple(places.tolist()), n_after=n_after)


def owner_of(windows: Sequence[Window], first: int, last: int) -> int:
    """Give the number of the window that holds words with most context, the first of equal ones.

    ``NONE`` where no window holds them all.
    """
    holding = [number for number, window in enumerate(windows) if window.holds(first, last)]
    return max(holding, key=lambda number: windows[number].context(first, last), default=NONE)


def _bounds(
    starts: Ints,
    ends: Ints,
    room: int,
    overlap: int,
) -> list[tuple[int, int]]:
    """Give the first word of each window and the one behind its last."""
    found: list[tuple[int, int]] = []
    first, n_words = 0, len(starts)
    while first < n_words:
        end = int(np.searchsorted(ends, starts[first] + room, side="right"))
        found.append((first, end))
        if end == n_words:
            break
        back = int(np.searchsorted(starts, ends[end - 1] - overlap, side="left"))
        first = min(max(back, first + 1), end)
    return found


def _cuts(
    bounds: list[tuple[int, int]],
    starts: Ints,
    ends: Ints,
) -> Iterator[int]:
    """Give the first word of each window but the first that has more context there than before."""
    reached = 0
    for (_, end), (first, _) in pairwise(bounds):
        before = starts[first:end] - starts[first]
        behind = ends[end - 1] - ends[first:end]
        reached = max(reached, first + int(np.searchsorted(before > behind, True)))
        yield reached


Flags = npt.NDArray[np.bool_]
_SCHEMES = {"bio": (Scheme.IOB2, "BI"), "bioes": (Scheme.IOBES, "BIES")}
_ENTERS, _GOES_ON, _LEAVES = "BS", "IE", "ES"


@dataclass(frozen=True, slots=True)
class TagSet:
    """The tags of some types in a scheme, by number; 0 is outside."""

    types: tuple[str, ...]
    scheme: str

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, such as ``B-Disease``; letters alone where a type has no name."""
        letters = _SCHEMES[self.scheme][1]
        inside = [
            f"{letter}-{kind}" if kind else letter for kind in self.types for letter in letters
        ]
        return (OUTSIDE, *inside)

    def encode(self, n_words: int, spans: Sequence[WordSpan]) -> list[int]:
        """Give the tag of each word for spans that are in order and share no word."""
        numbers = {tag: number for number, tag in enumerate(self.tags)}
        return [numbers[tag] for tag in encode(n_words, spans, _SCHEMES[self.scheme][0])]

    def decode(self, tags: Sequence[int]) -> list[WordSpan]:
        """Give the spans that tags mark; one that only goes on begins an entity all the same."""
        names = self.tags
        return decode(names[tag] for tag in tags)

    def may_follow(self) -> tuple[Flags, Flags, Flags]:
        """Say which tag may follow which (from, to), which may begin and which may end a text."""
        names = self.tags
        begins = np.array([tag[0] not in _GOES_ON for tag in names])
        # in BIO any tag may be the last of an entity
        open_ends = self.scheme == "bio"
        ends = np.array([open_ends or tag == OUTSIDE or tag[0] in _LEAVES for tag in names])
        follows = ends[:, None] & begins[None, :]
        for before, tag in enumerate(names):
            if tag != OUTSIDE and tag[0] not in _LEAVES:
                for after, other in enumerate(names):
                    if other[0] in _GOES_ON and other[1:] == tag[1:]:
                        follows[before, after] = True
        return follows, begins, ends
