"""Standard concepts of the OMOP vocabularies, and how other concepts lead to them.

A concept that is not standard is followed along *Maps to*, or, where it has none, along what took
its place (*Concept replaced by*), until a standard one is met. *Maps to value* leads to concepts
that complete those (an allergy, and to what), so both belong to one mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from biograft.arrays import Flags
from biograft.errors import ConfigError, nearest
from biograft.kb import Concept, KnowledgeBase
from biograft.kb.names import normalise
from biograft.kb.records import CLASSES, MAPS_TO, MAPS_TO_VALUE, REPLACED_BY, IdKind
from biograft.linking.candidates import Candidate
from biograft.mapping.decisions import NIL
from biograft.mapping.omop_tables import VALUE
from biograft.mapping.terms import AMBIGUOUS, CHANGES, EXACT, SEEN, TermMapping

STANDARD, CLASSIFICATION = CLASSES
MAPPED = "mapped"
"""Flag of a term that is a name of a concept that maps to the standard one."""
_EVENTS = (MAPS_TO, *REPLACED_BY)


@dataclass(frozen=True, slots=True)
class StandardTarget:
    """A standard concept that a concept is, or leads to."""

    concept: str
    """Id of the standard concept."""
    name: str
    """Its preferred name."""
    through: str = ""
    """The concepts that led to it, and by which relation; empty: the concept itself."""
    mapping_type: str = MAPS_TO
    """*Maps to*, or *Maps to value* of what completes the other targets."""


class StandardConcepts:
    """The standard concepts of a knowledge base, of some domains, and what leads to them.

    Args:
        kb: Knowledge base that was built from the folder of an Athena bundle.
        domains: Domains of targets; none: all.

    Raises:
        ConfigError: It does not say which concepts are standard, or has no such domain.

    >>> [each.name for each in StandardConcepts(kb).targets("OMOP:45542411")]  # doctest: +SKIP
    ['Disorder of kidney due to diabetes mellitus', 'Type 2 diabetes mellitus']
    """

    def __init__(self, kb: KnowledgeBase, domains: Sequence[str] = ()) -> None:
        self._kb = kb
        if not says_standard(kb):
            raise ConfigError(
                "--standard: the knowledge base does not say which concepts are standard; build "
                "it from the folder of an Athena bundle (`biograft kb build FOLDER`)"
            )
        self._standard = self._of_types([STANDARD])
        known = {kind.code.casefold(): kind.code for kind in kb.types}
        for name in domains:
            if name.casefold() not in known:
                shown = [code for code in known.values() if code not in CLASSES]
                raise ConfigError(
                    f"--domain: the knowledge base has no {name!r}; {nearest(name, shown)}"
                )
        asked = [known[name.casefold()] for name in domains]
        self._wanted = self._standard & self._of_types(asked) if asked else self._standard
        self.targets = lru_cache(1 << 16)(self._targets)
        """Returns the targets of a concept by its id, none if it leads to no standard concept."""

    def _of_types(self, codes: Sequence[str]) -> Flags:
        numbers = [n for n, kind in enumerate(self._kb.types) if kind.code in codes]
        flags = np.zeros(len(self._kb), np.bool_)
        of_type = np.isin(self._kb.numbers("types", "type"), numbers)
        flags[self._kb.numbers("types", "concept")[of_type]] = True
        return flags

    def is_standard(self, concept: str) -> bool:
        """Return True for a standard concept.

        Args:
            concept: Id of the concept.
        """
        return bool(self._standard[self._kb.row(concept)])

    @property
    def leading(self) -> Flags:
        """Whether each concept is, or leads to, a standard one of the domains."""
        names = self._kb.relation_names
        codes = [names.index(name) for name in _EVENTS if name in names]
        links = np.isin(self._kb.numbers("relations", "relation"), codes)
        heads, tails = (self._kb.numbers("relations", end)[links] for end in ("head", "tail"))
        found = self._wanted.copy()
        while True:
            more = heads[found[tails]]
            more = more[~found[more] & ~self._standard[more]]
            if not len(more):
                return found
            found[more] = True

    def _targets(self, concept: str) -> tuple[StandardTarget, ...]:
        return tuple(dict.fromkeys(self._follow(concept, frozenset())))

    def _follow(self, concept: str, before: frozenset[str]) -> Iterator[StandardTarget]:
        row = self._kb.row(concept)
        if self._standard[row]:
            yield StandardTarget(concept, self._kb.name_at(row))
            return
        found = self._kb.outgoing(row)
        names = {relation for relation, _, _ in found}
        by = next((name for name in _EVENTS if name in names), MAPS_TO)
        for kind in (by, MAPS_TO_VALUE):
            for tail in dict.fromkeys(tail for name, tail, _ in found if name == kind):
                if tail in before or tail == concept:
                    continue
                for target in self._follow(tail, before | {concept}):
                    step = f"{described(self._kb[concept])}: {kind}"
                    through = "; ".join(filter(None, (step, target.through)))
                    value = MAPS_TO_VALUE if kind == MAPS_TO_VALUE else target.mapping_type
                    yield replace(target, through=through, mapping_type=value)

    def proposed(self, concept: str) -> tuple[StandardTarget, ...]:
        """Return the targets of the domains, with the values that complete them.

        Args:
            concept: Id of the concept.
        """
        targets, wanted = self.targets(concept), self._wanted
        kept = [
            each
            for each in targets
            if each.mapping_type == MAPS_TO_VALUE or wanted[self._kb.row(each.concept)]
        ]
        events = any(each.mapping_type == MAPS_TO for each in kept)
        return tuple(kept) if events else ()

    def follow(self, mappings: Iterable[TermMapping]) -> Iterator[TermMapping]:
        """Yield mappings to standard concepts: one for each target.

        What was decided for a concept that is not standard is flagged as ``replaced``, ``split``
        or ``retired``, as if its id were.

        Args:
            mappings: Mapped terms.
        """
        for mapping in mappings:
            if mapping.concept is None:
                yield replace(mapping, others=self._others(mapping.others, ()))
            elif mapping.flag == SEEN or mapping.flag in CHANGES:
                yield self._decided(mapping, mapping.concept)
            else:
                yield from self._proposals(mapping, mapping.concept)

    def _decided(self, mapping: TermMapping, concept: str) -> TermMapping:
        targets = self.targets(concept)
        others = self._others(mapping.others, targets)
        if self.is_standard(concept):
            return replace(mapping, others=others)
        if len(targets) == 1:
            (one,) = targets
            through = one.through
            changed = replace(mapping, concept=one.concept, name=one.name, flag="replaced")
        else:
            through = f"{described(self._kb[concept])} is not standard"
            flag = "split" if targets else "retired"
            changed = replace(mapping, concept=None, name=None, flag=flag)
            instead = (Candidate(each.concept, each.name, each.name, 0.0) for each in targets)
            others = (*instead, *others)
        return replace(changed, others=others, through=through, probability=None)

    def _proposals(self, mapping: TermMapping, concept: str) -> Iterator[TermMapping]:
        flag = mapping.flag
        if flag in (EXACT, AMBIGUOUS):
            # of concepts of the same name the standard one is meant
            name = normalise(mapping.term.text)
            equal = [concept, *(c.concept for c in mapping.others if normalise(c.name) == name)]
            equal = [each for each in equal if self.proposed(each)] or [concept]
            equal = [each for each in equal if self.is_standard(each)] or equal
            concept = equal[0]
            means = {frozenset(each.concept for each in self.proposed(c)) for c in equal}
            known = EXACT if self.is_standard(concept) else MAPPED
            flag = AMBIGUOUS if len(means) > 1 else known
        targets = self.proposed(concept)
        others = self._others(mapping.others, targets)
        if not targets:
            yield replace(mapping, concept=None, name=None, flag=NIL, others=others)
        for number, target in enumerate(targets):
            is_value = target.mapping_type == MAPS_TO_VALUE
            yield replace(
                mapping,
                concept=target.concept,
                name=target.name,
                flag=flag,
                others=() if number else others,
                through=target.through,
                mapping_type=target.mapping_type,
                part=f"{VALUE} {target.name}" if is_value else mapping.part,
            )

    def _others(
        self, others: Iterable[Candidate], besides: Sequence[StandardTarget]
    ) -> tuple[Candidate, ...]:
        """Return what candidates lead to, each concept once, without the values."""
        found: dict[str, Candidate] = {}
        for each in others:
            for target in self.proposed(each.concept):
                if target.mapping_type == MAPS_TO:
                    changed = replace(each, concept=target.concept, concept_name=target.name)
                    found.setdefault(target.concept, changed)
        for target in besides:
            found.pop(target.concept, None)
        return tuple(found.values())


def says_standard(kb: KnowledgeBase) -> bool:
    """Return True if a knowledge base says which of its concepts are standard.

    Args:
        kb: The knowledge base.
    """
    return any(kind.code == STANDARD for kind in kb.types)


def described(concept: Concept) -> str:
    """Return a concept with its name and vocabulary, such as ``OMOP:1567956 Asthma (ICD10CM)``.

    Args:
        concept: The concept.
    """
    return f"{concept.id} {concept.name} ({omop_vocabulary(concept) or 'no vocabulary'})"


def omop_vocabulary(concept: Concept, files: Iterable[str] = ()) -> str:
    """Return the OMOP vocabulary that a concept is of: as in CONCEPT.csv, or that of its code.

    Args:
        concept: The concept.
        files: Names of files, which are the source of names without a vocabulary.

    Returns:
        The vocabulary, such as SNOMED; empty if the knowledge base does not say it.
    """
    sources = (name.source for name in concept.names if name.text == concept.name)
    source = next(sources, "")
    if source and source not in files:
        return source
    codes = (each.id for each in concept.ids if each.kind == IdKind.ALTERNATE and ":" in each.id)
    return next(codes, "").partition(":")[0]


def source_files(kb: KnowledgeBase) -> frozenset[str]:
    """Return the names of the files and folders that a knowledge base was built from.

    Args:
        kb: The knowledge base.
    """
    return frozenset(Path(each["path"]).name for each in kb.manifest.get("sources", ()))
