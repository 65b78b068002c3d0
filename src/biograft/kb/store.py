"""What the store gives back: a concept and the facts about it, as plain frozen objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from biograft.artifacts import hash_file
from biograft.errors import NotFoundError, StoreError
from biograft.ids import canonical_id
from biograft.kb.keys import find_entries, hash_text
from biograft.kb.manifest import read_manifest
from biograft.kb.tables import ID_KINDS, NAME_KINDS, SCHEMAS, STORE, Table
from biograft.records import IS_A, IdKind
from biograft.text import normalise


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a concept."""

    text: str
    language: str
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a concept."""

    text: str
    language: str
    source: str


@dataclass(frozen=True, slots=True)
class SemanticType:
    """A semantic type: its code, what it is called, and its place among types."""

    code: str
    label: str = ""
    tree: str = ""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A further id of a concept."""

    id: str
    kind: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between two concepts, by their ids and names."""

    head: str
    relation: str
    tail: str
    source: str
    head_name: str = ""
    tail_name: str = ""


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with all that the store knows about it but its relations."""

    id: str
    name: str
    names: tuple[Name, ...] = ()
    definitions: tuple[Definition, ...] = ()
    types: tuple[SemanticType, ...] = ()
    ids: tuple[Identifier, ...] = ()

    @property
    def definition(self) -> str:
        """The first definition, or nothing."""
        return self.definitions[0].text if self.definitions else ""

    def to_json(self) -> dict[str, Any]:
        """Give the concept as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Match:
    """A name that answers a query, and how it was found."""

    concept: str
    concept_name: str
    name: str
    language: str
    how: str
    """``exact``, ``normalised``, ``prefix`` or ``words``."""

    def to_json(self) -> dict[str, Any]:
        """Give the match as plain values."""
        return asdict(self)


DIRECTIONS = ("out", "in", "both")
_OWN = (IdKind.PRIMARY, IdKind.ALTERNATE)
"""The ids that are a concept's own, not those that others have for it."""


