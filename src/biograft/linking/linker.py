"""The linker: from text, or from mentions, to concepts of a store.

A document goes through these steps; the mentions of many documents are searched at once.

1. mentions: those of a detector; without one those that the document brings, and if it brings
   none, the names of the store wherever they stand in the text;
2. forms: an abbreviation that the document defines, or whose long form is another mention of it,
   stands for its long form, and a composite mention (*ovarian and breast cancer*) for several
   names; offsets stay those of the text;
3. candidates: what the search, and a trained ranker if there is one, finds for each form; a
   ranker that finds names by itself may do without a search;
4. the answer: the first candidate, or NIL if its probability is below the threshold (its score,
   if the linker is not calibrated); without a threshold, NIL where the ranker says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from biograft.config import from_mapping
from biograft.corpus.dictionary import DictionaryConfig, DictionaryMatcher
from biograft.documents import Document, Mention
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.calibration import Calibration
from biograft.linking.candidates import Candidate, Generator, LinkedDocument, LinkedMention
from biograft.linking.config import LinkerConfig, Query
from biograft.linking.fusion import (
    CandidateMaker,
    FusedSearch,
    best_per_concept,
    fuse_scores,
    gather_nothing,
)
from biograft.linking.index import open_search
from biograft.linking.mentions import DictionaryDetector, Forms, MentionDetector, in_order
from biograft.linking.rankers import CandidateRanker, Context, needs_search, open_model

_AT_ONCE = 512
"""Forms searched at once: enough to keep all cores busy, few enough for memory."""
_REMEMBERED = 1 << 14
"""Forms whose candidates are kept for the next batch; mentions repeat themselves."""
BATCH = 32
"""Documents whose mentions are searched together."""
_LONG = 1 << 20
"""Characters of text after which a batch is full, whatever the number of documents."""


class Linker:
    """Links mentions, and text, to the concepts of a store."""

    def __init__(
        self,
        kb: KnowledgeBase,
        search: Generator | None,
        *,
        detector: MentionDetector | None = None,
        ranker: CandidateRanker | None = None,
        calibration: Calibration | None = None,
        config: LinkerConfig | None = None,
    ) -> None:
        self.kb, self.config = kb, config or LinkerConfig()
        self.search = _fuse(search, ranker)
        self.detector, self.ranker, self.calibration = detector, ranker, calibration
        self._maker = CandidateMaker(kb)
        self._known: dict[tuple[str, Context], tuple[Candidate, ...]] = {}
        self._forms = Forms(
            kb, abbreviations=self.config.abbreviations, composites=self.config.composites
        )
        if calibration is not None and calibration.search not in ("", self.described):
            raise StoreError(
                f"the calibration was fitted to the scores of {calibration.search}, this linker's "
                f"are those of {self.described}; fit it again (or leave it out)"
            )

    @classmethod
    def open(
        cls,
        kb: KnowledgeBase | str | Path,
        index: str | Path | None = None,
        model: str | Path | None = None,
        calibration: str | Path | None = None,
        **settings: Any,
    ) -> Linker:
        """Open a linker for a store; ``settings`` are the fields of :class:`LinkerConfig`.

        Without an index, one by letters is made in memory, unless the model finds names by
        itself. A calibration that lies in the index is used unless another is named or a model
        ranks.
        """
        kb = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
        config = from_mapping(LinkerConfig, settings)
        ranker = open_model(model, kb, config.languages) if model is not None else None
        opened = None
        if index is not None or needs_search(ranker):
            opened = open_search(kb, index, config.languages)
        chosen = opened.calibration if opened and model is None else None
        return cls(
            kb,
            opened.search if opened else None,
            ranker=ranker,
            calibration=Calibration.load(calibration) if calibration is not None else chosen,
            config=config,
        )

    @property
    def described(self) -> str:
        """What gives the scores; a calibration belongs to it."""
        parts = [str(self.search)] if self.search else []
        return " ".join([*parts, self.ranker.name] if self.ranker else parts)

    @property
    def threshold(self) -> float | None:
        """Below what an answer is NIL: the configuration says, else the calibration."""
        if self.config.threshold is not None or self.calibration is None:
            return self.config.threshold
        return self.calibration.threshold

    # ---- documents

    def __call__(self, text: str | Document) -> LinkedDocument:
        """Link one text."""
        document = text if isinstance(text, Document) else Document("", text)
        return next(self.pipe([document]))

    def pipe(
        self, documents: Iterable[Document | str], batch_size: int = BATCH
    ) -> Iterator[LinkedDocument]:
        """Link documents one after the other, a batch at a time."""
        if batch_size < 1:
            raise ConfigError(f"batch_size: expected at least 1, found {batch_size}")
        for batch in _batches(documents, batch_size):
            yield from self._link(batch)

    def _link(self, documents: Sequence[Document]) -> Iterator[LinkedDocument]:
        """Link the documents of a batch, looking up each form once."""
        asked: list[list[tuple[Mention, str]]] = []
        for document in documents:
            mentions = self._mentions(document)
            long_forms = self._forms.long_forms(document.text, (m.text for m in mentions))
            if self.detector is None and not document.mentions:
                mentions += self._forms.short_mentions(document.text, mentions, long_forms)
            asked.append(
                [(m, form) for m in in_order(mentions) for form in self._forms.of(m, long_forms)]
            )
        forms = [form for pairs in asked for _, form in pairs]
        contexts = [
            Context(document.text, mention.start, mention.end)
            for document, pairs in zip(documents, asked, strict=True)
            for mention, _ in pairs
        ]
        answers = iter(self._candidates(forms, contexts, self.config.k))
        for document, pairs in zip(documents, asked, strict=True):
            linked = [self._linked(mention, form, next(answers)) for mention, form in pairs]
            yield LinkedDocument(document, tuple(linked))

    def _mentions(self, document: Document) -> list[Mention]:
        if self.detector is None and document.mentions:
            return list(document.mentions)
        return self._detector.detect(document)

    @cached_property
    def _detector(self) -> MentionDetector:
        if self.detector is not None:
            return self.detector
        names = DictionaryConfig(languages=self.config.languages, stop_words=self.config.stop_words)
        return DictionaryDetector(DictionaryMatcher.from_store(self.kb, names))

    def _linked(self, mention: Mention, form: str, found: tuple[Candidate, ...]) -> LinkedMention:
        concept = found[0].concept if found and not self._is_nil(found[0]) else None
        return LinkedMention(mention.start, mention.end, mention.text, form, found, concept)

    def _is_nil(self, first: Candidate) -> bool:
        if self.threshold is None:
            # a ranker may know by itself below which score it is likelier that nothing fits
            nil_below: float = getattr(self.ranker, "nil_below", float("-inf"))
            return self.calibration is None and first.score < nil_below
        known = first.score if first.probability is None else first.probability
        return known < self.threshold

    # ---- mentions

    def link_mentions(self, texts: Sequence[str], k: int | None = None) -> list[list[Candidate]]:
        """Give the k best concepts for each text, taken as one mention each."""
        wanted = self.config.k if k is None else k
        return [list(found) for found in self._candidates(texts, (), wanted)]

    def rank(self, queries: Sequence[Query], k: int) -> list[list[list[Candidate]]]:
        """Give k candidates for each part of each query of an evaluation: a name, one candidate.

        Published scores count names, not concepts, so names are what is given here. Abbreviations
        are expanded as when linking, by the text around a query, where it is known, and by the
        other queries of its document.
        """
        asked = self._forms.of_queries(queries)
        texts, contexts = [form for form, _ in asked], [context for _, context in asked]
        answers = iter(self._candidates(texts, contexts, k, by_concept=False))
        return [[list(next(answers)) for _ in query.parts] for query in queries]

    def _candidates(
        self,
        texts: Sequence[str],
        contexts: Sequence[Context],
        k: int,
        *,
        by_concept: bool = True,
    ) -> list[tuple[Candidate, ...]]:
        """Find the candidates of texts, those that are equal once."""
        if k < 1:
            raise ConfigError(f"k: expected at least 1, found {k}")
        uses_context = self.ranker is not None and self.ranker.uses_context and bool(contexts)
        keys = list(zip(texts, contexts if uses_context else [Context()] * len(texts), strict=True))
        found = self._known if by_concept and k == self.config.k and not uses_context else {}
        if len(found) > _REMEMBERED:
            found.clear()
        distinct = [key for key in dict.fromkeys(keys) if key not in found]
        for start in range(0, len(distinct), _AT_ONCE):
            chunk = distinct[start : start + _AT_ONCE]
            ranked = self._rank_chunk(chunk, k, by_concept=by_concept)
            if self.calibration is not None:
                ranked = [self.calibration.apply(candidates) for candidates in ranked]
            found.update(zip(chunk, map(tuple, ranked), strict=True))
        return [found[key] for key in keys]

    def _rank_chunk(
        self, asked: Sequence[tuple[str, Context]], k: int, *, by_concept: bool
    ) -> list[list[Candidate]]:
        texts = [text for text, _ in asked]
        depth = max(k, self.config.depth)
        gathered = self.search.gather(texts, depth) if self.search else gather_nothing(len(texts))
        if self.ranker is not None:
            contexts = [context for _, context in asked]
            ranked = self.ranker.rank_candidates(texts, gathered, contexts)
            return [(best_per_concept(each) if by_concept else each)[:k] for each in ranked]
        make = self._maker.by_concept if by_concept else self._maker.by_name
        weights = self.search.weights if self.search else {}
        return make(gathered, fuse_scores(gathered, weights), k)


def _fuse(search: Generator | None, ranker: CandidateRanker | None) -> FusedSearch | None:
    """Take a search for one of several; none at all will do where the ranker finds names."""
    if search is None and needs_search(ranker):
        raise ConfigError("search: none given, and there is no ranker that finds names by itself")
    return search if isinstance(search, FusedSearch) or search is None else FusedSearch([search])


def _batches(documents: Iterable[Document | str], size: int) -> Iterator[list[Document]]:
    """Put documents together until there are ``size`` of them, or much text."""
    batch: list[Document] = []
    n_characters = 0
    for each in documents:
        batch.append(each if isinstance(each, Document) else Document("", each))
        n_characters += len(batch[-1].text)
        if len(batch) >= size or n_characters >= _LONG:
            yield batch
            batch, n_characters = [], 0
    if batch:
        yield batch
