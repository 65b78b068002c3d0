"""English spelling brought to one form: plurals, British words, roman numbers.

Each is a rule on single words with few exceptions. A rule that goes wrong does so for names and
mentions alike, so what matters is that different words stay different.
"""

from __future__ import annotations

import re

_SINGULARS = frozenset(
    """
    always ascites atlas biceps caries chaos cosmos diabetes facies forceps gas herpes lens measles
    menses mumps news pancreas pons pubes quadriceps rabies rickets scabies series shingles species
    tabes triceps yaws
    """.split()
)
_NO_OSIS = frozenset(
    """
    celluloses composes doses fructoses glucoses hoses lactoses maltoses noses overdoses poses
    purposes riboses roses sucroses
    """.split()
)


def singular(word: str) -> str:
    """Give the singular of an English plural; words that only look like one stay.

    >>> [singular(w) for w in "diagnoses diseases abscesses arteries viruses diabetes".split()]
    ['diagnosis', 'disease', 'abscess', 'artery', 'virus', 'diabetes']
    """
    plain = word.isascii() and word.isalpha() and len(word) > 3 and word.endswith("s")
    if not plain or word.endswith(("ss", "us", "is")) or word in _SINGULARS:
        return word
    if word.endswith("es"):
        return _singular_of_es(word)
    return word[:-1]


def _singular_of_es(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    if word.endswith("itides"):
        return f"{word[:-3]}s"
    greek = word.endswith(("stases", "lyses", "theses"))
    if greek or (word.endswith("oses") and word not in _NO_OSIS):
        return f"{word[:-2]}is"
    hissing = word.endswith(("sses", "xes", "ches", "shes"))
    latin = word.endswith("uses") and not word.endswith(("auses", "ouses", "fuses"))
    if (hissing and not word.endswith("aches")) or latin:
        return word[:-2]
    return word[:-1]


_ONE_SOUND = re.compile(
    # ae becomes e, but not in aero-, -ael and the Latin ending
    r"ae(?=[a-z])(?!r[oi]|l)"
    # oe only where it is one sound: not in gastroenteritis, leukoencephalopathy
    r"|oe(?=soph|stro|stra|dem|t(?:us|al))|(?<=c)oe(?=l[io])|(?<=rrh|.pn)oe(?=[ai])"
    r"|(?<=m)oe(?=[bo])",
    re.IGNORECASE,
)
_AMERICAN = tuple(
    (re.compile(pattern, re.IGNORECASE), american)
    for pattern, american in (
        (r"(tum|col|behavi|hum|od|harb|fav|vap|lab|neighb)ou(r)", r"\1o\2"),
        (r"(cent|fib|lit|met|tit|goit|calib)re(s?)\b", r"\1er\2"),
        (r"(?<=[a-z]i)s(?=ations?\b)", "z"),
        (r"(sul)ph", r"\1f"),
        (r"(leu)c(?=ocyt|open|oenc|em)", r"\1k"),
        (r"(alumin)i(um)\b", r"\1\2"),
    )
)


def british(word: str) -> str:
    """Write a British word the American way: haemorrhage, oesophagus, tumour, fibre, sulphate."""
    for joined, parted in (("æ", "ae"), ("œ", "oe"), ("Æ", "Ae"), ("Œ", "Oe")):
        word = word.replace(joined, parted)
    word = _ONE_SOUND.sub(_as_e, word)
    for pattern, american in _AMERICAN:
        word = pattern.sub(american, word)
    return word


def _as_e(match: re.Match[str]) -> str:
    return "E" if match[0][0].isupper() else "e"


_NUMBERS = {
    name: str(number)
    for number, name in enumerate("i ii iii iv v vi vii viii ix x xi xii xiii".split(), 1)
}
_NEEDS_KIND = frozenset("ivx")
"""Letters of their own: a number only behind one of the words below."""
_KINDS = frozenset(
    "type types grade grades stage stages class classes phase phases factor factors group groups"
    .split()
)  # fmt: skip
_TOKENS = re.compile(r"[^\W_]+")
_MAY_BE_ROMAN = re.compile(r"[ivxIVX]+\b")
"""Quick to say no, which it does of nearly all names."""


def roman(text: str) -> str:
    """Write roman numbers as digits: *type II* becomes *type 2*, *factor X* *factor 10*."""
    if not _MAY_BE_ROMAN.search(text):
        return text
    parts, done, before = [], 0, ""
    for match in _TOKENS.finditer(text):
        word = match[0]
        number = _NUMBERS.get(word.lower()) if word in (word.lower(), word.upper()) else None
        if number and (word.lower() not in _NEEDS_KIND or before in _KINDS):
            parts += [text[done : match.start()], number]
            done = match.end()
        before = word.lower()
    return "".join([*parts, text[done:]])
