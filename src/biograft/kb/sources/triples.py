"""Triple reader: head, relation, tail in a TSV, or a folder of train, valid and test files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from biograft.errors import InputError
from biograft.kb.names import language_of_script
from biograft.kb.records import NameKind, NameRecord, RelationRecord, TypeRecord
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig, look_at
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import unquoted


class NamedEntities:
    """Entities whose name is their id; yields the name and the types of each entity once.

    Without a language, that of a name goes by its script.
    """

    def __init__(self, language: str = "") -> None:
        self._language = language
        self._named: set[str] = set()
        self._typed: set[tuple[str, str]] = set()

    def mention(
        self, name: str, kind: str, line: int, label: str | None = None
    ) -> Iterator[NameRecord | TypeRecord]:
        """Yield the name and the type of an entity, if they are new.

        Args:
            name: Name of the entity, which is its id.
            kind: Its type; an empty one is omitted.
            line: Line of the file.
            label: Label of the type; default: its name.
        """
        if name not in self._named:
            self._named.add(name)
            language = self._language or language_of_script(name)
            yield NameRecord(name, name, language, NameKind.PREFERRED, line=line)
        if kind and (name, kind) not in self._typed:
            self._typed.add((name, kind))
            yield TypeRecord(name, kind, kind if label is None else label, line=line)


HEADER = ("head", "relation", "tail")
MIN_LINES, MANY_LINES = 3, 20
SPLITS = ("test", "valid", "dev", "train")
_ENDINGS = (".txt", ".tsv", ".txt.gz", ".tsv.gz")


def recognise(probe: Probe) -> bool:
    """A header with the column names, or three columns with relations in the middle.

    A folder is recognised by the first of two or more split files.
    """
    if probe.members:
        parts = _find_splits(probe.members)
        return len(parts) > 1 and recognise(look_at(probe.path / parts[0]))
    lines = [line.split("\t") for line in probe.lines()]
    if not lines:
        return False
    if tuple(lines[0][:3]) == HEADER:
        return True
    if {"id", "name"} <= {unquoted(cell.strip()).lower() for cell in lines[0]}:
        return False  # a table of concepts with a header
    return all(len(parts) == 3 and all(parts) for parts in lines) and _has_few_relations(probe)


def _find_splits(members: Iterable[str]) -> list[str]:
    """Return the names of the split files of a folder, test and dev first."""
    names = set(members)
    wanted = (f"{part}{ending}" for part in SPLITS for ending in _ENDINGS)
    return [name for name in wanted if name in names]


def _has_few_relations(probe: Probe) -> bool:
    """Whether the words of the middle column repeat, as relations do and labels do not.

    At least half of the lines must repeat a word, or three of four if there are many lines.
    """
    middle = [line.split("\t")[1] for line in probe.lines(2000)]
    words_a_line = 1 / 4 if len(middle) >= MANY_LINES else 1 / 2
    return len(middle) >= MIN_LINES and len(set(middle)) <= len(middle) * words_a_line


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield each entity once, with its types, and every triple."""
    entities = NamedEntities(config.language or "")
    paths = [config.path]
    if config.path.is_dir():
        names = _find_splits(entry.name for entry in config.path.iterdir())
        if not names:
            raise InputError(
                "holds no triples",
                path=config.path,
                remedy="name its files train, valid and test, each .txt or .tsv",
            )
        paths = [config.path / name for name in names]
    heads = _heads_of_synonyms(paths, config, log) if config.same_as else {}
    for synonym, head in heads.items():
        yield NameRecord(head, synonym, config.language or language_of_script(synonym))
    for path in paths:
        yield from _read_file(path, config, log, entities, heads)


def _heads_of_synonyms(paths: Sequence[Path], config: SourceConfig, log: ReadLog) -> dict[str, str]:
    """Find the entities that are synonyms of exactly one entity.

    An entity that is a synonym of several, or has synonyms itself, stays an entity, since chains of
    synonyms often lead to something else.
    """
    heads_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for path in paths:
        for _, line in read_lines(path, config.encoding):
            parts = [part.strip() for part in line.split("\t")]
            if len(parts) > 2 and parts[1] in config.same_as and all(parts[:3]):
                heads_of[parts[2]][parts[0]] = None
    named = {head for heads in heads_of.values() for head in heads}
    unique = {
        synonym: next(iter(heads))
        for synonym, heads in heads_of.items()
        if len(heads) == 1 and synonym not in named
    }
    if len(unique) < len(heads_of):
        log.note(
            f"{len(heads_of) - len(unique):,} names of several entities, or with names of "
            "their own, stay entities"
        )
    return unique


def _read_file(
    path: Path,
    config: SourceConfig,
    log: ReadLog,
    entities: NamedEntities,
    heads: Mapping[str, str],
) -> Iterator[Item]:
    log.opened(path)
    type_columns: tuple[int, ...] = ()
    for number, line in read_lines(path, config.encoding):
        parts = [part.strip() for part in line.split("\t")]
        if number == 1 and tuple(parts[:3]) == HEADER:
            if "head_type" in parts and "tail_type" in parts:
                type_columns = (parts.index("head_type"), parts.index("tail_type"))
            continue
        if not line.strip():
            continue
        log.read()
        if len(parts) < 3 or not all(parts[:3]):
            log.reject("not head, relation and tail separated by tabs", number, line, path=path)
            continue
        relation = parts[1]
        head, tail = (heads.get(entity, entity) for entity in (parts[0], parts[2]))
        kinds = [parts[column] if column < len(parts) else "" for column in type_columns]
        for entity, kind in zip((head, tail), kinds or ["", ""], strict=True):
            yield from entities.mention(entity, kind or config.default_type, number, label="")
        if head != tail or relation not in config.same_as:
            yield RelationRecord(head, relation, tail, line=number)


FORMAT = Format(recognise, read, tabular=True)
