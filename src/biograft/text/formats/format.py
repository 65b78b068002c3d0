"""Document formats: how each is recognised, read and written, which features it holds, their list.

Readers and writers share typed JSON fields, the check of offsets, joined ids and XML elements.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError, InputError, OutputError
from biograft.kb.sources.files import exists
from biograft.kb.sources.format import Probe, find_format, look_into
from biograft.kb.sources.json_files import peek_object
from biograft.kb.sources.log import ReadLog
from biograft.registry import Registry
from biograft.text.documents import Document, Mention, Passage, Relation


class Feature(StrEnum):
    """A feature of documents that some formats cannot hold; the value names its loss."""

    DOCUMENT_IDS = "document ids"
    LANGUAGE = "language"
    PASSAGES = "passages"
    GAPS = "gaps"
    NESTING = "nesting"
    TYPES = "types"
    CONCEPTS = "concepts"
    PARTS = "parts of composites"
    MENTION_IDS = "mention ids"
    ATTRIBUTES = "attributes of mentions"
    MENTION_RELATIONS = "relations between mentions"
    CONCEPT_RELATIONS = "relations between concepts"
    RELATION_IDS = "relation ids"


ALL_FEATURES = frozenset(Feature)

Step: TypeAlias = Callable[[Document], tuple[Document, int]]
"""Reduces a document to what a format can hold, and counts what was lost."""
Writer: TypeAlias = Callable[[Iterable[Document], Path, bool], None]
"""Writes adapted documents to a file or folder; the last argument allows overwriting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFormat:
    """A document format; each module of a format defines one.

    A written document reads back as :class:`FormatAdapter` adapts it: without the features that
    ``holds`` lacks, and with the format's own ``steps`` applied, each named by its loss.
    """

    recognise: Callable[[Probe], bool]
    """Returns True for a file or folder in the format."""
    read: Callable[[Path, ReadLog], Iterator[Document]]
    """Yields the documents of a file or folder."""
    write: Writer | None = None
    """Writes documents to a path; None for a format that is only read."""
    holds: frozenset[Feature] = frozenset()
    steps: tuple[tuple[str, Step], ...] = ()
    unique_ids: bool = False
    """Whether document ids must be unique, as the names of files are."""


class FormatAdapter:
    """Adapts documents to a format.

    Args:
        form: The format.
        losses: Counts what is lost, by kind; default: a counter of its own.
    """

    def __init__(self, form: DocumentFormat, losses: Counter[str] | None = None) -> None:
        self.losses: Counter[str] = Counter() if losses is None else losses
        self._form = form
        self._n_documents = 0
        self._id_counts: Counter[str] = Counter()
        missing = [(str(f), step) for f, step in _STEPS.items() if f not in form.holds]
        self._steps: list[tuple[str, Step]] = [*missing, *form.steps]

    def adapt(self, document: Document) -> Document:
        """Return the document as it will be read back."""
        self._n_documents += 1
        for kind, step in self._steps:
            document, n = step(document)
            if n:
                self.losses[kind] += n
        identifier = self._identifier(document.id)
        if identifier != document.id:
            self.losses[str(Feature.DOCUMENT_IDS)] += 1
            document = replace(document, id=identifier)
        return document

    def _identifier(self, identifier: str) -> str:
        if Feature.DOCUMENT_IDS not in self._form.holds:
            return str(self._n_documents)
        if not self._form.unique_ids:
            return identifier
        unique = identifier
        while self._id_counts[unique]:
            unique = f"{identifier}-{self._id_counts[identifier] + 1}"
            self._id_counts[identifier] += 1
        self._id_counts[unique] += 1
        return unique


def fill_gaps(document: Document) -> tuple[Document, int]:
    """Extend every mention with gaps over the whole text between its outer bounds."""
    n = sum(bool(mention.fragments) for mention in document.mentions)
    if not n:
        return document, 0
    filled = tuple(
        replace(m, fragments=(), text=document.text[m.start : m.end]) if m.fragments else m
        for m in document.mentions
    )
    return replace(document, mentions=filled), n


