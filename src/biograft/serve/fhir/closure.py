"""``$closure``: tables of the is-a relations between the codes that a client has seen.

A table is kept in the memory of the process. A code that is added is compared with those in it: the
ancestors of each are an index, so that a new code finds the ones below it without walking down.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field

from biograft.kb.code_systems import CodeSystems
from biograft.kb.fhir import Resource, TerminologyError, spend
from biograft.serve.fhir.parameters import Coding, Parameters, coding_of

MAX_TABLES = 1_000
MAX_CELLS = 4_000_000
"""Ancestors and relations of all tables; the tables that were not used for longest are dropped."""
_SUBSUMES, _EQUAL = "subsumes", "equal"
_R5 = {_SUBSUMES: "source-is-narrower-than-target", _EQUAL: "equivalent"}


@dataclass
class _ClosureTable:
    """The codes of a client, and the relations that it was told."""

    version: int = 0
    entries: dict[int, None] = field(default_factory=dict)
    at: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Codes by the row of their concept."""
    below: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Codes by the row of each ancestor."""
    relations: list[tuple[int, int, int, str]] = field(default_factory=list)
    """Version, code, other code, and how the other one stands to it."""
    n_cells: int = 0


class ClosureTables:
    """The closure tables of a process.

    Args:
        systems: The code systems that are served.
        max_tables: Maximum number of tables.
        max_cells: Maximum number of ancestors and relations, of all tables together.
    """

    def __init__(
        self, systems: CodeSystems, max_tables: int = MAX_TABLES, max_cells: int = MAX_CELLS
    ) -> None:
        self._systems, self._max_tables, self._max_cells = systems, max_tables, max_cells
        self._tables: OrderedDict[str, _ClosureTable] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, asked: Parameters) -> Resource:
        """Begin a table (``name``), add codes (``concept``), or repeat what is newer (``version``).

        Args:
            asked: The parameters of the request.
        """
        name, version = asked.required("name"), asked.text("version")
        codings = [
            coding_of(each, "concept") if isinstance(each, dict) else _coding(str(each))
            for each in asked.all_values("concept")
        ]
        if version is not None and codings:
            raise TerminologyError("invalid", "give either concept or version")
        added = [self._entry(each) for each in codings]
        with self._lock:
            if version is None and not codings:
                self._tables[name] = _ClosureTable()
            if (table := self._tables.get(name)) is None:
                raise TerminologyError(
                    "not-found",
                    f"no closure table {name!r} in this process; begin it by its name alone",
                )
            self._tables.move_to_end(name)
            after = table.version
            if version is not None:
                after = _number(version, table)
            elif added:
                self._add(table, added)
            self._drop_old()
            found = [each for each in table.relations if each[0] > after]
        return self._described(name, table, found, is_r5=asked.is_r5)

    def _entry(self, given: Coding) -> int:
        if given.system is None or given.code is None:
            raise TerminologyError("required", "concept: expected a code and its system")
        return self._systems.entry(self._systems.known(given.system, given.version), given.code)

    def _add(self, table: _ClosureTable, added: list[int]) -> None:
        systems, made = self._systems, []
        wanted = [(e, systems.ancestors(systems.row(e))) for e in dict.fromkeys(added)]
        wanted = [(entry, above) for entry, above in wanted if entry not in table.entries]
        n_new = sum(1 + len(above) for _, above in wanted)
        n_met = sum(
            len(table.below.get(systems.row(entry), ()))
            + sum(len(table.at.get(a, ())) for a in above)
            for entry, above in wanted
        )
        spend(2 * n_new + n_met)  # before anything is changed: work may end here
        if table.n_cells + n_new + n_met > self._max_cells:
            raise TerminologyError("too-costly", "the closure table has too many codes")
        table.version += 1
        for entry, above in wanted:
            row, system = systems.row(entry), systems.system(entry)
            found = [(entry, other, _EQUAL) for other in table.at.get(row, ())]
            found += [(entry, other, _SUBSUMES) for a in above for other in table.at.get(a, ())]
            found += [(other, entry, _SUBSUMES) for other in table.below.get(row, ())]
            made += [each for each in found if all(systems.system(e) == system for e in each[:2])]
            table.entries[entry] = None
            table.at[row].append(entry)
            for each in above:
                if each != row:
                    table.below[each].append(entry)
        table.relations += [(table.version, *each) for each in made]
        table.n_cells += n_new + len(made)

    def _drop_old(self) -> None:
        """Drop tables that were not used for longest, until the rest fits."""
        n_cells = sum(each.n_cells for each in self._tables.values())
        while len(self._tables) > self._max_tables or (
            n_cells > self._max_cells and len(self._tables) > 1
        ):
            n_cells -= self._tables.popitem(last=False)[1].n_cells

    def _described(
        self,
        name: str,
        table: _ClosureTable,
        found: list[tuple[int, int, int, str]],
        *,
        is_r5: bool,
    ) -> Resource:
        """Return relations as a ConceptMap, a group for each code system."""
        systems = self._systems
        groups: dict[str, dict[str, list[Resource]]] = {}
        for _, entry, other, how in found:
            named = {"relationship": _R5[how]} if is_r5 else {"equivalence": how}
            elements = groups.setdefault(systems.known_system(entry).url, {})
            target = {"code": systems.code(other), **named}
            elements.setdefault(systems.code(entry), []).append(target)
        made: Resource = {
            "resourceType": "ConceptMap",
            "name": name,
            "version": str(table.version),
            "status": "active",
            "experimental": True,
        }
        listed = [
            {
                "source": url,
                "target": url,
                "element": [{"code": c, "target": targets} for c, targets in elements.items()],
            }
            for url, elements in groups.items()
        ]
        return {**made, "group": listed} if listed else made


def _coding(text: str) -> Coding:
    system, _, code = text.rpartition("|")
    return Coding(system or None, code)


def _number(version: str, table: _ClosureTable) -> int:
    """Return a version that the table had."""
    if not (version.isascii() and version.isdecimal() and len(version) < 10):
        raise TerminologyError("invalid", "version: expected one that an answer had")
    if int(version) > table.version:
        raise TerminologyError("not-found", f"version {version}: the table has {table.version}")
    return int(version)
