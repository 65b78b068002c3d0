"""Input and output text of the generative linker (GenBioEL): mentions in context, names, prompts.

A mention stands between the words START and END in its context; the decoder continues the prompt
``mention is``. Names are written without punctuation.
"""

from __future__ import annotations

import html

from biograft.errors import ConfigError

START, END = "START", "END"
"""The words around a mention; in ordinary text they are lower-cased."""

PROMPTS = ("mention", "none", "left")
"""Prompts of the decoder: *mention is*, nothing, or the text before the mention."""

PUNCTUATION = ",.;{}[]()+-_*/?!\\`\"'=%><"
"""The characters that names are written without."""
_TO_SPACES = str.maketrans(dict.fromkeys(PUNCTUATION, " "))
_LOWER = {START: START.lower(), END: END.lower()}


def clean_name(text: str, *, lower: bool = True) -> str:
    """Lower the case of a name and replace punctuation by spaces, unless nothing else is left.

    Args:
        text: The name.
        lower: Make it lower-case.

    >>> clean_name("Type-2  Diabetes (mellitus)")
    'type 2 diabetes mellitus'
    """
    cased = text.lower() if lower else text
    return " ".join(cased.translate(_TO_SPACES).split()) or " ".join(cased.split())


def clean_text(text: str, *, lower: bool = True) -> str:
    """Normalise running text: unescape HTML, collapse whitespace, lower the case.

    The words START and END are always lower-cased, so that only marks of mentions have capitals.

    Args:
        text: The text.
        lower: Make it lower-case.
    """
    plain = html.unescape(text)
    words = (plain.lower() if lower else plain).split()
    return " ".join(_LOWER.get(word, word) for word in words)


def mark_mention(
    left: str, mention: str, right: str, *, words: int = 384, lower: bool = True
) -> str:
    """Write a mention between START and END with at most ``words`` words of context.

    Of a longer context the words nearest to the mention are kept, half of them on either side; what
    one side does not need, the other gets.

    Args:
        left: Text before the mention.
        mention: The mention.
        right: Text after it.
        words: Maximum number of words of context.
        lower: Make everything lower-case.

    >>> mark_mention("No sign of a", "Cold", "was found.", words=3)
    'of a START cold END was'
    """
    before, inside, after = cut_context(left, mention, right, words=words, lower=lower)
    return " ".join([*before, START, *inside, END, *after])


def cut_context(
    left: str, mention: str, right: str, *, words: int = 384, lower: bool = True
) -> tuple[list[str], list[str], list[str]]:
    """Return the words before a mention, of the mention and after it; see ``mark_mention``.

    Args:
        left: Text before the mention.
        mention: The mention.
        right: Text after it.
        words: Maximum number of words of context.
        lower: Make everything lower-case.
    """
    if words < 0:
        raise ConfigError(f"words: expected a number of at least 0, found {words}")
    before, inside, after = (
        clean_text(part, lower=lower).split() for part in (left, mention, right)
    )
    n_before, n_after = split_context(len(before), len(after), words)
    return before[len(before) - n_before :], inside, after[:n_after]


def split_context(n_before: int, n_after: int, budget: int) -> tuple[int, int]:
    """Split a budget of context words between the sides of a mention.

    Args:
        n_before: Words before the mention.
        n_after: Words after it.
        budget: Words wanted in all.

    >>> split_context(10, 10, 8), split_context(1, 10, 8), split_context(10, 3, 8)
    ((4, 4), (1, 7), (5, 3))
    """
    half = budget // 2
    if n_before + n_after <= budget:
        return n_before, n_after
    if n_before <= half:
        return n_before, budget - n_before
    if n_after <= half:
        return budget - n_after, n_after
    return budget - half, half


def prompt_of(mention: str) -> str:
    """Return the decoder prompt of a mention.

    >>> prompt_of("cold")
    'cold is'
    """
    return f"{mention} is"
