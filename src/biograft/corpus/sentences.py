"""Where the sentences of a text are, in English and in Chinese, as offsets.

One pass over the marks that may end a sentence; a full stop is looked at more closely, since it
also stands behind abbreviations (*e.g.*, *Fig.*), initials and numbers of sections. A text needs
no language: the marks of both are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from biograft.text import HAN

_END = re.compile(
    rf"""[。！？]+[”’」』）】]*          # Chinese: whatever follows
      | …{{2,}}[”’」』）】]*
      | (?<=[{HAN}])[!?]+[”’」』）】]*   # written with ASCII marks behind Chinese
      | [.!?]+[”’"')\]]*(?=\s)         # English: a blank follows
      | \n""",
    re.VERBOSE,
)
_NEVER = frozenset(
    """
    e.g i.e cf vs viz fig figs eq eqs ref refs nos vol pp ed eds dr prof mr mrs ms sr
    approx ca resp sp var subsp dept corp univ tab sect chap i.v i.m s.c
    """.split()
)
"""Words that are not the end of a sentence with their full stop, whatever follows."""
_SELDOM = frozenset(
    "etc al u.s u.k a.k.a spp st inc ltd co jr ph.d m.d a.m p.m b.i.d t.i.d q.d p.o".split()
)
"""Words that are the end when a word with a capital follows, those with stops inside (*U.S.*)
only when it is one that often opens a sentence."""
_OPENING = frozenset(
    """
    A After All Although An And As At Because Both But By During For From He However I If In It
    Its Most No Of On One Other Our Patients She Since Some Such That The Their Then There These
    They This Those Thus To Two Under Use Using We What When Where While With
    """.split()
)
_LINKING = frozenset("and or by of with from to for in the de von van a an".split())
"""Words before an initial: *and J. Smith*."""
_LAST_WORD = re.compile(r"(?:^|[\s(\[“\"'])([^\s(\[“\"']+)$")
_FOLLOWING = re.compile(r"\s*[(\[“\"']*((\S)\w*)")
_LOOK_BACK = 32
"""Characters looked at before a full stop; a longer word is no abbreviation."""


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Give the start and end of each sentence; blanks around it belong to none.

    >>> text = "Fever (e.g. 38.5 degrees) in 3 of 5. No rash. 无皮疹。发热！"
    >>> [text[start:end] for start, end in split_sentences(text)]
    ['Fever (e.g. 38.5 degrees) in 3 of 5.', 'No rash.', '无皮疹。', '发热！']
    """
    spans = []
    for start, end in _pieces(text):
        piece = text[start:end]
        first = start + len(piece) - len(piece.lstrip())
        last = start + len(piece.rstrip())
        if last > first:
            spans.append((first, last))
    return spans


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _END.finditer(text):
        if mark[0][0] in ".!?" and not _ends(text, start, mark):
            continue
        yield start, mark.end()
        start = mark.end()
    yield start, len(text)


def _ends(text: str, start: int, mark: re.Match[str]) -> bool:
    """Say whether an ASCII mark ends the sentence that begins at ``start``."""
    following = _FOLLOWING.match(text, mark.end())
    if following is None:
        return True
    if following[2].islower():
        return False
    if not mark[0].startswith(".") or mark[0].startswith(".."):
        return True
    floor = max(start, mark.start() - _LOOK_BACK)
    found = _LAST_WORD.search(text[floor : mark.start()])
    if found is None:
        return True
    word = found[1]
    if word.isdecimal() and not text[start : mark.start() - len(word)].strip():
        return False  # the number of a section or of a line
    if len(word) == 1 and word.isupper():
        return _follows_plain_word(text[floor : mark.start() - 1])
    low = word.lower()
    if low in _SELDOM:
        return following[1] in _OPENING if "." in low else following[2].isupper()
    return low not in _NEVER


def _follows_plain_word(before: str) -> bool:
    """Say whether a single capital ends something (*vitamin C*) rather than begins a name."""
    words = before.split()
    return bool(words) and words[-1].isalpha() and words[-1].islower() and words[-1] not in _LINKING
