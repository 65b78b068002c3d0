"""Names that look like those of a medical vocabulary, and mentions of them: the same every time.

Words are medical or plain syllables, some frequent and most rare; many names vary the one
before them, as synonyms do. With 73,000 names their length, the number of words, and how many
names share a trigram come near those of the NCBI disease dictionary. A mention is a name with
a typo, or with words changed, dropped or reordered.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

BEGINNINGS = (
    "cardi hepat nephr neur oste arthr gastr enter derm hem leuk lymph angi my pulm bronch rhin ot "
    "ophthalm crani cerebr encephal spondyl chondr aden lip glyc thyr adren pancre splen cyst ur "
    "hyster mast phleb ather fibr scler kerat retin irid odont gingiv gloss laryng trache pleur "
    "per end hyp dys pol micr macr carcin sarc"
).split()
ONSETS = (
    "b c d f g h j k l m n p r s t v w z bl br ch cl cr dr fl gr ph pr sc sh st th tr wh".split()
)
VOWELS = "a e i o u y ae ea ie oo ou".split()
CODAS = ["", "", "", *"b ck d f g l m n nd ng nt p r rd rt s ss st t x".split()]
ENDINGS = (
    "itis osis oma emia opathy algia oplasia otrophy ogenesis olysis omegaly openia orrhage "
    "osclerosis ostenosis oplegia uria ocele ectasia odynia ophilia ocytosis al ic ar ous ian"
).split()
FREQUENT = (
    "disease syndrome type deficiency of congenital familial hereditary and with acute chronic "
    "disorder dominant recessive autosomal juvenile infantile benign malignant primary secondary "
    "severe in left right due to 1 2 3 4 ii iii a b cell tumor cancer infection failure"
).split()
_LENGTHS = (0.10, 0.42, 0.28, 0.12, 0.06, 0.02)
"""Ratios of names of one word, of two, ..."""
_VARIED = 0.8
"""Ratio of names that vary the one before."""
_CHUNK = 100_000
_SEED = 13


def make_names(n: int, seed: int = _SEED) -> list[str]:
    """Return n names, all different; many vary the name before them, as synonyms do."""
    rng = np.random.default_rng(seed)
    words = _words(2000 + 100 * int(np.sqrt(n)), rng)
    probabilities = 1 / (np.arange(len(words)) + 60.0)
    probabilities /= probabilities.sum()
    names: dict[str, None] = {}
    before: list[str] = []
    while len(names) < n:
        lengths = rng.choice(np.arange(1, len(_LENGTHS) + 1), _CHUNK, p=_LENGTHS)
        varied = rng.random(_CHUNK) < _VARIED
        sampled = iter(
            words[rng.choice(len(words), lengths.sum() + _CHUNK, p=probabilities)].tolist()
        )
        for length, vary in zip(lengths.tolist(), varied.tolist(), strict=True):
            if vary and before:  # another word first, the last word last
                name = [next(sampled), *before[1:]] if length % 2 else [*before[1:], before[0]]
            else:
                name = before = [next(sampled) for _ in range(length)]
            names[" ".join(name)] = None
    return list(names)[:n]


def _words(n: int, rng: np.random.Generator) -> npt.NDArray[np.str_]:
    """Return n words, the most frequent first; every second one is medical."""
    beginnings = rng.choice(BEGINNINGS, n).tolist()
    endings = rng.choice(ENDINGS, n).tolist()
    syllables = [_syllables(n, rng), _syllables(n, rng)]
    n_syllables = rng.integers(1, 3, n).tolist()
    made = (
        "".join(each[k] for each in syllables[: n_syllables[k]])
        if k % 2
        else beginnings[k]
        + "".join(each[k] for each in syllables[: n_syllables[k] - 1])
        + endings[k]
        for k in range(n)
    )
    return np.array(list(dict.fromkeys([*FREQUENT, *made])))


def _syllables(n: int, rng: np.random.Generator) -> list[str]:
    parts = (rng.choice(each, n).tolist() for each in (ONSETS, VOWELS, CODAS))
    return ["".join(syllable) for syllable in zip(*parts, strict=True)]


def make_mentions(
    names: Sequence[str], n: int, seed: int = _SEED + 1
) -> tuple[list[str], list[str]]:
    """Return n mentions, all different and none a name, each with its name."""
    rng, known = np.random.default_rng(seed), set(names)
    mentions: dict[str, str] = {}
    while len(mentions) < n:
        name = names[int(rng.integers(len(names)))]
        mention = name
        for _ in range(int(rng.integers(1, 3))):
            mention = _CHANGES[int(rng.integers(len(_CHANGES)))](mention, rng)
        if mention.strip() and mention not in known:
            mentions.setdefault(mention, name)
    return list(mentions), list(mentions.values())


def _drop_character(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    return text[:at] + text[at + 1 :]


def _swap_characters(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _change_character(text: str, rng: np.random.Generator) -> str:
    at = int(rng.integers(len(text)))
    return text[:at] + string.ascii_lowercase[int(rng.integers(26))] + text[at + 1 :]


def _swap_words(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    at = int(rng.integers(len(words)))
    return " ".join([*words[at:], *words[:at]])


def _drop_word(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    at = int(rng.integers(len(words)))
    return " ".join(words[:at] + words[at + 1 :]) if len(words) > 1 else text


def _add_word(text: str, rng: np.random.Generator) -> str:
    return f"{text} {FREQUENT[int(rng.integers(len(FREQUENT)))]}"


def _make_plural(text: str, rng: np.random.Generator) -> str:
    del rng  # nothing is left to chance
    return f"{text}s"


_CHANGES: tuple[Callable[[str, np.random.Generator], str], ...] = (
    _drop_character,
    _swap_characters,
    _change_character,
    _swap_words,
    _drop_word,
    _add_word,
    _make_plural,
)