class KnowledgeBase:
    """A knowledge base on disk, open for reading."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self._tables = {name: Table(folder, name) for name in SCHEMAS}
        words = manifest["vocabularies"]
        self.languages: list[str] = words["languages"]
        self.sources: list[str] = words["sources"]
        self.relation_names: list[str] = words["relations"]
        self.types = [SemanticType(*entry) for entry in words["types"]]
        self._numbers = {
            f"{table}.{field.name}": self._tables[table].numbers(field.name)
            for table, schema in SCHEMAS.items()
            for field in schema
            if not pa.types.is_large_string(field.type)
        }
        self._id = self._tables["concepts"].texts("id")
        self._text = self._tables["names"].texts("text")
        self._definition = self._tables["definitions"].texts("text")
        self._other_id = self._tables["ids"].texts("id")

    @classmethod
    def open(cls, folder: str | Path) -> KnowledgeBase:
        """Open the store in a folder; one that is replaced meanwhile is opened anew."""
        folder = Path(folder)
        while True:
            place = _inode(folder)
            try:
                base = cls._open(folder)
            except StoreError:
                if _inode(folder) == place:
                    raise
            else:
                if _inode(folder) == place:
                    return base

    @classmethod
    def _open(cls, folder: Path) -> KnowledgeBase:
        manifest = read_manifest(folder)
        STORE.check_files(folder, manifest)
        try:
            return cls(folder, manifest)
        except (pa.ArrowException, ValueError) as error:
            raise StoreError(f"{folder}: damaged ({error}); build the store again") from error

    def __len__(self) -> int:
        return self._tables["concepts"].n_rows

    def __contains__(self, identifier: object) -> bool:
        return isinstance(identifier, str) and self.find_row(identifier) is not None

    def __getitem__(self, identifier: str) -> Concept:
        return self.concept_at(self.row(identifier))

    def __iter__(self) -> Iterator[Concept]:
        return (self.concept_at(row) for row in range(len(self)))

    @property
    def n_names(self) -> int:
        """How many names there are."""
        return self._tables["names"].n_rows

    @property
    def n_relations(self) -> int:
        """How many relations there are."""
        return self._tables["relations"].n_rows

    def info(self) -> dict[str, Any]:
        """Say what the store holds and where it came from, as plain values."""
        hidden = ("files", "vocabularies", "format", "seconds")
        return {
            "store": str(self.folder),
            **{key: value for key, value in self.manifest.items() if key not in hidden},
            "relations": self.relation_names,
            "types": [kind.code for kind in self.types],
        }

    def verify(self) -> None:
        """Compare every file with the hash that was recorded when it was written."""
        for name, entry in self.manifest["files"].items():
            if hash_file(self.folder / name) != entry["sha256"]:
                raise StoreError(f"{self.folder / name}: damaged; build the store again")

    def table(self, name: str) -> pa.Table:
        """See a whole table through Arrow, for work on many rows; see ``layout`` for columns."""
        if name not in self._tables:
            raise NotFoundError(f"no table is called {name!r}; known: {', '.join(self._tables)}")
        return self._tables[name].to_arrow()

    # ---- concepts by id

    def row(self, identifier: str) -> int:
        """Find the row of a concept by any of its own ids, or raise."""
        row = self.find_row(identifier)
        if row is None:
            raise NotFoundError(
                f"{self.folder}: no concept has the id {identifier!r}; "
                "look names up with `biograft kb search`"
            )
        return row

    def find_row(self, identifier: str) -> int | None:
        """Find the row of a concept by its primary id, else by an alternate one."""
        rows = self._rows_by_id(identifier, _OWN)
        return rows[0] if rows else None

    def by_id(self, identifier: str) -> list[Concept]:
        """Find all concepts that have an id of their own so called, in a fixed order.

        There may be several: some dictionaries give one alternate id to more than one concept.
        """
        rows = self._rows_by_id(identifier, _OWN)
        return [self.concept_at(row) for row in rows]

    def rows_of(self, ids: Iterable[str]) -> tuple[int, ...]:
        """Find the rows of all concepts that some ids mean, in ascending order."""
        return tuple(sorted({row for each in ids for row in self._rows_by_id(each, _OWN)}))

    def ids_of(self, ids: Iterable[str]) -> set[str]:
        """Give the primary ids of all concepts that some ids mean."""
        return {self.id_at(row) for row in self.rows_of(ids)}

    def by_xref(self, identifier: str) -> list[Concept]:
        """Find the concepts that carry a cross-reference."""
        return [self.concept_at(row) for row in self._rows_by_id(identifier, (IdKind.XREF,))]

    def _rows_by_id(self, identifier: str, kinds: Iterable[str]) -> list[int]:
        """Find rows by an id of certain kinds, the primary ones first."""
        canonical = canonical_id(identifier)
        codes = {ID_KINDS.index(IdKind(kind)) for kind in kinds}
        found = []
        for entry in find_entries(self._index("ids_index"), hash_text(canonical)):
            place = entry - len(self)
            text = self._id[entry] if place < 0 else self._other_id[place]
            row = entry if place < 0 else self._at("ids.concept", place)
            kind = 0 if place < 0 else self._at("ids.kind", place)
            if kind in codes and canonical_id(text) == canonical:
                found.append((kind, row))
        return list(dict.fromkeys(row for _, row in sorted(found)))

    def id_at(self, row: int) -> str:
        """Give the primary id of a row."""
        return self._id[row]

    def name_at(self, row: int) -> str:
        """Give the own name of the concept in a row; its id if it has no name."""
        names = self._range("names", row)
        return self._text[names.start] if names else self._id[row]

    def concept_at(self, row: int) -> Concept:
        """Give the concept in a row."""
        return Concept(
            id=self._id[row],
            name=self.name_at(row),
            names=tuple(self.name(place) for place in self._range("names", row)),
            definitions=tuple(self._definition_at(k) for k in self._range("definitions", row)),
            types=tuple(self.types[self._at("types.type", k)] for k in self._range("types", row)),
            ids=tuple(
                Identifier(self._other_id[k], str(ID_KINDS[self._at("ids.kind", k)]))
                for k in self._range("ids", row)
            ),
        )

    def name(self, place: int) -> Name:
        """Give one row of the table of names."""
        return Name(
            self._text[place],
            self.languages[self._at("names.language", place)],
            str(NAME_KINDS[self._at("names.kind", place)]),
            self.sources[self._at("names.source", place)],
        )

    def _definition_at(self, place: int) -> Definition:
        return Definition(
            self._definition[place],
            self.languages[self._at("definitions.language", place)],
            self.sources[self._at("definitions.source", place)],
        )

    # ---- concepts by name

    def find(self, text: str, *, language: str | None = None) -> list[Match]:
        """Find the concepts that have this name: exactly so written first, then normalised.

        Each concept comes once, in a fixed order.
        """
        key = normalise(text)
        exact: list[int] = []
        normalised: list[int] = []
        for row in find_entries(self._index("names_index"), hash_text(key)):
            name = self._text[row]
            if normalise(name) == key:
                (exact if name == text else normalised).append(row)
        matches: dict[int, Match] = {}
        for how, rows in (("exact", exact), ("normalised", normalised)):
            for row in rows:
                concept = self._at("names.concept", row)
                tag = self.languages[self._at("names.language", row)]
                if concept not in matches and language in (None, tag):
                    matches[concept] = self.match(row, how)
        return list(matches.values())

    def match(self, name_row: int, how: str) -> Match:
        """Say how a row of the table of names answers a query."""
        concept = self._at("names.concept", name_row)
        tag = self.languages[self._at("names.language", name_row)]
        return Match(self._id[concept], self.name_at(concept), self._text[name_row], tag, how)

    # ---- the graph

    def relations(
        self, identifier: str, *, relation: str | None = None, direction: str = "both"
    ) -> list[Relation]:
        """Give the relations of a concept: those it heads (``out``), ends (``in``), or both."""
        if direction not in DIRECTIONS:
            raise NotFoundError(
                f"direction: expected one of {', '.join(DIRECTIONS)}, found {direction!r}"
            )
        row = self.row(identifier)
        places: list[int] = []
        if direction != "in":
            places += self._range("relations", row)
        if direction != "out":
            places += [self._at("incoming.relation_row", k) for k in self._range("incoming", row)]
        found = [self._relation_at(place) for place in dict.fromkeys(places)]
        return [r for r in found if relation in (None, r.relation)]

    def outgoing(self, row: int) -> list[tuple[str, str, str]]:
        """Give (relation, id of the tail, source) of all a row's own relations; no names."""
        return [
            (
                self.relation_names[self._at("relations.relation", place)],
                self._id[self._at("relations.tail", place)],
                self.sources[self._at("relations.source", place)],
            )
            for place in self._range("relations", row)
        ]

    def neighbours(
        self, identifier: str, *, relation: str | None = None, direction: str = "both"
    ) -> list[str]:
        """Give the ids of the concepts next to one, each once."""
        own = self._id[self.row(identifier)]
        found = self.relations(identifier, relation=relation, direction=direction)
        return list(dict.fromkeys(r.tail if r.head == own else r.head for r in found))

    def parents(self, identifier: str) -> list[str]:
        """Give the ids of what a concept is a kind of."""
        return self.neighbours(identifier, relation=IS_A, direction="out")

    def children(self, identifier: str) -> list[str]:
        """Give the ids of the kinds of a concept."""
        return self.neighbours(identifier, relation=IS_A, direction="in")

    def ancestors(self, identifier: str) -> list[str]:
        """Give the ids of everything a concept is a kind of, the nearest first, each once."""
        return [self._id[row] for row in self._climb(self.row(identifier), self._parent_rows)]

    def descendants(self, identifier: str) -> list[str]:
        """Give the ids of everything that is a kind of a concept, the nearest first."""
        return [self._id[row] for row in self._climb(self.row(identifier), self._child_rows)]

    def _climb(self, row: int, step: Any) -> list[int]:
        """Go breadth first, each concept once, so that a cycle does no harm."""
        seen = {row}
        queue = [row]
        for current in queue:
            for following in step(current):
                if following not in seen:
                    seen.add(following)
                    queue.append(following)
        return queue[1:]

    def _parent_rows(self, row: int) -> list[int]:
        return self._related_rows(self._range("relations", row), "relations.tail")

    def _child_rows(self, row: int) -> list[int]:
        places = [self._at("incoming.relation_row", k) for k in self._range("incoming", row)]
        return self._related_rows(places, "relations.head")

    def _related_rows(self, places: Iterable[int], end: str) -> list[int]:
        if IS_A not in self.relation_names:
            return []
        is_a = self.relation_names.index(IS_A)
        return [self._at(end, k) for k in places if self._at("relations.relation", k) == is_a]

    def _relation_at(self, place: int) -> Relation:
        head, tail = self._at("relations.head", place), self._at("relations.tail", place)
        return Relation(
            self._id[head],
            self.relation_names[self._at("relations.relation", place)],
            self._id[tail],
            self.sources[self._at("relations.source", place)],
            self.name_at(head),
            self.name_at(tail),
        )

    # ---- rows

    def _at(self, column: str, place: int) -> int:
        return self._numbers[column][place]

    def _range(self, table: str, row: int) -> range:
        ends = self._numbers[f"concepts.{table}_end"]
        return range(ends[row - 1] if row else 0, ends[row])

    def _index(self, table: str) -> Any:
        return self._numbers[f"{table}.entry"].all()


def _inode(folder: Path) -> tuple[int, int] | None:
    """Say which folder it is that has this name now."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def fingerprint(
    base: KnowledgeBase, tables: Sequence[str], vocabularies: Iterable[Sequence[str]] = ()
) -> str:
    """Hash some tables of a store, and some of its lists of words; equal content, equal hash."""
    digest = hashlib.sha256()
    for table in tables:
        name = f"{table}.arrow"
        digest.update(f"{name} {base.manifest['files'][name]['sha256']}\n".encode())
    for words in vocabularies:
        digest.update(json.dumps(list(words)).encode())
    return digest.hexdigest()
