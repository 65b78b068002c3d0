"""Findings with the ids that a mapping set maps their concepts to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention
from biograft.mapping.rows import MappingRow
from biograft.mapping.sets import MappingSet
from biograft.mapping.sssom import concept_of

_PASSED = ("exact", "broad")
"""Relations of objects that may stand for a concept, the best first."""
_UNMAPPED = "findings whose concept the mapping set does not map: its own id is given"


class MappedFindings:
    """Gives findings the objects of a mapping set in place of their concepts.

    Exact objects stand before broader ones; narrower, close and related ones do not say what a
    text says. A finding whose concept has several objects becomes several findings.

    Args:
        mappings: Mapping set whose subjects are concepts of the knowledge base.
        kb: Knowledge base of the findings.

    Raises:
        ConfigError: No subject of the set is a concept of the knowledge base.

    >>> mapped = MappedFindings(MappingSet.read("mesh-to-omop.sssom.tsv"), linker.kb)
    ... # doctest: +SKIP
    >>> [m.concept for m in next(mapped.apply(linker.pipe(documents))).mentions]  # doctest: +SKIP
    ['OMOP:201826']
    """

    def __init__(self, mappings: MappingSet, kb: KnowledgeBase) -> None:
        found: dict[str, dict[str, list[MappingRow]]] = {}
        for row in mappings.rows:
            if row.relation in _PASSED and not row.predicate_modifier:
                for concept in kb.ids_of([concept_of(row.subject_id)]):
                    found.setdefault(concept, {}).setdefault(row.relation, []).append(row)
        if not found:
            raise ConfigError(
                "--mapping-set: no subject of its exact and broad mappings is a concept of "
                f"{kb.folder}"
            )
        self._objects: dict[str, dict[str, str]] = {}
        for concept, by in found.items():
            rows = next(by[relation] for relation in _PASSED if relation in by)
            rows = [row for row in rows if row.is_decided] or rows
            ids = {concept_of(row.object_id): row.object_label for row in rows}
            self._objects[concept] = {each: name for each, name in ids.items() if each}
        self.losses: Counter[str] = Counter()
        """Number of findings lost, because their concept has no object."""

    def apply(self, documents: Iterable[LinkedDocument]) -> Iterator[LinkedDocument]:
        """Yield documents whose findings have the ids of objects.

        Args:
            documents: The linked documents.
        """
        for linked in documents:
            mentions = (each for mention in linked.mentions for each in self._mapped(mention))
            yield replace(linked, mentions=tuple(mentions))

    def _mapped(self, mention: LinkedMention) -> Iterator[LinkedMention]:
        answer = mention.answer
        if answer is None:
            yield mention
            return
        objects = self._objects.get(answer.concept)
        if not objects:
            self.losses[_UNMAPPED] += 1
            yield mention
            return
        others = tuple(map(self._first, mention.candidates[1:]))
        for concept, name in objects.items():
            first = _with_object(answer, concept, name)
            yield replace(mention, concept=concept, candidates=(first, *others))

    def _first(self, candidate: Candidate) -> Candidate:
        objects = self._objects.get(candidate.concept)
        return _with_object(candidate, *next(iter(objects.items()))) if objects else candidate


def _with_object(candidate: Candidate, concept: str, name: str) -> Candidate:
    """Return a candidate with the id of an object; its own id stays among all ids."""
    ids = (concept, candidate.concept)
    name = name or candidate.concept_name
    return replace(candidate, concept=concept, concept_name=name, ids=ids, tied=())
