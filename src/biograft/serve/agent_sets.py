"""Mapping sets and value sets that the tools of a language model use, each by a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.arrays import Flags
from biograft.errors import ConfigError, InputError, NotFoundError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.vocabularies import canonical_id

if TYPE_CHECKING:
    from biograft.mapping import MappingRow

_INVERSE = {"broad": "narrow", "narrow": "broad"}
_RELATIONS = ("exact", "close", "broad", "narrow", "related")
"""Relations of objects, the best first."""


def _by_name(files: Sequence[str | Path], option: str) -> dict[str, Path]:
    """Return files by their names, without endings."""
    found: dict[str, Path] = {}
    for path in map(Path, files):
        name = path.name.partition(".")[0]
        if not path.is_file():
            raise InputError("does not exist", path=path, remedy="check the path")
        if name in found:
            raise ConfigError(f"{option}: two files are called {name!r}; rename one")
        found[name] = path
    return found


def _find(name: str, known: dict[str, Path], what: str) -> Path:
    if name not in known:
        raise NotFoundError(f"no {what} is called {name!r}; {nearest(name, known)}")
    return known[name]


class ServedSets:
    """The sets of a knowledge base; a file is read when it is first asked for.

    Args:
        kb: The knowledge base.
        mapping_sets: Files of mapping sets, such as SSSOM.
        value_sets: Files of value sets, such as a ValueSet of FHIR, or with ids.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        mapping_sets: Sequence[str | Path] = (),
        value_sets: Sequence[str | Path] = (),
    ) -> None:
        self._kb = kb
        self.mapping_sets = _by_name(mapping_sets, "--mapping-set")
        self.value_sets = _by_name(value_sets, "--value-set-file")
        self._mappings: dict[str, dict[bool, dict[str, list[MappingRow]]]] = {}
        self._members: dict[str, Flags] = {}

    def translations(self, code: str, name: str | None, reverse: bool) -> Iterator[dict[str, Any]]:
        """Yield what the mapping sets map a code to, exact and decided mappings first.

        Args:
            code: The code.
            name: Name of one mapping set; None: all.
            reverse: Find the subjects that are mapped to the code.
        """
        row = self._kb.find_row(code)
        keys = {canonical_id(code), *([] if row is None else [self._kb.id_at(row)])}
        for each in self.mapping_sets if name is None else [name]:
            found = self._read(each)[reverse]
            rows = {id(row): row for key in keys for row in found.get(key, ())}.values()
            for mapping in sorted(rows, key=_rank):
                yield self._translated(mapping, reverse) | {"mapping_set": each}

    def _translated(self, row: MappingRow, reverse: bool) -> dict[str, Any]:
        curie, label = (
            (row.subject_id, row.subject_label) if reverse else (row.object_id, row.object_label)
        )
        found = self._kb.find_row(_code(curie))
        relation = _INVERSE.get(row.relation, row.relation) if reverse else row.relation
        return {
            "id": _code(curie),
            "label": label or ("" if found is None else self._kb.name_at(found)),
            "relation": relation,
            "decided": row.is_decided,
            "confidence": row.confidence,
        }

    def _read(self, name: str) -> dict[bool, dict[str, list[MappingRow]]]:
        """Return the mappings of a set by their subjects (False) and objects (True)."""
        if name not in self._mappings:
            from biograft.mapping import MappingSet

            read: dict[bool, dict[str, list[MappingRow]]] = {False: {}, True: {}}
            for row in MappingSet.read(_find(name, self.mapping_sets, "mapping set")).rows:
                if not row.predicate_modifier and _code(row.object_id):
                    read[False].setdefault(_code(row.subject_id), []).append(row)
                    read[True].setdefault(_code(row.object_id), []).append(row)
            self._mappings[name] = read
        return self._mappings[name]

    def members(self, value_set: str) -> Flags:
        """Mark the members of a value set.

        Args:
            value_set: Its name, or an expression.
        """
        if value_set in self.value_sets:
            return self._served(value_set)
        from biograft.kb.expressions import Expression

        try:
            return Expression(value_set).select(self._kb, members_of=self._served)
        except ConfigError as error:
            known = f"; served: {', '.join(self.value_sets)}" if self.value_sets else ""
            raise NotFoundError(f"no value set, and no expression: {error}{known}") from error

    def _served(self, name: str) -> Flags:
        if name not in self._members:
            from biograft.kb import read_value_set

            path = _find(name, self.value_sets, "value set")
            self._members[name] = read_value_set(self._kb, path).flags
        return self._members[name]


def _code(curie: str) -> str:
    """Return the id or the code that a CURIE stands for; empty: that there is none."""
    from biograft.mapping.sssom import concept_of, is_term, subject_of

    return "".join(subject_of(curie)) if is_term(curie) else concept_of(curie)


def _rank(row: MappingRow) -> tuple[int, bool]:
    return _RELATIONS.index(row.relation), not row.is_decided