def keep_disjoint(document: Document) -> tuple[Document, int]:
    """Keep the longest of overlapping mentions, the first of equals; sort them by position."""
    mentions: list[Mention] = []
    taken: set[int] = set()
    for mention in sorted(document.mentions, key=lambda m: (m.start - m.end, m.start)):
        covered = range(mention.start, mention.end)
        if taken.isdisjoint(covered):
            taken.update(covered)
            mentions.append(mention)
    mentions.sort(key=lambda mention: mention.start)
    n = len(document.mentions) - len(mentions)
    return replace(document, mentions=tuple(mentions)), n


def keep_flat_passages(document: Document) -> tuple[Document, int]:
    """Keep passages that do not overlap an earlier one; sort them by position."""
    passages: list[Passage] = []
    for passage in sorted(document.passages, key=lambda p: (p.start, p.end)):
        if passage.start >= (passages[-1].end if passages else 0):
            passages.append(passage)
    return replace(document, passages=tuple(passages)), len(document.passages) - len(passages)


def replace_characters(pattern: str) -> Step:
    """Return a step that replaces each character that matches the pattern by a space."""
    unwritable = re.compile(pattern)

    def step(document: Document) -> tuple[Document, int]:
        text, n = unwritable.subn(" ", document.text)
        if not n:
            return document, 0
        mentions = tuple(
            replace(m, text=" ".join(text[slice(*span)] for span in m.spans))
            for m in document.mentions
        )
        return replace(document, text=text, mentions=mentions), n

    return step


def drop_dangling_relations(document: Document) -> tuple[Document, int]:
    """Drop relations with an argument that is no mention of the document."""
    ids = {mention.id for mention in document.mentions if mention.id}
    relations = tuple(
        r for r in document.relations if r.arguments and all(ref in ids for _, ref in r.arguments)
    )
    return replace(document, relations=relations), len(document.relations) - len(relations)


def rename_roles(roles: Callable[[Relation], Iterable[str]]) -> Step:
    """Return a step that gives the arguments of each relation other roles.

    Args:
        roles: Names the roles of a relation, one for each argument.
    """

    def step(document: Document) -> tuple[Document, int]:
        renamed = tuple(
            replace(r, arguments=tuple(zip(roles(r), (ref for _, ref in r.arguments), strict=True)))
            for r in document.relations
        )
        n = sum(a != b for a, b in zip(renamed, document.relations, strict=True))
        return replace(document, relations=renamed), n

    return step


def number_mentions(document: Document, prefix: str, first: int) -> tuple[Document, int]:
    """Number all mentions, and return how many had an id.

    Args:
        document: Arguments of its relations follow; of mentions with one id they get the first.
        prefix: Stands before each number.
        first: The first number.
    """
    renamed: dict[str, str] = {}
    mentions = []
    for number, mention in enumerate(document.mentions, first):
        renamed.setdefault(mention.id, f"{prefix}{number}")
        mentions.append(replace(mention, id=f"{prefix}{number}"))
    relations = tuple(
        replace(r, arguments=tuple((role, renamed[ref]) for role, ref in r.arguments))
        for r in document.relations
    )
    n = sum(bool(mention.id) for mention in document.mentions)
    return replace(document, mentions=tuple(mentions), relations=relations), n


def _without(part: str, name: str) -> Step:
    """Return a step that empties a field of all mentions, or of all relations."""

    def step(document: Document) -> tuple[Document, int]:
        values = [getattr(each, name) for each in getattr(document, part)]
        n = sum(map(bool, values))
        if not n:
            return document, 0
        emptied: Any = tuple(
            replace(each, **{name: type(value)()})
            for each, value in zip(getattr(document, part), values, strict=True)
        )
        return replace(document, **{part: emptied}), n

    return step


def _without_relations(of: str) -> Step:
    def step(document: Document) -> tuple[Document, int]:
        relations = tuple(relation for relation in document.relations if relation.of != of)
        return replace(document, relations=relations), len(document.relations) - len(relations)

    return step


def _without_language(document: Document) -> tuple[Document, int]:
    return replace(document, language=""), int(bool(document.language))


def _without_passages(document: Document) -> tuple[Document, int]:
    return replace(document, passages=()), len(document.passages)


