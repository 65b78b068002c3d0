"""Normal forms of single words: American spelling, singulars, digits, Greek letters spelled out.

The names index and the lexical index share these rules, so that a name is found in text where a
search finds it. In the names index, the form of a word may depend on its neighbours, too:
*type I*, 二型.
"""

from __future__ import annotations

import re

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "ν": "nu",
    "ξ": "xi", "ο": "omicron", "π": "pi", "ρ": "rho", "σ": "sigma", "ς": "sigma", "τ": "tau",
    "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
"""The names of Greek letters."""
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
    """Return the singular of an English plural; words that only look like one are unchanged.

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


_DIGRAPH = re.compile(
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
    """Convert British spelling to American: haemorrhage, oesophagus, tumour, fibre, sulphate."""
    for joined, parted in (("æ", "ae"), ("œ", "oe"), ("Æ", "Ae"), ("Œ", "Oe")):
        word = word.replace(joined, parted)
    word = _DIGRAPH.sub(_as_e, word)
    for pattern, american in _AMERICAN:
        word = pattern.sub(american, word)
    return word


def _as_e(match: re.Match[str]) -> str:
    return "E" if match[0][0].isupper() else "e"


ROMAN_NUMBERS = {
    name: str(value)
    for value, name in enumerate("i ii iii iv v vi vii viii ix x xi xii xiii".split(), 1)
}
"""Roman numerals, in lower case, with their digits."""

_MAY_CHANGE = re.compile(
    r"s$|[ao]e|[æœ]|our|re$|[cblt]res$|isation|sulph|leuc|alumini|^[ivx]+$", re.IGNORECASE
)
"""A fast test that excludes most words."""


_MAX_SHORT = 4
"""Words up to this length keep an *s*: in capitals they are acronyms, *HDL* is no *hdls*."""


def word_form(word: str) -> str:
    """Return the normal form of a lower-case word.

    >>> [word_form(word) for word in ("haemorrhages", "tumours", "iii", "arteries")]
    ['hemorrhage', 'tumor', '3', 'artery']
    """
    if not _MAY_CHANGE.search(word):
        return word
    if len(word) > 1 and word in ROMAN_NUMBERS:
        return ROMAN_NUMBERS[word]
    form = british(word)
    if len(form) > _MAX_SHORT:
        form = singular(form)
    return form if form == word else word_form(form)  # a form is its own form
