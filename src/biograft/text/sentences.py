"""Sentence splitting of English and Chinese text, as offsets.

One pass over the punctuation that may end a sentence. A full stop is checked further, since it also
follows abbreviations (*e.g.*, *Fig.*), initials and section numbers. The language of a text need
not be known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from biograft.kb.names import HAN

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
