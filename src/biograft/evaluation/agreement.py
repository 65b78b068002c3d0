"""Agreement of two annotators on the same documents: F1 of spans and concepts, Cohen's kappa.

* Levels are those of :mod:`biograft.evaluation.end_to_end`, the first annotator as the gold
  standard; F1 is the same the other way round.
* Kappa counts the spans that both have marked: of their concepts, none where there is no concept;
  and of their statuses, where a mention without one is present.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from biograft.errors import ConfigError
from biograft.evaluation.end_to_end import Score, count_levels, score_levels
from biograft.evaluation.gold import gold_ids
from biograft.kb.vocabularies import canonical_id
from biograft.mapping.status_learning import said_of
from biograft.metrics import cohen_kappa
from biograft.text.documents import Document


@dataclass(frozen=True, slots=True)
class AnnotatorDifference:
    """A span that one annotator has not marked, or both otherwise."""

    document: str
    """Id of the document."""
    start: int
    """Character offset of the span's first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """The text of the span."""
    first: tuple[str, str] | None
    """Concept and status; None: not marked."""
    second: tuple[str, str] | None
    """Concept and status by the second annotator; None if the span is not marked."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two annotators."""

    scores: dict[str, Score]
    """By level: ``spans``, ``mentions`` with the same concepts, ``documents``."""
    n_documents: int
    """Number of documents that both annotated."""
    n_both: int
    """Spans that both have marked."""
    concepts: float | None
    """Kappa of the concepts of these; None where it is undefined, as with one concept."""
    statuses: float | None
    """Cohen's kappa of the statuses of spans that both marked; None without such spans."""
    differences: tuple[AnnotatorDifference, ...]
    """The spans on which the annotators differ."""
    left_out: tuple[str, ...]
    """Documents that only one of them has."""

    def to_json(self) -> dict[str, Any]:
        """Return all as plain values: F1 in percent, kappa as a fraction."""
        kappas = {"concepts": self.concepts, "statuses": self.statuses}
        return {
            "n_documents": self.n_documents,
            "n_both": self.n_both,
            **{level: score.to_json() for level, score in self.scores.items()},
            "kappa": {k: None if v is None else round(v, 6) for k, v in kappas.items()},
            "differences": [
                {name: getattr(each, name) for name in AnnotatorDifference.__slots__}
                for each in self.differences
            ],
            "left_out": list(self.left_out),
            "unit": "percent",
        }


def compare_annotators(first: Iterable[Document], second: Iterable[Document]) -> Agreement:
    """Compare the annotations of two people; documents are paired by their ids.

    Args:
        first: The documents as one has annotated them.
        second: The documents as the other has.

    Raises:
        ConfigError: No document is annotated by both, or the texts of one differ.
    """
    ours, theirs = ({each.id: each for each in documents} for documents in (first, second))
    pairs = [(each, theirs[name]) for name, each in ours.items() if name in theirs]
    if not pairs:
        raise ConfigError("documents: the annotators have no document in common, by its id")
    counted, differences = [], []
    shared: list[tuple[_Mark, _Mark]] = []
    for document, other in pairs:
        if document.text != other.text:
            raise ConfigError(f"document {document.id}: the annotators have different texts of it")
        marked, found = _marks(document), _marks(other)
        concepts = [{span: ids for span, (ids, _) in marks.items()} for marks in (marked, found)]
        counted.append(count_levels(*concepts))
        for span in sorted({*marked, *found}):
            a, b = marked.get(span), found.get(span)
            if a is not None and b is not None:
                shared.append((a, b))
            if a != b:
                words = document.text[slice(*span)]
                differences.append(
                    AnnotatorDifference(document.id, *span, words, _said(a), _said(b))
                )
    return Agreement(
        scores=score_levels(counted),
        n_documents=len(pairs),
        n_both=len(shared),
        concepts=cohen_kappa([(a, b) for (a, _), (b, _) in shared]),
        statuses=cohen_kappa([(a, b) for (_, a), (_, b) in shared]),
        differences=tuple(differences),
        left_out=tuple(sorted(ours.keys() ^ theirs.keys())),
    )


_Mark = tuple[frozenset[str], str]
"""The concepts of a span, and its status."""


def _marks(document: Document) -> dict[tuple[int, int], _Mark]:
    marks: dict[tuple[int, int], _Mark] = {}
    for mention in document.mentions:
        span = (mention.start, mention.end)
        concepts, status = marks.get(span, (frozenset(), said_of(mention).get("status", "present")))
        marks[span] = (concepts.union(map(canonical_id, gold_ids(mention.concepts))), status)
    return marks


def _said(mark: _Mark | None) -> tuple[str, str] | None:
    return None if mark is None else ("|".join(sorted(mark[0])), mark[1])
