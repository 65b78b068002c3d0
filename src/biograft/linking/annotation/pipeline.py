"""The annotator: dictionary matching, abbreviations, linking, and selection of disjoint spans.

Where documents have mentions of their own, these are linked by the concept ids that they state.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.arrays import Flags, Floats, Ints, Uints
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.annotation.config import AnnotationConfig
from biograft.linking.forms import MentionForms
from biograft.linking.lexical.index import EXACT, NORMALISED
from biograft.text import NamesIndex, NamesIndexConfig
from biograft.text.documents import Document
from biograft.text.names_index import PatternMatches
from biograft.text.shards import AnnotatedDocument, LinkedSpan
from biograft.text.tokens import Spans, select_disjoint
from biograft.text.vocabulary import VocabularyBuilder


def select_best(spans: Spans, scores: Floats, n: int) -> Ints:
    """Return the rows of the ``n`` best spans of each document, sorted by position.

    The best-scored are kept, of equal scores the longest, then the first. ``spans`` are sorted by
    position.

    Args:
        spans: The spans.
        scores: Their scores.
        n: Spans of each document.
    """
    order = np.lexsort((spans.start, spans.start - spans.end, -scores, spans.document))
    documents = spans.document[order]
    before = np.searchsorted(documents, documents)
    rows: Ints = np.sort(order[np.arange(len(order)) - before < n])
    return rows


_CACHE_SIZE = 1 << 18
"""Forms whose results are cached, since texts repeat them."""


_UNKNOWN, _NO_CONCEPT, _BY_NAME, _BY_LINKER = range(4)
"""Codes for how a form was linked."""
_HOWS = ("unknown", "nothing", "name", "linker")


class _LinkedForms:
    """Concepts of forms, numbered in order of appearance."""

    def __init__(self) -> None:
        self._numbers = VocabularyBuilder()
        self.concepts: list[str] = []
        self.scores: Floats = np.zeros(0)
        self.hows: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self.wrong_case: Flags = np.zeros(0, np.bool_)
        """Whether a form matches names except for their case; as a long form it may be linked."""

    def __len__(self) -> int:
        return self._numbers.n_words

    def number(self, texts: Sequence[str], document: Ints, start: Ints, end: Ints) -> Ints:
        """Return the numbers of the forms that lie at these positions of texts."""
        codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        offsets = np.cumsum([0, *map(len, texts)])[document]
        numbers = self._numbers.add_parts(codes, offsets + start, offsets + end)
        self.concepts += [""] * (len(self) - len(self.concepts))
        if len(self) > len(self.hows):
            more = len(self)  # twice as many as there are
            self.scores = np.append(self.scores, np.zeros(more))
            self.hows = np.append(self.hows, np.zeros(more, np.int8))
            self.wrong_case = np.append(self.wrong_case, np.zeros(more, np.bool_))
        return numbers.astype(np.int64)

    def set(self, form: int, how: int, concept: str = "", score: float = 0.0) -> None:
        """Store the concept of a form, with its score and how it was found."""
        self.concepts[form], self.scores[form], self.hows[form] = concept, score, how


class _SpanBatch(NamedTuple):
    """Spans to be linked, the numbers of their forms, and whether each is an abbreviation."""

    spans: Spans
    forms: Ints
    abbreviated: Flags


class Annotator:
    """Annotates documents with the concepts of a knowledge base.

    Args:
        kb: Knowledge base of the concepts.
        linker: Decides what a mention means that several concepts share.
        config: Settings of the annotation.
        names: Index of the names to find; default: made from the knowledge base.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        linker: Linker,
        config: AnnotationConfig | None = None,
        names: NamesIndex | None = None,
    ) -> None:
        self.config = config or AnnotationConfig()
        self.kb, self._linker = kb, linker
        if names is None:
            names = NamesIndex.from_store(kb, NamesIndexConfig(languages=self.config.languages))
        stop_rows = (row for word in self.config.stop_words for row in kb.name_rows(word))
        self._names = names.without(stop_rows)
        self._concepts: Uints = kb.numbers("names", "concept")
        self._forms = MentionForms(kb, abbreviations=self.config.abbreviations, composites=False)
        self._linked = _LinkedForms()

    @classmethod
    def open(
        cls, kb: KnowledgeBase | str | Path, config: AnnotationConfig | None = None
    ) -> Annotator:
        """Open an annotator for a store; without an index its linker uses lexical search.

        Args:
            kb: A knowledge base, or its folder.
            config: Settings; an index, if one is to be used.

        Returns:
            The annotator.
        """
        kb = KnowledgeBase.open(kb)
        config = config or AnnotationConfig()
        linker = Linker.open(kb, config.index, k=1, composites=False, languages=config.languages)
        return cls(kb, linker, config, linker.names)

    def annotate(
        self, documents: Sequence[Document], counts: Counter[str] | None = None
    ) -> Iterator[AnnotatedDocument]:
        """Annotate a batch of documents; ``counts`` collects statistics of their spans.

        Args:
            documents: The documents.
            counts: Receives statistics.

        Yields:
            The documents with their spans.
        """
        counts = Counter() if counts is None else counts
        if len(self._linked) > _CACHE_SIZE:
            self._linked = _LinkedForms()
        batch, added = self._find_spans([document.text for document in documents])
        self._look_up_rest(added)
        spans = self._select(batch, len(documents), counts)
        counts["documents"] += len(documents)
        counts["characters"] += sum(len(document.text) for document in documents)
        counts["spans"] += sum(map(len, spans))
        for document, linked in zip(documents, spans, strict=True):
            language = document.language or self.config.language
            yield AnnotatedDocument(document.id, document.text, tuple(linked), language)

    def _find_spans(self, texts: Sequence[str]) -> tuple[_SpanBatch, dict[int, str]]:
        """Find the spans of texts to be linked; unambiguous names are resolved at once.

        Also return the forms that are still to be looked up, by their numbers.
        """
        matches = self._names.search(texts)
        rows = _first_of_span(matches)
        spans = Spans(matches.text[rows], matches.start[rows], matches.end[rows])
        forms, rest = self._linked.number(texts, *spans), dict[int, str]()
        is_new = (self._linked.hows[forms] == _UNKNOWN) & ~self._linked.wrong_case[forms]
        _, first = np.unique(forms[is_new], return_index=True)
        for k in np.flatnonzero(is_new)[np.sort(first)].tolist():
            document, start, end = (int(column[k]) for column in spans)
            form, number = texts[document][start:end], int(forms[k])
            self._look_up_names(number, form, self._rows_at(matches, rows[k], form))
            if self._linked.hows[number] == _UNKNOWN and not self._linked.wrong_case[number]:
                rest[number] = form
        right = ~self._linked.wrong_case[forms]
        batch = _SpanBatch(spans.take(right), forms[right], np.zeros(int(right.sum()), np.bool_))
        if self.config.abbreviations:
            batch = self._expand_abbreviations(batch, texts, rest)
        return batch, rest

    def _rows_at(self, matches: PatternMatches, n: int, form: str) -> tuple[int, ...]:
        """Return the rows of the names at the span of match ``n``, of the first pattern."""
        span = (matches.text[n], matches.start[n], matches.end[n])
        for k in range(n, len(matches.text)):
            if (matches.text[k], matches.start[k], matches.end[k]) != span:
                break
            rows = self._names.rows_of(int(matches.pattern[k]), form)
            if rows:
                return rows
        return ()

    def _expand_abbreviations(
        self, batch: _SpanBatch, texts: Sequence[str], rest: dict[int, str]
    ) -> _SpanBatch:
        """Replace abbreviations by long forms, and add abbreviations that are no names."""
        spans = batch.spans
        cuts = np.searchsorted(spans.document, np.arange(len(texts) + 1)).tolist()
        replaced: dict[int, str] = {}
        added: dict[tuple[int, int, int], str] = {}
        for n, text in enumerate(texts):
            long_forms = self._forms.long_forms(text)
            if not long_forms:
                continue
            known = set()
            for k in range(cuts[n], cuts[n + 1]):
                start, end = int(spans.start[k]), int(spans.end[k])
                known.add((start, end))
                long = long_forms.expand(text[start:end])
                if long is not None:
                    replaced[k] = long
            for mention in self._forms.short_mentions(text, (), long_forms):
                if (mention.start, mention.end) not in known:
                    long = long_forms.expand(mention.text) or ""
                    added[n, mention.start, mention.end] = long
        expanded = [*replaced.values(), *added.values()]
        if not expanded:
            return batch
        lengths = np.array([len(each) for each in expanded])
        numbers = self._linked.number(expanded, np.arange(len(expanded)), 0 * lengths, lengths)
        rest |= {
            number: form
            for number, form in zip(numbers.tolist(), expanded, strict=True)
            if self._linked.hows[number] == _UNKNOWN
        }
        more = np.array(list(added), np.int64).reshape(-1, 3).T
        both = [np.concatenate(columns) for columns in zip(spans, more, strict=True)]
        forms = np.concatenate([batch.forms, numbers[len(replaced) :]])
        forms[list(replaced)] = numbers[: len(replaced)]
        abbreviated = np.arange(len(forms)) >= len(batch.forms)
        abbreviated[list(replaced)] = True
        return _SpanBatch(Spans(*both), forms, abbreviated)

    def _look_up_names(self, number: int, form: str, rows: Sequence[int]) -> None:
        """Store the concept of the names of a form, unless there are several."""
        if not rows:
            self._linked.wrong_case[number] = True
            return
        concepts = {int(self._concepts[row]) for row in rows}
        if len(concepts) != 1:
            return
        low = form.casefold()
        written = any(self.kb.name(row).text.casefold() == low for row in rows)
        score = EXACT if written else NORMALISED
        self._linked.set(number, _BY_NAME, self.kb.id_at(concepts.pop()), score)

    def _look_up_rest(self, rest: Mapping[int, str]) -> None:
        """Store the concepts of the remaining forms, by name or by the linker."""
        batch: list[tuple[int, str, str]] = []
        found = self._names.find_many(list(rest.values()))
        for (number, form), matches in zip(rest.items(), found, strict=True):
            whole = [match for match in matches if (match.start, match.end) == (0, len(form))]
            if whole:
                self._look_up_names(number, form, whole[0].name_rows)
            if self._linked.hows[number] != _BY_NAME:
                query = self._query(form, whole[0].name_rows if whole else ())
                batch.append((number, form, query))
        linked = self._linker.link_mentions([query for _, _, query in batch], 1)
        for (number, form, query), candidates in zip(batch, linked, strict=True):
            self._linked.set(number, _NO_CONCEPT)
            if candidates:
                best = candidates[0]
                score = best.score if best.probability is None else best.probability
                if query != form:
                    score = min(score, NORMALISED)
                # rounded, since the other texts of a batch may change the last digits
                score = round(min(score, 1.0), 4)
                self._linked.set(number, _BY_LINKER, best.concept, score)

    def _query(self, form: str, rows: Sequence[int]) -> str:
        """Return what a form is searched by: a shared name that it is a plural of, else itself.

        A search does not know plurals, and would find *flux* for *flus*.
        """
        names = [self.kb.name(row).text for row in rows]
        low = form.casefold()
        return form if not names or low in map(str.casefold, names) else names[0]

    def _select(
        self, batch: _SpanBatch, n_documents: int, counts: Counter[str]
    ) -> list[list[LinkedSpan]]:
        """Select the disjoint spans of each document that pass the threshold, by position."""
        scores = self._linked.scores[batch.forms]
        rows = np.flatnonzero(scores >= self.config.threshold)
        if len(rows) < len(scores):
            counts["below threshold"] += len(scores) - len(rows)
        rows = rows[select_disjoint(batch.spans.take(rows), scores[rows])]
        if self.config.max_spans:
            best = select_best(batch.spans.take(rows), scores[rows], self.config.max_spans)
            if len(best) < len(rows):
                counts["over max_spans"] += len(rows) - len(best)
            rows = rows[best]
        short = batch.abbreviated[rows]
        if short.any():
            counts["by abbreviation"] += int(short.sum())
        hows = np.bincount(self._linked.hows[batch.forms[rows]][~short])
        counts.update({f"by {_HOWS[how]}": int(hows[how]) for how in np.flatnonzero(hows).tolist()})
        spans, concepts = batch.spans.take(rows), self._linked.concepts
        columns = (
            spans.start.tolist(),
            spans.end.tolist(),
            [concepts[form] for form in batch.forms[rows].tolist()],
            scores[rows].tolist(),
        )
        linked = list(map(LinkedSpan._make, zip(*columns, strict=True)))
        cuts = np.searchsorted(spans.document, np.arange(n_documents + 1)).tolist()
        return [linked[start:end] for start, end in itertools.pairwise(cuts)]


