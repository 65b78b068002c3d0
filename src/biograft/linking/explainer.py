"""Explaining the mentions of a linker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from biograft.corpus.abbreviations import find_abbreviations
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, LinkedMention
from biograft.linking.explanation import Explanation, GeneratorScore
from biograft.linking.fusion import SAME_NAME, FusedSearch
from biograft.linking.lookups import AS_WRITTEN, DEFINED, Lookup
from biograft.linking.nil import NilThreshold


class Explainer:
    """Explains the mentions of a linker."""

    def __init__(
        self,
        kb: KnowledgeBase,
        search: FusedSearch | None,
        nil: NilThreshold,
        limits: tuple[str, ...],
    ) -> None:
        self._kb, self._search, self._nil, self._limits = kb, search, nil, limits

    def explain_all(
        self,
        text: str,
        lookups: Sequence[Lookup],
        mentions: Sequence[LinkedMention],
        support: Sequence[str],
    ) -> list[LinkedMention]:
        """Return the mentions of a text with their explanations.

        ``support`` is what the document decided about each.
        """
        return [
            replace(mention, explanation=self._explain(text, lookup, mention, why))
            for lookup, mention, why in zip(lookups, mentions, support, strict=True)
        ]

    def _explain(
        self, text: str, lookup: Lookup, mention: LinkedMention, support: str
    ) -> Explanation:
        first = mention.candidates[0] if mention.candidates else None
        row = self._name_row(first) if first else None
        return Explanation(
            form=lookup.form,
            form_from=_origin(lookup),
            defined_at=_defined_at(text, lookup),
            name_kind=self._kb.name(row).kind if row is not None else "",
            match=_match(lookup.form, first) if first else "",
            scores=self._scores(lookup.form, row),
            order=_order(mention),
            support=support,
            threshold=self._nil.threshold_of(lookup.form),
            limits=self._limits,
        )

    def _name_row(self, candidate: Candidate) -> int | None:
        concept = self._kb.row(candidate.concept)
        concepts = self._kb.numbers("names", "concept")
        rows = self._kb.name_rows(candidate.name)
        return next((row for row in rows if concepts[row] == concept), None)

    def _scores(self, form: str, row: int | None) -> tuple[GeneratorScore, ...]:
        if row is None or self._search is None:
            return ()
        found = []
        for generator in self._search.generators:
            score = float(generator.score([form], np.array([[row]]))[0, 0])
            weight = self._search.weights[generator.name]
            known = round(score, 6) if np.isfinite(score) else None
            found.append(GeneratorScore(generator.name, round(weight, 6), known))
        return tuple(found)


def _origin(lookup: Lookup) -> str:
    is_part = lookup.how == AS_WRITTEN and lookup.form != lookup.mention.text
    return "part of the mention" if is_part else lookup.how


def _defined_at(text: str, lookup: Lookup) -> tuple[int, int] | None:
    if lookup.how != DEFINED:
        return None
    return next(
        (
            (found.long_start, found.long_end)
            for found in find_abbreviations(text)
            if found.long.endswith(lookup.form) or lookup.form.endswith(found.long)
        ),
        None,
    )


def _match(form: str, first: Candidate) -> str:
    if first.name.casefold() == form.casefold():
        return f"{first.name}, as looked up"
    exact = any(item.score >= float(SAME_NAME) for item in first.evidence)
    return f"{first.name}, {'the same once normalised' if exact else 'similar'}"


def _order(mention: LinkedMention) -> str:
    if len(mention.candidates) < 2:
        return "no other concept was found" if mention.candidates else ""
    first, second = mention.candidates[:2]
    if first.tied:
        others = ", ".join(first.tied)
        return f"order of the store; {others} have the same name, of the same kind"
    if first.score > second.score:
        return f"highest score; next {second.concept} with {second.score:.3f}"
    return f"kind of its name; {second.concept} has the same score"
