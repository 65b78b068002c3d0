"""What the cross-encoder reads: a mention marked in its text, and a candidate as the store has it.

The marks are characters that every vocabulary holds and medical text hardly ever has, so that
no encoder has to learn new tokens.
"""

from __future__ import annotations

import re
from functools import lru_cache

from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.rankers import Context
from biograft.linking.rerank.config import RerankConfig

OPEN, CLOSE = "{", "}"
PARTS = " ; "
_BLANK = re.compile(r"\s")


def mark_mention(form: str, context: Context, n_characters: int, longest: int | None = None) -> str:
    """Show a mention between marks, with so much text on each side.

    Words that the window would cut are left out; the mention is whole unless it is longer than
    ``longest``. Where another form was looked up (the long form of an abbreviation, a part of a
    composite), it stands in brackets behind the mention. Without a known place the form stands
    alone.
    """
    text, start, end = context
    if not 0 <= start <= end <= len(text):
        raise ConfigError(
            f"context: expected a mention within the {len(text):,} characters of its text, found "
            f"one from {start:,} to {end:,}"
        )
    mention = text[start:end]
    if not mention.strip():
        return f"{OPEN} {form[:longest]} {CLOSE}"
    same = " ".join(mention.split()).casefold() == " ".join(form.split()).casefold()
    shown = mention[:longest] if same else f"{mention[:longest]} ( {form[:longest]} )"
    left, right = _before(text, start, n_characters), _after(text, end, n_characters)
    return f"{left} {OPEN} {shown} {CLOSE} {right}".strip()


def _before(text: str, start: int, n_characters: int) -> str:
    """Take what stands before a mention, from the first whole word on."""
    first = max(0, start - n_characters)
    window = text[first:start]
    blank = _BLANK.search(window)
    cuts_word = first > 0 and not text[first - 1].isspace()
    return window[blank.end() :] if cuts_word and blank else window


def _after(text: str, end: int, n_characters: int) -> str:
    """Take what stands behind a mention, up to the last whole word."""
    return _up_to_a_word(text[end:], n_characters)


def _up_to_a_word(text: str, n_characters: int) -> str:
    """Take the beginning of a text without cutting a word, where words have blanks between."""
    window = text[:n_characters]
    if len(text) <= n_characters or text[n_characters].isspace():
        return window
    blanks = [blank.start() for blank in _BLANK.finditer(window)]
    return window[: blanks[-1]] if blanks else window


class CandidateTexts:
    """Tells of a concept: its name, the name that was found, further names, types, definition.

    What tells most stands first, since what is too long for the encoder is cut from the end.
    """

    def __init__(self, kb: KnowledgeBase, config: RerankConfig) -> None:
        self._kb, self._config = kb, config
        self.tell = lru_cache(maxsize=1 << 16)(self._tell)

    def _tell(self, concept: str, found: str) -> str:
        """Give the text of a concept that was found by a name; what the store lacks is left out."""
        entry = self._kb[concept]
        names = {name.casefold(): name for name in (found, entry.name)}
        n_wanted = len(names) + self._config.n_synonyms
        for name in entry.names:
            if len(names) >= n_wanted:
                break
            names.setdefault(name.text.casefold(), name.text)
        own = entry.name.casefold()
        ordered = [names.pop(own), *names.values()]
        kinds = ", ".join(kind.label or kind.code for kind in entry.types)
        definition = _up_to_a_word(entry.definition, self._config.definition_characters)
        return PARTS.join(part for part in (*ordered, kinds, definition) if part)
