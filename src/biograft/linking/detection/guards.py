"""Names that are no mentions: persons after a title, units after a number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biograft.documents import Mention

_TITLE = re.compile(
    r"\b(?:Drs?|Doctor|Mrs?|Ms|Mx|Miss|Prof|Professor|Sir|Nurse)\.?\s+(?:[A-Z][a-z]*\.?\s+)?$"
)
_AMOUNT = re.compile(r"(?:\d\s?|\d[ -]|/\s?|\bper\s)$")
_UNITS = frozenset(
    "ng mcg ug mg g kg ml dl l cc mm cm m km mmol mol nm iu u meq hr h min sec s d wk mo yr".split()
)
_REACH = 32
"""Characters before a mention that are looked at."""


def without_persons_and_units(text: str, mentions: Sequence[Mention]) -> list[Mention]:
    """Leave out mentions of one word that are a person or a unit: *Dr. Graves*, *5 mg*."""
    return [each for each in mentions if not (_is_unit(text, each) or _is_person(text, each))]


def _is_person(text: str, mention: Mention) -> bool:
    if not mention.text[:1].isupper() or not mention.text.isalpha():
        return False
    return _TITLE.search(text, max(mention.start - _REACH, 0), mention.start) is not None


def _is_unit(text: str, mention: Mention) -> bool:
    if mention.text.lower() not in _UNITS:
        return False
    return _AMOUNT.search(text, max(mention.start - _REACH, 0), mention.start) is not None
