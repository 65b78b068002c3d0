"""The lines of a brat annotation file, read into a document."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from biograft.corpus.formats.placing import Placer
from biograft.documents import Document, Mention, Relation
from biograft.sources.log import ReadLog

TRIGGER = "Trigger"
RESOURCE = "id"
"""The resource of a concept that names none."""
_SPAN = re.compile(r"(\d+) (\d+)")
_LEFT_OUT = {"A": "attribute", "M": "attribute", "#": "note"}


class AnnReading:
    """The annotations of one text, as far as they have been read."""

    def __init__(self, text: str, log: ReadLog, path: Path) -> None:
        self._log, self._path = log, path
        self._placer = Placer(text, log, path)
        self._mentions: dict[str, Mention] = {}
        self._relations: list[tuple[Relation, int, str]] = []
        self._references: list[tuple[str, str, int, str]] = []

    def add(self, line: str, number: int) -> None:
        """Read a line; references may come before what they refer to."""
        identifier, _, rest = line.partition("\t")
        reader = {
            "T": self._add_mention, "R": self._add_relation, "E": self._add_relation,
            "*": self._add_relation, "N": self._add_reference,
        }.get(identifier[:1])  # fmt: skip
        if identifier[:1] in _LEFT_OUT:
            self._log.filter(_LEFT_OUT[identifier[:1]])
        elif reader is None or not reader(identifier, rest, number, line):
            self._log.reject("is no line of a brat file", number, line, path=self._path)

    def _add_mention(self, identifier: str, rest: str, number: int, line: str) -> bool:
        described, _, text = rest.partition("\t")
        kind, _, places = described.partition(" ")
        pieces = [_SPAN.fullmatch(piece) for piece in places.split(";")]
        spans = tuple((int(p[1]), int(p[2])) for p in pieces if p)
        if not kind or len(spans) < len(pieces) or identifier in self._mentions:
            return False
        mention = self._placer.mention(spans, text, number, line)
        if mention is not None:
            self._mentions[identifier] = replace(mention, type=kind, id=identifier)
        return True

    def _add_relation(self, identifier: str, rest: str, number: int, line: str) -> bool:
        kind, *words = rest.split() or [""]
        if identifier.startswith("E"):
            kind, _, trigger = kind.partition(":")
            words = [f"{TRIGGER}:{trigger}", *words]
        if identifier == "*":
            identifier, words = "", [f":{word}" for word in words]
        pairs = [word.partition(":") for word in words]
        if not kind or not pairs or not all(colon and ref for _, colon, ref in pairs):
            return False
        arguments = tuple((role, ref) for role, _, ref in pairs)
        self._relations.append((Relation(kind, arguments, identifier), number, line))
        return True

    def _add_reference(self, identifier: str, rest: str, number: int, line: str) -> bool:
        words = rest.partition("\t")[0].split()
        if len(words) != 3:
            return False
        self._references.append((words[1], words[2], number, line))
        return True

    def finish(self, document: Document) -> Document:
        """Add what has been read to its document."""
        for target, concept, number, line in self._references:
            mention = self._mentions.get(target)
            if mention is None:
                self._log.reject("refers to what is not there", number, line, path=self._path)
                continue
            known = (*mention.concepts, concept.removeprefix(f"{RESOURCE}:"))
            self._mentions[target] = replace(mention, concepts=known)
        relations = tuple(r for r, number, line in self._relations if self._holds(r, number, line))
        return replace(document, mentions=tuple(self._mentions.values()), relations=relations)

    def _holds(self, relation: Relation, number: int, line: str) -> bool:
        missing = [ref for _, ref in relation.arguments if ref not in self._mentions]
        if missing and all(ref.startswith("E") for ref in missing):
            self._log.filter("event about events")
        elif missing:
            self._log.reject("refers to what is not there", number, line, path=self._path)
        return not missing
