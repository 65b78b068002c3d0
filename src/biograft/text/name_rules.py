"""Rules for names in text: those that are searched, and those that match only as written.

English *function words* never match, even if a store has a concept of that name (``NO``, ``was``).
*Common words* with unusual capitals match only in the case of the name (``CAT``, ``cAMP``), while a
plain ``Skin`` matches in any case. So do short acronyms. A compiled pass decides about most
names; the few that could be such words are looked at one by one.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from biograft.arrays import Bytes, Flags
from biograft.compute import njit
from biograft.errors import ConfigError
from biograft.kb.names import APOSTROPHES, normalise
from biograft.text.tokens import (
    HASH_SEED,
    HASH_STEP,
    Codes,
    Hashes,
    finish_hash,
    hash_words,
    is_invisible,
    separates_words,
)

FUNCTION_WORDS = frozenset(
    """
    a about above after again against all almost alone along also although always am among an
    and another any anyone anything are around as at away be became because been before being
    below between both but by can cannot could did do does doing done down during each either
    else enough etc even ever every everyone everything few for from further had has have having
    he hence her here hers herself him himself his how however i if in indeed into is it its
    itself just least less like made many may me might mine more most much must my myself near
    neither never next no nobody none nor nos not nothing now of off often on once one only onto
    or other others our ours ourselves out over own per perhaps quite rather really same several
    shall she should since so some someone something still such than that the their theirs them
    themselves then there therefore these they this those though through throughout thus to
    together too toward towards two under until up upon us very via was we well were what
    whatever when where whether which while who whoever whole whom whose why will with within
    without would yet you your yours yourself yourselves
    """.split()
)

COMMON_WORDS = frozenset(
    """
    act acts add age aged aim aims aid aids air albumin animal ant anti arc area arm art ask ate
    atom back bad bag ball band bar base bat bear beat bed best better bid big bin bird bit
    black blue boat body book born box boy brain bring bus buy call came camp cap car card care
    case cat cell center chap chart check chip chose city clam class clear clip clock close coal
    coat cod code cold come cope copy cost crash cream cup cut dad dam dark data date day days
    deal deep den dig dim dip dog door dot draw dream drive drop drug due ear early east easy
    eat edge eel egg end era evening eye face fact fail fall family far farm fast fat fed feel
    feet fell felt fig file fill find fine fire fish fit five flag flat flu fly foot form found
    four fox free front full fun gain game gap gas gate gave gel gene get gift girl give goal
    gold good got gray great green group grow gun half ham hand hard harm hat head heart heat
    held help hen high hill hip hit hold home hop hot hour house huge human ice idea impact
    included ink iron job join joint jump keep key kid kind king kit knee know lab lack lady
    lake lamp land large last late law lay lead leaf learn leg lens let level lid life light
    lime line link lip list live load lob long look loss lost lot love low mad main make male
    man map mark mask mass mat match mean meet men mice mid mild mile milk mill mind mint mix
    mode moderate mole month mood moon mouse move mum mute name nap neck need net new news nice
    night nine node normal nose note nut oak obese oil old open order pack page pain pair palm
    pan park part pass past patch path patient patients pattern pay pear peel peg pen pet phone
    pick pig pill pin pit place plan plant play plot point pole poll pool poor port post pot
    power press prior public pull pump pure push put race rack rain ran range rap rare rash rat
    rate raw reach read real recall red rest rice rich ride right ring rise risk road rob rock
    rod role roof room root rose row run sac sad safe said salt sand sat save saw say scale
    school sea seal seat see seed seem seen self sell send sense sent set seven sex ship shop
    short show side sign simple sit site six size skin sleep slow small snail soft soil son soon
    sort speed spot stage star start state stay step stop study sum sun swan table tag take talk
    tall tank tap task tax tea team tell ten term test text tide tie time tip tired today toe
    told tone took tool top town track trap tree trend trial tube type unit use used van view
    visit wait walk wall want war warm wash waste water wave way week weight west wet white wide
    wife win wind wish woman word work world worse year yes young zone
    """.split()
)


_LISTED = FUNCTION_WORDS | COMMON_WORDS
_LONGEST = max(map(len, _LISTED))


@dataclass(frozen=True, kw_only=True)
class NamesIndexConfig:
    """Settings of the names that are searched in text."""

    languages: tuple[str, ...] = ()
    """Languages of the names; all by default."""
    min_length: int = 2
    """Minimum number of letters and digits of a name."""
    acronym_length: int = 4
    """Upper-case names up to this length match only in upper case; so do common words with unusual
    capitals (``cAMP``, ``GRACE``)."""

    def __post_init__(self) -> None:
        for name, low in (("min_length", 1), ("acronym_length", 0)):
            value = getattr(self, name)
            if value < low:
                raise ConfigError(f"{name}: expected {low} or more, found {value}")


@dataclass(frozen=True, slots=True)
class ChosenNames:
    """Names of a block that are searched."""

    searched: Flags
    as_written: dict[int, str]
    """The normalised case of the names that match only as written, by position."""


def choose_names(
    codes: Codes, text_at: Callable[[int], str], config: NamesIndexConfig, skipped: Counter[str]
) -> ChosenNames:
    """Choose the names to search, of names that were joined; count the others by reason.

    Args:
        codes: Code points of the names, a 0 after each.
        text_at: Returns the name at a position.
        config: Settings of the index.
        skipped: Counts names that are not searched, by reason.
    """
    table = _key_table().of(codes)
    n = int(np.count_nonzero(codes == 0)) + 1
    verdicts = _judge(codes, table, _listed_hashes(), n, config.min_length, config.acronym_length)
    as_written: dict[int, str] = {}
    for position in np.flatnonzero(verdicts == _ASK).tolist():
        name = text_at(position)
        verdicts[position] = _judge_name(name, config)
        if verdicts[position] == _SEARCHED and _needs_case(name, config):
            as_written[position] = with_case(name)
    for verdict, reason in _REASONS.items():
        skipped[reason] += int(np.count_nonzero(verdicts == verdict))
    return ChosenNames(verdicts == _SEARCHED, as_written)


_SEARCHED, _STOP_WORD, _SHORT, _NUMBER, _ASK = range(5)
_REASONS = {_STOP_WORD: "stop word", _SHORT: "short", _NUMBER: "number"}


def _judge_name(name: str, config: NamesIndexConfig) -> int:
    """Decide whether a name is searched."""
    key = _key(name)
    if key in FUNCTION_WORDS:
        return _STOP_WORD
    if sum(map(str.isalnum, key)) < config.min_length:
        return _SHORT
    return _NUMBER if key.replace(" ", "").isdecimal() else _SEARCHED


def _needs_case(name: str, config: NamesIndexConfig) -> bool:
    """Whether a name matches only as written."""
    key = _key(name)
    if key in COMMON_WORDS and name not in (name.lower(), name.capitalize()):
        return True
    is_short = sum(map(str.isalnum, key)) <= config.acronym_length
    return name.isupper() and is_short and " " not in name.strip()


def _key(name: str) -> str:
    """Return the key of a name without the characters that matching passes over."""
    return normalise("".join(char for char in name if not is_invisible(char)))


def with_case(text: str) -> str:
    """Normalise hyphens and whitespace of a text, but not its case."""
    plain = unicodedata.normalize("NFKC", text)
    return plain if plain.isalnum() else " ".join("".join(map(_cased_char, plain)).split())


def _cased_char(char: str) -> str:
    if char in APOSTROPHES or is_invisible(char):
        return ""
    return " " if separates_words(char) else char


def read_stop_words(path: Path) -> tuple[str, ...]:
    """Read names never to match, one a line; text after a tab and lines in ``# `` are notes."""
    from biograft.kb.sources.files import read_lines

    lines = (line.partition("\t")[0].strip() for _, line in read_lines(path))
    return tuple(line for line in lines if line and not line.startswith("# "))


