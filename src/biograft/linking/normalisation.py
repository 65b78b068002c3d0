"""Normalisation of names: the steps that map spelling variants of a name to one form.

Each step is a function of a text, or of single words: Unicode, Chinese characters and numerals,
Greek letters, case, punctuation, Roman numerals, British spelling, plurals. :class:`Steps` chains
them; :data:`DEFAULT_STEPS` are those of the lexical index.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from biograft.errors import ConfigError, nearest
from biograft.kb.names import APOSTROPHES, HAN
from biograft.text.tokens import GREEK, simplify
from biograft.text.vocabulary import ROMAN_NUMBERS, british, singular

HALF_WIDTH = dict(zip(range(0xFF01, 0xFF5F), map(chr, range(0x21, 0x7F)), strict=True))
"""From full-width characters to those of ASCII, for ``str.translate``."""
_PUNCTUATION = HALF_WIDTH | str.maketrans("、。【】〔〕《》〈〉「」『』·\u3000", ',.[][]<><>""""  ')
_DIGITS = {char: value for value, char in enumerate("一二三四五六七八九", 1)}
_KINDS = "型期级度"
_NUMBER = re.compile(
    rf"(?<![A-Za-z一二三四五六七八九十百])"
    rf"(?:([一二三四五六七八九十]{{1,3}})|([ivxIVX]{{1,4}}|[\u2160-\u216b\u2170-\u217b]))"
    rf"\s*(?=[{_KINDS}])"
)
_WHITESPACE = re.compile(rf"(?<=[{HAN}])\s+|\s+(?=[{HAN}])")
"""Whitespace beside a Chinese character, as some write around Latin words and numbers."""


def chinese(text: str) -> str:
    """Half-width punctuation, digits for numerals, no whitespace: 二型, II型, Ⅱ 型 become 2型."""
    if text.isascii():
        return text
    plain = text.translate(_PUNCTUATION)
    if any(kind in plain for kind in _KINDS):
        plain = _NUMBER.sub(_as_digits, plain)

    return _WHITESPACE.sub("", plain) if not plain.isspace() else text


def _as_digits(match: re.Match[str]) -> str:
    han, roman = match[1], match[2]
    letters = "" if han else unicodedata.normalize("NFKC", roman).lower()
    number = _read_han(han) if han else ROMAN_NUMBERS.get(letters)
    return str(number) if number else match[0]


def _read_han(text: str) -> int | None:
    """Parse a Chinese numeral from 1 to 99: 二, 十, 十二, 二十, 二十三."""
    tens, ten, ones = text.partition("十")
    if not ten:
        return _DIGITS.get(text)
    if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
        return None
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)


_NEEDS_KIND = frozenset("ivx")
"""Single letters: numerals only after one of the words below."""
_NUMBERED_KINDS = frozenset(
    "type types grade grades stage stages class classes phase phases "
    "factor factors group groups".split()
)
_TOKENS = re.compile(r"[^\W_]+")
_MAY_BE_ROMAN = re.compile(r"[ivxIVX]+\b")
"""A fast test that excludes nearly all names."""


def roman(text: str) -> str:
    """Convert Roman numerals to digits: *type II* becomes *type 2*, *factor X* *factor 10*."""
    if not _MAY_BE_ROMAN.search(text):
        return text
    parts, done, before = [], 0, ""
    for match in _TOKENS.finditer(text):
        word = match[0]
        number = ROMAN_NUMBERS.get(word.lower()) if word in (word.lower(), word.upper()) else None
        if number and (word.lower() not in _NEEDS_KIND or before in _NUMBERED_KINDS):
            parts += [text[done : match.start()], number]
            done = match.end()
        before = word.lower()
    return "".join([*parts, text[done:]])


def _never_empty(result: str, text: str) -> str:
    """Return the text itself if a step would leave nothing of it."""
    return result if result and not result.isspace() else text


class _PunctuationTable(dict[int, str]):
    """A translation table from punctuation, separators and control characters to spaces."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = value = " " if unicodedata.category(char)[0] in "PSZC" else char
        return value


_DASHES = "‐‑‒–—―−"
_DOUBLE_QUOTES = "“”„‟«»″"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_BEFORE = str.maketrans({"´": "'", **dict.fromkeys(_INVISIBLE)})  # NFKC would split the accent
_AFTER = str.maketrans(
    dict.fromkeys(APOSTROPHES + "′", "'")
    | dict.fromkeys(_DASHES, "-")
    | dict.fromkeys(_DOUBLE_QUOTES, '"')
)
_NO_APOSTROPHES = str.maketrans(dict.fromkeys(APOSTROPHES))
_ASCII_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation, " ")) | _NO_APOSTROPHES
_OTHER_PUNCTUATION = _PunctuationTable()

_CACHE_SIZE = 1 << 18
"""Number of words whose form is cached."""
_STOPWORDS = frozenset("of the in with by to for from on nos and or".split())


def unicode(text: str) -> str:
    """Normalise to NFKC, with plain quotes and dashes, without invisible characters."""
    if text.isascii():
        return text.replace("`", "'") if "`" in text else text
    plain = unicodedata.normalize("NFKC", text.translate(_BEFORE)).translate(_AFTER)
    return _never_empty(plain, text)


def case(text: str) -> str:
    """Fold the case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.casefold())


def greek(text: str) -> str:
    """Spell out Greek letters that stand alone; Greek words are unchanged."""
    if text.isascii():
        return text
    characters = []
    for i, char in enumerate(text):
        before, after = text[i - 1 : i], text[i + 1 : i + 2]
        name = GREEK.get("μ" if char == "µ" else char.lower())
        if name is None or _is_greek(before) or _is_greek(after):
            characters.append(char)
            continue
        left = " " if before.isalnum() else ""
        right = " " if after.isalnum() else ""
        characters.append(f"{left}{name}{right}")
    return "".join(characters)


