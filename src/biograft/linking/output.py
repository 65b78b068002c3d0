"""Linked documents as lines for a terminal: columns that stand under one another in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention

HEAD = ("place", "mention", "concept", "name", "score", "found by")
_MOST = {"mention": 40, "name": 44, "found by": 60}
"""How wide a column gets at most."""


def width(text: str) -> int:
    """Count the columns of a terminal that a text takes: two for wide characters, none for marks.

    >>> width("flu"), width("流感")
    (3, 4)
    """
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, most: int) -> str:
    """Cut a text to so many columns, with three dots where something is missing."""
    if width(text) <= most:
        return text
    kept, left = [], most - 3
    for char in text:
        left -= _char_width(char)
        if left < 0:
            break
        kept.append(char)
    return "".join(kept) + "..."


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay rows out in columns; the last is left ragged."""
    if not rows:
        return []
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def table(linked: LinkedDocument) -> list[str]:
    """Give the lines of a document: a mention a line, with its place and its answer."""
    rows = [
        row
        for mention in linked.mentions
        for row in _rows(mention, f"{mention.start}-{mention.end}", 1)
    ]
    return align([HEAD, *rows]) if rows else ["no mention"]


def candidates_table(documents: Iterable[LinkedDocument], shown: int) -> list[str]:
    """Give the lines of documents that are one mention each, with several candidates."""
    rows = [
        row
        for linked in documents
        for mention in linked.mentions
        for row in _rows(mention, linked.document.id, shown)
    ]
    return align([HEAD, *rows]) if rows else ["no mention"]


def _rows(mention: LinkedMention, place: str, shown: int) -> Iterable[tuple[str, ...]]:
    said = _one_line(mention.text)
    if mention.form != mention.text:
        said += f" ({_one_line(mention.form)})"
    said = cut(said, _MOST["mention"])
    if mention.concept is None:
        best = mention.candidates[0].concept_name if mention.candidates else ""
        name = f"nearest: {_one_line(best)}" if best else "nothing found"
        score = _score(mention.candidates[0]) if best else ""
        yield place, said, "NIL", cut(name, _MOST["name"]), score, ""
        return
    for number, candidate in enumerate(mention.candidates[:shown]):
        yield (
            "" if number else place,
            "" if number else said,
            candidate.concept,
            cut(_one_line(candidate.concept_name), _MOST["name"]),
            _score(candidate),
            cut(_evidence(candidate), _MOST["found by"]),
        )


def _score(candidate: Candidate) -> str:
    if candidate.probability is None:
        return f"{candidate.score:.3f}"
    return f"{candidate.score:.3f} (p {candidate.probability:.2f})"


def _evidence(candidate: Candidate) -> str:
    ranks = ", ".join(f"{each.generator} #{each.rank}" for each in candidate.evidence)
    own = _one_line(candidate.name)
    return ranks if own == candidate.concept_name else f"{ranks}: {own}" if ranks else own


def _one_line(text: str) -> str:
    """Keep a text from breaking the lines, or from commanding the terminal."""
    return "".join(" " if unicodedata.category(char) in ("Cc", "Cs") else char for char in text)
