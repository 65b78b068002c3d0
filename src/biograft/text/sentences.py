"""Sentences and lines of English and Chinese text, as offsets.

Sentences are split in one pass over the punctuation that may end one. A full stop is checked
further, since it also follows abbreviations (*e.g.*, *Fig.*), initials and section numbers. The
language of a text need not be known.

Blanks and line breaks that only wrap a sentence are folded into one blank, in Chinese into nothing:
rules, scopes and gaps of :mod:`biograft.clinical` are defined on sentences with single blanks. What
the layout of a text means stays: line breaks between statements, as single characters without
blanks around them, blank lines, headings, list items, and the gap between two columns, *Fever: no
Cough: yes*. A line goes on in the next one where

* it is long, or its last word or mark cannot end a statement (*no*, *of*, a comma);
* the next line begins with a word or mark that cannot begin one (*or*);
* it began with no small letter, and the next one does;
* it began with a small letter, and lines that do so, too, follow up to a full stop.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from biograft.kb.names import HAN, HAN_CHARACTER

_END = re.compile(
    rf"""[。！？]+[”’」』）】]*          # Chinese: whatever follows it
      | …{{2,}}[”’」』）】]*
      | (?<=[{HAN}])[!?]+[”’」』）】]*   # ASCII punctuation after Chinese
      | [.!?]+[”’"')\]]*(?=\s)         # English: whitespace follows
      | \n""",
    re.VERBOSE,
)
_NEVER_ENDS = frozenset(
    """
    e.g i.e cf vs viz fig figs eq eqs ref refs nos vol pp ed eds dr prof mr mrs ms sr
    approx ca resp sp var subsp dept corp univ tab sect chap i.v i.m s.c
    """.split()
)
"""Abbreviations whose full stop never ends a sentence."""
_SELDOM_ENDS = frozenset(
    "etc al u.s u.k a.k.a spp st inc ltd co jr ph.d m.d a.m p.m b.i.d t.i.d q.d p.o".split()
)
"""Abbreviations that end a sentence before a capitalised word; those with inner full stops (*U.S.*)
only before a word that often begins a sentence."""
_OPENING = frozenset(
    """
    A After All Although An And As At Because Both But By During For From He However I If In It
    Its Most No Of On One Other Our Patients She Since Some Such That The Their Then There These
    They This Those Thus To Two Under Use Using We What When Where While With
    """.split()
)
_LINKING = frozenset("and or by of with from to for in the de von van a an".split())
"""Words that precede an initial: *and J. Smith*."""
_LAST_WORD = re.compile(r"(?:^|[\s(\[“\"'])([^\s(\[“\"']+)$")
_FOLLOWING = re.compile(r"\s*[(\[“\"']*((\S)\w*)")
_LOOK_BACK = 32
"""Characters searched before a full stop; a longer word is no abbreviation."""


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence, without surrounding whitespace.

    >>> text = "Fever (e.g. 38.5 degrees) in 3 of 5. No rash. 无皮疹。发热！"
    >>> [text[start:end] for start, end in split_sentences(text)]
    ['Fever (e.g. 38.5 degrees) in 3 of 5.', 'No rash.', '无皮疹。', '发热！']
    """
    spans = []
    for start, end in _spans(text):
        sentence = text[start:end]
        first = start + len(sentence) - len(sentence.lstrip())
        last = start + len(sentence.rstrip())
        if last > first:
            spans.append((first, last))
    return spans


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(text):
        if mark[0][0] in ".!?" and not _ends(text, start, mark):
            continue
        yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _ends(text: str, start: int, mark: re.Match[str]) -> bool:
    """Whether ASCII punctuation ends the sentence that begins at ``start``."""
    following = _FOLLOWING.match(text, mark.end())
    if following is None:
        return True
    if following[2].islower():
        return False
    if not mark[0].startswith(".") or mark[0].startswith(".."):
        return True
    floor = max(start, mark.start() - _LOOK_BACK)
    last = _LAST_WORD.search(text[floor : mark.start()])
    if last is None:
        return True
    word = last[1]
    if word.isdecimal() and not text[start : mark.start() - len(word)].strip():
        return False  # the number of a section or a line
    if len(word) == 1 and word.isupper():
        return _follows_plain_word(text[floor : mark.start() - 1])
    low = word.lower()
    if low in _SELDOM_ENDS:
        return following[1] in _OPENING if "." in low else following[2].isupper()
    return low not in _NEVER_ENDS


def _follows_plain_word(before: str) -> bool:
    """Whether a single capital ends a term (*vitamin C*) rather than is an initial."""
    words = before.split()
    return bool(words) and words[-1].isalpha() and words[-1].islower() and words[-1] not in _LINKING


BULLET = re.compile(r"[ \t]*(?:[-*•·–]|\[.?\]|\(?\d{1,2}[.)、]|[a-z][.)])(?=\D)")
"""Beginning of a list item, at the start of a line."""
_INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
_GAP = re.compile(
    rf"[\s=&{_INVISIBLE}](?:(?<=[^\S\n])(?:[^\S\n]*\n[^\S\n]*|[^\S\n]+|(?<! )|(?<=\A ))"
    rf"|(?<=\n)[^\S\n]*|(?<==)(?<!==)\n[^\S\n]*|(?<=&)nbsp;|(?<=[{_INVISIBLE}])[{_INVISIBLE}]*)"
)
"""Whitespace that is not a single blank, also as mail and web pages write it.

It begins with a set of characters, which a search looks for many times faster than for branches."""
_BLANKS = re.compile("  +")
_COLUMN = re.compile(r"[^\W\d][\w /()-]{0,30}[:：]")
"""The label of a column."""
_MIN_WRAPPED, _MIN_WRAPPED_HAN = 50, 18
"""Characters of a line that may have been wrapped; a shorter one may be a statement."""
_GOES_ON = re.compile(
    r"(?:,|[、，]"
    r"|\b(?:an?|and|any|are|as|at|by|for|from|had|has|have|her|his|if|in|is|no|nor|not|of|on|or|than"
    r"|that|the|this|to|was|were|when|which|who|with|without"
    r"|hx|h/o|s/p|r/o|includes?|including|recent|known|prior|previous|shows?|showed|reveals?|revealed"
    r"|suspicious|suggests?|suggestive|consistent|due|secondary|into|between|after|before|during"
    r"|since|until)"
    r"|^[^:]*\bden(?:y|ied|ies|ying)|(?:^|[，。；、：])[^\S\n]*(?:患者|病人)?(?:无|否认|未见|没有))$"
)
_HAN_BOTH = re.compile(rf"[{HAN}，、；：（）]{{2}}")
_CONTINUES = re.compile(r"(?:and|but|for|nor|of|or|than|to)\b|[,，、)）]|[或及和]")
_ENDED = ".:;!?。；：！？"


class FoldedText:
    """A text whose wrapped lines and runs of blanks are single blanks, with offsets both ways."""

    def __init__(self, text: str, headings: Sequence[tuple[int, int]]) -> None:
        """Fold a text.

        Args:
            text: The text.
            headings: Spans of headings, whose line breaks stay.
        """
        parts: list[str] = []
        self._starts, self._ends, self._folded, self._removed = [], [], [], [0]
        position = 0
        for start, end, new in _find_gaps(text, headings):
            parts += (text[position:start], new)
            self._starts.append(start)
            self._ends.append(end)
            self._folded.append(start - self._removed[-1] + len(new))
            self._removed.append(end - self._folded[-1])
            position = end
        self.text = "".join([*parts, text[position:]])

    def fold(self, offset: int) -> int:
        """Return the offset in the folded text of an offset in the original text."""
        if not self._starts:
            return offset
        before = bisect_left(self._starts, offset)
        if before and offset < self._ends[before - 1]:
            return self._folded[before - 1]
        return offset - self._removed[before]

    def unfold(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text of a span of the folded text.

        Args:
            start: Start in the folded text.
            end: End in the folded text.
        """
        if not self._starts:
            return start, end
        first = bisect_right(self._folded, start)
        last = bisect_left(self._folded, end)
        return start + self._removed[first], end + self._removed[last]


def _find_gaps(text: str, headings: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of whitespace that stands for other one, and this."""
    # most sentences and abstracts have no other whitespace than blanks
    plain = text.isprintable() and "&nbsp;" not in text
    line_start = 0  # of the first of the lines that were wrapped
    for gap in (_BLANKS if plain else _GAP).finditer(text):
        start, end = gap.span()
        if end == len(text):
            continue
        if start == 0 or not (gap[0].isspace() or gap[0].startswith(("=", "&"))):
            yield start, end, "\n" if "\n" in gap[0] else ""
        elif "\n" not in gap[0]:
            is_gap = end - start > 1 or gap[0] == "\t"
            labelled = is_gap and (":" in text[line_start:start] or "：" in text[line_start:start])
            if not (labelled and _COLUMN.match(text, end)):
                yield start, end, " "
        elif gap[0][0] == "=" or _is_wrapped(text, line_start, start, end, headings):
            yield start, end, "" if _HAN_BOTH.match(text[start - 1] + text[end]) else " "
        else:
            line_start = end
            if gap[0] != "\n":
                yield start, end, "\n"


def _is_wrapped(
    text: str,
    line_start: int,
    end: int,
    next_start: int,
    headings: Sequence[tuple[int, int]],
) -> bool:
    """Return True if a line of a text, or of lines wrapped before, goes on in the next."""
    heading = bisect_right(headings, (end, len(text))) - 1
    if heading >= 0 and end <= headings[heading][1]:
        return False
    line = text[text.rfind("\n", 0, end) + 1 : end].rstrip()
    following = _line_at(text, next_start)
    if not following.strip() or not line.strip() or line[-1] in _ENDED:
        return False
    if BULLET.match(following) or _COLUMN.match(following) or "|" in line:
        return False
    is_han = HAN_CHARACTER.match(line[-1])
    if len(line) >= (_MIN_WRAPPED_HAN if is_han else _MIN_WRAPPED):
        return True
    if _GOES_ON.search(line.lower()) or _CONTINUES.match(following):
        return True
    if not following[0].islower():
        return False
    bullet = BULLET.match(text, line_start)
    first = text[bullet.end() if bullet else line_start :].lstrip()[:1]
    return not first.islower() or _ends_in_full_stop(text, next_start)


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
