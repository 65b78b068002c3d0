"""How a mention, its context and names are written for models that generate names (GenBioEL).

A mention stands between the plain words START and END in its context; what is generated begins
with the prompt ``mention is``. Names are written without signs, so that few spellings are left.
"""

from __future__ import annotations

import html

from biograft.errors import ConfigError

START, END = "START", "END"
"""The words round a mention; ordinary text that contains them is written in small letters."""

SIGNS = ",.;{}[]()+-_*/?!\\`\"'=%><"
"""What names are written without."""
_BLANKS = str.maketrans(dict.fromkeys(SIGNS, " "))
_SMALL = {START: START.lower(), END: END.lower()}


def clean_name(text: str, *, lower: bool = True) -> str:
    """Write a name in small letters, its signs as blanks; one of signs alone keeps them.

    >>> clean_name("Type-2  Diabetes (mellitus)")
    'type 2 diabetes mellitus'
    """
    cased = text.lower() if lower else text
    return " ".join(cased.translate(_BLANKS).split()) or " ".join(cased.split())


def clean_text(text: str, *, lower: bool = True) -> str:
    """Write running text as models read it: HTML's signs spelled out, blanks squeezed.

    No word of it can be mistaken for the marks of a mention, whatever the case.
    """
    plain = html.unescape(text)
    words = (plain.lower() if lower else plain).split()
    return " ".join(_SMALL.get(word, word) for word in words)


def mark_mention(
    left: str, mention: str, right: str, *, words: int = 384, lower: bool = True
) -> str:
    """Write a mention between START and END with at most so many words of context.

    Of a context that is too long the words nearest the mention stay, as many on either side; what
    one side does not need the other has.

    >>> mark_mention("No sign of a", "Cold", "was found.", words=3)
    'of a START cold END was'
    """
    if words < 0:
        raise ConfigError(f"words: expected a number of at least 0, found {words}")
    before, inside, after = (
        clean_text(part, lower=lower).split() for part in (left, mention, right)
    )
    n_before, n_after = share_room(len(before), len(after), words)
    before = before[len(before) - n_before :]
    return " ".join([*before, START, *inside, END, *after[:n_after]])


def share_room(n_before: int, n_after: int, room: int) -> tuple[int, int]:
    """Say how much stays before and after a mention where there is room for so much.

    >>> share_room(10, 10, 8), share_room(1, 10, 8), share_room(10, 3, 8)
    ((4, 4), (1, 7), (5, 3))
    """
    half = room // 2
    if n_before + n_after <= room:
        return n_before, n_after
    if n_before <= half:
        return n_before, room - n_before
    if n_after <= half:
        return room - n_after, n_after
    return room - half, half


def prompt_of(mention: str) -> str:
    """Write what a decoder is given before it names a mention.

    >>> prompt_of("cold")
    'cold is'
    """
    return f"{mention} is"
