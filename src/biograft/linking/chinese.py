"""Normalisation of Chinese names: half-width signs, numbers of types, no blanks."""

from __future__ import annotations

import re

from biograft.text import HAN

_WIDE = dict(zip(range(0xFF01, 0xFF5F), map(chr, range(0x21, 0x7F)), strict=True))
_SIGNS = _WIDE | str.maketrans("、。【】〔〕《》〈〉「」『』·\u3000", ',.[][]<><>""""  ')
_DIGITS = {char: number for number, char in enumerate("一二三四五六七八九", 1)}
_ROMAN = {
    "i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10,
    **{chr(0x2160 + k): k + 1 for k in range(12)},
    **{chr(0x2170 + k): k + 1 for k in range(12)},
}  # fmt: skip
_KINDS = "型期级度"
_NUMBER = re.compile(
    rf"(?<![A-Za-z一二三四五六七八九十百])"
    rf"(?:([一二三四五六七八九十]{{1,3}})|([ivxIVX]{{1,4}}|[\u2160-\u216b\u2170-\u217b]))"
    rf"\s*(?=[{_KINDS}])"
)
_BLANKS = re.compile(rf"(?<=[{HAN}])\s+|\s+(?=[{HAN}])")
"""Blanks beside a Chinese character, which some write around Latin words and numbers."""


def chinese(text: str) -> str:
    """Make signs half-width, number the types, drop blanks: 二型, II型 and Ⅱ 型 become 2型."""
    if text.isascii():
        return text
    plain = text.translate(_SIGNS)
    if any(kind in plain for kind in _KINDS):
        plain = _NUMBER.sub(_as_digits, plain)
    return _BLANKS.sub("", plain) if not plain.isspace() else text


def _as_digits(match: re.Match[str]) -> str:
    han, roman = match[1], match[2]
    number = _read_han(han) if han else _ROMAN.get(roman.lower())
    return str(number) if number else match[0]


def _read_han(text: str) -> int | None:
    """Read a number from 1 to 99 as it is spoken: 二, 十, 十二, 二十, 二十三."""
    tens, ten, ones = text.partition("十")
    if not ten:
        return _DIGITS.get(text)
    if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
        return None
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)
