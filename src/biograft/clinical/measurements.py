"""Measurements and doses beside mentions, as the text has them: *hemoglobin 8.2 g/dL*.

What is found is a span of the text. It is not interpreted, converted or checked. A value belongs to
the mention before it in the same statement, *metformin 500 mg twice daily*, or to one that directly
follows, *3 cm nodule*:

>>> found = find_measurements("BP 140/90 mmHg, 5 mm nodule.", [(0, 2), (21, 27)])
>>> [[measurement.text for measurement in each] for each in found]
[['140/90 mmHg'], ['5 mm']]
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

_NUMBER = r"\d+(?:[,.]\d+)*(?:[ ]?[×x*][ ]?10(?:\^|E)?\d{1,2}(?!\d))?"
_TO = r"(?:-|–|~|～|/|×|x|\*|to(?=[ ]\d)|至|到)"
_RANGE = rf"{_NUMBER}(?:(?:[ ]?[cm]m)?[ ]?{_TO}[ ]?{_NUMBER}){{0,3}}\+?"
_PER = r"(?:[ ]?/[ ]?(?:[dm]?L|kg|g|hr?|min|day|d|24[ ]?h|mmol|m2|次|日))"
_UNIT = rf"""
    %|‰|°[ ]?[CF]?|[CF]\b|℃|℉|degrees|mm[ ]?Hg|cm[ ]?H2O|k?Pa\b|bpm\b
    |beats(?:[ ]?/[ ]?min|[ ]per[ ]minute)|breaths[ ]?/[ ]?min|mm[ ]?/[ ]?hr?\b|copies[ ]?/[ ]?mL
    |(?:[munpkμµ]|mc)?(?:g|mol|osm|kat|eq|IU|U|units?|L){_PER}*(?![a-z])
    |(?:cells|K|k)?[ ]?/[ ]?(?:[mμµu]?L|mm3|HPF|LPF|HP)\b|Fr\b|gauge
    |[cmkμµn]?m(?:[\^]?[23]|[²³])?(?![a-z0-9/])|cc\b|(?:lb|pound|inch|stone)(?:s|es)?\b
    |(?:tablet|tab|capsule|cap|puff|drop|patch|pill|spray|gtt)(?:s|es)?\b|pack[- ]?years?
    |次[ ]?/[ ]?分|毫克|微克|千克|公斤|克|毫升|升|单位|毫米|厘米|公分|斤|片|粒|支|滴|丸|喷
"""
_FREQUENCY = r"""
    (?:PO|IV|IM|SC|SQ|SL|PR|PRN|HS|QD|QOD|QHS|QAM|QPM|BID|TID|QID|QN|daily|nightly|weekly|monthly|orally
    |by[ ]mouth|subcutaneously|intravenously|inhaled|as[ ]needed|at[ ]bedtime|with[ ]meals
    |b\.i\.d\.|t\.i\.d\.|q\.d\.|q\.?[ ]?\d+(?:-\d+)?[ ]?(?:h|hours|hrs|d)
    |(?:once|twice|(?:two|three|four|\d)[ ]times)[ ](?:an?[ ]|per[ ])?
     (?:daily|day|week|weekly|month)
    |every[ ](?:\d+(?:-\d+)?[ ](?:hours|hrs|h|days|weeks)
     |(?:other[ ])?day|morning|evening|night|week)
    |in[ ]the[ ](?:morning|evening))(?![\w])
    |(?:每(?:日|天|晚|晨|周|次|早)|[一1]日)(?:[\d一二两三四][次片粒])?|口服|静滴|静脉滴注|静推|皮下注射|肌注|睡前
    |/(?:日|天|次|d)
