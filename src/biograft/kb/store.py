"""Records of a knowledge base: concepts with their names and ids, relations, matches.

Knowledge base: concepts, names, ids and relations, read from a memory-mapped store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from biograft.arrays import Array, Flags
from biograft.display import Shown
from biograft.errors import NotFoundError, StoreError
from biograft.kb.arrow_file import TEXT
from biograft.kb.hierarchy import Hierarchy
from biograft.kb.iris import SCHEMES, Iris
from biograft.kb.keys import find_entries, first_entries, hash_text
from biograft.kb.manifest import inode_of, read_manifest
from biograft.kb.names import normalise
from biograft.kb.records import IS_A, RETIRED, IdKind
from biograft.kb.tables import ID_KINDS, NAME_KINDS, SCHEMAS, STORE, Table, first_of_each
from biograft.kb.vocabularies import (
    VOCABULARIES,
    canonical_id,
    vocabulary_name,
    vocabulary_of,
    vocabulary_of_format,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from biograft.kb.tables import TextColumn


@dataclass(frozen=True, slots=True)
class Name:
    """A name of a concept."""

    text: str
    """The name as its source has it."""
    language: str
    """Code of its language, as ``en``; empty if unknown."""
    kind: str
    """Kind of name: preferred, synonym, abbreviation and so on (``NameKind``)."""
    source: str
    """Vocabulary that the name is from."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a concept."""

    text: str
    """The definition as its source has it."""
    language: str
    """Code of its language; empty if unknown."""
    source: str
    """Vocabulary that the definition is from."""


@dataclass(frozen=True, slots=True)
class SemanticType:
    """A semantic type: its code, label and tree number in the hierarchy of types."""

    code: str
    """Id of the type, as ``T047``."""
    label: str = ""
    """Name of the type, as ``Disease or Syndrome``."""
    tree: str = ""
    """Tree number of the type, as ``B2.2.1.2.1``; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """An additional id of a concept: an alternate id, a cross-reference, or that of a retired one.

    ``kind`` is one of ``biograft.kb.records.IdKind``.
    """

    id: str
    """The id, with its prefix."""
    kind: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """Successors of a retired id, as its source states: ids of concepts in the store."""

    id: str
    """The retired id."""
    replaced_by: tuple[str, ...] = ()
    """One as a rule; the concept that means the same."""
    consider: tuple[str, ...] = ()
    """Concepts that may be meant instead; a person has to choose."""

    def __str__(self) -> str:
        named = (("replaced by", self.replaced_by), ("consider", self.consider))
        return f"{self.id} is retired: " + "; ".join(
            f"{how} {', '.join(ids)}" for how, ids in named if ids
        )

    def to_json(self) -> dict[str, Any]:
        """Return the replacement as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ConceptRelation:
    """A relation between two concepts, by their ids and names."""

    head: str
    """Id of the concept that the relation starts from."""
    relation: str
    """Name of the relation, as ``is_a``."""
    tail: str
    """Id of the concept that it leads to."""
    source: str
    """Vocabulary that the relation is from."""
    head_name: str = ""
    """Preferred name of the head."""
    tail_name: str = ""
    """Preferred name of the tail."""


@dataclass(frozen=True, slots=True)
class RelationCount:
    """Count of a concept's relations as head (``out``) or as tail (``in``)."""

    relation: str
    """Name of the relation."""
    direction: str
    """``out`` or ``in``."""
    n: int
    """Number of relations."""


@dataclass(frozen=True, slots=True, repr=False)
class Concept(Shown):
    """A concept with its names, definitions, types and ids; relations are looked up apart."""

    id: str
    """Id in the knowledge base."""
    name: str
    """Preferred name."""
    names: tuple[Name, ...] = ()
    """All names, the preferred one first."""
    definitions: tuple[Definition, ...] = ()
    """Definitions of all sources."""
    types: tuple[SemanticType, ...] = ()
    """Semantic types."""
    ids: tuple[Identifier, ...] = ()
    """Other ids: alternate ones and cross-references."""
    iri: str = ""
    """Empty where its prefix has no known namespace."""

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
    """Id of the concept."""
    concept_name: str
    """Its preferred name."""
    name: str
    """The name that matches."""
    language: str
    """Language of that name."""
    how: str
    """``exact``, ``normalised``, ``prefix``, ``words``, ``pinyin`` or ``similar``."""

    def to_json(self) -> dict[str, Any]:
        """Return the match as plain values."""
        return asdict(self)


