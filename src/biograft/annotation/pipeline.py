"""The annotator: dictionary matching, abbreviations, linking, and selection of disjoint spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.annotation.config import AnnotationConfig
from biograft.corpus import NamesIndex, NamesIndexConfig
from biograft.corpus.names_index import PatternMatches
from biograft.corpus.shards import AnnotatedDocument, LinkedSpan
from biograft.corpus.spans import Spans, select_disjoint
from biograft.documents import Document
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.lexical.index import EXACT, NORMALISED
from biograft.linking.mentions import MentionForms

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def select_best(spans: Spans, scores: Floats, n: int) -> Ints:
    """Return the rows of the ``n`` best spans of each document, sorted by position.

    The best-scored are kept, of equal scores the longest, then the first. ``spans`` are sorted by
    position.
    """
    order = np.lexsort((spans.start, spans.start - spans.end, -scores, spans.document))
    documents = spans.document[order]
    before = np.searchsorted(documents, documents)
    rows: Ints = np.sort(order[np.arange(len(order)) - before < n])
    return rows


_CACHE_SIZE = 1 << 18
"""Forms whose results are cached, since texts repeat them."""


class LookupResult(NamedTuple):
    """The concept of a form, with its score and the method; score 0 if there is none."""

    concept: str
    score: float
    how: str


_NO_CONCEPT = LookupResult("", 0.0, "nothing")


class _SpanBatch(NamedTuple):
    """Spans to be linked, with their forms and whether each is an abbreviation."""

    spans: Spans
    forms: list[str]
    abbreviated: list[bool]


class Annotator:
    """Annotates documents with the concepts of a knowledge base."""

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
        self._concepts: npt.NDArray[np.uint32] = kb.numbers("names", "concept")
        self._forms = MentionForms(kb, abbreviations=self.config.abbreviations, composites=False)
        self._results: dict[str, LookupResult] = {}
        self._wrong_case: set[str] = set()
        """Spans of text that match names except for their case."""

    @classmethod
    def open(
        cls, kb: KnowledgeBase | str | Path, config: AnnotationConfig | None = None
    ) -> Annotator:
        """Open an annotator for a store; without an index its linker uses lexical search."""
        kb = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
        config = config or AnnotationConfig()
        linker = Linker.open(kb, config.index, k=1, composites=False, languages=config.languages)
        return cls(kb, linker, config, linker.names)

    def annotate(
        self, documents: Sequence[Document], counts: Counter[str] | None = None
    ) -> Iterator[AnnotatedDocument]:
        """Annotate a batch of documents; ``counts`` collects statistics of their spans."""
        counts = Counter() if counts is None else counts
        if len(self._results) + len(self._wrong_case) > _CACHE_SIZE:
            self._results.clear()
            self._wrong_case.clear()
        batch = self._find_spans([document.text for document in documents])
        self._look_up_rest(batch.forms)
        spans = self._select(batch, len(documents), counts)
        counts["documents"] += len(documents)
        counts["characters"] += sum(len(document.text) for document in documents)
        counts["spans"] += sum(map(len, spans))
        language = self.config.language
        for document, linked in zip(documents, spans, strict=True):
            own = document.language or language
            yield AnnotatedDocument(document.id, document.text, tuple(linked), own)

    # ---- spans to be linked

    def _find_spans(self, texts: Sequence[str]) -> _SpanBatch:
        """Find the spans of texts to be linked; unambiguous names are resolved at once."""
        matches = self._names.search(texts)
        rows = _first_of_span(matches)
        columns = [column[rows].tolist() for column in (matches.text, matches.start, matches.end)]
        forms = [texts[n][start:end] for n, start, end in zip(*columns, strict=True)]
        for n, form in zip(rows, forms, strict=True):
            if form not in self._results and form not in self._wrong_case:
                self._look_up_names(form, self._rows_at(matches, n, form))
        if not self._wrong_case.isdisjoint(forms):
            right = [form not in self._wrong_case for form in forms]
            rows = rows[right]
            forms = [form for form, searched in zip(forms, right, strict=True) if searched]
        spans = Spans(matches.text[rows], matches.start[rows], matches.end[rows])
        batch = _SpanBatch(spans, forms, [False] * len(forms))
        return self._expand_abbreviations(batch, texts) if self.config.abbreviations else batch

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

    def _expand_abbreviations(self, batch: _SpanBatch, texts: Sequence[str]) -> _SpanBatch:
        """Replace abbreviations by long forms, and add abbreviations that are no names."""
        spans, forms, abbreviated = batch
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
        return _SpanBatch(Spans(*both), forms, abbreviated)

    def _look_up_names(self, form: str, rows: Sequence[int]) -> None:
        """Store the concept of the names of a form, unless there are several."""
        if not rows:
            self._wrong_case.add(form)
            return
        concepts = {int(self._concepts[row]) for row in rows}
        if len(concepts) != 1:
            return
        low = form.casefold()
        written = any(self.kb.name(row).text.casefold() == low for row in rows)
        score = EXACT if written else NORMALISED
        self._results[form] = LookupResult(self.kb.id_at(concepts.pop()), score, "name")

    def _look_up_rest(self, forms: Iterable[str]) -> None:
        """Store the concepts of the remaining forms, by name or by the linker."""
        rest = [form for form in dict.fromkeys(forms) if form not in self._results]
        batch: list[tuple[str, str]] = []
        for form, matches in zip(rest, self._names.find_many(rest), strict=True):
            whole = [match for match in matches if (match.start, match.end) == (0, len(form))]
            if whole:
                self._look_up_names(form, whole[0].name_rows)
            if form not in self._results:
                batch.append((form, self._query(form, whole[0].name_rows if whole else ())))
        linked = self._linker.link_mentions([query for _, query in batch], 1)
        for (form, query), candidates in zip(batch, linked, strict=True):
            self._results[form] = _NO_CONCEPT
            if candidates:
                best = candidates[0]
                score = best.score if best.probability is None else best.probability
                if query != form:
                    score = min(score, NORMALISED)
                # rounded, since the other texts of a batch may change the last digits
                self._results[form] = LookupResult(
                    best.concept, round(min(score, 1.0), 4), "linker"
                )

    def _query(self, form: str, rows: Sequence[int]) -> str:
        """Return what a form is searched by: a shared name that it is a plural of, else itself.

        A search does not know plurals, and would find *flux* for *flus*.
        """
        names = [self.kb.name(row).text for row in rows]
        low = form.casefold()
        return form if not names or low in map(str.casefold, names) else names[0]

    # ---- selection

    def _select(
        self, batch: _SpanBatch, n_documents: int, counts: Counter[str]
    ) -> list[list[LinkedSpan]]:
        """Select the disjoint spans of each document that pass the threshold, by position."""
        answers = [self._results[form] for form in batch.forms]
        scores = np.fromiter((answer.score for answer in answers), np.float64, len(answers))
        rows = np.flatnonzero(scores >= self.config.threshold)
        if len(rows) < len(answers):
            counts["below threshold"] += len(answers) - len(rows)
        rows = rows[select_disjoint(batch.spans.take(rows), scores[rows])]
        if self.config.max_spans:
            best = select_best(batch.spans.take(rows), scores[rows], self.config.max_spans)
            if len(best) < len(rows):
                counts["over max_spans"] += len(rows) - len(best)
            rows = rows[best]
        linked: list[list[LinkedSpan]] = [[] for _ in range(n_documents)]
        columns = [column.tolist() for column in (rows, *batch.spans.take(rows))]
        hows = Counter(
            "abbreviation" if batch.abbreviated[row] else answers[row].how for row in columns[0]
        )
        counts.update({f"by {how}": n for how, n in hows.items()})
        for row, document, start, end in zip(*columns, strict=True):
            concept, score, _ = answers[row]
            linked[document].append(LinkedSpan(start, end, concept, score))
        return linked


def _first_of_span(matches: PatternMatches) -> npt.NDArray[np.int64]:
    """Return the first match of each span; the others are plural matches."""
    new = np.ones(len(matches.text), np.bool_)
    new[1:] = False
    for column in (matches.text, matches.start, matches.end):
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)
