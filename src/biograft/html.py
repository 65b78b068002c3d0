"""HTML pages that are whole in themselves: no script, no network, shown to nobody else."""

from __future__ import annotations

from collections.abc import Iterable
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
_BLANKS = "\t\n\r"


def make_page(about: str, heading: str, style: str, body: Iterable[str]) -> str:
    """Make a page of parts that are HTML already; its title names biograft."""
    parts = [
        f"{_HEAD}<title>biograft: {about}</title>\n<style>{style}</style>\n</head>",
        f"<body>\n<h1>{heading}</h1>",
        *body,
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def escaped(text: str) -> str:
    """Escape a text; what HTML cannot hold becomes the unknown character."""
    return escape("".join("\ufffd" if _is_unknown(sign) else sign for sign in text))


def escaped_line(text: str) -> str:
    """Escape a text and write it on one line."""
    return escaped(" ".join(text.split()))


def _is_unknown(sign: str) -> bool:
    return sign not in _BLANKS and category(sign) in _UNKNOWN
