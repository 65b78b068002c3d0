"""RDF files as a stream of triples: RDF/XML, Turtle and N-Triples, told apart by content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from biograft.errors import EncodingError, FormatError, MissingExtraError
from biograft.sources.files import open_bytes
from biograft.sources.xml_guard import XmlGuard
from biograft.sources.xml_records import root_name

if TYPE_CHECKING:
    from types import ModuleType

RDF_XML, TURTLE, N_TRIPLES = "RDF/XML", "Turtle", "N-Triples"

_TURTLE = re.compile(r"(?:@prefix|PREFIX)\s+[\w.-]*:\s*<|(?:@base|BASE)\s+<", re.IGNORECASE)
_N_TRIPLE = re.compile(r"(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+[<_\"].*\.\s*(?:#.*)?$")
_CLOSED = re.compile(rb"</(?:[\w.-]+:)?RDF\s*>|<(?:[\w.-]+:)?RDF\s[^<>]*/>")
_TAIL_BYTES = 1 << 16
_BASE = "file:///"
"""What relative IRIs are resolved against in a file that declares no base."""


def rdf_syntax(text: str) -> str:
    """Name the RDF syntax of a text by its beginning; empty if it is none."""
    if root_name(text).rpartition(":")[2] == "RDF":
        return RDF_XML
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if _TURTLE.match(line.lstrip()):
            return TURTLE
        return N_TRIPLES if _N_TRIPLE.match(line.lstrip()) else ""
    return ""


class _Tail:
    """A file that remembers the last bytes read and how much of it has been read."""

    def __init__(self, path: Path, guard: XmlGuard | None) -> None:
        self._file, self._size = open_bytes(path), max(path.stat().st_size, 1)
        self._guard, self.tail = guard, b""

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if data:
            if self._guard is not None:
                self._guard.feed(data)
            self.tail = (self.tail + data)[-_TAIL_BYTES:] if len(data) < _TAIL_BYTES else data
        return data

    @property
    def fraction(self) -> float:
        return min(self._file.tell() / self._size, 1.0)

    def close(self) -> None:
        self._file.close()


class Triples:
    """The triples of one file, each with subject, predicate and object, in the file's order."""

    def __init__(self, path: Path, syntax: str) -> None:
        self._path, self._syntax = path, syntax
        self._oxigraph = import_oxigraph()
        self._file = _Tail(path, XmlGuard(path) if syntax == RDF_XML else None)

    @property
    def fraction(self) -> float:
        """How much of the file has been read."""
        return self._file.fraction

    def __iter__(self) -> Iterator[Any]:
        """Read the file once; damage is told with its line."""
        rdf_format = getattr(
            self._oxigraph.RdfFormat, self._syntax.replace("/", "_").replace("-", "_").upper()
        )
        try:
            # lenient, since published ontologies hold many IRIs that are none by the book
            yield from self._oxigraph.parse(
                input=self._file, format=rdf_format, base_iri=_BASE, lenient=True
            )
            if self._syntax == RDF_XML and not _CLOSED.search(self._file.tail):
                raise SyntaxError("it ends before its root element does")
        except (SyntaxError, ValueError) as error:
            raise self._damage(error) from error
        except MemoryError as error:  # the parser's own limit, of one name, text or statement
            message = " ".join(str(error).split())
            raise FormatError(
                f"a name or text in the {self._syntax} is too large ({message})",
                path=self._path,
                remedy="check that it is what it should be, and complete",
            ) from error
        finally:
            self._file.close()

    def _damage(self, error: Exception) -> FormatError | EncodingError:
        line = getattr(error, "lineno", None)
        message = " ".join(str(getattr(error, "msg", "") or error).split())
        if self._syntax == RDF_XML and line is None:
            line, message = _xml_damage(self._path) or (None, message)
        kind = EncodingError if "UTF-8" in message else FormatError
        return kind(
            f"the {self._syntax} is damaged or cut short ({message})",
            path=self._path,
            line=line,
            remedy="convert it to UTF-8" if kind is EncodingError else "fetch the file again",
        )


def import_oxigraph() -> ModuleType:
    """Import the RDF parser, or say how to install it."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtraError("owl", "reading OWL and SKOS") from error
    return pyoxigraph  # type: ignore[no-any-return,unused-ignore]


def _xml_damage(path: Path) -> tuple[int, str] | None:
    """Find the line at which a document stops being XML, which the RDF parser does not tell."""
    parser = expat.ParserCreate()
    try:
        with open_bytes(path) as file:
            while data := file.read(1 << 20):
                parser.Parse(data, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        return error.lineno, expat.errors.messages[error.code]
    except (ValueError, LookupError):
        return None
    return None
