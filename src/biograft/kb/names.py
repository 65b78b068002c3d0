"""Name normalisation: one key for all spellings that differ in case, hyphens or width.

>>> normalise("Crohn’s  Disease")
'crohns disease'
>>> normalise("Ｔype-2 diabetes")
'type 2 diabetes'
"""

from __future__ import annotations

import math
import re
import unicodedata

APOSTROPHES = "'’‘ʼ`´＇"
"""Characters left out of a key, so that *Crohn's* and *Crohns* are equal."""

HAN_RANGES = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
"""First and last code points of the ranges of Chinese characters."""
HAN = "".join(f"{chr(first)}-{chr(last)}" for first, last in HAN_RANGES)
"""The same as a character class of a regular expression, without its brackets."""
HAN_CHARACTER = re.compile(f"[{HAN}]")

_SPACED = frozenset("PSZC")  # punctuation, symbols, separators, control: all become a space


class _KeyTable(dict[int, str | None]):
    """A translation table that classifies characters on first use."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        if char in APOSTROPHES:
            value = None
        else:
            value = " " if unicodedata.category(char)[0] in _SPACED else char
        self[code] = value
        return value


_TABLE = _KeyTable()


def normalise(text: str) -> str:
    """Compute the key of a name: NFKC, case folding, punctuation to spaces, spaces collapsed.

    A name of punctuation alone keeps it, since its key would be empty otherwise.
    """
    if text.isascii():
        folded = text.lower()
    else:
        # NFKC decomposes the acute accent into a space and a mark
        plain = unicodedata.normalize("NFKC", text.replace("´", "'"))
        folded = unicodedata.normalize("NFKC", plain.casefold())
    key = " ".join(folded.translate(_TABLE).split())
    return key or " ".join(folded.split()) or folded


_MAX_DIGITS = 15
"""The digits of a number that is still exact as a floating-point number."""


def whole_number(text: str) -> int | None:
    """Read a whole number from 0, of at most 15 digits; None for any other text.

    >>> whole_number("42"), whole_number("-1"), whole_number("9" * 5000)
    (42, None, None)
    """
    return int(text) if len(text) <= _MAX_DIGITS and text.isascii() and text.isdecimal() else None


_NO_FRACTION = re.compile(r"[.,]0$")


def whole_cell(column: str, cell: str) -> int:
    """Read a whole number that a data frame or a spreadsheet may have written as 3.0.

    Args:
        column: Name of the column, for the error.
        cell: Its cell.

    Raises:
        ValueError: It is none.
    """
    value = whole_number(_NO_FRACTION.sub("", cell.strip()))
    if value is None:
        raise ValueError(f"{column}: expected a whole number, found {cell!r}")
    return value


def decimal_cell(column: str, cell: str) -> float | None:
    """Read a number, also with a decimal comma; None for an empty cell.

    Args:
        column: Name of the column, for the error.
        cell: Its cell.

    Raises:
        ValueError: It is none.

    >>> decimal_cell("score", "0,25"), decimal_cell("score", "")
    (0.25, None)
    """
    text = cell.strip()
    if not text:
        return None
    try:
        value = float(text if "." in text else text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{column}: expected a number, found {text!r}")
    return value


def term_key(text: str) -> str:
    """Return what terms that differ in case and whitespace only have in common.

    Punctuation counts, unlike in :func:`normalise`: *Rh +* is not *Rh -*.

    >>> term_key(" Rh  +") == term_key("rh +")
    True
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"
"""Control characters, and what any program may take for the end of a line: a pattern."""
_CONTROL = re.compile(CONTROL)
HIDDEN = (
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that show nothing, or reorder the text around them: a pattern.

Joiners, which some scripts are spelt with, and variation selectors are none of them.
"""
_HIDDEN = re.compile(HIDDEN)
_REFUSED = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NOT_IN_LINES = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
"""Control characters but tabs and line ends: a pattern."""
_NOT_IN_LINES = re.compile(NOT_IN_LINES)
_REFUSED_IN_COMMENTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # fillers, the empty Braille cell
)


def one_line(text: str) -> str:
    r"""Return a name on one line: white space and control characters become single spaces.

    Args:
        text: Name, code, or any other text that belongs on one line.

    >>> one_line("Myocardial\n\tinfarction ")
    'Myocardial infarction'
    """
    return " ".join(_CONTROL.sub(" ", text).split())


def fold_lines(text: str) -> str:
    """Return a text on one line if it is not on one already; other white space stays as it is.

    A text without any character that can be seen is empty.

    Args:
        text: Name, code, or any other text that belongs on one line.
    """
    folded = one_line(text) if _CONTROL.search(text) else text
    return "" if is_invisible(folded) else folded


def clean_name(text: str) -> str:
    r"""Return a name of an ontology as it is stored: on one line, without hidden characters.

    Args:
        text: The name, or a label.

    >>> clean_name("\ufeffMyocardial\n\u200binfarction")
    'Myocardial infarction'
    """
    return fold_lines(_HIDDEN.sub("", text))


def clean_definition(text: str) -> str:
    """Return a definition as it is stored: its lines, without control and hidden characters.

    Args:
        text: The definition.
    """
    return clean_lines(_HIDDEN.sub("", text))


def clean_lines(text: str) -> str:
    r"""Return a text without control characters but for tabs and the ends of its lines.

    Args:
        text: Text of several lines.

    >>> clean_lines("Of the heart.\r\nOr\0not.")
    'Of the heart.\nOr not.'
    """
    return _NOT_IN_LINES.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def is_invisible(text: str) -> bool:
    """Return True if a text has no character that can be seen, such as zero-width spaces alone.

    Args:
        text: Text of any length; an empty one is invisible.
    """
    return all(
        char in _UNSEEN
        or unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cc", "Cf")
        or "\ufe00" <= char <= "\ufe0f"
        or _HIDDEN.match(char) is not None
        for char in text
    )


def name_fault(text: str, *, multiline: bool = False) -> str:
    """Return why a text cannot be stored as a name, an id or a comment; empty if it can be.

    This is for what a person or a program decides. Texts of files are folded (`fold_lines`).

    Args:
        text: The text; an empty one is no fault.
        multiline: Whether line ends and tabs are allowed, as in a comment.
    """
    if multiline:
        refused = _REFUSED_IN_COMMENTS.search(text)
        return "expected no control characters but tabs and line ends" if refused else ""
    if _REFUSED.search(text):
        return "expected one line without control characters"
    return "expected a text that can be seen" if text.strip() and is_invisible(text) else ""


_THREE_LETTERS = {
    three: line[:2]
    for line in """\
ar ara;bg bul;cs ces cze;da dan;de deu ger;el ell gre;en eng;es spa;et est;eu baq eus;fa fas per
fi fin;fr fra fre;he heb;hr hrv scr;hu hun;it ita;ja jpn;ko kor;lv lav;nl dut nld;no nor;pl pol
pt por;ro ron rum;ru rus;sk slk slo;sv swe;tr tur;uk ukr;zh chi zho""".replace("\n", ";").split(";")
    for three in line.split()[1:]
}


def language_code(tag: str) -> str:
    """Convert a language tag of any kind (``ENG``, ``en-US``, ``zh_CN``) into ISO 639-1.

    >>> [language_code(tag) for tag in ("ENG", "zh-Hans", "de")]
    ['en', 'zh', 'de']
    """
    primary = tag.strip().lower().replace("_", "-").split("-")[0]
    return _THREE_LETTERS.get(primary, primary)


def language_codes(tags: str) -> tuple[str, ...]:
    """Convert comma-separated language tags into ISO 639-1.

    Args:
        tags: Such as ``ENG, zh-CN``; empty items are dropped.

    >>> language_codes("ENG, zh-CN")
    ('en', 'zh')
    """
    return tuple(language_code(tag) for tag in tags.split(",") if tag.strip())


_KANA = re.compile("[\u3040-\u30ff]")


def language_of_script(text: str) -> str:
    """Guess the language of a name by its script: Chinese, Japanese, else English.

    >>> [language_of_script(name) for name in ("2型糖尿病", "アレルギー", "diabetes")]
    ['zh', 'ja', 'en']
    """
    if _KANA.search(text):
        return "ja"
    return "zh" if HAN_CHARACTER.search(text) else "en"
