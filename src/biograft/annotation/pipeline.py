"""Which of overlapping spans stay, for many documents at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from biograft.annotation.config import AnnotationConfig
from biograft.corpus.dictionary import DictionaryConfig, DictionaryMatcher, Found
from biograft.corpus.shards import AnnotatedDocument, Span
from biograft.documents import Document
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.lexical.index import EXACT, NORMALISED
from biograft.linking.mentions import Forms

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Spans(NamedTuple):
    """Spans of some documents, in columns."""

    document: Ints
    """Number of the document."""
    start: Ints
    end: Ints

    def take(self, rows: Ints | Flags) -> Spans:
        """Take some of them."""
        return Spans(*(column[rows] for column in self))


def take_disjoint(spans: Spans, scores: Floats) -> Ints:
    """Choose spans that do not overlap, in the order of the text.

    The longest stays, of equally long ones the best-scored, of these the first.
    """
    if not len(spans.start):
        return np.zeros(0, np.int64)
    # documents one behind the other, so that one strip of characters does for all
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
    """Take spans in their order unless one that was taken, which is no shorter, covers an end."""
    taken = np.zeros(n_characters, np.bool_)
    kept = np.zeros(len(start), np.bool_)
    for n in range(len(start)):
        if not (taken[start[n]] or taken[end[n] - 1]):
            kept[n] = True
            taken[start[n] : end[n]] = True
    return kept


def take_best(spans: Spans, scores: Floats, most: int) -> Ints:
    """Choose so many spans of each document, in the order of the text.

    They are the best-scored, of equally good ones the longest, of these the first. ``spans`` are
    in the order of the text.
    """
    order = np.lexsort((spans.start, spans.start - spans.end, -scores, spans.document))
    documents = spans.document[order]
    before = np.searchsorted(documents, documents)
    kept: Ints = np.sort(order[np.arange(len(order)) - before < most])
    return kept


_REMEMBERED = 1 << 18
"""Forms whose answer is kept; texts repeat themselves."""


class Answer(NamedTuple):
    """The concept of a form, and how it was found; no concept: score 0."""

    concept: str
    score: float
    how: str


_NOTHING = Answer("", 0.0, "nothing")


class _Asked(NamedTuple):
    """Spans of which is to be said what they mean, of each its form and whether it is short."""

    spans: Spans
    forms: list[str]
    abbreviated: list[bool]


class Annotator:
    """Annotates documents with the concepts of a store."""

    def __init__(
        self, kb: KnowledgeBase, linker: Linker, config: AnnotationConfig | None = None
    ) -> None:
        self.config = config or AnnotationConfig()
        self._kb, self._linker = kb, linker
        names = DictionaryConfig(languages=self.config.languages, stop_words=self.config.stop_words)
        self._matcher = DictionaryMatcher.from_store(kb, names)
        self._concepts: npt.NDArray[np.uint32] = kb.table("names").column("concept").to_numpy()
        self._forms = Forms(kb, abbreviations=self.config.abbreviations, composites=False)
        self._known: dict[str, Answer] = {}
        self._wrong_case: set[str] = set()
        """Stretches of text that are names but for their case."""

    @classmethod
    def open(
        cls, kb: KnowledgeBase | str | Path, config: AnnotationConfig | None = None
    ) -> Annotator:
        """Open an annotator for a store; without an index its linker searches by letters."""
        kb = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
        config = config or AnnotationConfig()
        linker = Linker.open(kb, config.index, k=1, composites=False, languages=config.languages)
        return cls(kb, linker, config)

    def annotate(
        self, documents: Sequence[Document], counts: Counter[str] | None = None
    ) -> Iterator[AnnotatedDocument]:
        """Annotate some documents together; ``counts`` takes up what became of their spans."""
        counts = Counter() if counts is None else counts
        if len(self._known) + len(self._wrong_case) > _REMEMBERED:
            self._known.clear()
            self._wrong_case.clear()
        asked = self._ask([document.text for document in documents])
        self._answer_rest(asked.forms)
        spans = self._choose(asked, len(documents), counts)
        for document, kept in zip(documents, spans, strict=True):
            counts["documents"] += 1
            counts["characters"] += len(document.text)
            counts["spans"] += len(kept)
            language = document.language or self.config.language
            yield AnnotatedDocument(document.id, document.text, tuple(kept), language)

    # ---- what is asked

    def _ask(self, texts: Sequence[str]) -> _Asked:
        """Say what is to be looked up in texts; what the dictionary knows is answered."""
        found = self._matcher.search(texts)
        places = _different(found)
        columns = [column[places].tolist() for column in (found.text, found.start, found.end)]
        forms = [texts[n][start:end] for n, start, end in zip(*columns, strict=True)]
        for n, form in zip(places, forms, strict=True):
            if form not in self._known and form not in self._wrong_case:
                self._answer_by_names(form, self._names_at(found, n, form))
        if not self._wrong_case.isdisjoint(forms):
            right = [form not in self._wrong_case for form in forms]
            places = places[right]
            forms = [form for form, kept in zip(forms, right, strict=True) if kept]
        spans = Spans(found.text[places], found.start[places], found.end[places])
        asked = _Asked(spans, forms, [False] * len(forms))
        return self._expanded(asked, texts) if self.config.abbreviations else asked

    def _names_at(self, found: Found, n: int, form: str) -> tuple[int, ...]:
        """Give the names that stand at the place of match ``n``; of several patterns the first."""
        place = (found.text[n], found.start[n], found.end[n])
        for k in range(n, len(found.text)):
            if (found.text[k], found.start[k], found.end[k]) != place:
                break
            rows = self._matcher.patterns.rows_of(int(found.pattern[k]), form)
            if rows:
                return rows
        return ()

    def _expanded(self, asked: _Asked, texts: Sequence[str]) -> _Asked:
        """Put long forms for abbreviations, and add those that are no name but short for one."""
        spans, forms, abbreviated = asked
        cuts = np.searchsorted(spans.document, np.arange(len(texts) + 1)).tolist()
        more: list[tuple[int, int, int]] = []
        for n, text in enumerate(texts):
            long_forms = self._forms.long_forms(text)
            if not long_forms:
                continue
            inside = slice(cuts[n], cuts[n + 1])
            for k, form in zip(range(cuts[n], cuts[n + 1]), forms[inside], strict=True):
                long = long_forms.expand(form)
                if long is not None:
                    forms[k], abbreviated[k] = long, True
            ends = zip(spans.start[inside].tolist(), spans.end[inside].tolist(), strict=True)
            known = set(ends)
            for mention in self._forms.short_mentions(text, (), long_forms):
                if (mention.start, mention.end) not in known:
                    more.append((n, mention.start, mention.end))
                    forms.append(long_forms.expand(mention.text) or "")
                    abbreviated.append(True)
        added = np.array(more, np.int64).reshape(-1, 3).T
        both = [np.concatenate(columns) for columns in zip(spans, added, strict=True)]
        return _Asked(Spans(*both), forms, abbreviated)

    def _answer_by_names(self, form: str, rows: Sequence[int]) -> None:
        """Note the concept of a form by the names that it is, unless there are several."""
        if not rows:
            self._wrong_case.add(form)
            return
        concepts = {int(self._concepts[row]) for row in rows}
        if len(concepts) != 1:
            return
        low = form.casefold()
        written = any(self._kb.name(row).text.casefold() == low for row in rows)
        score = EXACT if written else NORMALISED
        self._known[form] = Answer(self._kb.id_at(concepts.pop()), score, "name")

    def _answer_rest(self, forms: Iterable[str]) -> None:
        """Note the concepts of forms that are no name of one concept."""
        rest = [form for form in dict.fromkeys(forms) if form not in self._known]
        asked = []
        for form in rest:
            (found,) = self._matcher.find_many([form])
            whole = [match for match in found if (match.start, match.end) == (0, len(form))]
            if whole:
                self._answer_by_names(form, whole[0].name_rows)
            if form not in self._known:
                asked.append(form)
        for form, candidates in zip(asked, self._linker.link_mentions(asked, 1), strict=True):
            self._known[form] = _NOTHING
            if candidates:
                best = candidates[0]
                score = best.score if best.probability is None else best.probability
                # rounded, since a batch of other texts may change the last digits of a network
                self._known[form] = Answer(best.concept, round(min(score, 1.0), 4), "linker")

    # ---- what is kept

    def _choose(self, asked: _Asked, n_documents: int, counts: Counter[str]) -> list[list[Span]]:
        """Choose disjoint spans that are good enough, of each document in the order of the text."""
        answers = [self._known[form] for form in asked.forms]
        scores = np.fromiter((answer.score for answer in answers), np.float64, len(answers))
        rows = np.flatnonzero(scores >= self.config.threshold)
        if len(rows) < len(answers):
            counts["below threshold"] += len(answers) - len(rows)
        rows = rows[take_disjoint(asked.spans.take(rows), scores[rows])]
        if self.config.max_spans:
            best = take_best(asked.spans.take(rows), scores[rows], self.config.max_spans)
            if len(best) < len(rows):
                counts["over the most spans"] += len(rows) - len(best)
            rows = rows[best]
        kept: list[list[Span]] = [[] for _ in range(n_documents)]
        columns = [column.tolist() for column in (rows, *asked.spans.take(rows))]
        for row, document, start, end in zip(*columns, strict=True):
            concept, score, how = answers[row]
            counts["by abbreviation" if asked.abbreviated[row] else f"by {how}"] += 1
            kept[document].append(Span(start, end, concept, score))
        return kept


def _different(found: Found) -> npt.NDArray[np.int64]:
    """Give the first match of each place; others are there by their plural only."""
    new = np.ones(len(found.text), np.bool_)
    new[1:] = False
    for column in (found.text, found.start, found.end):
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)
