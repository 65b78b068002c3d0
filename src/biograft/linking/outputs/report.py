"""Reporting of links: ids of preferred vocabularies, and candidates worth reading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.kb.vocabularies import (
    canonical_id,
    vocabulary_name,
    vocabulary_of,
    vocabulary_of_format,
)
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention

_NAME = re.compile(r"\w[\w.-]*")
_CACHE_SIZE = 1 << 16


class ConceptIds:
    """The ids of concepts: those of preferred vocabularies where a concept has one, and all.

    >>> ConceptIds(kb, ["MSH"]).chosen("C0011860")  # doctest: +SKIP
    'D003924'
    """

    def __init__(self, kb: KnowledgeBase, prefer: Iterable[str] = ()) -> None:
        self.prefer = tuple(map(_vocabulary, prefer))
        self._kb = kb
        formats = {source.get("format") for source in kb.info()["sources"]}
        self._default = vocabulary_of_format(formats.pop() or "") if len(formats) == 1 else ""
        self._vocabularies = lru_cache(_CACHE_SIZE)(self._read)

    def vocabulary(self, identifier: str) -> str:
        """Return the vocabulary of an id, such as MESH; empty if it is not known."""
        return vocabulary_of(identifier) or self._default

    def all(self, concept: str) -> tuple[str, ...]:
        """Return all ids of a concept, its own first, in the spelling of canonical ids."""
        return tuple(self._vocabularies(concept))

    def chosen(self, concept: str) -> str:
        """Return the id of the first preferred vocabulary that has one, else the own id."""
        return self._preferred(concept) or concept

    def has_preferred(self, concept: str) -> bool:
        """Whether a concept has an id of a preferred vocabulary."""
        return self._preferred(concept) is not None

    def _preferred(self, concept: str) -> str | None:
        ids = self._vocabularies(concept) if self.prefer else {}
        found = (each for name in self.prefer for each, own in ids.items() if own == name)
        return next(found, None)

    def _read(self, concept: str) -> dict[str, str]:
        """Return the ids of a concept, its own first, each with its vocabulary."""
        row = self._kb.find_row(concept)
        others = () if row is None else self._kb.concept_at(row).ids
        ids = {concept: self.vocabulary(concept)}
        for other in others:  # with their prefixes, which canonical ids may lack
            ids.setdefault(canonical_id(other.id), self.vocabulary(other.id))
        return ids


def _vocabulary(name: str) -> str:
    if not _NAME.fullmatch(name.strip()):
        raise ConfigError(f"prefer: expected names of vocabularies such as MSH, found {name!r}")
    return vocabulary_name(name)


def report_document(
    linked: LinkedDocument, ids: ConceptIds, *, all_ids: bool, all_candidates: bool
) -> LinkedDocument:
    """Return a document as it is reported: with the ids and the candidates asked for."""
    mentions = []
    for mention in linked.mentions:
        shown = mention if all_candidates else without_dissimilar(mention)
        if ids.prefer or all_ids:
            candidates = tuple(_with_ids(each, ids, all_ids=all_ids) for each in shown.candidates)
            concept = None if mention.concept is None else ids.chosen(mention.concept)
            shown = replace(shown, candidates=candidates, concept=concept)
        mentions.append(shown)
    return replace(linked, mentions=tuple(mentions))


def _with_ids(candidate: Candidate, ids: ConceptIds, *, all_ids: bool) -> Candidate:
    return replace(
        candidate,
        concept=ids.chosen(candidate.concept),
        tied=tuple(map(ids.chosen, candidate.tied)),
        ids=ids.all(candidate.concept) if all_ids else (),
    )


def without_dissimilar(mention: LinkedMention) -> LinkedMention:
    """Keep only candidates with the name of the first one, if the mention equals that name.

    Whoever reads them has no use for names that are only similar. Concepts that share the name
    stay.
    """
    form, candidates = mention.form.casefold(), mention.candidates
    if len(candidates) < 2 or candidates[0].name.casefold() != form:
        return mention
    equal = tuple(candidate for candidate in candidates if candidate.name.casefold() == form)
    return replace(mention, candidates=equal)


def count_without_preferred(
    documents: Iterable[LinkedDocument], ids: ConceptIds, counts: dict[str, int]
) -> Iterator[LinkedDocument]:
    """Count the findings whose concept has no id of a preferred vocabulary; pass all on."""
    reason = f"findings whose concept has no id of {', '.join(ids.prefer)}: its own id is given"
    for linked in documents:
        n = sum(m.concept is not None and not ids.has_preferred(m.concept) for m in linked.mentions)
        if n:
            counts[reason] = counts.get(reason, 0) + n
        yield linked
