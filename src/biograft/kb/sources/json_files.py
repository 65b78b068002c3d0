"""JSON input: streaming parser of large documents, and readers of JSON lines."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from biograft.errors import ConfigError, EncodingError, FormatError
from biograft.kb.sources.files import max_value, open_bytes, read_lines, too_large
from biograft.kb.sources.log import ReadLog


def decode_json(text: str, decode: Callable[[str], Any] = json.loads) -> Any:
    """Decode JSON; a lone surrogate, which no file can hold, raises a ``ValueError``.

    Args:
        text: The JSON.
        decode: Decoder.

    >>> decode_json('"x"')
    'x'
    """
    value = decode(text)
    if "\\ud" in text or "\\uD" in text:  # only such an escape can bring one
        json.dumps(value, ensure_ascii=False).encode()
    return value


def peek_object(text: str) -> dict[str, Any]:
    """Decode a JSON object to recognise a format; empty if the text is none.

    >>> peek_object('{"id": 1}'), peek_object("prose")
    ({'id': 1}, {})
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


CHUNK_BYTES = 1 << 20
_MARGIN = 16
"""An error this close to the end of the buffer may only mean that more must be read."""

DUPLICATE = "a key is given twice, and the last counts"
"""Why a JSON object is doubtful."""


class _Objects:
    """Makes objects, and notes the first key that one of them gives twice."""

    def __init__(self) -> None:
        self.duplicate = ""

    def make(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.duplicate = self.duplicate or next(key for key in counts if counts[key] > 1)
        return value

    def take(self) -> str:
        """Return what was noted, and forget it."""
        found, self.duplicate = self.duplicate, ""
        return found


_WHITESPACE = re.compile(r"[ \t\r\n]*")


class JsonStream:
    """A streaming JSON parser: walks objects and arrays, decodes single values.

    Args:
        path: The file, also gzipped.
        encoding: Its encoding.
        log: Counts keys that occur twice.
    """

    def __init__(self, path: Path, encoding: str = "utf-8", log: ReadLog | None = None) -> None:
        self._path, self._encoding, self._log = path, encoding, log
        self._objects = _Objects()
        self._decode = json.JSONDecoder(object_pairs_hook=self._objects.make).raw_decode
        name = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        try:
            b" ".decode(name, "ignore")  # refuses codecs that are not for text, such as hex
            self._decoder = codecs.getincrementaldecoder(name)()
        except LookupError as error:
            raise ConfigError(f"no encoding is called {encoding!r}") from error
        self._file = open_bytes(path)
        self._total = max(path.stat().st_size, 1)
        self._text, self._position = "", 0
        self._line, self._n_counted = 1, 0
        self._ended, self._max_bytes = False, max_value()
        self.has_surrogate = False
        """Whether the value that was decoded last holds half a surrogate pair."""

    def __enter__(self) -> JsonStream:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def line(self) -> int:
        """The line of the next character, from 1."""
        self._line += self._text.count("\n", self._n_counted, self._position)
        self._n_counted = self._position
        return self._line

    @property
    def fraction(self) -> float:
        """The fraction of the file that has been read."""
        return min(self._file.tell() / self._total, 1.0)

    def members(self) -> Iterator[str]:
        """Walk an object: yield its keys; each value must be read, walked or skipped."""
        self._expect("{")
        if self._peek() == "}":
            self._position += 1
            return
        while True:
            if self._peek() != '"':
                self._fail("expected a key in quotes")
            key = str(self.value())
            self._expect(":")
            yield key
            if self._expect(",}") == "}":
                return

    def elements(self) -> Iterator[int]:
        """Walk an array: yield the line of each element, which must be read, walked or skipped."""
        self._expect("[")
        if self._peek() == "]":
            self._position += 1
            return
        while True:
            self._peek()
            yield self.line
            if self._expect(",]") == "]":
                return

    def value(self, *, valid_unicode: bool = False) -> Any:
        """Decode the next value; ``valid_unicode`` refuses lone surrogates in it.

        Keys that are given twice are noted in the log.
        """
        self._peek()
        while True:
            try:
                value, end = self._decode(self._text, self._position)
            except RecursionError:
                self._fail("is nested too deeply")
            except ValueError as error:
                # an error near the end of the buffer may only mean that more must be read
                is_incomplete = isinstance(error, json.JSONDecodeError) and (
                    error.pos >= len(self._text) - _MARGIN or error.msg.startswith("Unterminated")
                )
                if self._ended or not is_incomplete:
                    self._fail("is not valid JSON", str(getattr(error, "msg", error)))
            else:
                # an incomplete number may leave up to two characters unused: 1|e-|7
                if end + 2 < len(self._text) or self._ended:
                    self.has_surrogate = self._finds_surrogate(value, end)
                    if valid_unicode and self.has_surrogate:
                        self._fail("holds half a surrogate pair")
                    if (key := self._objects.take()) and self._log is not None:
                        self._log.doubt(DUPLICATE, self.line, key, path=self._path)
                    self._position = end
                    return value
            self._objects.take()  # it is decoded again, with more of the file
            if len(self._text) - self._position > self._max_bytes:
                raise too_large("one value", self._path, self.line)
            self._fill()

    def skip(self) -> None:
        """Skip the next value without holding all of it in memory."""
        match self._peek():
            case "[":
                for _ in self.elements():
                    self.value()
            case "{":
                for _ in self.members():
                    self.value()
            case _:
                self.value()

    def finish(self) -> None:
        """Check that nothing follows the document."""
        if self._peek():
            self._fail("there is text after the end of the document")

    def _finds_surrogate(self, value: Any, end: int) -> bool:
        """Find a lone surrogate, which only an escape can produce."""
        if any(self._text.find(mark, self._position, end) >= 0 for mark in ("\\ud", "\\uD")):
            try:
                json.dumps(value, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                return True
        return False

    def _expect(self, characters: str) -> str:
        character = self._peek()
        if not character or character not in characters:
            self._fail(f"expected {' or '.join(characters)}")
        self._position += 1
        return character

    def _peek(self) -> str:
        """Skip whitespace and return the next character, empty at the end."""
        while True:
            match = _WHITESPACE.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text) or self._ended:
                return self._text[self._position : self._position + 1]
            self._fill()

    def _fill(self) -> None:
        """Read at least as much as the buffer holds, so that few attempts are repeated."""
        first = self.line
        self._text = self._text[self._position :]
        self._position = self._n_counted = 0
        data = self._file.read(max(CHUNK_BYTES, len(self._text)))
        self._ended = not data
        try:
            self._text += self._decoder.decode(data, final=self._ended)
        except UnicodeError as error:
            problem, line = f"is not {self._encoding} ({error})", first + self._text.count("\n")
            if isinstance(error, UnicodeDecodeError):
                problem = f"byte 0x{error.object[error.start]:02x} is not {self._encoding}"
                line += error.object.count(b"\n", 0, error.start)
            raise EncodingError(
                problem, path=self._path, line=line, remedy="name the encoding"
            ) from error

    def _fail(self, problem: str, detail: str = "") -> NoReturn:
        rest = self._text[self._position : self._position + 200].partition("\n")[0]
        raise FormatError(
            f"{problem} ({detail})" if detail else problem,
            path=self._path,
            line=self.line,
            text=rest or "the end of the file",
            remedy="check that the file is JSON and complete",
        )


@dataclass(frozen=True, slots=True)
class JsonRow:
    """An object of a file."""

    line: int
    value: Any
    written: str = ""
    """Its text, where it is known, or what it is called."""

    @property
    def text(self) -> str:
        """Its text."""
        return self.written or json.dumps(self.value, ensure_ascii=False)


def first_object(text: str) -> dict[str, Any]:
    r"""Decode the first object of JSON lines, or of a JSON list, to recognise a format.

    Args:
        text: The beginning of a file.

    >>> first_object('[\n  {"id": 1},\n  {"id"'), first_object('{"id": 2}\n{"id": 3}')
    ({'id': 1}, {'id': 2})
    """
    start = text.find("{")
    if start < 0 or text[:start].strip() not in ("", "["):
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def is_list(path: Path, encoding: str = "utf-8") -> bool:
    """Whether a file begins as a JSON list does.

    Args:
        path: The file, also gzipped.
        encoding: Its encoding.
    """
    first = next((line for _, line in read_lines(path, encoding) if line.strip()), "")
    return first.lstrip().startswith("[")


def list_objects(stream: JsonStream, log: ReadLog, path: Path) -> Iterator[JsonRow]:
    """Read the objects of the list that comes next in a file; other values are rejected.

    Args:
        stream: The file.
        log: Counts elements read, and rejected by reason.
        path: The file, for the log.
    """
    for number in stream.elements():
        log.read(fraction=stream.fraction)
        row = JsonRow(number, stream.value())
        if stream.has_surrogate:
            log.reject("holds half a surrogate pair", number, row.text, path=path)
        elif isinstance(row.value, dict):
            yield row
        else:
            log.reject("not a JSON object", number, row.text, path=path)


def read_objects(path: Path, log: ReadLog, encoding: str = "utf-8") -> Iterator[JsonRow]:
    """Read the objects of a JSON lines file, or of a JSON list; other values are rejected.

    Args:
        path: The file, also gzipped.
        log: Counts lines or elements read, and rejected by reason.
        encoding: Its encoding.
    """
    log.opened(path)
    if is_list(path, encoding):
        with JsonStream(path, encoding, log) as stream:
            yield from list_objects(stream, log, path)
            stream.finish()
        return
    objects = _Objects()
    decode = json.JSONDecoder(object_pairs_hook=objects.make).decode
    for number, line in read_lines(path, encoding):
        if not line.strip():
            continue
        log.read()
        try:
            value = decode_json(line, decode)
        except UnicodeEncodeError:
            log.reject("holds half a surrogate pair", number, line, path=path)
        except (ValueError, RecursionError) as error:
            log.reject("not JSON", number, f"{line[:40]} ({error})", path=path)
        else:
            if key := objects.take():
                log.doubt(DUPLICATE, number, key, path=path)
            if isinstance(value, dict):
                yield JsonRow(number, value, line)
            else:
                log.reject("not a JSON object", number, line, path=path)
