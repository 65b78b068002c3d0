"""Answers to terms by a name inside them, such as *J45.909 asthma* by *asthma*.

A term is compared with names as a whole, so that codes, values, sides and remarks beside a name
lower its score. Below the score that an index learned (`biograft learn`), the longest name inside
the term answers instead, as running text is read: with short forms, misspelt words, and without
what the term itself says to be absent, or somebody else's. An answer that is narrower stays: the
*Liver Cirrhosis* of *cirhosis of liver*, whose name inside is *Fibrosis*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, Evidence, LinkedDocument, LinkedMention
from biograft.linking.reviewed import ReviewedNames
from biograft.linking.steps import GIVEN, DocumentState, MentionState

PART = "name inside the term"
STATUSES = ("present", "possible", "historical")


@dataclass(slots=True)
class LookInside:
    """Answer given mentions by names inside them, where these answer better.

    Args:
        reviewed: Decisions of reviewers, with the score below which to look inside.
        read: Links running text.
        threshold: Score or probability below which the answer is NIL, if the user chose one.
    """

    reviewed: ReviewedNames
    read: Callable[[Sequence[str]], Iterable[LinkedDocument]]
    threshold: float | None = None
    name: str = "inside"

    def __call__(self, batch: Sequence[DocumentState]) -> None:
        """Set the concepts of mentions that were not decided and have a low score."""
        low = [
            each
            for state in batch
            if state.origin == GIVEN
            for each in state.mentions
            if self._is_low(each.candidates) and each.mention.text not in self.reviewed
        ]
        texts = list(dict.fromkeys(each.mention.text for each in low))
        found = dict(zip(texts, map(name_inside, self.read(texts) if texts else ()), strict=True))
        for each in low:
            part = found[each.mention.text]
            if part and replaces(self.reviewed.kb, part.concept, each.concept):
                self._answer(each, part)

    def _is_low(self, candidates: Sequence[Candidate]) -> bool:
        return not candidates or candidates[0].score < self.reviewed.inside_below

    def _answer(self, state: MentionState, part: LinkedMention) -> None:
        first, calibration = part.candidates[0], self.reviewed.calibration
        evidence = (*first.evidence, Evidence(PART, part.text, 1, first.score))
        first = replace(first.scaled(self.reviewed.inside_below), evidence=evidence)
        if calibration is not None:
            first = replace(first, probability=float(calibration(first.score)))
        others = (each for each in state.candidates if each.concept != first.concept)
        state.candidates, state.form, state.form_from = (first, *others), part.form, PART
        confidence = first.score if first.probability is None else first.probability
        state.concept = first.concept if confidence >= (self.threshold or 0.0) else None


def name_inside(document: LinkedDocument) -> LinkedMention | None:
    """Return the longest finding that a text has, the first of equal ones; None without any.

    >>> name_inside(linker("J45.909 asthma")).text  # doctest: +SKIP
    'asthma'
    """
    found = (each for each in document.mentions if each.concept and each.status in STATUSES)
    return max(found, key=lambda each: each.end - each.start, default=None)


def replaces(kb: KnowledgeBase, part: str | None, whole: str | None) -> bool:
    """Return True if the name inside a term says something else than the term as a whole.

    Args:
        kb: The knowledge base.
        part: Concept of the name inside.
        whole: Concept of the whole; None: it has none.
    """
    return part is not None and (whole is None or not kb.is_a(whole, part))
