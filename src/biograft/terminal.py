"""Text for the terminal: visible control characters, and columns under one another."""

from __future__ import annotations

import contextlib
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO, cast

_ESCAPED = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, halves of surrogate pairs, line and paragraph separators."""
_WHITESPACE = "\t\n\v\f\r"
_BIDI = frozenset(map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
"""Marks, overrides and isolates, which reorder the text around them."""


def visible(text: str) -> str:
    r"""Return a text on one line in which nothing acts on the terminal.

    Line breaks and tabs become spaces. Other control characters, and those that reorder text
    (bidirectional overrides), become escapes.

    >>> visible("flu\x1b[31m\nfever\u202e")
    'flu\\x1b[31m fever\\u202e'
    """
    if text.isprintable():  # such as all but a few names
        return text
    return "".join(map(_visible_char, text))


def _visible_char(char: str) -> str:
    if char in _WHITESPACE:
        return " "
    if char in _BIDI or unicodedata.category(char) in _ESCAPED:
        return char.encode("unicode_escape").decode()
    return char


_ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that :func:`visible` escapes, except whitespace of the output itself."""


class VisibleStream:
    r"""A text stream that shows control characters instead of sending them.

    They become ``\uXXXX``, so that JSON stays what it was. Bytes (``buffer``) are not looked at.
    """

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        """Write a text, whatever it holds."""
        self.raw.write(_ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Let standard output and standard error show control characters while the block lasts."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(cast("Callable[[TextIO], TextIO]", VisibleStream), streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def width(text: str) -> int:
    """Count the terminal columns of a text: two for wide characters, none for combining marks.

    >>> width("flu"), width("流感")
    (3, 4)
    """
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, max_width: int) -> str:
    """Truncate a text to a number of columns, ending in three dots."""
    if width(text) <= max_width:
        return text
    characters, left = [], max_width - 3
    for char in text:
        left -= _char_width(char)
        if left < 0:
            break
        characters.append(char)
    return "".join(characters) + "..."


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows in columns; the last column is not padded."""
    if not rows:
        return []
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