# ---- the rules on many names at once

_ALNUM, _DECIMAL, _UPPER, _LOWER, _COMPLEX, _KNOWN = (1 << bit for bit in range(24, 30))
_CHAR, _SPACE = (1 << 24) - 1, ord(" ")
_JAMO = (0x1100, 0x11FF)


class _KeyTable:
    """Normalised form of each character in the key of a name (``text.normalise``), on first use.

    An entry holds the character of the key (0: dropped) and flags; *complex* characters become
    several, or may change with their neighbours.
    """

    def __init__(self) -> None:
        self._table: Codes = np.zeros(0x110000, np.uint32)

    def of(self, codes: Codes) -> Codes:
        """Return the table, with entries for these characters."""
        unknown = self._table[codes] == 0
        for code in np.unique(codes[unknown]).tolist():
            self._table[code] = _key_entry(chr(code))
        return self._table


_key_table = cache(_KeyTable)


def _key_entry(char: str) -> int:
    case = (_UPPER if char.isupper() else 0) | (_LOWER if char.islower() or char.istitle() else 0)
    if char.istitle() and char.isupper():
        case = _UPPER
    if char in APOSTROPHES:
        return _KNOWN | case
    plain = unicodedata.normalize("NFKC", char)
    folded = unicodedata.normalize("NFKC", plain.casefold())
    joins = any(
        unicodedata.category(c)[0] == "M" or _JAMO[0] <= ord(c) <= _JAMO[1]
        for c in (char, *plain, *folded)
    )
    if len(folded) != 1 or joins:
        return _KNOWN | _COMPLEX
    if folded in APOSTROPHES:
        return _KNOWN | case
    if unicodedata.category(folded)[0] in "PSZC":
        return _KNOWN | case | ord(" ")
    kind = (_ALNUM if folded.isalnum() else 0) | (_DECIMAL if folded.isdecimal() else 0)
    return _KNOWN | case | kind | ord(folded)


@cache
def _listed_hashes() -> Hashes:
    """Return the hashes of the listed words, sorted."""
    return np.sort(hash_words(sorted(_LISTED)))


@njit()
def _judge(
    codes: Codes, table: Codes, listed: Hashes, n: int, min_length: int, acronym_length: int
) -> Bytes:
    """Decide about each name; ``_ASK`` where its text must be looked at."""
    verdicts = np.empty(n, np.uint8)
    at = 0
    for name in range(n):
        flags, n_chars, n_alnum, n_decimal = 0, 0, 0, 0
        state = HASH_SEED
        while at < len(codes) and codes[at]:
            entry = table[codes[at]]
            char = entry & _CHAR
            if char and char != _SPACE:
                state = (state ^ np.uint64(char)) * HASH_STEP
                n_chars += 1
                n_alnum += (entry & _ALNUM) > 0
                n_decimal += (entry & _DECIMAL) > 0
            flags |= entry
            at += 1
        at += 1
        is_acronym = flags & _UPPER and not flags & _LOWER and n_alnum <= acronym_length
        if flags & _COMPLEX or (0 < n_chars <= _LONGEST and _is_listed(finish_hash(state), listed)):
            verdicts[name] = _ASK
        elif n_alnum < min_length:
            verdicts[name] = _SHORT
        elif n_chars == n_decimal:
            verdicts[name] = _NUMBER
        else:
            verdicts[name] = _ASK if is_acronym else _SEARCHED
    return verdicts


@njit(inline="always")
def _is_listed(key: Any, listed: Hashes) -> Any:
    at = np.searchsorted(listed, key)
    return at < len(listed) and listed[at] == key
