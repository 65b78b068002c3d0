"""End-to-end evaluation of linkers: find mentions in plain texts and link them.

Three levels, each with micro precision, recall and F1 over all documents:

* ``spans``: an answer is right if the gold has a mention with exactly its span;
* ``mentions``: and if its concepts are exactly those of that mention, all of a composite;
* ``documents``: the set of concepts of each document, as BioCreative and BELB count.

NIL mentions and NIL answers are spans without concepts and count at the first level only. A span
counts once, with all its concepts. Concepts match by any of their own ids. Answers without a gold
mention are wrong.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

from biograft.errors import ConfigError
from biograft.evaluation.gold import gold_ids
from biograft.evaluation.ids import StoreIds
from biograft.kb.vocabularies import canonical_id
from biograft.linking.candidates import LinkedDocument
from biograft.linking.linker import Linker
from biograft.metrics.precision_recall import ConceptSpan, Counts, document_counts, mention_counts
from biograft.metrics.significance import LEVEL, N_RESAMPLES, Interval, bootstrap_counts
from biograft.progress import Progress
from biograft.text.documents import Document

LEVELS = ("spans", "mentions", "documents")


@dataclass(frozen=True, slots=True)
class Score:
    """Counts and confidence intervals at one level."""

    counts: Counts
    intervals: dict[str, Interval]
    """Intervals of ``precision``, ``recall`` and ``f1``, resampling documents."""

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        counts = self.counts
        return {
            **{name: _percent(getattr(counts, name)) for name in self.intervals},
            "right": counts.right,
            "wrong": counts.wrong,
            "missed": counts.missed,
            "intervals": {
                name: [_percent(i.low), _percent(i.high)] for name, i in self.intervals.items()
            },
        }


@dataclass(frozen=True, slots=True)
class TextResult:
    """The metrics of a run over texts."""

    scores: dict[str, Score]
    """By level: ``spans``, ``mentions``, ``documents``."""
    n_documents: int
    n_mentions: int
    """Number of gold mentions, each span once."""
    n_nil: int
    """Number of gold mentions without a concept."""
    unknown: frozenset[str]
    """Gold ids that are not in the store; they count as missed."""
    documents: dict[str, tuple[Counts, ...]]
    """Level -> counts of each document, to compare runs (``metrics.paired_counts``)."""

    def __getitem__(self, level: str) -> Score:
        return self.scores[level]

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "n_documents": self.n_documents,
            "n_mentions": self.n_mentions,
            "n_nil": self.n_nil,
            **{level: score.to_json() for level, score in self.scores.items()},
            "unit": "percent",
            "n_unknown_gold": len(self.unknown),
        }


def _percent(value: float) -> float:
    return round(100 * value, 4)


def evaluate_text(
    linker: Linker,
    documents: Iterable[Document],
    *,
    progress: Progress | None = None,
    n_resamples: int = N_RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> TextResult:
    """Link the plain texts of documents, and compare with their gold mentions.

    Only counts are kept of each document, so that there may be very many.
    """
    progress = progress or Progress(enabled=False)
    total = len(documents) if isinstance(documents, Sized) else None
    tally = _Tally(StoreIds(linker.kb))
    progress.start("linking")
    for n, (document, linked) in enumerate(_linked(linker, documents), 1):
        tally.add(document, linked)
        progress.advance(1, n / total if total else None)
    progress.finish()
    if not tally.counts:
        raise ConfigError("documents: expected at least one, found none")
    scores, by_level = {}, dict(zip(LEVELS, zip(*tally.counts, strict=True), strict=True))
    for name, counts in by_level.items():
        intervals = bootstrap_counts(counts, n_resamples=n_resamples, level=level, seed=seed)
        scores[name] = Score(sum(counts, Counts()), intervals)
    return TextResult(
        scores, len(tally.counts), tally.n_mentions, tally.n_nil, frozenset(tally.unknown), by_level
    )


def _linked(
    linker: Linker, documents: Iterable[Document]
) -> Iterator[tuple[Document, LinkedDocument]]:
    """Link documents without their mentions, in batches, and yield both."""
    pending: deque[Document] = deque()

    def bare() -> Iterator[Document]:
        for document in documents:
            pending.append(document)
            yield replace(document, mentions=())

    for linked in linker.pipe(bare()):
        yield pending.popleft(), linked


@dataclass
class _Tally:
    """Counts, document by document."""

    ids: StoreIds
    counts: list[tuple[Counts, Counts, Counts]] = field(default_factory=list)
    n_mentions: int = 0
    n_nil: int = 0
    unknown: set[str] = field(default_factory=set)

    def add(self, document: Document, linked: LinkedDocument) -> None:
        """Compare the gold mentions of a document with the linked ones."""
        gold = self._gold(document)
        answers = self._answers(linked, frozenset().union(*(span.concepts for span in gold)))
        gold_concepts = [span for span in gold if span.concepts]
        answered = [span for span in answers if span.concepts]
        self.counts.append(
            (
                mention_counts(_bare(gold), _bare(answers)),
                mention_counts(gold_concepts, answered),
                document_counts(gold_concepts, answered),
            )
        )
        self.n_mentions += len(gold)
        self.n_nil += len(gold) - len(gold_concepts)

    def _gold(self, document: Document) -> list[ConceptSpan]:
        concepts_by_span: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for mention in document.mentions:
            ids = gold_ids(mention.concepts)
            concepts_by_span[mention.start, mention.end].update(map(self.ids.meant, ids))
            self.unknown.update(gold for gold in ids if self.ids.known(gold) is None)
        return _spans(concepts_by_span)

    def _answers(self, linked: LinkedDocument, expected: frozenset[str]) -> list[ConceptSpan]:
        """Group the concepts of a composite, which share one span."""
        concepts_by_span: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for mention in linked.mentions:
            concepts = concepts_by_span[mention.start, mention.end]
            if mention.concept is not None:
                concepts.add(self._as_expected(mention.concept, expected))
        return _spans(concepts_by_span)

    def _as_expected(self, concept: str, expected: frozenset[str]) -> str:
        """Return the id of a concept that the gold of the document uses."""
        primary = canonical_id(concept)
        if primary in expected:
            return primary
        return min(self.ids.own(concept) & expected, default=primary)


def _spans(concepts_by_span: dict[tuple[int, int], set[str]]) -> list[ConceptSpan]:
    return [
        ConceptSpan("", start, end, frozenset(ids))
        for (start, end), ids in concepts_by_span.items()
    ]


def _bare(spans: Sequence[ConceptSpan]) -> list[ConceptSpan]:
    return [replace(span, concepts=frozenset()) for span in spans]
