"""Self-contained HTML pages: no script, no network access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from unicodedata import category

_HEAD = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "style-src 'unsafe-inline'\">\n"
)
_UNKNOWN = ("Cc", "Cs")
"""Control characters, and halves of surrogate pairs."""
_WHITESPACE = "\t\n\r"


def make_page(about: str, heading: str, style: str, body: Iterable[str]) -> str:
    """Build a page of parts that are HTML already; its title names biograft."""
    return "\n".join([*page_parts(about, heading, style, body), ""])


def page_parts(about: str, heading: str, style: str, body: Iterable[str]) -> Iterator[str]:
    """Give the lines of a page one after the other, for one that is too long to be kept."""
    yield f"{_HEAD}<title>biograft: {about}</title>\n<style>{style}</style>\n</head>"
    yield f"<body>\n<h1>{heading}</h1>"
    yield from body
    yield "</body>\n</html>"


def escaped(text: str) -> str:
    """Escape a text; characters that HTML cannot hold become the replacement character."""
    return escape("".join("\ufffd" if _is_unknown(char) else char for char in text))


def escaped_line(text: str) -> str:
    """Escape a text and write it on one line."""
    return escaped(" ".join(text.split()))


def _is_unknown(char: str) -> bool:
    return char not in _WHITESPACE and category(char) in _UNKNOWN
