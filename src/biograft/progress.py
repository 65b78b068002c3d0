"""Progress of long work: one line on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO, cast

from biograft.errors import visible
from biograft.language import READER

_REDRAW_SECONDS = 0.2
_CLEAR = "\r\x1b[K"
_LOG_SECONDS = 30.0
"""Between two lines where there is no terminal; shorter work leaves none."""
QUIET = "BIOGRAFT_QUIET"
"""The environment variable that turns off all progress."""


class Progress:
    """A progress line ``training  42%  1,234 rows  3.2 s, 4 s left  loss 0.31  dev f1 0.87``.

    The time left is estimated where the fraction done is known. Without a terminal (a log, a
    notebook) there is a line every half minute, and none for shorter work. Disabled, or with the
    environment variable ``BIOGRAFT_QUIET`` set, nothing is printed.

    Args:
        enabled: Draw the line.
        stream: Where it is drawn; default: stderr.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        *,
        enabled: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        stream = stream or sys.stderr
        # the line is drawn by escapes
        self._stream: TextIO = stream.raw if isinstance(stream, VisibleStream) else stream
        self.enabled, self._on_terminal = enabled and not os.environ.get(QUIET), stream.isatty()
        self._clock = clock
        self._interval = _REDRAW_SECONDS if self._on_terminal else _LOG_SECONDS
        if self.enabled:
            from biograft.compute import announce  # loads multiprocessing

            announce(self._stream)
        self._stage, self._started, self._drawn, self._rows = "", 0.0, 0.0, 0
        self._done_before = 0.0
        self.seconds: dict[str, float] = {}
        self.values: dict[str, float] = {}
        """Numbers of the stage that the line ends in, such as the loss."""

    def start(self, stage: str, fraction: float = 0.0) -> None:
        """Start a stage; the previous one ends.

        Args:
            stage: Name of the stage.
            fraction: Part that an earlier, interrupted call has done, from 0 to 1.
        """
        self.finish()
        self._done_before, self.values = fraction, {}
        self._stage, self._started, self._rows = visible(stage), self._clock(), 0
        self._drawn = self._started
        if self._on_terminal:
            self._draw(None)

    def advance(self, rows: int, fraction: float | None = None) -> None:
        """Count finished rows.

        Args:
            rows: Number of rows.
            fraction: Finished part of the stage from 0 to 1, where known.
        """
        self._rows += rows
        if self._clock() - self._drawn > self._interval:
            self._draw(fraction)

    def finish(self) -> None:
        """End the current stage and record its duration."""
        if self._stage:
            elapsed = self._clock() - self._started
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + elapsed
            if self.enabled and self._on_terminal:
                self._stream.write(_CLEAR)
                self._stream.flush()
        self._stage = ""

    def _draw(self, fraction: float | None) -> None:
        if not self.enabled:
            return
        self._drawn = self._clock()
        percent = f"  {fraction:4.0%}" if fraction is not None else ""
        rows = f"  {self._rows:,} rows" if self._rows else ""
        elapsed = self._drawn - self._started
        left = self._left(elapsed, fraction)
        values = "".join(f"  {name} {value:.4g}" for name, value in self.values.items())
        line = READER.translate(f"{self._stage}{percent}{rows}  {elapsed:.1f} s{left}{values}")
        self._stream.write(f"{_CLEAR}{line}" if self._on_terminal else f"{line}\n")
        self._stream.flush()

    def _left(self, elapsed: float, fraction: float | None) -> str:
        if fraction is None or not self._done_before < fraction < 1:
            return ""
        seconds = elapsed * (1 - fraction) / (fraction - self._done_before)
        amount, unit = in_units(seconds)
        return f", {amount:.0f} {unit} left"


def in_units(seconds: float) -> tuple[float, str]:
    """Return a time in hours, minutes or seconds: the largest unit of which it has two."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return seconds / size, unit
    return seconds, "s"


_ACTING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that :func:`visible` escapes, except whitespace of the output itself."""


class VisibleStream:
    r"""A text stream that shows control characters instead of sending them.

    They become ``\uXXXX``, so that JSON stays what it was. Bytes (``buffer``) are not looked at.
    Lines that the language of the reader has are translated.
    """

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        """Write a text, whatever it holds."""
        shown = "\n".join(map(READER.translate, text.split("\n")))
        self.raw.write(_ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", shown))
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
    """Truncate a text to a number of columns, ending in three dots.

    Args:
        text: A text.
        max_width: Number of columns of a terminal.
    """
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
