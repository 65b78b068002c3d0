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

_REACH, _HAN_REACH = 40, 12
"""Characters beside a name that are looked at."""
_WORD = re.compile(
    rf"(?:^|.*[^\w'’‐‑-]|.*[{HAN}])([^\W\d_{HAN}][^\W_{HAN}]*(?:['’-][^\W_{HAN}]+)*)"
)
_HYPHENED = re.compile(rf"(?:^|.*[\W{HAN}])([^\W_{HAN}]+)[-‐‑]")
_HYPHEN_BEHIND = re.compile(rf"[-‐‑]([^\W\d_{HAN}]+)")
_MEDICAL = re.compile(r"[a-z]{2,}(?:ic|al|ar|ous|oid|ary|ile|genic)", re.ASCII)
_PARTICIPLE = re.compile(r"[a-z]+(?:ed|ing|ly|ings)", re.ASCII)
_CAPITALS = re.compile(r"(?:(?<!\w)[A-Z][\w'’-]*(?:[^\S\n]+|-))+\Z")
_ADJECTIVE = re.compile(rf"[{HAN}]{{1,2}}[性型]\Z")
_HYPHENS = ("-", "‐", "‑")
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
        self.factor = float(_lists()["factor"])
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
        self.factor = float(_lists()["factor"])
        self.parts_of_heads = frozenset(words["parts"].split())
        self.parts = self.parts_of_heads - frozenset(words["only_heads"].split())
        self.longest = max(map(len, self.parts_of_heads))
        self.before_single = frozenset(words["before_single"])
        operation = "|".join(sorted(words["operation"].split(), key=len, reverse=True))
        kinds = "|".join(words["other_kinds"])
        self.other_kinds = re.compile(kinds.replace("{operation}", operation))
        self.adjective = re.compile(rf"{words['adjective']}[{HAN}]{{0,2}}")
        self.longer = re.compile("|".join(words["longer"].split()))

    def reach(self, before: str, *, is_head: bool) -> int:
        """Return how many characters at the end of a text are words that belong to a term.

        Args:
            before: The text before a name.
            is_head: The name is a head, which more words belong to.
        """
        parts, at = self.parts_of_heads if is_head else self.parts, len(before)
        last = 0  # the length of the first word, if it is a single character
        while at:
            sizes = (size for size in range(min(self.longest, at), 0, -1))
            length = next((size for size in sizes if before[at - size : at] in parts), 0)
            if not length and (found := _ADJECTIVE.search(before, max(at - 3, 0), at)):
                length = len(found[0])
            if not length:
                break
            at, last = at - length, length
        is_inside = last == 1 and at > 0 and HAN_CHARACTER.match(before[at - 1]) is not None
        if is_inside and before[at - 1] not in self.before_single:  # in another word: 空腹, 中心
            at += 1
        return len(before) - at


_english_words, _chinese_words = cache(_English), cache(_Chinese)


def _english(text: str, start: int, end: int) -> LongerTerm | None:
    words, name = _english_words(), text[start:end]
    if text[end : end + 1] in _HYPHENS and (behind := _HYPHEN_BEHIND.match(text, end)):
        return LongerTerm(name + behind[0], words.factor)
    before = text[max(start - _REACH, 0) : start]
    if before[-1:] in _HYPHENS and (hyphened := _HYPHENED.fullmatch(before.split()[-1])):
        part = hyphened[1].lower()
        is_other = part.isdecimal() or part in words.prefixes or part in FUNCTION_WORDS
        return LongerTerm(f"{hyphened[1]}{before[-1]}{name}", 0 if is_other else words.factor)
    parts = before.rsplit(None, 1) if before[-1:].isspace() else []
    word = parts[-1].lower() if parts else ""
    if not word[-1:].isalnum() or word in words.plain or word in FUNCTION_WORDS:
        return None  # most names
    found = _WORD.fullmatch(parts[-1])
    if found is None or before.count("\n", len(before.rstrip())) > 1:
        return None
    word, head = found[1].lower(), singular(name.lower())
    if word in words.plain or word in FUNCTION_WORDS:
        return None
    is_part = word in words.organs or _MEDICAL.fullmatch(word) is not None
    if head in words.heads:
        is_part = _PARTICIPLE.fullmatch(word) is None
    elif head in words.broad:
        is_part |= found[1].isupper() or (found[1][0].isupper() and " " not in name)
    if not is_part:
        return None
    first = start - len(before) + before.rindex(found[1])
    if head in words.heads:
        capitals = _CAPITALS.search(text, max(start - _REACH, 0), first)
        return LongerTerm(text[capitals.start() if capitals else first : end], 0)
    return LongerTerm(text[first:end], words.factor)


def _chinese(text: str, start: int, end: int) -> LongerTerm | None:
    words = _chinese_words()
    before, behind = text[max(start - _HAN_REACH, 0) : start], text[end : end + _HAN_REACH]
    if not (HAN_CHARACTER.match(behind) or before[-1:].isalnum() or before[-1:] == " "):
        return None
    name, before, behind = simplify(text[start:end]), simplify(before), simplify(behind)
    if found := words.other_kinds.match(behind):
        if name != "感染":  # 感染病毒: caught a virus
            is_past = behind[found.end() - 1] == "术" and behind[found.end() :][:1] == "后"
            return LongerTerm(text[start : end + found.end()], words.factor if is_past else 0)
    elif found := words.adjective.match(behind):
        weak = name in words.weak
        return LongerTerm(text[start : end + found.end()], 0 if weak else words.factor)
    elif found := words.longer.match(behind):
        return LongerTerm(text[start : end + found.end()], words.factor)
    is_head = name in words.heads
    if not before.endswith(words.not_parts) and (length := words.reach(before, is_head=is_head)):
        return LongerTerm(text[start - length : end], 0 if is_head else words.factor)
    if is_head and (found := _LATIN.search(before)):
        return LongerTerm(text[start - len(found[0]) : end], 0)
    return None