_STEPS: dict[Feature, Step] = {
    Feature.LANGUAGE: _without_language,
    Feature.PASSAGES: _without_passages,
    Feature.MENTION_RELATIONS: _without_relations("mentions"),
    Feature.CONCEPT_RELATIONS: _without_relations("concepts"),
    Feature.GAPS: fill_gaps,
    Feature.NESTING: keep_disjoint,
    Feature.TYPES: _without("mentions", "type"),
    Feature.CONCEPTS: _without("mentions", "concepts"),
    Feature.PARTS: _without("mentions", "parts"),
    Feature.MENTION_IDS: _without("mentions", "id"),
    Feature.ATTRIBUTES: _without("mentions", "attributes"),
    Feature.RELATION_IDS: _without("relations", "id"),
}
"""The step for each feature that a format lacks, in the order in which they are applied."""


T = TypeVar("T")


class MalformedError(Exception):
    """A record does not have the structure that its format requires."""


def first_object(probe: Probe) -> dict[str, Any]:
    """Return the JSON object on the first line of a file, or an empty one."""
    return peek_object(probe.first_line)


def field(value: Any, key: str | int, kind: type[T], default: T | None = None) -> T:
    """Return the value of a key, checked to have a type; the default if the key is missing.

    Args:
        value: Parsed JSON, expected to be an object.
        key: The key.
        kind: Type of the value.
        default: Value if the key is missing; without one it is required.
    """
    if not isinstance(value, dict):
        raise MalformedError("expected an object")
    content = value.get(key, default)
    if not isinstance(content, kind) or (isinstance(content, bool) and kind is not bool):
        raise MalformedError(f"{key} is missing or no {_NAMES.get(kind, kind.__name__)}")
    return content


def fields(value: Any, key: str, kind: type[T]) -> list[T]:
    """Return the list under a key, its elements checked to have a type; empty if missing.

    Args:
        value: Parsed JSON, expected to be an object.
        key: The key.
        kind: Type of the elements.
    """
    content = field(value, key, list, [])
    if not all(isinstance(each, kind) for each in content):
        raise MalformedError(f"{key} holds what is no {_NAMES.get(kind, kind.__name__)}")
    return content


_NAMES: dict[type[Any], str] = {
    str: "text",
    int: "whole number",
    list: "list",
    dict: "object",
}


Spans: TypeAlias = tuple[tuple[int, int], ...]

_SEARCH_WINDOW = 20
"""Search distance for a mention with wrong offsets, in characters."""
_MAX_SHIFT = 3
"""Largest shift of each fragment of a mention with gaps, in characters."""
_MAX_FRAGMENTS = 4
_WHITESPACE = re.compile(r"\s+")


class OffsetChecker:
    """Makes the mentions of one text; corrects or rejects wrong offsets and logs them.

    Args:
        text: Text of the document.
        log: Counts what is doubtful or rejected.
        path: File, for the log.
    """

    def __init__(self, text: str, log: ReadLog, path: Path) -> None:
        self.text = text
        self._log, self._path = log, path

    def mention(
        self, spans: Spans, written: str | None, line: int, excerpt: str = ""
    ) -> Mention | None:
        """Make a mention of the spans and the text that a file gives; None if they do not fit.

        Args:
            spans: Start and end of each fragment.
            written: Text of the mention as the file has it, if it does.
            line: Line of the file.
            excerpt: What is shown of it in the log; default: spans and text.
        """
        excerpt = excerpt or f"{spans} {written}"
        checked, doubt = self._check(tuple(sorted(spans)), written)
        if not checked:
            self._log.reject("offsets do not fit the text", line, excerpt, path=self._path)
            return None
        if doubt:
            self._log.doubt(doubt, line, excerpt, path=self._path)
        fragments = checked if len(checked) > 1 else ()
        return Mention(checked[0][0], checked[-1][1], self._joined(checked), fragments=fragments)

    def _check(self, spans: Spans, written: str | None) -> tuple[Spans, str]:
        """Return the corrected spans (none if there are none) and what was wrong with them."""
        if self._within(spans):
            text = self._joined(spans)
            if written is None or _reads_alike(text, written, len(spans)):
                return spans, ""
            if _reads_alike(text.casefold(), written.casefold(), len(spans)):
                return spans, "the text is written otherwise"
        if not spans or written is None:
            return (), ""
        corrected = (
            self._find_near(spans[0][0], written)
            if len(spans) == 1
            else self._shift(spans, written)
        )
        return corrected if self._within(corrected) else (), "offsets were corrected"

    def _within(self, spans: Spans) -> bool:
        bounds = [bound for span in spans for bound in span]
        ascending = all(a < b for a, b in spans) and bounds == sorted(bounds)
        return bool(bounds) and ascending and bounds[0] >= 0 and bounds[-1] <= len(self.text)

    def _joined(self, spans: Spans) -> str:
        return " ".join(self.text[start:end] for start, end in spans)

    def _find_near(self, start: int, written: str) -> Spans:
        """Find the nearest occurrence of a text around a position."""
        bare = written.strip()
        if not bare:
            return ()
        low = max(0, start - _SEARCH_WINDOW)
        window = self.text[low : start + len(bare) + _SEARCH_WINDOW]
        starts = [m.start() + low for m in re.finditer(f"(?={re.escape(bare)})", window)]
        nearest = min(starts, key=lambda each: (abs(each - start), each), default=None)
        return () if nearest is None else ((nearest, nearest + len(bare)),)

    def _shift(self, spans: Spans, written: str) -> Spans:
        """Shift each fragment by a few characters until together they read as written."""
        if len(spans) > _MAX_FRAGMENTS:
            return ()
        shifts = itertools.product(range(-_MAX_SHIFT, _MAX_SHIFT + 1), repeat=len(spans))
        for moves in sorted(shifts, key=lambda moves: sum(map(abs, moves))):
            moved = tuple((a + by, b + by) for (a, b), by in zip(spans, moves, strict=True))
            if self._within(moved) and _squeezed(self._joined(moved)) == _squeezed(written):
                return tuple(self._trimmed(*span) for span in moved)
        return ()

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        fragment = self.text[start:end]
        return (
            start + len(fragment) - len(fragment.lstrip()),
            end - len(fragment) + len(fragment.rstrip()),
        )


