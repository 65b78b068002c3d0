"""Knowledge base: concepts, names, ids and relations, read from a memory-mapped store."""

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
    """A semantic type: its code, label and tree number in the hierarchy of types."""

    code: str
    label: str = ""
    tree: str = ""


@dataclass(frozen=True, slots=True)
class Identifier:
    """An additional id of a concept: an alternate id or a cross-reference."""

    id: str
    kind: str


@dataclass(frozen=True, slots=True)
class ConceptRelation:
    """A relation between two concepts, by their ids and names."""

    head: str
    relation: str
    tail: str
    source: str
    head_name: str = ""
    tail_name: str = ""


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with its names, definitions, types and ids; relations are looked up apart."""

    id: str
    name: str
    names: tuple[Name, ...] = ()
    definitions: tuple[Definition, ...] = ()
    types: tuple[SemanticType, ...] = ()
    ids: tuple[Identifier, ...] = ()

    @property
    def definition(self) -> str:
        """The first definition, or an empty text."""
        return self.definitions[0].text if self.definitions else ""

    def to_json(self) -> dict[str, Any]:
        """Return the concept as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Match:
    """A name that matches a query, and how it matches."""

    concept: str
    concept_name: str
    name: str
    language: str
    how: str
    """``exact``, ``normalised``, ``prefix`` or ``words``."""

    def to_json(self) -> dict[str, Any]:
        """Return the match as plain values."""
        return asdict(self)


DIRECTIONS = ("out", "in", "both")
_OWN = (IdKind.PRIMARY, IdKind.ALTERNATE)
"""Kinds of ids that belong to a concept, unlike cross-references."""


