"""Names that are a part of a longer word or term: 感染 in 上呼吸道感染, *Fragile X syndrome*.

A dictionary finds a name wherever it stands. Where the words beside it make it a part of a longer
term, which is no name of the store, the term names something else, or something more specific:

1. A head that says nothing by itself (*syndrome*, 感染) is no finding behind a word that belongs
   to the term, and no name is one in a term of another kind: an operation (甲状腺癌根治术), an
   organism (肺炎链球菌), a resemblance (息肉样), another word (*non-diabetic*).
2. Any other name is a broader finding (*metastatic carcinoma* is a carcinoma). Its scores are
   multiplied by 0.9, and the explanation has the longer term.

English terms reach to the left over words with a hyphen, adjectives of medicine (*-ic, -al, -ous*)
and organs; heads that say nothing, over any word but plain ones (*this, severe, reported*). Chinese
ones have lists of words. All words are those of ``longer_terms.toml``, never names of the store, so
that the answer does not depend on what else a store has.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from biograft.kb.names import HAN, HAN_CHARACTER
from biograft.text.name_rules import FUNCTION_WORDS
from biograft.text.tokens import simplify
from biograft.text.vocabulary import singular

_REACH = 40
"""Characters beside a name that are looked at."""
_WORD_BEFORE = re.compile(
    rf"(?<![^\W{HAN}])([^\W\d_{HAN}][^\W_{HAN}]*(?:['’-][^\W_{HAN}]+)*)"
    r"(?:[^\S\n]+|[^\S\n]*\n[^\S\n]*|-)\Z"
)
_HYPHENED = re.compile(rf"([^\W_{HAN}]+)[-‐‑]\Z")
_HYPHEN_BEHIND = re.compile(rf"[-‐‑]([^\W\d_{HAN}]+)")
_MEDICAL = re.compile(r"[a-z]{2,}(?:ic|al|ar|ous|oid|ary|ile|genic)", re.ASCII)
_PARTICIPLE = re.compile(r"[a-z]+(?:ed|ing|ly|ings)", re.ASCII)
_CAPITALS = re.compile(r"(?:(?<!\w)[A-Z][\w'’-]*(?:[^\S\n]+|-))+\Z")
_LATIN = re.compile(r"[A-Za-z0-9]+[ \t]?\Z")


class LongerTerm(NamedTuple):
    """A longer term that a name is a part of."""

    text: str
    factor: float
    """The scores of the name are multiplied by it; 0: the name is no finding."""


def longer_term(text: str, start: int, end: int) -> LongerTerm | None:
    """Return the longer word or term that a name in a text is a part of; None if there is none.

    Args:
        text: The text.
        start: Start of the name.
        end: Its end.

    >>> longer_term("Fragile X syndrome", 10, 18)
    LongerTerm(text='Fragile X syndrome', factor=0)
    >>> longer_term("双下肢水肿", 3, 5)
    LongerTerm(text='双下肢水肿', factor=0.9)
    """
    if HAN_CHARACTER.match(text[end - 1]):
        return _chinese(text, start, end)
    return _english(text, start, end)


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads((files("biograft.linking") / "longer_terms.toml").read_text("utf-8"))


class _English:
    def __init__(self) -> None:
        words = _lists()["en"]
        self.heads, self.broad, self.plain, self.organs, self.prefixes = (
            frozenset(words[key].split())
            for key in ("heads", "broad", "plain", "organs", "prefixes")
        )


class _Chinese:
    def __init__(self) -> None:
        words = _lists()["zh"]
        self.heads = frozenset(words["heads"].split())
        self.weak = self.heads | frozenset(words["weak"].split())
        self.not_parts = tuple(words["not_parts"].split())
        parts, only = words["parts"].split(), frozenset(words["only_heads"].split())
        adjective = rf"[{HAN}]{{1,2}}[性型]"
        self.before_head = _behind(parts, adjective)
        self.before = _behind([word for word in parts if word not in only], adjective)
        operation = "|".join(sorted(words["operation"].split(), key=len, reverse=True))
        kinds = "|".join(words["other_kinds"])
        self.other_kinds = re.compile(kinds.replace("{operation}", operation))
        self.adjective = re.compile(rf"{words['adjective']}[{HAN}]{{0,2}}")
        self.longer = re.compile("|".join(words["longer"].split()))


_english_words, _chinese_words = cache(_English), cache(_Chinese)


def _behind(words: list[str], adjective: str) -> re.Pattern[str]:
    """Return a pattern of words at the end of a text, the longest first."""
    longest = "|".join(sorted((word for word in words if len(word) > 1), key=len, reverse=True))
    single = "".join(word for word in words if len(word) == 1)  # not in another word: 空腹, 中心
    begins = rf"(?:(?<![{HAN}])|(?<=[{_lists()['zh']['before_single']}]))[{single}]"
    return re.compile(rf"(?:{begins}|{adjective}|{longest})(?:{adjective}|{longest}|[{single}])*\Z")


def _english(text: str, start: int, end: int) -> LongerTerm | None:
    words, factor = _english_words(), float(_lists()["factor"])
    name, low = text[start:end], max(start - _REACH, 0)
    if behind := _HYPHEN_BEHIND.match(text, end):
        return LongerTerm(name + behind[0], factor)
    if before := _HYPHENED.search(text, low, start):
        part = before[1].lower()
        is_other = part.isdecimal() or part in words.prefixes or part in FUNCTION_WORDS
        return LongerTerm(before[0] + name, 0 if is_other else factor)
    found = _WORD_BEFORE.search(text, low, start)
    if found is None:
        return None
    word, head = found[1].lower(), singular(name.lower())
    if word in words.plain or word in FUNCTION_WORDS:
        return None
    capitals = _CAPITALS.search(text, low, found.start())
    term = text[capitals.start() if capitals else found.start() : end]
    if head in words.heads:
        return None if _PARTICIPLE.fullmatch(word) else LongerTerm(term, 0)
    is_part = word in words.organs or _MEDICAL.fullmatch(word) is not None
    if head in words.broad:
        is_part |= found[1].isupper() or (found[1][0].isupper() and " " not in name)
    return LongerTerm(term, factor) if is_part else None


def _chinese(text: str, start: int, end: int) -> LongerTerm | None:
    words, factor = _chinese_words(), float(_lists()["factor"])
    name = simplify(text[start:end])
    behind = simplify(text[end : end + _REACH])
    if found := words.other_kinds.match(behind):
        if name != "感染":  # 感染病毒: caught a virus
            is_past = behind[found.end() - 1] == "术" and behind[found.end() :][:1] == "后"
            return LongerTerm(text[start : end + found.end()], factor if is_past else 0)
    elif found := words.adjective.match(behind):
        weak = name in words.weak
        return LongerTerm(text[start : end + found.end()], 0 if weak else factor)
    elif found := words.longer.match(behind):
        return LongerTerm(text[start : end + found.end()], factor)
    is_head, before = name in words.heads, simplify(text[max(start - _REACH, 0) : start])
    pattern = words.before_head if is_head else words.before
    if (found := pattern.search(before)) and not before.endswith(words.not_parts):
        term = text[start - len(found[0]) : end]
        return LongerTerm(term, 0 if is_head else factor)
    if is_head and (found := _LATIN.search(before)):
        return LongerTerm(text[start - len(found[0]) : end], 0)
    return None
