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

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

from biograft.errors import ConfigError
from biograft.evaluation.gold import gold_ids
from biograft.evaluation.linking import StoreIds
from biograft.kb.vocabularies import canonical_id
from biograft.linking.linker import Linker
from biograft.metrics.precision_recall import ConceptSpan, Counts, document_counts
from biograft.metrics.significance import LEVEL, N_RESAMPLES, Interval, bootstrap_counts
from biograft.progress import Progress
from biograft.text.documents import Document

LEVELS = ("spans", "mentions", "documents")
Spans = Mapping[tuple[int, int], Collection[str]]
"""The concepts of each span of a document; the parts of a composite share one span."""


@dataclass(frozen=True, slots=True)
class Score:
    """Counts and confidence intervals at one level."""

    counts: Counts
    """Right, wrong and missed mentions."""
    intervals: dict[str, Interval]
    """Intervals of ``precision``, ``recall`` and ``f1``, resampling documents."""

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            **self.counts.to_json(),
            "intervals": {name: interval.to_json() for name, interval in self.intervals.items()},
        }


@dataclass(frozen=True, slots=True)
class TextResult:
    """The metrics of a run over texts."""

    scores: dict[str, Score]
    """By level: ``spans``, ``mentions``, ``documents``."""
    n_documents: int
    """Number of documents."""
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

    Args:
        linker: The linker; it has to find mentions.
        documents: Texts with all their mentions.
        progress: Display of the progress; None: none.
        n_resamples: Number of resamples of the documents.
        level: Level of the intervals.
        seed: Seed of the resamples.

    Raises:
        ConfigError: There is no document.
    """
    progress = progress or Progress()
    total = len(documents) if isinstance(documents, Sized) else None
    ids = StoreIds(linker.kb)
    counted: list[tuple[Counts, ...]] = []
    unknown: set[str] = set()
    n_mentions = n_nil = 0
    pending: deque[Document] = deque()

    def bare() -> Iterator[Document]:
        """Yield the documents without their mentions, which the linker is to find."""
        for document in documents:
            pending.append(document)
            yield replace(document, mentions=())

    progress.start("linking")
    for n, linked in enumerate(linker.pipe(bare()), 1):
        marked: dict[tuple[int, int], set[str]] = {}
        for mention in pending.popleft().mentions:
            gold = gold_ids(mention.concepts)
            marked.setdefault((mention.start, mention.end), set()).update(map(ids.meant, gold))
            unknown.update(i for i in gold if ids.known(i) is None)
        expected = frozenset().union(*marked.values())
        found: dict[tuple[int, int], set[str]] = {}
        for answer in linked.mentions:
            concepts = found.setdefault((answer.start, answer.end), set())
            if answer.concept is not None:
                primary = canonical_id(answer.concept)
                if primary not in expected:  # the gold standard may use another id of the concept
                    primary = min(ids.own(answer.concept) & expected, default=primary)
                concepts.add(primary)
        counted.append(count_levels(marked, found))
        n_mentions += len(marked)
        n_nil += sum(not concepts for concepts in marked.values())
        progress.advance(1, n / total if total else None)
    progress.finish()
    if not counted:
        raise ConfigError("documents: expected at least one, found none")
    scores = score_levels(counted, n_resamples=n_resamples, level=level, seed=seed)
    by_level = dict(zip(LEVELS, zip(*counted, strict=True), strict=True))
    return TextResult(scores, len(counted), n_mentions, n_nil, frozenset(unknown), by_level)


def count_levels(marked: Spans, found: Spans) -> tuple[Counts, ...]:
    """Return the counts of a document at each level.

    Args:
        marked: The concepts of each span in the gold standard.
        found: The concepts of each span that was answered.
    """
    linked = _with_concepts(marked), _with_concepts(found)
    return (
        Counts.from_answers(marked, found),
        Counts.from_answers(*linked),
        document_counts(*linked),
    )


def score_levels(counted: Sequence[tuple[Counts, ...]], **resampling: Any) -> dict[str, Score]:
    """Return the score of each level over documents.

    Args:
        counted: The counts of each document.
        resampling: Settings of :func:`biograft.metrics.bootstrap_counts`.
    """
    return {
        name: Score(sum(counts, Counts()), bootstrap_counts(counts, **resampling))
        for name, counts in zip(LEVELS, zip(*counted, strict=True), strict=True)
    }


def _with_concepts(spans: Spans) -> list[ConceptSpan]:
    return [ConceptSpan("", *span, frozenset(ids)) for span, ids in spans.items() if ids]