def _reads_alike(text: str, written: str, n_fragments: int) -> bool:
    """Whether two texts are equal up to runs of whitespace.

    Fragments may also be joined without whitespace.
    """
    if text == written or _WHITESPACE.sub(" ", text) == _WHITESPACE.sub(" ", written):
        return True
    bare = n_fragments > 1 and text == text.strip() and "  " not in text
    return bare and _squeezed(text) == _squeezed(written)


def _squeezed(text: str) -> str:
    return _WHITESPACE.sub("", text)


XML_UNWRITABLE = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""The characters that no XML document may hold."""
_MAX_NAME_BYTES = 200


def encode_text(text: str, document: Document) -> bytes:
    """Encode text as UTF-8; the error for half a surrogate pair names the document.

    Args:
        text: The text.
        document: Document it is from, for errors.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OutputError(
            f"document {document.id!a}: holds half a surrogate pair, which no file can"
        ) from error


def encoded(
    documents: Iterable[Document],
    render: Callable[[Document], str],
    head: str = "",
    between: str = "",
    end: str = "",
) -> Iterator[bytes]:
    """Yield the parts of a file of documents.

    Args:
        documents: The documents.
        render: Returns the text of one.
        head: Text before the first document.
        between: Text before each further document.
        end: Text behind the last document.
    """
    yield head.encode()
    for index, document in enumerate(documents):
        yield encode_text((between if index else "") + render(document), document)
    yield end.encode()


def file_writer(render: Callable[[Document], str], *marks: str) -> Writer:
    """Return a writer of files.

    Args:
        render: Returns the text of a document.
        marks: Texts before, between and behind the documents.
    """

    def write(documents: Iterable[Document], path: Path, overwrite: bool = False) -> None:
        with new_file(path, overwrite=overwrite) as file:
            file.writelines(encoded(documents, render, *marks))

    return write


def join_ids(values: Iterable[str], document: Document, kind: str) -> str:
    """Join ids or parts by ``|``; one that could not be split again is refused.

    Args:
        values: Ids or parts.
        document: Document they are in, for errors.
        kind: What a value is called in errors.
    """
    values = tuple(values)
    for value in values:
        if "|" in value or value != value.strip() or value in ("", "-", "-1"):
            raise OutputError(
                f"document {document.id}: {kind} {value!r}: holds the separator `|`, begins or "
                "ends with whitespace, or means none"
            )
    return "|".join(values)


def split_ids(cell: str) -> tuple[str, ...]:
    """Split what ``join_ids`` joined; ``-1`` and ``-`` mean none."""
    values = (value.strip() for value in cell.split("|"))
    return tuple(value for value in values if value not in ("", "-", "-1"))


