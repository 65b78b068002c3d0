"""Mentions in pairs with another mention, or a name, of the same concept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from biograft.errors import ConfigError
from biograft.linking.finetuning.batches import EpochOrder
from biograft.linking.finetuning.lessons import Lesson, Lessons
from biograft.streams import PairBatch
from biograft.text import normalise


class MentionPairs:
    """Every mention once an epoch, with a partner that is drawn anew each time.

    A partner is never the mention itself, up to case and signs. Mentions that have none are
    partners of none either, and are left out.
    """

    def __init__(self, lessons: Lessons, seed: int) -> None:
        self.seed, self._lessons = seed, lessons
        self._mentions = _mentions_of_concepts(lessons)
        self._partners: dict[tuple[int, ...], list[str]] = {}
        self._group = _group_concepts(lessons)
        self.paired = [lesson for lesson in lessons.lessons if self._has_partner(lesson)]
        lessons.counts.n_nameless += len(lessons) - len(self.paired)
        lessons.counts.n_lessons = len(self.paired)
        if not self.paired:
            raise ConfigError(
                f"mentions: none of {len(lessons)} has a partner: another mention, or a name, of "
                "the same concept; give more mentions or a knowledge base with more names"
            )

    def __len__(self) -> int:
        return len(self.paired)

    def draw(self, epoch: int, places: list[int]) -> PairBatch:
        """Pair some mentions with the partners that they have in an epoch."""
        chosen = [self.paired[place] for place in places]
        return PairBatch(
            left=tuple(lesson.text for lesson in chosen),
            right=tuple(self._draw(epoch, place) for place in places),
            labels=np.array([self._group[lesson.concepts[0]] for lesson in chosen]),
        )

    def partners(self, lesson: Lesson) -> list[str]:
        """Give the mentions and names of what a lesson's mention means, in a fixed order."""
        if lesson.concepts not in self._partners:
            names = self._lessons.names
            found = {names.text(int(n)) for c in lesson.concepts for n in names.of_concept(c)}
            for concept in lesson.concepts:
                found |= self._mentions[concept]
            self._partners[lesson.concepts] = sorted(found)
        return self._partners[lesson.concepts]

    def _draw(self, epoch: int, place: int) -> str:
        """Draw at random, and take the next if that is the mention itself."""
        lesson = self.paired[place]
        partners, own = self.partners(lesson), normalise(lesson.text)
        first = int(np.random.default_rng([self.seed, epoch, place]).integers(len(partners)))
        turned = (*partners[first:], *partners[:first])
        return next(text for text in turned if normalise(text) != own)

    def _has_partner(self, lesson: Lesson) -> bool:
        own = normalise(lesson.text)
        return any(normalise(text) != own for text in self.partners(lesson))


class MentionPairBatches:
    """Batches of pairs that can be taken up at any epoch and position."""

    def __init__(self, pairs: MentionPairs, order: EpochOrder) -> None:
        self.pairs, self.order = pairs, order

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int, position: int = 0) -> Iterator[PairBatch]:
        """Give the batches of an epoch from a position on."""
        for places in self.order.batches(epoch, position):
            yield self.pairs.draw(epoch, places.tolist())


def _mentions_of_concepts(lessons: Lessons) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for lesson in lessons.lessons:
        for concept in lesson.concepts:
            found.setdefault(concept, set()).add(lesson.text)
    return found


def _group_concepts(lessons: Lessons) -> dict[int, int]:
    """Number concepts so that those which any mention means together have one number.

    Otherwise two mentions of one concept, one of which may mean another too, would be negatives.
    """
    group: dict[int, int] = {}

    def root(concept: int) -> int:
        while group.setdefault(concept, concept) != concept:
            concept = group[concept]
        return concept

    for lesson in lessons.lessons:
        first, *others = sorted({root(concept) for concept in lesson.concepts})
        for other in others:
            group[other] = first
    return {concept: root(concept) for concept in list(group)}
