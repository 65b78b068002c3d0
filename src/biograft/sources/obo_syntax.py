r"""The syntax of OBO files: stanzas of ``tag: value`` lines, escapes, quotes, trailing parts.

A value may be followed by modifiers in braces and by a comment after ``!``::

    is_a: DOID:162 {source="NCIT:C3262"} ! cancer
    synonym: "a \"so-called\" cyst" EXACT OMO:0003012 [NCI:C1] {comment="x"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from biograft.sources.files import read_lines
from biograft.sources.format import SourceConfig
from biograft.sources.limits import Held
from biograft.sources.log import ReadLog

HEADER, DAMAGED = "header", "damaged"

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
    """The tags under one heading, each with its line."""

    kind: str
    line: int
    tags: list[tuple[int, str, str]] = field(default_factory=list)

    def values(self, tag: str) -> list[str]:
        """Give the raw values of a tag."""
        return [value for _, name, value in self.tags if name == tag]


def is_heading(line: str) -> bool:
    """Whether a line opens a stanza of a kind that the format knows."""
    match = _STANZA.fullmatch(line.strip())
    return match is not None and match[1] in ("Term", "Typedef", "Instance")


def read_stanzas(config: SourceConfig, log: ReadLog) -> Iterator[Stanza]:
    """Read the header, then every stanza; what is under a damaged heading stays together."""
    stanza, held = Stanza(HEADER, 1), Held("a stanza", config.path)
    for number, line in _logical_lines(config):
        if line[0] == "[":
            yield stanza
            match = _STANZA.fullmatch(line)
            held.clear()
            stanza = Stanza(match[1] if match else DAMAGED, number)
            if not match:
                log.reject("damaged stanza heading", number, line)
            continue
        held.add(line, number)
        tag, colon, value = line.partition(":")
        if colon:
            stanza.tags.append((number, tag, value.strip()))
        else:
            log.reject("not of the form tag: value", number, line)
    yield stanza


def _logical_lines(config: SourceConfig) -> Iterator[tuple[int, str]]:
    """Join lines that end in a backslash to the next; leave out blank lines and comments."""
    begun: list[str] = []
    first, held = 0, Held("a line, with those that go on with it,", config.path)
    for number, line in read_lines(config.path, config.encoding):
        if line[-1:] == "\\" and _continues(line, begun):
            first = first or number
            begun.append(line[:-1])
            held.add(line, number)
            continue
        if begun:
            number, line = first, "".join((*begun, line))  # noqa: PLW2901
            first = 0
            begun.clear()
            held.clear()
        text = line.strip()
        if text and text[0] != "!":
            yield number, text
    if text := "".join(begun).strip():
        yield first, text


def _continues(line: str, begun: list[str]) -> bool:
    """Whether the last backslash is one of its own, and not in a comment."""
    odd = (len(line) - len(line.rstrip("\\"))) % 2 == 1
    return odd and (bool(begun) or not line.lstrip().startswith("!"))


def unescape(text: str) -> str:
    r"""Resolve escapes: ``\n`` ``\t`` ``\W`` (a blank); any other character stands for itself."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def quoted(value: str) -> tuple[str, list[str]] | None:
    """Take apart ``"text" WORD WORD [...]``: the text, and the words before the brackets."""
    match = _QUOTED.match(value)
    return (unescape(match[1]).strip(), match[2].split()) if match else None


def free_text(value: str) -> str:
    """Give an unquoted text, in which a ``!`` or ``{`` within a word is no mark."""
    if "{" in value and (match := _MODIFIERS.search(value)):
        value = value[: match.start()]
    if "!" in value and (match := _COMMENT.search(value)):
        value = value[: match.start()]
    return unescape(value).strip()


def identifiers(value: str) -> list[str]:
    """Give the identifiers that stand before modifiers and comment."""
    if "!" in value or "{" in value:
        match = _UP_TO_MARK.match(value)
        value = match[0] if match else ""
    words = value.split()
    if "\\" in value:
        words = [word for escaped in words if (word := unescape(escaped).strip())]
    return words


def cross_reference(value: str) -> str:
    """Give the identifier of ``ID "description" {modifiers}``; it may hold ``!``, as URLs do."""
    words = value.split(None, 1)
    return unescape(words[0]).strip() if words and words[0][0] not in '!{"' else ""