def xml_element(tag: str, text: str = "", **attributes: str) -> str:
    """Write an XML element that holds only text.

    Args:
        tag: Name of the element.
        text: Its text.
        attributes: Its attributes.
    """
    from xml.sax.saxutils import escape  # brings all of http with it

    content = escape(text, {"\r": "&#13;"})
    return f"<{xml_tag(tag, attributes)}>{content}</{tag}>"


def xml_tag(tag: str, attributes: dict[str, str]) -> str:
    """Write the name and attributes of a start tag.

    Args:
        tag: Name of the element.
        attributes: Its attributes.
    """
    from xml.sax.saxutils import quoteattr

    entities = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
    return "".join([tag, *(f" {name}={quoteattr(v, entities)}" for name, v in attributes.items())])


def document_path(folder: Path, document: Document, suffix: str) -> Path:
    """Return the path of a document's file, and create the folders that its id names.

    Args:
        folder: Folder of the output.
        document: A document, whose id may have slashes.
        suffix: Ending of the file, such as ``.txt``.
    """
    parts = document.id.split("/")
    invalid = any(part in ("", ".", "..") or len(part.encode()) > _MAX_NAME_BYTES for part in parts)
    if invalid or any(character in document.id for character in "\0\\\n\r"):
        raise OutputError(f"document id {document.id!r}: no file can have that name")
    path = folder.joinpath(*parts[:-1], f"{parts[-1]}{suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


LAYOUTS_FILE = Path(__file__).with_name("layouts.toml")
"""Declares layouts of JSON; the file says what its keys mean."""
_LAYOUTS = tomllib.loads(LAYOUTS_FILE.read_text("utf-8"))

DOCUMENT_FORMATS: Registry[DocumentFormat] = Registry(
    "document format",
    {
        # tried in this order when a file is recognised, the most specific first
        "bioc-xml": ("bioc:BIOC_XML", "BioC XML collections"),
        "ddi": ("ddi:FORMAT", "DDI 2013: XML, a folder, a zip of such, or one file"),
        "brat": ("brat:FORMAT", "brat: a folder of .txt and .ann files"),
        "pubtator": ("pubtator:FORMAT", "PubTator: ID|t|title, ID|a|abstract, mentions"),
        "cmdd": ("cmdd:FORMAT", "CMDD: Chinese dialogues with symptoms (read only)"),
        "cmedqaner": ("layouts:LAYOUTS.cmedqaner", _LAYOUTS["cmedqaner"]["about"]),
        "cehrner": ("layouts:LAYOUTS.cehrner", _LAYOUTS["cehrner"]["about"]),
        "bioc-json": ("bioc:BIOC_JSON", "BioC JSON collections"),
        "cmeee": ("layouts:LAYOUTS.cmeee", _LAYOUTS["cmeee"]["about"]),
        "cmeie": (
            "cblue:TRIPLES",
            "CMeIE: texts with triples (spo_list), without offsets (read only)",
        ),
        "cdee": ("cblue:EVENTS", "CHIP-CDEE: texts with clinical events (read only)"),
        "imcs-ner": ("cblue:TAGGED", "IMCS-V2: dialogues with tagged entities (read only)"),
        "jsonl": ("jsonl:FORMAT", "biograft's own JSON lines; holds everything"),
        "char-tags": ("conll:CHARACTERS", "a character and its tag (B_type) a line"),
        "conll": ("conll:FORMAT", "CoNLL: a token and its tag a line; written as IOB2"),
        "conll-iob1": ("conll:IOB1", "the same, written as IOB1"),
        "conll-iobes": ("conll:IOBES", "the same, written as IOBES"),
    },
    group="biograft.document_formats",
    home="biograft.text.formats",
    layouts="layouts:read_layout",
)


def sniff(path: Path) -> str:
    """Name the format of a file or folder by its content."""
    problem = "no reader of documents knows this content"
    return find_format(look_into(path), DOCUMENT_FORMATS, problem)


def read_documents(
    path: str | Path, form: str = "", log: ReadLog | None = None
) -> Iterator[Document]:
    """Read the documents of a file or folder; the format is recognised unless it is named.

    Errors in the file are counted in the log with their lines, and the rest is read.

    Args:
        path: File or folder.
        form: Name of the format, one of ``DOCUMENT_FORMATS``; default: recognised by content.
        log: Counts what is doubtful or rejected.
    """
    path = Path(path)
    if not exists(path):
        raise InputError("does not exist", path=path, remedy="check the path")
    reader = DOCUMENT_FORMATS.load(form or sniff(path))
    return reader.read(path, log or ReadLog(path))


def write_documents(
    documents: Iterable[Document], path: str | Path, form: str = "jsonl", *, overwrite: bool = False
) -> Counter[str]:
    """Write documents, all or none; return the counts of what the format could not hold.

    Args:
        documents: Documents.
        path: File or folder to write.
        form: Name of the format, one of ``DOCUMENT_FORMATS``.
        overwrite: Replace what exists.
    """
    adapter = FormatAdapter(DOCUMENT_FORMATS.load(form))
    write_adapted(map(adapter.adapt, documents), Path(path), form, overwrite=overwrite)
    return adapter.losses


def write_adapted(
    documents: Iterable[Document], path: Path, form: str, *, overwrite: bool = False
) -> None:
    """Write documents that a :class:`FormatAdapter` has adapted to the format.

    Args:
        documents: Documents.
        path: File or folder to write.
        form: Name of the format, one of ``DOCUMENT_FORMATS``.
        overwrite: Replace what exists.
    """
    write = DOCUMENT_FORMATS.load(form).write
    if write is None:
        writable = [name for name, other in DOCUMENT_FORMATS.load_all() if other.write is not None]
        raise ConfigError(f"{form} can only be read; choose one of {', '.join(writable)}")
    write(documents, path, overwrite)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The report of a conversion: what was read, rejected and lost."""

    source: str
    """Format that was read."""
    target: str
    """Format that was written."""
    counts: Counter[str]
    """Documents, mentions and relations that were read."""
    losses: Counter[str]
    """Number of items that the target could not hold, by feature."""
    log: ReadLog
    """Number of rejected records by reason, with examples."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "from": self.source,
            "to": self.target,
            "read": dict(self.counts),
            "filtered": dict(self.log.filtered),
            "rejected": self.log.rejected.to_json(),
            "doubtful": self.log.doubtful.to_json(),
            "lost": dict(self.losses.most_common()),
        }