"""
_MEASUREMENT = re.compile(
    rf"(?<![A-Za-z0-9_.,/-])(?:[<>≤≥＜＞~][ ]?)?{_RANGE}"
    rf"(?:(?:[ ]?-?)(?P<unit>{_UNIT})(?:[ ]?,?[ ]?(?:{_FREQUENCY}))*)?".replace("\n", ""),
    re.IGNORECASE | re.VERBOSE,
)
_LINK = re.compile(
    r"""[ \t"'*]*[,，]?[ ]?(?:levels?|counts?|value|reading|水平|值|最高|计数)?[ \t]*[(（]?[ \t]*
    (?:(?:is|was|were|of|at|to|up[ ]to|around|measures|measuring|measured|dose|now|currently|about
    |approximately|elevated|low|high|为|是|约|达|至|升至|降至|高达|大小|剂量|予|给予)[ \t]*){0,3}
    [:：=,，]?[ \t]*[≈约]?""".replace("\n", ""),
    re.IGNORECASE | re.VERBOSE,
)
"""Text between a mention and its value."""
_CHAIN = re.compile(
    r"[ \t]*(?:[,，(（/]|to|->|→|and|then|至|[(（](?:baseline|was))?[ \t]*", re.IGNORECASE
)
"""Text between two values of a mention."""
_BEFORE = re.compile(r"[ -]?(?:of[ ]|的)?", re.IGNORECASE)
"""Text between a value and the mention after it."""
_AFTER_BARE = re.compile(
    r"[ \t]*(?:[,;)\n，。；、）(（]|\.(?!\d)|$|(?:on|at|and|with|from|for|in|today|now)\b)",
    re.IGNORECASE,
)
"""Text after a value without a unit; *2 days* is no value."""
_DATE = re.compile(r"(?:19|20)\d\d|\d+[/-]\d+[/-]\d+")
_MAX_GAP = 32


class Measurement(NamedTuple):
    """A value or dose beside a mention."""

    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """The measurement as written, number and unit."""


def find_measurements(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[Measurement, ...]]:
    """Return the measurements and doses beside each span, in text order.

    Args:
        text: A text.
        spans: Start and end of each mention, in characters of the text.

    >>> find_measurements("Metformin 500 mg twice daily for diabetes.", [(0, 9), (33, 41)])
    [(Measurement(start=10, end=28, text='500 mg twice daily'),), ()]
    """
    mentions = sorted(set(spans), key=lambda span: (span[1], -span[0]))
    found: dict[tuple[int, int], list[Measurement]] = {span: [] for span in mentions}
    ends = [end for _, end in mentions]
    starts = sorted(mentions)
    begun = [start for start, _ in starts]
    last: tuple[int, int] | None = None
    reached = 0
    for match in _MEASUREMENT.finditer(text) if mentions else ():
        start, end = match.span()
        before = bisect_right(ends, start) - 1
        owner = None
        if bisect_right(begun, start) - 1 > before or _cuts(starts, begun, start, end):
            continue  # part of a mention
        if before >= 0 and _goes_on(text, mentions[before], start, reached, last):
            owner = mentions[before]
        is_bare, apart = match["unit"] is None, _apart(text, mentions, before, start)
        if is_bare and (_DATE.fullmatch(match[0]) or apart or not _AFTER_BARE.match(text, end)):
            continue
        if not is_bare and (owner is None or apart):
            after = bisect_left(begun, end)
            if after < len(starts) and _BEFORE.fullmatch(text, end, begun[after]):
                owner = starts[after]
        if owner is None:
            continue
        found[owner].append(Measurement(start, end, text[start:end]))
        last, reached = owner, end
    return [tuple(found[span]) for span in spans]


def _goes_on(
    text: str,
    mention: tuple[int, int],
    start: int,
    reached: int,
    last: tuple[int, int] | None,
) -> bool:
    """Whether a value at ``start`` belongs to the mention before it."""
    if last == mention and reached > mention[1]:
        return _CHAIN.fullmatch(text, reached, start) is not None
    near = start - mention[1] <= _MAX_GAP
    return near and _LINK.fullmatch(text, mention[1], start) is not None


def _apart(text: str, mentions: Sequence[tuple[int, int]], before: int, start: int) -> bool:
    """Whether a comma is between a value and the mention before it."""
    return before >= 0 and any(mark in text[mentions[before][1] : start] for mark in ",，")


def _cuts(starts: Sequence[tuple[int, int]], begun: Sequence[int], start: int, end: int) -> bool:
    """Whether a mention reaches into what is between two offsets."""
    after = bisect_left(begun, start)
    return after < len(starts) and starts[after][0] < end


def find_values(text: str) -> list[tuple[int, int]]:
    """Return the spans of all values with a unit, in a text such as a local term.

    Args:
        text: The text.

    >>> find_values("kidney stone 5 mm")
    [(13, 17)]
    """
    return [match.span() for match in _MEASUREMENT.finditer(text) if match["unit"]]
