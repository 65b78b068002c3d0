"""Shared parts of readers and writers: typed JSON fields, offsets, ids, XML elements."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from biograft.errors import FormatError, OutputError
from biograft.kb.sources.format import Probe
from biograft.kb.sources.json_files import JsonStream, peek_object
from biograft.kb.sources.log import ReadLog
from biograft.text.documents import Document, Mention

T = TypeVar("T")


class MalformedError(Exception):
    """A record does not have the structure that its format requires."""


def first_object(probe: Probe) -> dict[str, Any]:
    """Return the JSON object on the first line of a file, or an empty one."""
    return peek_object(next(iter(probe.lines(1)), ""))


def field(value: Any, key: str | int, kind: type[T], default: T | None = None) -> T:
    """Return the value of a key, checked to have a type; the default if the key is missing."""
    if not isinstance(value, dict):
        raise MalformedError("expected an object")
    content = value.get(key, default)
    if not isinstance(content, kind) or (isinstance(content, bool) and kind is not bool):
        raise MalformedError(f"{key} is missing or no {_NAMES.get(kind, kind.__name__)}")
    return content


def fields(value: Any, key: str, kind: type[T]) -> list[T]:
    """Return the list under a key, its elements checked to have a type; empty if missing."""
    content = field(value, key, list, [])
    if not all(isinstance(each, kind) for each in content):
        raise MalformedError(f"{key} holds what is no {_NAMES.get(kind, kind.__name__)}")
    return content


_NAMES: dict[type[Any], str] = {
    str: "text", int: "whole number", list: "list", dict: "object",
}  # fmt: skip


def refuse_empty(path: Path) -> FormatError:
    """Return the error for a JSON file without documents of the format."""
    return FormatError("holds no list of documents", path=path, remedy="name the right format")


Spans: TypeAlias = tuple[tuple[int, int], ...]

_SEARCH_WINDOW = 20
"""Search distance for a mention with wrong offsets, in characters."""
_MAX_SHIFT = 3
"""Largest shift of each fragment of a mention with gaps, in characters."""
_MAX_FRAGMENTS = 4
_WHITESPACE = re.compile(r"\s+")


class OffsetChecker:
    """Makes the mentions of one text; corrects or rejects wrong offsets and logs them."""

    def __init__(self, text: str, log: ReadLog, path: Path) -> None:
        self.text = text
        self._log, self._path = log, path

    def mention(
        self, spans: Spans, written: str | None, line: int, excerpt: str = ""
    ) -> Mention | None:
        """Make a mention of the spans and the text that a file gives; None if they do not fit."""
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


def refuse_surrogate(stream: JsonStream) -> None:
    """Reject a record whose JSON was decoded last if it holds what no file can."""
    if stream.has_surrogate:
        raise MalformedError("holds half a surrogate pair")


def encode_text(text: str, document: Document) -> bytes:
    """Encode text as UTF-8; the error for half a surrogate pair names the document."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OutputError(
            f"document {document.id!a}: holds half a surrogate pair, which no file can"
        ) from error


def join_ids(values: Iterable[str], document: Document, kind: str) -> str:
    """Join ids or parts by ``|``; one that could not be split again is refused."""
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
    """Write an XML element that holds only text."""
    from xml.sax.saxutils import escape  # brings all of http with it

    content = escape(text, {"\r": "&#13;"})
    return f"<{xml_tag(tag, attributes)}>{content}</{tag}>"


def xml_tag(tag: str, attributes: dict[str, str]) -> str:
    """Write the name and attributes of a start tag."""
    from xml.sax.saxutils import quoteattr

    entities = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}
    return "".join([tag, *(f" {name}={quoteattr(v, entities)}" for name, v in attributes.items())])


def document_path(folder: Path, document: Document, suffix: str) -> Path:
    """Return the path of a document's file, and create the folders that its id names."""
    parts = document.id.split("/")
    invalid = any(part in ("", ".", "..") or len(part.encode()) > _MAX_NAME_BYTES for part in parts)
    if invalid or any(character in document.id for character in "\0\\\n\r"):
        raise OutputError(f"document id {document.id!r}: no file can have that name")
    path = folder.joinpath(*parts[:-1], f"{parts[-1]}{suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