def convert(
    path: Path,
    target: Path,
    to: str,
    form: str = "",
    *,
    overwrite: bool = False,
    strict: bool = False,
) -> Conversion:
    """Convert documents from one format to another.

    Args:
        path: File or folder to read.
        target: File or folder to write.
        to: Name of the format to write.
        form: Name of the format to read; default: recognised by content.
        overwrite: Replace what exists.
        strict: Raise an error and write nothing if anything is rejected or lost.
    """
    if not path.exists():
        raise InputError("does not exist", path=path, remedy="check the path")
    form = form or sniff(path)
    log = ReadLog(path)
    conversion = Conversion(form, to, Counter(), Counter(), log)
    adapter = FormatAdapter(DOCUMENT_FORMATS.load(to))

    def adapted() -> Iterator[Document]:
        for document in read_documents(path, form, log):
            conversion.counts["documents"] += 1
            conversion.counts["mentions"] += len(document.mentions)
            conversion.counts["relations"] += len(document.relations)
            yield adapter.adapt(document)
        conversion.losses.update(adapter.losses)
        _check(conversion, path, strict=strict)  # before the output is in place

    write_adapted(adapted(), target, to, overwrite=overwrite)
    return conversion


def _check(conversion: Conversion, path: Path, *, strict: bool) -> None:
    """Refuse a conversion without documents; if it is strict, one with any loss."""
    rejected, lost = conversion.log.rejected.counts, conversion.losses + conversion.log.filtered
    if not conversion.counts["documents"]:
        raise FormatError(
            f"holds no document of format {conversion.source} that can be read"
            + _reasons(rejected),
            path=path,
            remedy="name the right format",
        )
    if strict and rejected:
        raise OutputError(
            f"{path}: records were rejected{_reasons(rejected)}; nothing was written (--strict)"
        )
    if strict and lost:
        raise OutputError(
            f"{path}: {conversion.target} cannot hold everything{_reasons(lost)}; "
            "nothing was written (--strict)"
        )


def _reasons(counts: Counter[str]) -> str:
    return f" ({', '.join(f'{n:,} {kind}' for kind, n in counts.most_common())})" if counts else ""
