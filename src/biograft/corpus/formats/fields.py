"""Fields of JSON objects, of the types that a format says they have."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from biograft.documents import Mention
from biograft.errors import FormatError
from biograft.sources.format import Probe
from biograft.sources.json_files import peek_object
from biograft.sources.log import ReadLog

T = TypeVar("T")


class MalformedError(Exception):
    """A record is not what its format says."""


def first_object(probe: Probe) -> dict[str, Any]:
    """Give the object of a file's first line; empty if there is none."""
    return peek_object(next(iter(probe.lines(1)), ""))


def field(value: Any, key: str, kind: type[T], default: T | None = None) -> T:
    """Give a value of an object, which must be of a type; a missing one is the default."""
    if not isinstance(value, dict):
        raise MalformedError("expected an object")
    found = value.get(key, default)
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise MalformedError(f"{key} is missing or no {_NAMES.get(kind, kind.__name__)}")
    return found


def fields(value: Any, key: str, kind: type[T]) -> list[T]:
    """Give a list of an object whose elements must be of a type; a missing one is empty."""
    found = field(value, key, list, [])
    if not all(isinstance(each, kind) for each in found):
        raise MalformedError(f"{key} holds what is no {_NAMES.get(kind, kind.__name__)}")
    return found


_NAMES: dict[type[Any], str] = {
    str: "text", int: "whole number", list: "list", dict: "object",
}  # fmt: skip


def refuse_empty(path: Path) -> FormatError:
    """Say that a file holds no JSON document of the format."""
    return FormatError("holds no list of documents", path=path, remedy="name the right format")


Spans: TypeAlias = tuple[tuple[int, int], ...]

_SEARCHED = 20
"""How far from its place a mention is looked for whose offsets are wrong, in characters."""
_SHIFTED = 3
"""How far from its place each piece of a mention with gaps is looked for, in characters."""
_MOST_PIECES = 4
_BLANKS = re.compile(r"\s+")


class Placer:
    """Makes the mentions of one text; what is wrong with them goes into the log."""

    def __init__(self, text: str, log: ReadLog, path: Path) -> None:
        self.text = text
        self._log, self._path = log, path

    def mention(
        self, spans: Spans, written: str | None, line: int, shown: str = ""
    ) -> Mention | None:
        """Give the mention whose file says it stands there and reads so."""
        shown = shown or f"{spans} {written}"
        placed, doubt = self._place(tuple(sorted(spans)), written)
        if not placed:
            self._log.reject("offsets do not fit the text", line, shown, path=self._path)
            return None
        if doubt:
            self._log.doubt(doubt, line, shown, path=self._path)
        pieces = placed if len(placed) > 1 else ()
        return Mention(placed[0][0], placed[-1][1], self._joined(placed), pieces=pieces)

    def _place(self, spans: Spans, written: str | None) -> tuple[Spans, str]:
        """Give where a mention is (nowhere: no spans), and what is wrong with what was said."""
        if self._within(spans):
            found = self._joined(spans)
            if written is None or _same(found, written, len(spans)):
                return spans, ""
            if _same(found.casefold(), written.casefold(), len(spans)):
                return spans, "the text is written otherwise"
        if not spans or written is None:
            return (), ""
        mended = (
            self._near(spans[0][0], written) if len(spans) == 1 else self._shift(spans, written)
        )
        return mended, "offsets were set right"

    def _within(self, spans: Spans) -> bool:
        bounds = [bound for span in spans for bound in span]
        rising = all(a < b for a, b in spans) and bounds == sorted(bounds)
        return bool(bounds) and rising and bounds[0] >= 0 and bounds[-1] <= len(self.text)

    def _joined(self, spans: Spans) -> str:
        return " ".join(self.text[start:end] for start, end in spans)

    def _near(self, start: int, written: str) -> Spans:
        bare = written.strip()
        if not bare:
            return ()
        low = max(0, start - _SEARCHED)
        window = self.text[low : start + len(bare) + _SEARCHED]
        places = [m.start() + low for m in re.finditer(f"(?={re.escape(bare)})", window)]
        nearest = min(places, key=lambda place: (abs(place - start), place), default=None)
        return () if nearest is None else ((nearest, nearest + len(bare)),)

    def _shift(self, spans: Spans, written: str) -> Spans:
        """Move each piece a little until they read as they should."""
        if len(spans) > _MOST_PIECES:
            return ()
        shifts = itertools.product(range(-_SHIFTED, _SHIFTED + 1), repeat=len(spans))
        for moves in sorted(shifts, key=lambda moves: sum(map(abs, moves))):
            moved = tuple((a + by, b + by) for (a, b), by in zip(spans, moves, strict=True))
            if self._within(moved) and _squeezed(self._joined(moved)) == _squeezed(written):
                return tuple(self._trimmed(*span) for span in moved)
        return ()

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        piece = self.text[start:end]
        return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _same(found: str, written: str, n_pieces: int) -> bool:
    """Whether both read alike; line ends may be written as blanks, pieces joined by nothing."""
    if found == written or _BLANKS.sub(" ", found) == _BLANKS.sub(" ", written):
        return True
    bare = n_pieces > 1 and found == found.strip() and "  " not in found
    return bare and _squeezed(found) == _squeezed(written)


def _squeezed(text: str) -> str:
    return _BLANKS.sub("", text)
