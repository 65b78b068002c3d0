"""Marked texts of tests/data/assertions: one a line, ``[fever/n]`` is a negated mention."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "assertions"
LETTERS = {
    "n": "negated",
    "u": "uncertain",
    "h": "historical",
    "y": "hypothetical",
    "f": "family",
    "o": "other_person",
    "c": "conditional",
    "a": "active",
    "r": "resolved",
    "e": "recurrent",
    "l": "unlikely",
    "p": "planned",
    "d": "donor",
}
_MENTION = re.compile(r"\[([^\[\]/]+)(?:/([a-z]+))?\]")


def parse(line: str) -> tuple[str, list[tuple[int, int]], list[set[str]]]:
    """Return a text, the spans of its mentions, and their flags."""
    source = line.replace("\\n", "\n")
    text, done, spans, flags = "", 0, [], []
    for match in _MENTION.finditer(source):
        text += source[done : match.start()]
        done = match.end()
        spans.append((len(text), len(text) + len(match[1])))
        text += match[1]
        flags.append({LETTERS[letter] for letter in match[2] or ""})
    return text + source[done:], spans, flags


def marked_lines(language: str) -> list[str]:
    lines = (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]
