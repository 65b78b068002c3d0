"""Display of objects: one line at the prompt, a table or the marked text in a notebook.

The HTML has no script and no style sheet. Its colours are translucent, so that it is readable on a
dark page as on a light one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from html import escape
from itertools import starmap
from typing import Any, Protocol, TypeVar
from unicodedata import category
from zlib import crc32

from biograft.errors import shorten

_LINE, _VALUE, _CELL, _ITEMS = 200, 60, 500, 8
_UNKNOWN = ("Cc", "Cs")
"""Control characters, and halves of surrogate pairs."""
_WHITESPACE = "\t\n\r"


class Shown:
    """A base of dataclasses that shows their fields: short, and without empty ones."""

    __slots__ = ()

    def shown(self) -> dict[str, Any]:
        """Return what is shown, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        name, filled = type(self).__name__, _filled(self.shown())
        values = ", ".join(f"{key}={text}" for key, text in starmap(_brief, filled))
        return f"{name}({shorten(values, _LINE - len(name) - 2)})"

    def _repr_html_(self) -> str:
        return table(_filled(self.shown()))


def _filled(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in values.items() if value not in (None, "", (), [], {})]


def _brief(name: str, value: Any) -> tuple[str, str]:
    """Return a field on little space: longer sequences as their number."""
    text = repr(value)
    if len(text) > _VALUE and isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return f"n_{name}", f"{len(value):,}"
    return name, shorten(text, _VALUE)


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Build a table in HTML.

    Args:
        rows: Rows of values.
        head: Names of the columns.
    """
    lines = [_row(head, "th")] if head else []
    lines += [_row(row, "td") for row in rows]
    return f'<table class="tex2jax_ignore">{"".join(lines)}</table>'


def _row(cells: Sequence[Any], tag: str) -> str:
    made = (f'<{tag} style="text-align:start">{escaped(_cell(cell))}</{tag}>' for cell in cells)
    return f"<tr>{''.join(made)}</tr>"


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        value = [f"{name}: {_cell(each)}" for name, each in value.items()]
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        more = f"; ... ({len(value):,})" if len(value) > _ITEMS else ""
        return "; ".join(map(_cell, value[:_ITEMS])) + more
    named = (getattr(value, each, None) for each in ("text", "label", "code", "id", "concept"))
    text = next((each for each in named if each and isinstance(each, str)), value)
    return shorten("" if text is None else str(text), _CELL)


def escaped(text: str) -> str:
    """Escape a text; characters that HTML cannot hold become the replacement character."""
    return escape("".join("\ufffd" if _is_unknown(char) else char for char in text))


def _is_unknown(char: str) -> bool:
    return char not in _WHITESPACE and category(char) in _UNKNOWN


class Span(Protocol):
    """A part of a text."""

    @property
    def start(self) -> int:
        """Its first character."""

    @property
    def end(self) -> int:
        """The character after it."""


S = TypeVar("S", bound=Span)


def stretches(spans: Sequence[S]) -> Iterator[tuple[int, int, list[S]]]:
    """Group overlapping mentions, and the parts of a composite, into one stretch of text.

    Args:
        spans: Mentions, in any order.
    """
    stretch: list[S] = []
    for span in sorted(spans, key=lambda m: (m.start, -m.end)):
        if stretch and span.start >= max(m.end for m in stretch):
            yield stretch[0].start, max(m.end for m in stretch), stretch
            stretch = []
        stretch.append(span)
    if stretch:
        yield stretch[0].start, max(m.end for m in stretch), stretch


def marked(text: str, marks: Iterable[tuple[int, int, str, str]]) -> str:
    """Escape a text with HTML around some of its stretches.

    Args:
        text: The text.
        marks: Start, end, HTML before and HTML after each, in their order.
    """
    done, parts = 0, [""]
    for start, end, before, after in marks:
        parts += escaped(text[done:start]), before, escaped(text[start:end]), after
        done = end
    return "".join([*parts, escaped(text[done:])])


def highlighted(text: str, marks: Iterable[tuple[int, int, str, str, str]]) -> str:
    """Show a text with its mentions highlighted, for a notebook.

    Args:
        text: The text.
        marks: Start and end of each, what its colour stands for (empty: NIL), its status and title.
    """
    around = [
        (start, end, f'<mark style="{_style(kind, status)}" title="{escaped(title)}">', "</mark>")
        for start, end, kind, status, title in marks
    ]
    style = "white-space:pre-wrap;line-height:1.8;max-width:70rem"
    return f'<div class="tex2jax_ignore" dir="auto" style="{style}">{marked(text, around)}</div>'


def _style(kind: str, status: str) -> str:
    colour = f"hsl({crc32(kind.encode()) % 360} 80% 50% / "
    style = "color:inherit;border-radius:.2em;padding:0 .12em;" + (
        f"background:{colour}.25);border-bottom:2px solid {colour}.8)"
        if kind
        else "background:none;border-bottom:2px dashed"
    )
    return f"{style};text-decoration:line-through" if status == "absent" else style
