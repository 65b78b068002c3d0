"""Watch the bytes of an XML document on their way to a parser: what in them could fill memory.

Entities are the short hands of some ontologies (``<!ENTITY obo "http://...">``), so they are not
refused as such. Those that stand for other entities are, for these grow by powers, and what the
rest stand for is counted. Parsers differ in where they take a declaration to be one, hence it is
looked for everywhere.
"""

from __future__ import annotations

import re
from pathlib import Path

from biograft.errors import FormatError
from biograft.sources.files import refuse_utf16
from biograft.sources.limits import Expansion, max_value, too_large

MAX_ENTITY = 4096
"""Bytes that one entity may stand for."""
_MARK = b"<!ENTITY"
_OPENED = re.compile(rb"<!ENTITY\s+(?:%\s+)?([^\s\"'>]+)\s+([\"'])")
_NESTED = re.compile(rb"&(?!#|(?:lt|gt|amp|apos|quot);)")
_AMPERSAND = re.compile(rb"&#(?:0*38|x0*26);", re.IGNORECASE)
_REFERENCE = re.compile(rb"&([^\s;&<#]{1,256});")
_HELD = MAX_ENTITY + 1024
"""Bytes of a declaration that are waited for, its name included."""
_SEAM = 8
"""No mark looked for is longer."""


class XmlGuard:
    """Sees all bytes of one document in their order, and refuses those that are not to be parsed.

    ``line`` is not known here; a whole document is one call of ``feed``.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._most, self._expansion = path, max_value(), Expansion(path)
        self._lengths: dict[bytes, int] = {}
        self._seen = self._grown = 0
        self._declaring = self._before = b""
        self._run = 0
        """Bytes since the last markup began, with what entities among them stand for."""
        self._aside: int | None = None
        """Bytes since a comment or a section of characters began, if in one."""

    @property
    def size(self) -> int:
        """How much has been seen, with what entities in it stand for."""
        return self._seen + self._grown

    def feed(self, data: bytes) -> None:
        """See the next bytes."""
        if not self._seen:
            refuse_utf16(data[:4], self._path)
            if b"\0" in data[:4]:
                raise FormatError("is no UTF-8", path=self._path, remedy="convert it to UTF-8")
        self._seen += len(data)
        self._declare(self._declaring + data)
        grown = 0
        if self._lengths:
            grown = sum(self._lengths.get(name, 0) for name in _REFERENCE.findall(data))
            self._grown += grown
            self._expansion.check(self._seen, self.size, "its entities are written out")
        self._measure(data, grown)

    def _declare(self, window: bytes) -> None:
        """Learn the entities that are declared, each to its end."""
        at = window.find(_MARK)
        while at >= 0:
            opened = _OPENED.match(window, at)
            end = window.find(opened[2], opened.end()) if opened else window.find(b">", at)
            if opened and end >= 0:
                self._learn(opened[1], window[opened.end() : end])
            elif end < 0:
                if len(window) - at > _HELD:
                    raise self._refused(f"an entity of over {MAX_ENTITY} bytes")
                self._declaring = window[at:]
                return
            at = window.find(_MARK, at + len(_MARK))
        self._declaring = window[1 - len(_MARK) :]

    def _learn(self, name: bytes, value: bytes) -> None:
        if len(value) > MAX_ENTITY:
            raise self._refused(f"an entity of over {MAX_ENTITY} bytes")
        if _NESTED.search(_AMPERSAND.sub(b"&", value)):
            raise self._refused("entities that stand for other entities")
        self._lengths[name] = max(len(value), self._lengths.get(name, 0))

    def _refused(self, what: str) -> FormatError:
        return FormatError(
            f"the XML declares {what}, which are not read",
            path=self._path,
            remedy="write out what they stand for",
        )

    def _measure(self, data: bytes, grown: int) -> None:
        """Refuse a text, tag or comment without end: parsers hold one whole."""
        window = self._before + data
        self._before = window[-_SEAM:]
        last = data.rfind(b"<")
        self._run = (len(data) - last if last >= 0 else self._run + len(data)) + grown
        begun = max(window.rfind(b"<!--"), window.rfind(b"<![CDATA["))
        ended = max(window.rfind(b"-->"), window.rfind(b"]]>"))
        if begun > ended:
            inside = self._aside is not None and ended < 0
            self._aside = (self._aside or 0) + len(data) if inside else len(window) - begun
        elif ended >= 0:
            self._aside = None
        elif self._aside is not None:
            self._aside += len(data)
        if max(self._run, self._aside or 0) > self._most:
            raise too_large("a text, tag or comment", self._path)
