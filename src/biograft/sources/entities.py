"""Concepts that a source knows only by their name: the name is the id, told once."""

from __future__ import annotations

from collections.abc import Iterator

from biograft.records import NameKind, NameRecord, TypeRecord


class Entities:
    """What has been said of each entity, so that nothing is said of it twice."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._named: set[str] = set()
        self._typed: set[tuple[str, str]] = set()

    def mention(
        self, name: str, kind: str, line: int, label: str | None = None
    ) -> Iterator[NameRecord | TypeRecord]:
        """Yield the name and the type of an entity, where they are new.

        The type is called by its own name unless a label is given; an empty type is none.
        """
        if name not in self._named:
            self._named.add(name)
            yield NameRecord(name, name, self._language, NameKind.PREFERRED, line=line)
        if kind and (name, kind) not in self._typed:
            self._typed.add((name, kind))
            yield TypeRecord(name, kind, kind if label is None else label, line=line)
