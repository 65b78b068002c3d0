"""Layout of a note: blanks and line breaks that only wrap a sentence are folded into one blank.

Rules, scopes and gaps are defined on sentences with single blanks. What the layout of a text means
stays: line breaks between statements, blank lines, headings, list items, and the gap between two
columns, *Fever: no   Cough: yes*. A line goes on in the next one where

* it is long, or its last word or mark cannot end a statement (*no*, *of*, a comma);
* the next line begins with a word or mark that cannot begin one (*or*);
* it began with a capital letter, and the next one does not;
* it began with a small letter, and lines that do so, too, follow up to a full stop.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

BULLET = re.compile(r"[ \t]*(?:[-*•·–]|\[.?\]|\(?\d{1,2}[.)、]|[a-z][.)])(?=\D)")
"""Beginning of a list item, at the start of a line."""
_GAP = re.compile(r"[^\S\n]*\n[^\S\n]*|[^\S\n]{2,}|\t")
"""Whitespace that is not a single blank."""
_COLUMN = re.compile(r"[^\W\d][\w /()-]{0,30}[:：]")
"""The label of a column."""
_MIN_WRAPPED = 50
"""Characters of a line that may have been wrapped; a shorter one may be a statement."""
_GOES_ON = re.compile(
    r"(?:,|[、，]"
    r"|\b(?:an?|and|any|are|as|at|by|for|from|had|has|have|her|his|if|in|is|no|nor|not|of|on|or|than"
    r"|that|the|this|to|was|were|when|which|who|with|without)"
    r"|^[^:]*\bden(?:y|ied|ies|ying)|(?:^|[，。；、：])[^\S\n]*(?:患者|病人)?(?:无|否认|未见|没有))$"
)
_CONTINUES = re.compile(r"(?:and|but|for|nor|of|or|than|to)\b|[,，、)）]|[或及和]")
_ENDED = ".:;!?。；：！？"


class FoldedText:
    """A text whose wrapped lines and runs of blanks are single blanks, with offsets both ways."""

    def __init__(self, text: str, headings: Sequence[tuple[int, int]]) -> None:
        """Fold a text; ``headings`` are the spans of headings, whose line breaks stay."""
        gaps = _find_gaps(text, headings)
        self._starts = [start for start, _ in gaps]
        self._removed = [0, *accumulate(end - start - 1 for start, end in gaps)]
        self._folded = [
            start - removed for start, removed in zip(self._starts, self._removed, strict=False)
        ]
        self._ends = [end for _, end in gaps]
        bounds = zip([0, *self._ends], [*self._starts, len(text)], strict=True)
        self.text = " ".join(text[start:end] for start, end in bounds)

    def fold(self, offset: int) -> int:
        """Return the offset in the folded text of an offset in the original text."""
        before = bisect_left(self._starts, offset)
        if before and offset < self._ends[before - 1]:
            return self._folded[before - 1] + 1
        return offset - self._removed[before]

    def unfold(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text of a span of the folded text."""
        first = bisect_left(self._folded, start)
        last = bisect_left(self._folded, max(end - 1, start))
        return start + self._removed[first], end + self._removed[last]


def needs_folding(text: str) -> bool:
    """Return True if a text has whitespace that is not a single blank."""
    return _GAP.search(text) is not None


def _find_gaps(text: str, headings: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of whitespace that stands for a single blank."""
    starts = [start for start, _ in headings]
    gaps: list[tuple[int, int]] = []
    line_start = 0  # of the first of the lines that were wrapped
    for gap in _GAP.finditer(text):
        start, end = gap.span()
        if start == 0 or end == len(text):
            continue
        if "\n" not in gap[0]:
            labelled = ":" in text[line_start:start] or "：" in text[line_start:start]
            if not (labelled and _COLUMN.match(text, end)):
                gaps.append((start, end))
            continue
        heading = bisect_right(starts, start) - 1
        in_heading = heading >= 0 and start <= headings[heading][1]
        if not in_heading and _is_wrapped(text, line_start, start, end):
            gaps.append((start, end))
        else:
            line_start = end
    return gaps


def _is_wrapped(text: str, line_start: int, end: int, next_start: int) -> bool:
    """Return True if a line of a text, or of lines wrapped before, goes on in the next."""
    line = text[text.rfind("\n", 0, end) + 1 : end].rstrip()
    following = _line_at(text, next_start)
    if not following.strip() or not line.strip() or line[-1] in _ENDED:
        return False
    if BULLET.match(following) or ":" in following[:30] or "：" in following[:12]:
        return False
    if len(line) >= _MIN_WRAPPED or _GOES_ON.search(line.lower()) or _CONTINUES.match(following):
        return True
    if not following[0].islower():
        return False
    bullet = BULLET.match(text, line_start)
    first = text[bullet.end() if bullet else line_start :].lstrip()[:1]
    return first.isupper() or (first.islower() and _ends_in_full_stop(text, next_start))


def _ends_in_full_stop(text: str, start: int) -> bool:
    """Return True if lines that begin with small letters lead to a full stop."""
    while start < len(text):
        line = _line_at(text, start)
        if not line[:1].islower() or ":" in line:
            return False
        if line.rstrip()[-1:] in (".", "!", "?"):
            return True
        start += len(line) + 1
        start += len(_line_at(text, start)) - len(_line_at(text, start).lstrip())
    return False


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]
