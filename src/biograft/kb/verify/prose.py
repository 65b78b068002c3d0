"""Ids with the labels beside them in Markdown and any other text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from biograft.kb.verify.pairs import Pair, PairFinder, SourceText

_ID_IN_TEXT = re.compile(
    r"https?://[^\s<>\"')\]|]+[\w]|(?<![\w:/.-])[A-Za-z][\w.]*:[A-Za-z_]{0,4}\d[\w.-]*\w"
    r"|(?<![\w:/.-])(?:[CDQ]\d{6,9})(?!\w)"
)

_LINE = re.compile(r"[^\n]+")
_BESIDE_AFTER = re.compile(
    r"""\s*(?:\]\([^)]*\))?\s*(?:
        \(\s*(?P<round>[^()]*(?:\([^()]*\)[^()]*)*)\)
        |["'“](?P<quoted>[^"'”]+)["'”]
        |!\s*(?P<mark>[^\n{]+)
        |\|\s*(?P<cell>[^|]+?)\s*(?=\||$)
    )""",
    re.VERBOSE,
)
_LINK = re.compile(r"\[([^\[\]]+)\]\(\s*[^()\s]*$")
_BEFORE = re.compile(r"(?P<label>[^|\n;:!?。；：]*?)\s*(?:[(\[<（【]\s*)$")
_CELL_BEFORE = re.compile(r"\|\s*(?P<label>[^|]*?)\s*\|\s*$")
_LOOSE = re.compile(r"\s*(?:[-–—:=]\s+)?(?P<loose>[A-Za-z\u3400-\u9fff][^\n|;()\[\]<>]*)")


def prose_pairs(source: SourceText, finder: PairFinder) -> Iterator[Pair]:
    """Yield every id with the label beside it.

    Args:
        source: The file.
        finder: What is looked for.
    """
    for line in _LINE.finditer(source.text):
        text, at = line[0], line.start()
        ids = [each for each in _ID_IN_TEXT.finditer(text) if finder.is_id(each[0])]
        for n, each in enumerate(ids):
            until = ids[n + 1].start() if n + 1 < len(ids) else len(text)
            since = ids[n - 1].end() if n else 0
            pair = Pair(each[0], "", at + each.start(), at + each.end())
            found = _label_beside(text, each.start(), each.end(), since, until)
            if found is not None:
                start, end, exact = found
                label = text[start:end]
                pair = pair._replace(
                    label=label,
                    label_start=at + start if exact else -1,
                    label_end=at + end if exact else -1,
                    exact=exact,
                )
            yield pair


def _label_beside(
    text: str, start: int, end: int, since: int, until: int
) -> tuple[int, int, bool] | None:
    """Return where the label of an id in a line stands, and whether it is exactly this.

    Args:
        text: The line.
        start: Where the id begins.
        end: Where it ends.
        since: Where the id before it ends.
        until: Where the next id begins.
    """
    before = text[since:start]
    if link := _LINK.search(before):
        return since + link.start(1), since + link.end(1), True
    tail = text[end:until]
    if (found := _BESIDE_AFTER.match(tail)) and found.lastgroup:
        label = found[found.lastgroup]
        at = end + found.start(found.lastgroup)
        if any(map(str.isalpha, label)):
            return at, at + len(label.rstrip()), True
    if (cell := _CELL_BEFORE.search(before)) and any(map(str.isalpha, cell["label"])):
        return since + cell.start("label"), since + cell.end("label"), True
    if (found := _BEFORE.search(before)) and found["label"].strip():
        lead = len(found["label"]) - len(found["label"].lstrip(" -*•,"))
        return since + found.start("label") + lead, since + found.end("label"), False
    return None