def _first_of_span(matches: PatternMatches) -> Ints:
    """Return the first match of each span; the others are plural matches."""
    new = np.ones(len(matches.text), np.bool_)
    new[1:] = False
    for column in (matches.text, matches.start, matches.end):
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


def with_given(
    annotated: Iterable[AnnotatedDocument],
    documents: Iterable[Document],
    kb: KnowledgeBase,
    how: str,
    counts: Counter[str],
) -> Iterator[AnnotatedDocument]:
    """Replace the spans of documents by those given, or (``both``) add the given ones.

    Of overlapping spans a given one stays, of two given ones the longer.

    Args:
        annotated: the documents with the spans found.
        documents: the same documents, with the mentions given.
        kb: the knowledge base of the spans.
        how: ``given`` or ``both``.
        counts: counts spans, and mentions that are left out, without a concept of the knowledge
            base or outside the text.

    Yields:
        the documents with their spans.
    """
    for found, document in zip(annotated, documents, strict=True):
        given: list[LinkedSpan] = []
        linked = _linked(document, kb, counts)
        for span in sorted(linked, key=lambda span: (span.start - span.end, span.start)):
            if not _overlaps(span, given):
                given.append(span)
        kept = [span for span in found.spans if how == "both" and not _overlaps(span, given)]
        spans = tuple(sorted([*given, *kept]))
        counts["by given mention"] += len(given)
        counts["spans"] += len(spans) - len(found.spans)
        yield replace(found, spans=spans)


def _linked(document: Document, kb: KnowledgeBase, counts: Counter[str]) -> Iterator[LinkedSpan]:
    for mention in document.mentions:
        row = next((row for row in map(kb.find_row, mention.concepts) if row is not None), None)
        if row is None:
            counts["given without a concept of the store"] += 1
        elif 0 <= mention.start < mention.end <= len(document.text):
            yield LinkedSpan(mention.start, mention.end, kb.id_at(row), 1.0)
        else:
            counts["given outside the text"] += 1


def _overlaps(span: LinkedSpan, others: Iterable[LinkedSpan]) -> bool:
    return any(span.start < other.end and other.start < span.end for other in others)