class KnowledgeBase:
    """A knowledge base on disk, opened for reading.

    >>> kb = KnowledgeBase.open("kb")
    >>> kb
    KnowledgeBase('kb', n_concepts=896, n_names=7367)
    >>> kb["D003924"].name
    'Diabetes Mellitus, Type 2'
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self._tables = {name: Table(folder, name) for name in SCHEMAS}
        vocabularies = manifest["vocabularies"]
        self.languages: list[str] = vocabularies["languages"]
        self.sources: list[str] = vocabularies["sources"]
        self.relation_names: list[str] = vocabularies["relations"]
        self.types = [SemanticType(*entry) for entry in vocabularies["types"]]
        self._columns = {
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
        """Open the store in a folder, again if it is replaced meanwhile."""
        folder = Path(folder)
        while True:
            inode = _inode(folder)
            try:
                base = cls._open(folder)
            except StoreError:
                if _inode(folder) == inode:
                    raise
            else:
                if _inode(folder) == inode:
                    return base

    @classmethod
    def _open(cls, folder: Path) -> KnowledgeBase:
        manifest = read_manifest(folder)
        STORE.check_files(folder, manifest)
        try:
            return cls(folder, manifest)
        except (pa.ArrowException, ValueError) as error:
            raise StoreError(f"{folder}: damaged ({error}); build the store again") from error

    def __repr__(self) -> str:
        return (
            f"KnowledgeBase({str(self.folder)!r}, n_concepts={len(self)}, n_names={self.n_names})"
        )

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
        """Number of names."""
        return self._tables["names"].n_rows

    @property
    def n_relations(self) -> int:
        """Number of relations."""
        return self._tables["relations"].n_rows

    def info(self) -> dict[str, Any]:
        """Return counts, configuration and provenance as plain values.

        >>> kb.info()["n_concepts"]
        896
        """
        internal = ("files", "vocabularies", "format", "seconds")
        return {
            "store": str(self.folder),
            **{key: value for key, value in self.manifest.items() if key not in internal},
            "relations": self.relation_names,
            "types": [kind.code for kind in self.types],
        }

    def verify(self) -> None:
        """Check the hash of every file; raise ``StoreError`` if one has changed."""
        for name, entry in self.manifest["files"].items():
            if hash_file(self.folder / name) != entry["sha256"]:
                raise StoreError(f"{self.folder / name}: damaged; build the store again")

    def table(self, name: str) -> pa.Table:
        """Return a whole table as an Arrow table; ``kb.tables`` lists the columns.

        >>> kb.table("names").column_names
        ['concept', 'text', 'language', 'kind', 'source']
        """
        if name not in self._tables:
            raise NotFoundError(f"no table is called {name!r}; known: {', '.join(self._tables)}")
        return self._tables[name].to_arrow()

    def numbers(self, table: str, column: str) -> Any:
        """Return a column of numbers of a table, memory-mapped."""
        return self._columns[f"{table}.{column}"].all()

    # ---- concepts by id

    def row(self, identifier: str) -> int:
        """Return the row of a concept by any of its own ids, or raise ``NotFoundError``."""
        row = self.find_row(identifier)
        if row is None:
            raise NotFoundError(
                f"{self.folder}: no concept has the id {identifier!r}; "
                "look names up with `biograft kb search`"
            )
        return row

    def find_row(self, identifier: str) -> int | None:
        """Return the row of a concept by its primary id, else by an alternate id, else None."""
        rows = self._rows_by_id(identifier, _OWN)
        return rows[0] if rows else None

    def by_id(self, identifier: str) -> list[Concept]:
        """Return all concepts with this primary or alternate id, in a fixed order.

        There may be several: some dictionaries give one alternate id to more than one concept.

        >>> [concept.id for concept in kb.by_id("MESH:D003924")]
        ['D003924']
        """
        return [self.concept_at(row) for row in self._rows_by_id(identifier, _OWN)]

    def rows_of(self, ids: Iterable[str]) -> tuple[int, ...]:
        """Return the rows of all concepts with any of these ids, in ascending order."""
        return tuple(sorted({row for each in ids for row in self._rows_by_id(each, _OWN)}))

    def ids_of(self, ids: Iterable[str]) -> set[str]:
        """Return the primary ids of all concepts with any of these ids."""
        return {self.id_at(row) for row in self.rows_of(ids)}

    def by_xref(self, identifier: str) -> list[Concept]:
        """Return the concepts that carry a cross-reference."""
        return [self.concept_at(row) for row in self._rows_by_id(identifier, (IdKind.XREF,))]

    def _rows_by_id(self, identifier: str, kinds: Iterable[str]) -> list[int]:
        """Return rows by an id of certain kinds, primary ids first."""
        canonical = canonical_id(identifier)
        codes = {ID_KINDS.index(IdKind(kind)) for kind in kinds}
        rows = []
        for entry in find_entries(self.numbers("ids_index", "entry"), hash_text(canonical)):
            position = entry - len(self)
            text = self._id[entry] if position < 0 else self._other_id[position]
            row = entry if position < 0 else self._at("ids.concept", position)
            kind = 0 if position < 0 else self._at("ids.kind", position)
            if kind in codes and canonical_id(text) == canonical:
                rows.append((kind, row))
        return list(dict.fromkeys(row for _, row in sorted(rows)))

    def id_at(self, row: int) -> str:
        """Return the primary id of a row."""
        return self._id[row]

    def name_at(self, row: int) -> str:
        """Return the preferred name of the concept in a row; its id if it has no name.

        >>> kb.name_at(kb.row("D003924"))
        'Diabetes Mellitus, Type 2'
        """
        names = self._range("names", row)
        return self._text[names.start] if names else self._id[row]

    def concept_at(self, row: int) -> Concept:
        """Return the concept in a row."""
        return Concept(
            id=self._id[row],
            name=self.name_at(row),
            names=tuple(self.name(position) for position in self._range("names", row)),
            definitions=tuple(self._definition_at(k) for k in self._range("definitions", row)),
            types=tuple(self.types[self._at("types.type", k)] for k in self._range("types", row)),
            ids=tuple(
                Identifier(self._other_id[k], str(ID_KINDS[self._at("ids.kind", k)]))
                for k in self._range("ids", row)
            ),
        )

    def name(self, position: int) -> Name:
        """Return the name in a row of the table of names."""
        return Name(
            self._text[position],
            self.languages[self._at("names.language", position)],
            str(NAME_KINDS[self._at("names.kind", position)]),
            self.sources[self._at("names.source", position)],
        )

    def _definition_at(self, position: int) -> Definition:
        return Definition(
            self._definition[position],
            self.languages[self._at("definitions.language", position)],
            self.sources[self._at("definitions.source", position)],
        )

    # ---- concepts by name

    def find(self, text: str, *, language: str | None = None) -> list[Match]:
        """Return the concepts with this name: exact matches first, then normalised ones.

        Each concept comes once, in a fixed order.

        >>> [(match.concept, match.how) for match in kb.find("type 2 diabetes")]
        [('D003924', 'exact')]
        """
        exact: list[int] = []
        normalised: list[int] = []
        for row in self.name_rows(text):
            (exact if self._text[row] == text else normalised).append(row)
        matches: dict[int, Match] = {}
        for how, rows in (("exact", exact), ("normalised", normalised)):
            for row in rows:
                concept = self._at("names.concept", row)
                tag = self.languages[self._at("names.language", row)]
                if concept not in matches and language in (None, tag):
                    matches[concept] = self.match(row, how)
        return list(matches.values())

    def name_rows(self, text: str) -> list[int]:
        """Return the rows of the names that are equal to a text once normalised, in order."""
        key, index = normalise(text), self.numbers("names_index", "entry")
        return [r for r in find_entries(index, hash_text(key)) if normalise(self._text[r]) == key]

    def match(self, name_row: int, how: str) -> Match:
        """Return a row of the table of names as a match."""
        concept = self._at("names.concept", name_row)
        tag = self.languages[self._at("names.language", name_row)]
        return Match(self._id[concept], self.name_at(concept), self._text[name_row], tag, how)

    # ---- relations

    def relations(
        self, identifier: str, *, relation: str | None = None, direction: str = "both"
    ) -> list[ConceptRelation]:
        """Return the relations of a concept: as head (``out``), as tail (``in``), or both.

        >>> [r.tail_name for r in kb.relations("D003924", relation="is-a", direction="out")]
        ['Diabetes Mellitus']
        """
        if direction not in DIRECTIONS:
            raise NotFoundError(
                f"direction: expected one of {', '.join(DIRECTIONS)}, found {direction!r}"
            )
        row = self.row(identifier)
        positions: list[int] = []
        if direction != "in":
            positions += self._range("relations", row)
        if direction != "out":
            positions += [
                self._at("incoming.relation_row", k) for k in self._range("incoming", row)
            ]
        relations = [self._relation_at(position) for position in dict.fromkeys(positions)]
        return [r for r in relations if relation in (None, r.relation)]

    def outgoing(self, row: int) -> list[tuple[str, str, str]]:
        """Return (relation, tail id, source) of the relations whose head is in this row."""
        return [
            (
                self.relation_names[self._at("relations.relation", position)],
                self._id[self._at("relations.tail", position)],
                self.sources[self._at("relations.source", position)],
            )
            for position in self._range("relations", row)
        ]

    def neighbours(
        self, identifier: str, *, relation: str | None = None, direction: str = "both"
    ) -> list[str]:
        """Return the ids of the concepts related to one, each once.

        >>> kb.neighbours("D003924", relation="located-in")
        ['D010179']
        """
        own = self._id[self.row(identifier)]
        relations = self.relations(identifier, relation=relation, direction=direction)
        return list(dict.fromkeys(r.tail if r.head == own else r.head for r in relations))

    def parents(self, identifier: str) -> list[str]:
        """Return the ids of the direct is-a parents."""
        return self.neighbours(identifier, relation=IS_A, direction="out")

    def children(self, identifier: str) -> list[str]:
        """Return the ids of the direct is-a children."""
        return self.neighbours(identifier, relation=IS_A, direction="in")

    def ancestors(self, identifier: str) -> list[str]:
        """Return the ids of all is-a ancestors, nearest first, each once.

        >>> kb.ancestors("D003924")[0]
        'D003920'
        """
        return [self._id[row] for row in self._climb(self.row(identifier), self._parent_rows)]

    def descendants(self, identifier: str) -> list[str]:
        """Return the ids of all is-a descendants, nearest first, each once."""
        return [self._id[row] for row in self._climb(self.row(identifier), self._child_rows)]

    def _climb(self, row: int, step: Any) -> list[int]:
        """Search breadth first and visit each concept once, so that cycles end."""
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
        return self._related_rows(self._incoming_rows(row), "relations.head")

    def _incoming_rows(self, row: int) -> list[int]:
        return [self._at("incoming.relation_row", k) for k in self._range("incoming", row)]

    def _related_rows(self, positions: Iterable[int], end: str) -> list[int]:
        if IS_A not in self.relation_names:
            return []
        is_a = self.relation_names.index(IS_A)
        return [self._at(end, k) for k in positions if self._at("relations.relation", k) == is_a]

    def _relation_at(self, position: int) -> ConceptRelation:
        head, tail = self._at("relations.head", position), self._at("relations.tail", position)
        return ConceptRelation(
            self._id[head],
            self.relation_names[self._at("relations.relation", position)],
            self._id[tail],
            self.sources[self._at("relations.source", position)],
            self.name_at(head),
            self.name_at(tail),
        )

    # ---- rows

    def _at(self, column: str, position: int) -> int:
        return self._columns[column][position]

    def _range(self, table: str, row: int) -> range:
        ends = self._columns[f"concepts.{table}_end"]
        return range(ends[row - 1] if row else 0, ends[row])


def _inode(folder: Path) -> tuple[int, int] | None:
    """Return the device and inode that identify the folder behind a path."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def fingerprint(
    base: KnowledgeBase, tables: Sequence[str], vocabularies: Iterable[Sequence[str]] = ()
) -> str:
    """Hash tables and vocabularies of a store; equal content gives equal hashes."""
    digest = hashlib.sha256()
    for table in tables:
        name = f"{table}.arrow"
        digest.update(f"{name} {base.manifest['files'][name]['sha256']}\n".encode())
    for vocabulary in vocabularies:
        digest.update(json.dumps(list(vocabulary)).encode())
    return digest.hexdigest()


_INDEXED = ("concepts", "ids", "names")


def store_fingerprint(kb: KnowledgeBase) -> str:
    """Hash the tables that an index depends on; equal content gives equal hashes."""
    return fingerprint(kb, _INDEXED)