def _is_greek(char: str) -> bool:
    return "\u0370" <= char <= "\u03ff" or "\u1f00" <= char <= "\u1fff"


def hyphens(text: str) -> str:
    """Replace hyphens, slashes and all other punctuation by spaces; drop apostrophes."""
    if text.isascii():
        plain = text.translate(_ASCII_PUNCTUATION)
    else:
        plain = text.translate(_NO_APOSTROPHES).translate(_OTHER_PUNCTUATION)
    return " ".join(plain.split()) or text


def possessive(text: str) -> str:
    """Drop the possessive: *Crohn's* becomes *Crohn*, *Graves'* becomes *Graves*."""
    if "'" not in text and "’" not in text:
        return text
    return " ".join(map(_without_possessive, text.split(" ")))


def _without_possessive(word: str) -> str:
    stem = word.rstrip("'’")
    if len(stem) < len(word) and stem[-1:] in ("s", "S") and stem[-2:-1].isalpha():
        word = stem
    while word[-1:] in ("s", "S") and word[-2:-1] in ("'", "’") and word[-3:-2].isalpha():
        word = word[:-2]
    return word


def stopwords(text: str) -> str:
    """Drop *of, the, in, with, by, to, for, from, on, nos, and, or*."""
    words = text.split()
    return " ".join(word for word in words if word.lower() not in _STOPWORDS) or text


def sorted_words(text: str) -> str:
    """Put the words in alphabetical order."""
    return " ".join(sorted(text.split())) or text


@dataclass(frozen=True, slots=True)
class NormalisationStep:
    """One step of normalisation."""

    function: Callable[[str], str]
    help: str
    per_word: bool = False
    """Apply the function to each word of a text."""


STEPS = {
    "unicode": NormalisationStep(unicode, "NFKC, plain quotes and dashes, no invisible characters"),
    "simplified": NormalisationStep(simplify, "traditional Chinese characters to simplified ones"),
    "chinese": NormalisationStep(
        chinese, "Chinese text without spaces, half-width; 二型 and Ⅱ型 to 2型"
    ),
    "greek": NormalisationStep(greek, "α to alpha"),
    "possessive": NormalisationStep(possessive, "Crohn's to Crohn"),
    "case": NormalisationStep(case, "lower case"),
    "hyphens": NormalisationStep(hyphens, "hyphens, slashes and other punctuation to spaces"),
    "roman": NormalisationStep(roman, "type II to type 2"),
    "british": NormalisationStep(
        british, "British spelling to American: anaemia to anemia", per_word=True
    ),
    "plural": NormalisationStep(
        singular, "English plurals to singulars: biopsies to biopsy", per_word=True
    ),
    "stopwords": NormalisationStep(
        stopwords, "no of, the, in, with, by, to, for, from, on, nos, and, or"
    ),
    "sorted_words": NormalisationStep(sorted_words, "words in alphabetical order"),
}


_BEYOND_ASCII = (simplify, chinese, greek)
"""Functions that leave ASCII as it is."""


class _PerWord:
    """Applies steps to the words of a text, with a cache, since names share most words."""

    def __init__(self, steps: Iterable[NormalisationStep]) -> None:
        self._steps = tuple(steps)
        self._cache: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        cache = self._cache
        words = text.split(" ")
        try:
            return " ".join([cache[word] for word in words])
        except KeyError:
            if len(cache) + len(words) > _CACHE_SIZE:
                cache.clear()
            for word in words:
                cache[word] = self._of_word(word)
            return " ".join([cache[word] for word in words])

    def _of_word(self, word: str) -> str:
        for step in self._steps:
            word = step.function(word)
        return word


def _functions(steps: Sequence[NormalisationStep]) -> Iterator[Callable[[str], str]]:
    """Yield one function per step, or per run of steps that work on single words."""
    for per_word, run in groupby(steps, key=lambda step: step.per_word):
        if per_word:
            yield _PerWord(run)
        else:
            yield from (step.function for step in run)


@dataclass(frozen=True)
class Steps:
    """A chain of steps; called with a text, it returns the normalised form.

    ``str`` gives the names with commas, which an index records and :meth:`parse` reads.
    """

    names: tuple[str, ...]
    """Names of the steps, in order."""
    _functions: tuple[Callable[[str], str], ...] = field(init=False, compare=False, repr=False)
    _of_ascii: tuple[Callable[[str], str], ...] = field(init=False, compare=False, repr=False)

    def __init__(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in STEPS:
                raise ConfigError(f"steps: no step is called {name!r}; {nearest(name, STEPS)}")
        object.__setattr__(self, "names", tuple(names))
        functions = tuple(_functions([STEPS[name] for name in names]))
        of_ascii = tuple(each for each in functions if each not in _BEYOND_ASCII)
        object.__setattr__(self, "_functions", functions)
        object.__setattr__(self, "_of_ascii", of_ascii)

    @classmethod
    def parse(cls, text: str) -> Steps:
        """Parse names with commas; an empty text means no step."""
        return cls([name.strip() for name in text.split(",")] if text.strip() else [])

    def __str__(self) -> str:
        return ",".join(self.names)

    def __call__(self, text: str) -> str:
        """Normalise one text."""
        for function in self._of_ascii if text.isascii() else self._functions:
            text = function(text)
        return text


DEFAULT_STEPS = Steps(
    (
        "unicode",
        "simplified",
        "chinese",
        "greek",
        "possessive",
        "case",
        "hyphens",
        "roman",
        "british",
        "plural",
    )
)
"""The steps of the lexical index, which leaves word order and stop words to its weights."""
