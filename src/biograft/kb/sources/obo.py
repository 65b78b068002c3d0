"""OBO 1.2 and 1.4 reader; abbreviation types shared with the OWL readers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeAlias

from biograft.errors import FormatError
from biograft.kb.records import (
    IS_A,
    ConceptRecord,
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    Record,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources.files import BufferLimit, read_lines
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog

_ABBREVIATION_WORDS = ("abbreviation", "acronym")
_ABBREVIATION_IDS = ("OMO:0003000", "OMO_0003000", "OMO:0003012", "OMO_0003012")
"""Ids of abbreviation and acronym in the OBO Metadata Ontology, often used undeclared."""


@lru_cache(maxsize=1024)
def is_abbreviation(synonym_type: str) -> bool:
    """Whether a synonym type, by id, IRI or label, means abbreviation or acronym."""
    if synonym_type.endswith(_ABBREVIATION_IDS):
        return True
    return any(word in synonym_type.lower() for word in _ABBREVIATION_WORDS)


HEADER, MALFORMED = "header", "damaged"

_STANZA = re.compile(r"\[\s*(\w+)\s*\]\s*(?:!.*)?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "W": " "}
_QUOTED = re.compile(r'"((?:[^"\\]++|\\.)*+)"\s*+([^\[{!]*+)')
_UP_TO_MARK = re.compile(r"(?:[^!{\\]++|\\.)*+")
_COMMENT = re.compile(r"(?:^|\s)!")
_MODIFIERS = re.compile(
    r'\s\{(?:\s*+[^\s={}",]++\s*+=\s*+(?:"(?:[^"\\]++|\\.)*+"|[^\s,{}"]++)\s*+,?+)++\s*+\}\s*+(?:!.*)?$'
)


@dataclass(slots=True)
class Stanza:
    """The tags under a heading, each with its line."""

    kind: str
    line: int
    tags: list[tuple[int, str, str]] = field(default_factory=list)

    def values(self, tag: str) -> list[str]:
        """Return the raw values of a tag."""
        return [value for _, name, value in self.tags if name == tag]


def is_heading(line: str) -> bool:
    """Whether a line is the heading of a stanza."""
    match = _STANZA.fullmatch(line.strip())
    return match is not None and match[1] in ("Term", "Typedef", "Instance")


def read_stanzas(config: SourceConfig, log: ReadLog) -> Iterator[Stanza]:
    """Read the header, then every stanza; one under a malformed heading is kept separate.

    Args:
        config: File, and options of ``kb build``.
        log: Counts records read, and what is rejected, doubtful or filtered.
    """
    stanza, limit = Stanza(HEADER, 1), BufferLimit("a stanza", config.path)
    for number, line in _logical_lines(config):
        if line[0] == "[":
            yield stanza
            match = _STANZA.fullmatch(line)
            limit.clear()
            stanza = Stanza(match[1] if match else MALFORMED, number)
            if not match:
                log.reject("malformed stanza heading", number, line)
            continue
        limit.add(line, number)
        tag, colon, value = line.partition(":")
        if colon:
            stanza.tags.append((number, tag, value.strip()))
        else:
            log.reject("not of the form tag: value", number, line)
    yield stanza


def _logical_lines(config: SourceConfig) -> Iterator[tuple[int, str]]:
    """Join lines that end in a backslash; skip empty lines and comments."""
    parts: list[str] = []
    first, limit = 0, BufferLimit("a line, with those that go on with it,", config.path)
    for number, line in read_lines(config.path, config.encoding):
        # the last backslash continues the line if it is not escaped, nor in a comment
        is_odd = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if is_odd and (parts or not line.lstrip().startswith("!")):
            first = first or number
            parts.append(line[:-1])
            limit.add(line, number)
            continue
        if parts:
            number, line = first, "".join((*parts, line))  # noqa: PLW2901
            first = 0
            parts.clear()
            limit.clear()
        text = line.strip()
        if text and text[0] != "!":
            yield number, text
    if text := "".join(parts).strip():
        yield first, text


def unescape(text: str) -> str:
    r"""Resolve escapes: ``\n`` ``\t`` ``\W`` (a space); other escaped characters are literal."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def quoted(value: str) -> tuple[str, list[str]] | None:
    """Parse ``"text" WORD WORD [...]``: return the text and the words before the brackets."""
    match = _QUOTED.match(value)
    return (unescape(match[1]).strip(), match[2].split()) if match else None


def free_text(value: str) -> str:
    """Return an unquoted text without modifiers and comment."""
    if "{" in value and (match := _MODIFIERS.search(value)):
        value = value[: match.start()]
    if "!" in value and (match := _COMMENT.search(value)):
        value = value[: match.start()]
    return unescape(value).strip()


