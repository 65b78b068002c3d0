"""From documents to linked, disjoint spans.

The rule, for each document:

1. The dictionary finds every name of the store in the text, overlapping ones too.
2. A name of one concept only is that concept, without any search: its score is 1 where the text
   has the name as written (case apart), 0.99 where only the form is the same (hyphens, plural,
   accents), as in the linker's search by letters.
3. A name that several concepts share is *ambiguous*: the linker decides.
4. A span that the document uses as an *abbreviation* (it defines it somewhere) is looked up by its
   long form: as a name of the store by 2 and 3, else by the linker. Where the text uses an
   abbreviation whose long form is a name, it is a span too, even if it is no name itself.
5. Spans below the threshold go; of overlapping ones the longest stays, of these the best-scored,
   of these the first. At most ``max_spans`` are kept.

So the linker's search, the slow part, sees only ambiguous names and unusual long forms, each once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.annotation.config import AnnotationConfig
from biograft.corpus.abbreviations import LongForms
from biograft.corpus.dictionary import DictionaryConfig, DictionaryMatch, DictionaryMatcher
from biograft.corpus.shards import AnnotatedDocument, Span
from biograft.documents import Document, Mention
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.forms import Forms
from biograft.linking.lexical.index import EXACT, NORMALISED

_REMEMBERED = 1 << 18
"""Forms whose answer is kept; texts repeat themselves."""


class Answer(NamedTuple):
    """The concept of a form, and how it was found; no concept: score 0."""

    concept: str
    score: float
    how: str


_NOTHING = Answer("", 0.0, "nothing")


class _Asked(NamedTuple):
    """A span of which is to be said what it means, and under which form."""

    start: int
    end: int
    form: str
    abbreviated: bool


class Annotator:
    """Annotates documents with the concepts of a store."""

    def __init__(
        self, kb: KnowledgeBase, linker: Linker, config: AnnotationConfig | None = None
    ) -> None:
        self.config = config or AnnotationConfig()
        self._kb, self._linker = kb, linker
        names = DictionaryConfig(languages=self.config.languages, overlap="all")
        self._matcher = DictionaryMatcher.from_store(kb, names)
        self._concepts: npt.NDArray[np.uint32] = kb.table("names").column("concept").to_numpy()
        self._forms = Forms(kb, abbreviations=self.config.abbreviations, composites=False)
        self._known: dict[str, Answer] = {}

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
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        matches = self._matcher.find_many([document.text for document in documents])
        asked = [
            self._ask(document, found) for document, found in zip(documents, matches, strict=True)
        ]
        self._answer_rest(span.form for spans in asked for span in spans)
        for document, spans in zip(documents, asked, strict=True):
            kept = self._choose(spans, counts)
            counts["documents"] += 1
            counts["characters"] += len(document.text)
            counts["spans"] += len(kept)
            language = document.language or self.config.language
            yield AnnotatedDocument(document.id, document.text, tuple(kept), language)

    # ---- what is asked

    def _ask(self, document: Document, matches: Sequence[DictionaryMatch]) -> list[_Asked]:
        """Say what is to be looked up for a document; what the dictionary knows is answered."""
        long_forms = self._forms.long_forms(document.text)
        if not long_forms:
            for match in matches:
                if match.text not in self._known:
                    self._answer_by_names(match.text, match.name_rows)
            return [_Asked(match.start, match.end, match.text, False) for match in matches]
        spans = []
        for match in matches:
            long = long_forms.expand(match.text)
            if long is None and match.text not in self._known:
                self._answer_by_names(match.text, match.name_rows)
            form = match.text if long is None else long
            spans.append(_Asked(match.start, match.end, form, long is not None))
        places = {(match.start, match.end) for match in matches}
        spans += [
            _of_abbreviation(mention, long_forms)
            for mention in self._forms.short_mentions(document.text, (), long_forms)
            if (mention.start, mention.end) not in places  # no name, but short for one
        ]
        return spans

    def _answer_by_names(self, form: str, rows: Sequence[int]) -> None:
        """Note the concept of a form by the names that it is, unless there are several."""
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

    def _choose(self, spans: Sequence[_Asked], counts: Counter[str]) -> list[Span]:
        """Choose disjoint spans that are good enough, in the order of the text."""
        good = []
        for span in spans:
            concept, score, how = self._known[span.form]
            if score < self.config.threshold:
                counts["below threshold"] += 1
            else:
                how = "abbreviation" if span.abbreviated else how
                good.append((span.start - span.end, -score, span.start, concept, how))
        kept = _disjoint(sorted(good))
        if self.config.max_spans and len(kept) > self.config.max_spans:
            counts["over the most spans"] += len(kept) - self.config.max_spans
            kept = sorted(kept, key=lambda s: (s[1], s[0], s[2]))[: self.config.max_spans]
        counts.update(f"by {how}" for *_, how in kept)
        return [
            Span(start, start - length, concept, -score)
            for length, score, start, concept, _ in sorted(kept, key=lambda s: s[2])
        ]


_Good = tuple[int, float, int, str, str]
"""Minus the length, minus the score, the start, the concept, how: the best sorts first."""


def _disjoint(ranked: Iterable[_Good]) -> list[_Good]:
    """Take spans in their order unless they overlap one that was taken."""
    taken: list[_Good] = []
    starts: list[int] = []
    ends: list[int] = []
    for span in ranked:
        start, end = span[2], span[2] - span[0]
        place = bisect_left(starts, start)
        if (place and ends[place - 1] > start) or (place < len(starts) and starts[place] < end):
            continue
        starts.insert(place, start)
        ends.insert(place, end)
        taken.append(span)
    return taken


def _of_abbreviation(mention: Mention, long_forms: LongForms) -> _Asked:
    return _Asked(mention.start, mention.end, long_forms.expand(mention.text) or "", True)
