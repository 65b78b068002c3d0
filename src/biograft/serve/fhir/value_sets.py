"""Value sets: the codes of a system, those below one, those of a list; and unions of such sets.

A value set is asked whether it has a code without being written out; its codes are written out as
numbers of entries (:class:`~biograft.serve.fhir.CodeSystems`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from biograft.serve.fhir.code_systems import CodeSystem, Entries
from biograft.serve.fhir.parameters import Resource
from biograft.serve.fhir.supplied import Codes
from biograft.serve.fhir.work import AT_ONCE, spend


class Condition(NamedTuple):
    """Condition on the concepts of a value set."""

    holds: Callable[[int], bool]
    rows: Callable[[], Sequence[int]] | None = None
    """All rows that meet it, where they are known without going through the system."""


def those(rows: Iterable[int]) -> Condition:
    """Return the condition to be one of some concepts."""
    known = dict.fromkeys(rows)
    return Condition(known.__contains__, lambda: list(known))


def not_(condition: Condition) -> Condition:
    """Return the opposite of a condition."""
    return Condition(lambda row: not condition.holds(row))


@dataclass(frozen=True)
class CodeSet:
    """Codes of one system: those listed, else all, that meet every condition."""

    system: CodeSystem
    conditions: tuple[Condition, ...] = ()
    listed: tuple[int, ...] | None = None
    within: tuple[ValueSet, ...] = ()
    """Value sets that must have the code, too."""

    def entries(self, codes: Codes) -> Entries:
        """Return the codes."""
        rest = list(self.conditions)
        if self.listed is not None:
            found = np.array(self.listed, np.int64)
        else:
            first = next((each for each in rest if each.rows is not None), None)
            if first is not None and first.rows is not None:
                rest.remove(first)
                found = codes.of_rows(self.system, first.rows())
            else:
                found = codes.members(self.system)
        spend(1 + len(found) // AT_ONCE + len(found) * len(rest))
        for condition in rest:
            kept = [condition.holds(codes.row(entry)) for entry in found.tolist()]
            found = found[np.array(kept, bool)]
        for other in self.within:
            wanted = other.entries(codes)
            spend((len(found) + len(wanted)) // AT_ONCE)
            found = found[np.isin(found, wanted)]
        return found

    def has(self, entry: int, codes: Codes) -> bool:
        """Return whether a code is one of these."""
        spend(1 + len(self.listed or ()) // AT_ONCE)
        if codes.system(entry) != self.system:
            return False
        if self.listed is not None and entry not in self.listed:
            return False
        row = codes.row(entry)
        return all(each.holds(row) for each in self.conditions) and all(
            each.has(entry, codes) for each in self.within
        )


@dataclass(frozen=True)
class ValueSet:
    """The codes of any of some sets, without those of others; all for the codes of one request.

    It may be a part of many others, so what is found is kept: its codes, and the last question.
    """

    url: str | None
    included: tuple[CodeSet, ...]
    excluded: tuple[CodeSet, ...] = ()
    displays: dict[int, str] = field(default_factory=dict)
    """Display names that the value set itself gives to codes."""
    designations: dict[int, list[Resource]] = field(default_factory=dict)
    """Further names that the value set itself gives a code."""
    active_only: bool = False
    """Whether codes out of use are left out."""
    used: tuple[str, ...] = ()
    """Value sets that it is made from."""
    resource: Resource = field(default_factory=dict)
    _entries: list[Entries] = field(default_factory=list, init=False, repr=False, compare=False)
    _last: dict[int, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def systems(self) -> list[CodeSystem]:
        """The systems that its codes may be from."""
        return list(dict.fromkeys(each.system for each in self.included))

    @property
    def version(self) -> str | None:
        """Its version, where it has one."""
        found = self.resource.get("version")
        return found if isinstance(found, str) else None

    @property
    def canonical(self) -> str | None:
        """Its URL with its version."""
        return f"{self.url}|{self.version}" if self.url and self.version else self.url

    def entries(self, codes: Codes) -> Entries:
        """Return the codes, each once, in the order of the sets."""
        if not self._entries:
            self._entries.append(self._find_entries(codes))
        return self._entries[0]

    def _find_entries(self, codes: Codes) -> Entries:
        found = [each.entries(codes) for each in self.included]
        whole = np.concatenate(found) if found else np.zeros(0, np.int64)
        if len(found) > 1:
            whole = whole[np.sort(np.unique(whole, return_index=True)[1])]
        for each in self.excluded:
            whole = whole[~np.isin(whole, each.entries(codes))]
        if self.active_only:
            spend(len(whole))
            whole = whole[np.array([codes.is_active(e) for e in whole.tolist()], bool)]
        return whole

    def has(self, entry: int, codes: Codes) -> bool:
        """Return whether a code is one of these."""
        if entry not in self._last:
            answer = (
                any(each.has(entry, codes) for each in self.included)
                and not any(each.has(entry, codes) for each in self.excluded)
                and (not self.active_only or codes.is_active(entry))
            )
            self._last.clear()
            self._last[entry] = answer
        return self._last[entry]
