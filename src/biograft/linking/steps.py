"""Normalisation of names and mentions as a list of named steps, so that both meet.

>>> Steps.parse("unicode,case,greek")("Ｂ-Cell β2")
'b-cell beta 2'
>>> DEFAULT_STEPS("Crohn’s Disease, Type-II (tumours)")
'crohn disease type 2 tumor'
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from biograft.corpus.simplified import simplify
from biograft.errors import ConfigError, nearest
from biograft.linking.chinese import chinese
from biograft.linking.spelling import british, roman, singular
from biograft.text import APOSTROPHES


def _never_empty(result: str, text: str) -> str:
    """Keep a text of which a step would leave nothing."""
    return result if result and not result.isspace() else text


class _SignTable(dict[int, str]):
    """A translation table that turns signs, separators and control characters into blanks."""

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
_ASCII_SIGNS = str.maketrans(dict.fromkeys(string.punctuation, " ")) | _NO_APOSTROPHES
_OTHER_SIGNS = _SignTable()

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu",
    "ξ": "xi", "ο": "omicron", "π": "pi", "ρ": "rho", "σ": "sigma", "ς": "sigma", "τ": "tau",
    "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
_REMEMBERED = 1 << 18
"""Words whose form is kept at hand."""
_STOPWORDS = frozenset("of the in with by to for from on nos and or".split())


def unicode(text: str) -> str:
    """Bring compatible characters, quotes and dashes to one form (NFKC), drop invisible ones."""
    if text.isascii():
        return text.replace("`", "'") if "`" in text else text
    plain = unicodedata.normalize("NFKC", text.translate(_BEFORE)).translate(_AFTER)
    return _never_empty(plain, text)


def case(text: str) -> str:
    """Fold the case."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFC", text.casefold())


def greek(text: str) -> str:
    """Spell out Greek letters that stand alone; words written in Greek stay."""
    if text.isascii():
        return text
    letters = []
    for place, char in enumerate(text):
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
        name = _GREEK.get("μ" if char == "µ" else char.lower())
        if name is None or _is_greek(before) or _is_greek(after):
            letters.append(char)
            continue
        left = " " if before.isalnum() else ""
        right = " " if after.isalnum() else ""
        letters.append(f"{left}{name}{right}")
    return "".join(letters)


def _is_greek(char: str) -> bool:
    return "\u0370" <= char <= "\u03ff" or "\u1f00" <= char <= "\u1fff"


def hyphens(text: str) -> str:
    """Turn hyphens, slashes and all other signs into blanks; apostrophes vanish."""
    if text.isascii():
        plain = text.translate(_ASCII_SIGNS)
    else:
        plain = text.translate(_NO_APOSTROPHES).translate(_OTHER_SIGNS)
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
class Step:
    """One way to make two spellings of a name alike."""

    function: Callable[[str], str]
    help: str
    per_word: bool = False
    """The function is of single words, to be applied to each of a text."""


STEPS = {
    "unicode": Step(unicode, "NFKC, plain quotes and dashes, no invisible characters"),
    "simplified": Step(simplify, "traditional Chinese characters to simplified ones"),
    "chinese": Step(chinese, "Chinese text without blanks, signs half-width; 二型 and Ⅱ型 to 2型"),
    "greek": Step(greek, "α to alpha"),
    "possessive": Step(possessive, "Crohn's to Crohn"),
    "case": Step(case, "lower case"),
    "hyphens": Step(hyphens, "hyphens, slashes and other signs to blanks"),
    "roman": Step(roman, "type II to type 2"),
    "british": Step(british, "British spelling to American: anaemia to anemia", per_word=True),
    "plural": Step(singular, "English plurals to singulars: biopsies to biopsy", per_word=True),
    "stopwords": Step(stopwords, "no of, the, in, with, by, to, for, from, on, nos, and, or"),
    "sorted_words": Step(sorted_words, "words in alphabetical order"),
}


class _PerWord:
    """Applies steps of single words to a text; names share most words, so they are remembered."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = tuple(steps)
        self._known: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        known = self._known
        words = text.split(" ")
        try:
            return " ".join([known[word] for word in words])
        except KeyError:
            if len(known) + len(words) > _REMEMBERED:
                known.clear()
            for word in words:
                known[word] = self._of_word(word)
            return " ".join([known[word] for word in words])

    def _of_word(self, word: str) -> str:
        for step in self._steps:
            word = step.function(word)
        return word


def _functions(steps: Sequence[Step]) -> Iterator[Callable[[str], str]]:
    """Give one function of texts per step, or per run of steps that work on single words."""
    for per_word, run in groupby(steps, key=lambda step: step.per_word):
        if per_word:
            yield _PerWord(run)
        else:
            yield from (step.function for step in run)


@dataclass(frozen=True)
class Steps:
    """Some steps in an order; called with a text they give its normalised form.

    The text form is the names with commas, so that an index can record it and read it back.
    """

    names: tuple[str, ...]
    _functions: tuple[Callable[[str], str], ...] = field(init=False, compare=False, repr=False)

    def __init__(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in STEPS:
                raise ConfigError(f"steps: no step is called {name!r}; {nearest(name, STEPS)}")
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "_functions", tuple(_functions([STEPS[name] for name in names])))

    @classmethod
    def parse(cls, text: str) -> Steps:
        """Read the text form; an empty one means that nothing is done."""
        return cls([name.strip() for name in text.split(",")] if text.strip() else [])

    def __str__(self) -> str:
        return ",".join(self.names)

    def __call__(self, text: str) -> str:
        """Normalise one text."""
        for function in self._functions:
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
"""What the lexical index does; word order and small words are left to its weights."""