def identifiers(value: str) -> list[str]:
    """Return the identifiers before modifiers and comment."""
    if "!" in value or "{" in value:
        match = _UP_TO_MARK.match(value)
        value = match[0] if match else ""
    words = value.split()
    if "\\" in value:
        words = [word for escaped in words if (word := unescape(escaped).strip())]
    return words


def cross_reference(value: str) -> str:
    """Return the identifier of ``ID "description" {modifiers}``; it may contain ``!``."""
    words = value.split(None, 1)
    return unescape(words[0]).strip() if words and words[0][0] not in '!{"' else ""


SCOPES = {
    "EXACT": NameKind.SYNONYM,
    "BROAD": NameKind.BROAD,
    "NARROW": NameKind.NARROW,
    "RELATED": NameKind.RELATED,
}
SUCCESSORS = {"replaced_by": IdKind.REPLACED, "consider": IdKind.CONSIDER}
SKOS = "http://www.w3.org/2004/02/skos/core#"
AXIOMS = ("intersection_of", "union_of", "disjoint_from", "equivalent_to")

CONDITIONAL = "holds only under a condition (gci)"

_TAG = re.compile(r"[\w-]+:")
_LICENCE = re.compile(r"licen[cs]e|creativecommons", re.IGNORECASE)


class FilterReason(str):
    """The reason why a valid fact is filtered."""

    __slots__ = ()


Fact: TypeAlias = Record | str
"""The result of a line: a record, a :class:`FilterReason`, or (a plain string) the error."""

Handler: TypeAlias = Callable[[str, int, str], Fact]


