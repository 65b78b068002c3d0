"""Names that overlap in text, and re-worded names (:mod:`biograft.text.reworded`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.detection import (
    COORDINATED,
    REWORDED,
    MentionDetector,
    NameOf,
    VariantMention,
    in_text_order,
)
from biograft.linking.steps import NAME, DocumentState, MentionState
from biograft.text.documents import Document, Mention
from biograft.text.names_index import NamesIndex
from biograft.text.reworded import MAX_NAMES, RewordedMatch, RewordedNames
from biograft.text.tokens import Spans, select_disjoint

INSIDE = "inside a longer name that is not narrower"
"""Why a mention is dropped."""


class OverlapDetector:
    """Adds re-worded names to those that a detector finds, or names that overlap them.

    Args:
        detector: Finds names that do not overlap.
        names: The names.
        name_of: Returns the name in a row of the store's table.
        concepts: Concept of each row, to search for re-worded names; None: they are not searched.
        nested: Add all names, and names with a conjunct left out. Otherwise the longest of those
            that overlap stays.
    """

    def __init__(
        self,
        detector: MentionDetector,
        names: NamesIndex,
        name_of: NameOf,
        *,
        concepts: Sequence[int] | None,
        nested: bool,
    ) -> None:
        if concepts is not None and names.n_names > MAX_NAMES:
            raise ConfigError(
                f"reworded: the knowledge base has {names.n_names:,} names, expected at most "
                f"{MAX_NAMES:,}; choose with `biograft kb build` what you need of it"
            )
        self._detector, self._names, self._name_of = detector, names, name_of
        self._reworded = None if concepts is None else RewordedNames(names, concepts)
        self._nested = nested

    def detect(self, documents: Sequence[Document]) -> list[list[Mention]]:
        """Find the mentions of documents, the longer before those inside it."""
        texts = [document.text for document in documents]
        found: Sequence[list[Mention]] = self._detector.detect(documents)
        if self._nested:
            for n, match in self._names.occurrences(texts):
                found[n].append(Mention(match.start, match.end, match.text))
        if self._reworded is not None:
            for own, matches in zip(found, self._reworded.find_many(texts), strict=True):
                own.extend(self._mentions(matches))
        return [self._choose(own) for own in found]

    def _mentions(self, matches: Iterable[RewordedMatch]) -> list[VariantMention]:
        return [
            VariantMention(
                match.start,
                match.end,
                match.text,
                name=self._name_of(match.name_row),
                similarity=match.similarity,
                variant=COORDINATED if match.coordinated else REWORDED,
            )
            for match in sorted(matches, key=lambda match: -match.similarity)
            if self._nested or not match.coordinated
        ]

    def _choose(self, mentions: Sequence[Mention]) -> list[Mention]:
        """Return one mention for each span, and only the longest of those that overlap."""
        by_span = {(each.start, each.end): each for each in reversed(mentions)}
        chosen = in_text_order(list(by_span.values()))
        if self._nested or not chosen:
            return chosen
        bounds = np.array([(each.start, each.end) for each in chosen], np.int64).reshape(-1, 2)
        spans = Spans(np.zeros(len(chosen), np.int64), bounds[:, 0], bounds[:, 1])
        return [chosen[n] for n in select_disjoint(spans, np.zeros(len(chosen))).tolist()]


@dataclass(slots=True)
class Nest:
    """Keep mentions inside longer ones only if their concept is broader.

    A store without a hierarchy keeps all of them.

    Args:
        kb: The knowledge base.
    """

    kb: KnowledgeBase
    name: str = "nest"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Drop other mentions inside longer ones."""
        if len(self.kb.hierarchy.heads):
            for state in batch:
                if state.origin == NAME:
                    self._nest(state)

    def _nest(self, state: DocumentState) -> None:
        kept: list[MentionState] = []
        around: list[MentionState] = []  # those that reach beyond the start of the next one
        for each in state.mentions:
            start, end = each.mention.start, each.mention.end
            around = [other for other in around if other.mention.end > start]
            outer = [
                other
                for other in around
                if other.mention.end >= end
                and other.mention.end - other.mention.start > end - start
            ]
            if outer and not any(self._is_broader(each.concept, other.concept) for other in outer):
                state.dropped.append((each.mention, INSIDE))
                continue
            kept.append(each)
            if not (
                isinstance(each.mention, VariantMention) and each.mention.variant == COORDINATED
            ):
                around.append(each)
        state.mentions = kept

    def _is_broader(self, concept: str | None, other: str | None) -> bool:
        if concept is None or other is None or concept == other:
            return False
        return self.kb.is_a(other, concept)