T = TypeVar("T")
DIRECTIONS = ("out", "in", "both")
_PRIMARY, _ALTERNATE, _XREF = map(ID_KINDS.index, (IdKind.PRIMARY, IdKind.ALTERNATE, IdKind.XREF))
_OWN = (_PRIMARY, _ALTERNATE)
"""Kinds of ids that belong to a concept, unlike cross-references."""


class KnowledgeBase(Shown):
    """A knowledge base on disk, opened for reading.

    Args:
        folder: Folder of the knowledge base.
        manifest: Its manifest.

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
            f"{table}.{column}": self._tables[table].numbers(column)
            for table, columns in SCHEMAS.items()
            for column, kind in columns.items()
            if kind != TEXT
        }
        self._values = {name: column.values for name, column in self._columns.items()}
        self._id = self._tables["concepts"].texts("id")
        self.name_texts = self._tables["names"].texts("text")
        """The text of each row of the table of names."""
        self._definition = self._tables["definitions"].texts("text")
        self._other_id = self._tables["ids"].texts("id")

    @classmethod
    def open(cls, folder: str | Path | KnowledgeBase) -> KnowledgeBase:
        """Open the store in a folder, again if it is replaced meanwhile; return an open one."""
        if isinstance(folder, KnowledgeBase):
            return folder
        folder = Path(folder)
        while True:
            inode = inode_of(folder)
            try:
                base = cls._open(folder)
            except StoreError:
                if inode_of(folder) == inode:
                    raise
            else:
                if inode_of(folder) == inode:
                    return base

    @classmethod
    def _open(cls, folder: Path) -> KnowledgeBase:
        manifest = read_manifest(folder)
        STORE.check_files(folder, manifest)
        try:
            return cls(folder, manifest)
        except ValueError as error:
            raise StoreError(f"{folder}: damaged ({error}); build the store again") from error

    def shown(self) -> dict[str, Any]:
        """Return what a notebook shows."""
        names = ("folder", "n_names", "languages", "sources")
        return {"n_concepts": len(self), **{name: getattr(self, name) for name in names}}

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
        internal = ("files", "vocabularies", "format", "seconds", "former_prefixes")
        return {
            "store": str(self.folder),
            **{key: value for key, value in self.manifest.items() if key not in internal},
            "relations": self.relation_names,
            "types": [kind.code for kind in self.types],
        }

    def verify(self) -> None:
        """Check the hash of every file; raise ``StoreError`` if one has changed."""
        STORE.check_files(self.folder, self.manifest, hashes=True)

    def table(self, name: str) -> pa.Table:
        """Return a whole table as an Arrow table, of pyarrow; ``kb/tables.py`` lists columns."""
        if name not in self._tables:
            raise NotFoundError(f"no table is called {name!r}; known: {', '.join(self._tables)}")
        return self._tables[name].to_arrow()

    def texts(self, table: str, column: str) -> TextColumn:
        """Return a column of texts of a table, memory-mapped.

        Args:
            table: Name of the table.
            column: Name of the column.
        """
        return self._tables[table].checked_texts(column)

    def numbers(self, table: str, column: str) -> Any:
        """Return a column of numbers of a table, memory-mapped.

        Args:
            table: Name of the table.
            column: Name of the column.
        """
        return self._columns[f"{table}.{column}"].all()

    def row(self, identifier: str) -> int:
        """Return the row of a concept by any of its own ids, or raise ``NotFoundError``."""
        row = self.find_row(identifier)
        if row is None:
            retired = self.replacement(identifier)
            remedy = retired or "look names up with `biograft kb search`"
            raise NotFoundError(f"{self.folder}: no concept has the id {identifier!r}; {remedy}")
        return row

    def find_row(self, identifier: str) -> int | None:
        """Return the row of a concept by its primary id, else by an alternate id, else None."""
        return next(iter(self._rows_by_id(identifier, _OWN)), None)

    def find_rows(self, identifiers: Iterable[str]) -> list[int | None]:
        """Return what ``find_row`` does for many ids, which is quicker than one by one."""
        canonical = list(map(canonical_id, identifiers))
        entries = first_entries(self._columns["ids_index.entry"].all(), canonical)
        return [
            entry if entry < len(self) and self._id[entry] == each else self.find_row(each)
            for each, entry in zip(canonical, entries, strict=True)
        ]

    def by_id(self, identifier: str) -> list[Concept]:
        """Return all concepts with this primary or alternate id (several may share one).

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
        return [self.concept_at(row) for row in self._rows_by_id(identifier, (_XREF,))]

    def replacement(self, identifier: str) -> Replacement | None:
        """Return what takes the place of a retired id, as its source says; else None.

        >>> kb.replacement("HP:0000057").replaced_by
        ('HP:0008665',)
        """
        successors = (self._rows_by_id(identifier, (ID_KINDS.index(kind),)) for kind in RETIRED)
        by, consider = (tuple(self.ids_at(rows)) for rows in successors)
        return Replacement(identifier, by, consider) if by or consider else None

    def _rows_by_id(self, identifier: str, kinds: Collection[int]) -> list[int]:
        """Return rows by an id of certain kinds, primary ids first."""
        spellings = self.spellings(identifier)
        found = (self._rows_by_spelling(spelling, kinds) for spelling in spellings)
        return next(filter(None, found), [])

    def _rows_by_spelling(self, canonical: str, kinds: Collection[int]) -> list[int]:
        n, rows = len(self), []
        # rows of ``concepts``, then of ``ids``, that may have this id
        for entry in find_entries(self._values["ids_index.entry"], hash_text(canonical)):
            own = entry < n
            kind = _PRIMARY if own else self._values["ids.kind"][entry - n]
            if kind not in kinds:
                continue
            text = self._id[entry] if own else self._other_id[entry - n]
            if text == canonical or canonical_id(text) == canonical:
                rows.append((kind, entry if own else self._values["ids.concept"][entry - n]))
        return list(dict.fromkeys(row for _, row in sorted(rows)))

    def spellings(self, identifier: str) -> Iterator[str]:
        """Yield what the store may call an id: as it is, then what people and IRIs make of it.

        Args:
            identifier: A CURIE, an IRI or a bare id.
        """
        yield canonical_id(identifier)
        if identifier.startswith(SCHEMES):
            yield canonical_id(self.iris.id_of(identifier))
            return
        prefix, colon, local = identifier.partition(":")
        if not colon:
            if len(prefixes := self.manifest.get("prefixes", ())) == 1:
                yield f"{next(iter(prefixes))}:{identifier}"
            prefix, _, local = identifier.rpartition("_")
            yield canonical_id(f"{prefix}:{local}")
        if prefix in self.iris.former:
            yield self.iris.former[prefix] + local
        elif vocabulary_name(prefix) == self.vocabulary:
            yield local

    @cached_property
    def iris(self) -> Iris:
        """The IRIs of ids, by the prefixes that the sources declared."""
        declared = self.manifest.get("prefixes", {})
        return Iris(
            {prefix: iri for prefix, iri in declared.items() if iri},
            self.manifest.get("former_prefixes", {}),
        )

    def iri(self, identifier: str) -> str:
        """Return the IRI of an id; empty if its prefix has no namespace.

        Args:
            identifier: An id of a concept.

        >>> kb.iri("D003924")
        'http://id.nlm.nih.gov/mesh/D003924'
        """
        if ":" not in identifier and self.vocabulary and not vocabulary_of(identifier):
            identifier = f"{self.vocabulary}:{identifier}"
        return self.iris.iri_of(identifier)

    @cached_property
    def vocabulary(self) -> str:
        """The vocabulary of bare ids, where one format was built that has such; else empty."""
        formats = {source.get("format") or "" for source in self.manifest.get("sources", ())}
        return vocabulary_of_format(formats.pop()) if len(formats) == 1 else ""

    def id_at(self, row: int) -> str:
        """Return the primary id of a row."""
        return self._id[row]

    def ids_at(self, rows: Iterable[int]) -> list[str]:
        """Return the primary ids of some rows."""
        return [self._id[row] for row in rows]

    def name_at(self, row: int) -> str:
        """Return the preferred name of the concept in a row; its id if it has no name.

        >>> kb.name_at(kb.row("D003924"))
        'Diabetes Mellitus, Type 2'
        """
        ends = self._values["concepts.names_end"]
        first = ends[row - 1] if row else 0
        return self.name_texts[first] if first < ends[row] else self._id[row]

    def name_in(self, row: int, language: str) -> str:
        """Return the first name of the concept in a row in a language, else its preferred name.

        Args:
            row: Row of the concept.
            language: Such as ``zh``; empty: the preferred name.

        >>> kb.name_in(kb.row("D003924"), "zh")
        '2型糖尿病'
        """
        names = self.names_at(row) if language else ()
        found = (name.text for name in names if name.language == language)
        return next(found, "") or self.name_at(row)

    def concept_at(self, row: int) -> Concept:
        """Return the concept in a row."""
        return Concept(
            id=self._id[row],
            name=self.name_at(row),
            names=self.names_at(row),
            definitions=tuple(
                Definition(
                    self._definition[k],
                    self._label(self.languages, "definitions.language", k),
                    self._label(self.sources, "definitions.source", k),
                )
                for k in self._range("definitions", row)
            ),
            types=tuple(
                self._label(self.types, "types.type", k) for k in self._range("types", row)
            ),
            ids=tuple(
                Identifier(self._other_id[k], str(self._label(ID_KINDS, "ids.kind", k)))
                for k in self._range("ids", row)
            ),
            iri=self.iri(self._id[row]),
        )

    def names_at(self, row: int) -> tuple[Name, ...]:
        """Return the names of the concept in a row."""
        return tuple(self.name(position) for position in self._range("names", row))

    def name_texts_at(self, row: int) -> Iterator[str]:
        """Yield the texts of the names of the concept in a row, the preferred one first."""
        return map(self.name_texts.__getitem__, self._range("names", row))

    def name(self, position: int) -> Name:
        """Return the name in a row of the table of names."""
        return Name(
            self.name_texts[position],
            self._label(self.languages, "names.language", position),
            str(self._label(NAME_KINDS, "names.kind", position)),
            self._label(self.sources, "names.source", position),
        )

    def mixed_concepts(self) -> Iterator[Concept]:
        """Yield the concepts that may be two, of sources that number their concepts alike.

        The id has no known namespace, and the names that two sources give in a language have none
        in common.
        """
        if len(self.manifest.get("sources", ())) < 2:
            return
        rows, sources = (self.numbers("names", column) for column in ("concept", "source"))
        differ = (rows[1:] == rows[:-1]) & (sources[1:] != sources[:-1])
        for row in np.unique(rows[1:][differ]).tolist():
            if self.iri(self._id[row]):
                continue
            given: dict[tuple[str, str], set[str]] = {}
            for name in self.names_at(row):
                given.setdefault((name.language, name.source), set()).add(normalise(name.text))
            if any(
                language == other and names.isdisjoint(others)
                for (language, _), names in given.items()
                for (other, _), others in given.items()
            ):
                yield self.concept_at(row)

    # ---- concepts by name

    def find(self, text: str, *, language: str | None = None) -> list[Match]:
        """Return the concepts with this name: exact matches first, then normalised ones.

        Each concept comes once, in a fixed order.

        Args:
            text: The name.
            language: Names in this language only.

        >>> [(match.concept, match.how) for match in kb.find("type 2 diabetes")]
        [('D003924', 'exact')]
        """
        found = self._names_by_text(text, language)
        return [self.match(row, "exact" if same else "normalised") for row, same in found.values()]

    def rows_by_name(self, text: str, *, language: str | None = None) -> list[int]:
        """Return the rows of the concepts that ``find`` returns, without making objects.

        Args:
            text: The name.
            language: Names in this language only.

        >>> kb.ids_at(kb.rows_by_name("type 2 diabetes"))
        ['D003924']
        """
        return list(self._names_by_text(text, language))

    def _names_by_text(self, text: str, language: str | None) -> dict[int, tuple[int, bool]]:
        """Return the first name of each concept that matches, and whether it is equal."""
        concepts = self._values["names.concept"]
        found: dict[int, tuple[int, bool]] = {}
        rows = self._name_rows(text)
        if language is not None:
            tags = {row: self._label(self.languages, "names.language", row) for row, _ in rows}
            rows = [(row, same) for row, same in rows if tags[row] == language]
        for wanted in (True, False):
            for row, same in rows:
                if same is wanted:
                    found.setdefault(concepts[row], (row, same))
        return found

    def name_rows(self, text: str) -> list[int]:
        """Return the rows of the names that are equal to a text once normalised, in order."""
        return [row for row, _ in self._name_rows(text)]

    def _name_rows(self, text: str) -> list[tuple[int, bool]]:
        """Return the rows of the names with the key of a text, and whether they are equal to it."""
        key, names, found = normalise(text), self.name_texts, []
        for row in find_entries(self._values["names_index.entry"], hash_text(key)):
            name = names[row]
            if name == text or normalise(name) == key:
                found.append((row, name == text))
        return found

    def match(self, name_row: int, how: str) -> Match:
        """Return a row of the table of names as a match.

        Args:
            name_row: Row of the name.
            how: ``exact`` or ``normalised``.
        """
        concept = self._at("names.concept", name_row)
        tag = self._label(self.languages, "names.language", name_row)
        return Match(self._id[concept], self.name_at(concept), self.name_texts[name_row], tag, how)

    # ---- relations

    def relations(
        self,
        identifier: str,
        *,
        relation: str | None = None,
        direction: str = "both",
        limit: int | None = None,
    ) -> list[ConceptRelation]:
        """Return the relations of a concept: as head (``out``), as tail (``in``), or both.

        Args:
            identifier: Id of the concept.
            relation: Relation to read; default: all.
            direction: ``out``, ``in`` or ``both``.
            limit: Largest number of each relation and direction; only these are read.

        >>> [r.tail_name for r in kb.relations("D003924", relation="is-a", direction="out")]
        ['Diabetes Mellitus']
        """
        row, found = self.row(identifier), []
        for rows in self._relation_rows(row, direction, relation).values():
            codes = self._columns["relations.relation"].take(rows)
            found += (rows if limit is None else rows[first_of_each(codes, limit)]).tolist()
        return [self._relation_at(position) for position in found]

    def count_relations(self, identifier: str) -> list[RelationCount]:
        """Count the relations by name and direction; one to itself counts once, as ``out``."""
        counts = []
        for direction, rows in self._relation_rows(self.row(identifier), "both").items():
            codes = self._columns["relations.relation"].take(rows)
            n = np.bincount(codes, minlength=1)
            counts += [
                RelationCount(self.relation_names[code], direction, int(n[code]))
                for code in np.flatnonzero(n).tolist()
            ]
        return counts

    def _relation_rows(
        self, row: int, direction: str, relation: str | None = None
    ) -> dict[str, Array]:
        """Return the rows of a concept's relations by direction, each relation once."""
        if direction not in DIRECTIONS:
            raise NotFoundError(
                f"direction: expected one of {', '.join(DIRECTIONS)}, found {direction!r}"
            )
        rows = {}
        if direction != "in":
            owned = self._range("relations", row)
            rows["out"] = np.arange(owned.start, owned.stop)
        if direction != "out":
            span = self._range("incoming", row)
            into = self._columns["incoming.relation_row"].slice(span.start, span.stop)
            if direction == "both":
                into = into[self._columns["relations.head"].take(into) != row]
            rows["in"] = into
        if relation is None:
            return rows
        labels, codes = self.relation_names, self._columns["relations.relation"]
        code = labels.index(relation) if relation in labels else -1
        return {way: each[codes.take(each) == code] for way, each in rows.items()}

    def outgoing(self, row: int) -> list[tuple[str, str, str]]:
        """Return (relation, tail id, source) of the relations whose head is in this row."""
        return [
            (
                self._label(self.relation_names, "relations.relation", k),
                self._id[self._at("relations.tail", k)],
                self._label(self.sources, "relations.source", k),
            )
            for k in self._range("relations", row)
        ]

    def neighbours(
        self, identifier: str, *, relation: str | None = None, direction: str = "both"
    ) -> list[str]:
        """Return the ids of the concepts related to one, each once.

        Args:
            identifier: Id of the concept.
            relation: Relation to follow; default: all.
            direction: ``out``: the concept is the head; ``in``: the tail; or ``both``.

        >>> kb.neighbours("D003924", relation="located-in")
        ['D010179']
        """
        ends = {"out": self._columns["relations.tail"], "in": self._columns["relations.head"]}
        related: list[int] = []
        for way, rows in self._relation_rows(self.row(identifier), direction, relation).items():
            related += ends[way].take(rows).tolist()
        return self.ids_at(dict.fromkeys(related))

    def _relation_at(self, position: int) -> ConceptRelation:
        head, tail = self._at("relations.head", position), self._at("relations.tail", position)
        return ConceptRelation(
            self._id[head],
            self._label(self.relation_names, "relations.relation", position),
            self._id[tail],
            self._label(self.sources, "relations.source", position),
            self.name_at(head),
            self.name_at(tail),
        )

    # ---- hierarchy

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The is-a relations by row, read when first asked for."""
        rows = np.zeros(0, np.intp)
        if IS_A in self.relation_names:
            codes = self._columns["relations.relation"].all()
            rows = np.flatnonzero(codes == self.relation_names.index(IS_A))
        heads, tails = (self._columns[f"relations.{end}"].take(rows) for end in ("head", "tail"))
        return Hierarchy(heads, tails, len(self))

    @cached_property
    def qualifiers(self) -> Flags:
        """Whether each concept only qualifies others, as *left* and *severe* do.

        They are of a semantic type, or in a branch, that ``vocabularies.toml`` says so of.
        """
        known = {each for vocabulary in VOCABULARIES.values() for each in vocabulary.qualifiers}
        codes = [n for n, kind in enumerate(self.types) if {kind.code, kind.label} & known]
        flags = np.zeros(len(self), np.bool_)
        of_type = np.isin(self.numbers("types", "type"), codes)
        flags[self.numbers("types", "concept")[of_type]] = True
        found = self.find_rows(sorted(each for each in known if ":" in each))
        if roots := [row for row in found if row is not None]:
            flags |= self.hierarchy.related(np.array(roots), up=False, own=True, direct=False)
        return flags

    def is_a(self, concept: str, ancestor: str) -> bool:
        """Whether a concept is the same as another, or below it along is-a relations.

        Args:
            concept: Id of the concept.
            ancestor: Id of the other.

        >>> kb.is_a("D003924", "D003920"), kb.is_a("D003920", "D003924")
        (True, False)
        """
        return self.hierarchy.is_a(self.row(concept), self.row(ancestor))

    def parents(self, identifier: str) -> list[str]:
        """Return the ids of the direct is-a parents."""
        return self.ids_at(self.hierarchy.parents(self.row(identifier)))

    def children(self, identifier: str) -> list[str]:
        """Return the ids of the direct is-a children."""
        return self.ids_at(self.hierarchy.children(self.row(identifier)))

    def ancestors(self, identifier: str) -> list[str]:
        """Return the ids of all is-a ancestors, nearest first, each once.

        >>> kb.ancestors("D003924")[0]
        'D003920'
        """
        return self.ids_at(self.hierarchy.ancestors(self.row(identifier)))

    def descendants(self, identifier: str) -> list[str]:
        """Return the ids of all is-a descendants, nearest first, each once."""
        return self.ids_at(self.hierarchy.descendants(self.row(identifier)))

    def _at(self, column: str, position: int) -> int:
        try:
            return int(self._values[column][position])
        except IndexError as error:
            raise self._damaged(column) from error

    def _label(self, labels: Sequence[T], column: str, position: int) -> T:
        """Return what a code of a column stands for."""
        try:
            return labels[int(self._values[column][position])]
        except IndexError as error:
            raise self._damaged(column) from error

    def _range(self, table: str, row: int) -> range:
        ends = self._values[f"concepts.{table}_end"]
        found = range(ends[row - 1] if row else 0, ends[row])
        if not found.start <= found.stop <= self._tables[table].n_rows:
            raise self._damaged(f"concepts.{table}_end")
        return found

    def _damaged(self, column: str) -> StoreError:
        return StoreError(
            f"{self.folder}: damaged ({column} refers to what is not there); build the store again"
        )