def recognise(probe: Probe) -> bool:
    """A file that begins with ``format-version:``, or with tags and then a stanza."""
    for line in probe.lines(2000):
        if line.startswith("format-version:") or is_heading(line):
            return True
        if not line.startswith("!") and not _TAG.match(line):
            return False
    return False


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the facts of each term, in the order of the file."""
    log.opened(config.path)
    stanzas = read_stanzas(config, log)
    terms = _Terms(next(stanzas), config, log)
    n_stanzas = 0
    for stanza in stanzas:
        n_stanzas += 1
        if stanza.kind == "Term":
            log.read()
            yield from terms.read(stanza)
        elif stanza.kind == "Instance":
            log.filter("instance")
        elif stanza.kind not in ("Typedef", MALFORMED):
            log.reject("unknown kind of stanza", stanza.line, f"[{stanza.kind}]")
    if not n_stanzas:
        raise FormatError(
            "holds no stanza, expected lines such as [Term]",
            path=config.path,
            remedy="check that the file is OBO and complete",
        )


class _Terms:
    """Converts the stanzas of one file into records."""

    def __init__(self, header: Stanza, config: SourceConfig, log: ReadLog) -> None:
        self._log = log
        self._keep_suppressed = config.keep_suppressed
        self._language = config.language or "en"
        self._namespace = config.default_type
        self._exact_matches: tuple[str, ...] = (f"{SKOS}exactMatch", "skos:exactMatch")
        """A property whose values are cross-references."""
        self._abbreviations: set[str] = set()
        self._named: dict[str, bool] = {}
        self._handlers: dict[str, Handler] = {
            "name": self._name,
            "synonym": self._synonym,
            "def": self._definition,
            "is_a": lambda concept, line, value: self._relation(concept, line, f"{IS_A} {value}"),
            "relationship": self._relation,
            "xref": self._xref,
            "xref_analog": self._xref,
            "xref_unk": self._xref,
            "property_value": self._exact_match,
            "alt_id": self._alternate,
            "namespace": self._type,
            **dict.fromkeys(AXIOMS, lambda *_: FilterReason("logical axiom")),
            # OBO 1.0 had a tag for each scope
            **{f"{name.lower()}_synonym": partial(self._synonym, scope=name) for name in SCOPES},
        }
        self._read_header(header)

    def _read_header(self, header: Stanza) -> None:
        for value in header.values("default-namespace"):
            self._namespace = free_text(value) or self._namespace
        for value in header.values("synonymtypedef"):
            synonym_type, _, description = value.partition(" ")
            if is_abbreviation(synonym_type) or is_abbreviation(description):
                self._abbreviations.add(unescape(synonym_type))
        for tag in ("data-version", "version", "date"):
            if values := header.values(tag):
                self._log.note(f"data version: {values[0]}")
                break
        for tag in ("remark", "property_value"):
            for value in header.values(tag):
                if _LICENCE.search(value):
                    self._log.note(f"licence: {unescape(value)}")
        for value in header.values("idspace"):
            prefix, _, namespace = value.partition(" ")
            self._log.iris.declare(unescape(prefix), unescape(namespace.partition(" ")[0]))
            if prefix == "skos" and SKOS not in namespace:
                self._exact_matches = self._exact_matches[:1]
        for value in header.values("import"):
            self._log.note(f"import not followed: {unescape(value)}")

    def read(self, stanza: Stanza) -> Iterator[Record]:
        """Yield the facts of a term; of an obsolete one, what takes its place."""
        ids = [(line, identifiers(value)) for line, tag, value in stanza.tags if tag == "id"]
        if not ids or len(ids[0][1]) != 1:
            self._log.reject("term without an id", stanza.line, "[Term]")
            return
        for line, others in ids[1:]:
            self._log.reject("second id in a term", line, " ".join(others))
        if not self._keep_suppressed and any(
            free_text(value).lower() == "true" for value in stanza.values("is_obsolete")
        ):
            self._log.filter("obsolete")
            self._log.leave_out(ids[0][1])
            yield from self._successors(ids[0][1][0], stanza)
            return
        line, (concept,) = ids[0]
        if concept in self._named:
            self._log.doubt("id defined twice", line, concept)
        else:
            self._named[concept] = False
        yield ConceptRecord(concept, line)
        yield from self._facts(concept, stanza)

    def _successors(self, concept: str, stanza: Stanza) -> Iterator[Record]:
        """Yield the terms that a retired term names in its place."""
        for line, tag, value in stanza.tags:
            if (kind := SUCCESSORS.get(tag)) is None:
                continue
            words = identifiers(value)
            if len(words) == 1:
                yield IdRecord(words[0], concept, kind, line)
            else:
                self._log.reject(f"{tag} that is not one id", line, value)

    def _facts(self, concept: str, stanza: Stanza) -> Iterator[Record]:
        typed = False
        for line, tag, value in stanza.tags:
            if tag == "property_value" and not value.startswith(self._exact_matches):
                continue
            if (handler := self._handlers.get(tag)) is None:
                continue
            fact = handler(concept, line, value)
            if not isinstance(fact, str):
                typed = typed or tag == "namespace"
                yield fact
            elif isinstance(fact, FilterReason):
                self._log.filter(fact)
            else:
                self._log.reject(fact, line, value)
        if self._namespace and not typed:
            yield TypeRecord(concept, self._namespace, line=stanza.line)
        yield from self._successors(concept, stanza)

    def _name(self, concept: str, line: int, value: str) -> Fact:
        if not (text := free_text(value)):
            return "empty name"
        # the standard forbids a second name, but exports of merged ontologies have it
        kind = NameKind.SYNONYM if self._named[concept] else NameKind.PREFERRED
        self._named[concept] = True
        return NameRecord(concept, text, self._language, kind, line=line)

    def _synonym(self, concept: str, line: int, value: str, scope: str = "RELATED") -> Fact:
        text, words = quoted(value) or ("", [])
        if not text:
            return "synonym without a text in quotes"
        if words and words[0] in SCOPES:
            scope = words.pop(0)
        if len(words) > 1:
            return "synonym with an unknown scope"
        kind = SCOPES[scope]
        if words and (words[0] in self._abbreviations or is_abbreviation(words[0])):
            kind = NameKind.ABBREVIATION
        return NameRecord(concept, text, self._language, kind, line=line)

    def _definition(self, concept: str, line: int, value: str) -> Fact:
        text, _ = quoted(value) or ("", [])
        if not text:
            return "definition without a text in quotes"
        return DefinitionRecord(concept, text, self._language, line=line)

    def _relation(self, concept: str, line: int, value: str) -> Fact:
        words = identifiers(value)
        if len(words) != 2:
            return "relation without exactly one target"
        if "gci_" in value:
            return FilterReason(CONDITIONAL)
        if words[0] in self._exact_matches:
            return self._exact_match(concept, line, value)
        return RelationRecord(concept, words[0], words[1], line=line)

    def _xref(self, concept: str, line: int, value: str) -> Fact:
        xref = cross_reference(value)
        return IdRecord(concept, xref, IdKind.XREF, line) if xref else "xref without an id"

    def _exact_match(self, concept: str, line: int, value: str) -> Fact:
        _, xref, *_ = *identifiers(value), "", ""
        return self._xref(concept, line, xref.strip('"'))

    def _alternate(self, concept: str, line: int, value: str) -> Fact:
        words = identifiers(value)
        if len(words) != 1:
            return "alt_id that is not one id"
        return IdRecord(concept, words[0], IdKind.ALTERNATE, line)

    def _type(self, concept: str, line: int, value: str) -> Fact:
        namespace = free_text(value)
        return TypeRecord(concept, namespace, line=line) if namespace else "empty namespace"


FORMAT = Format(recognise, read, languages_inside=False)
