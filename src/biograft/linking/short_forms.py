"""Short forms of clinical notes that no text defines: *HTN*, *T2DM*, and the headings *HPI*, *ROS*.

``short_forms.toml`` lists them with their meanings. :class:`KnownShortForms` knows which of these a
store has. A short form with several meanings is expanded only where the document supports one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from biograft.kb import KnowledgeBase
from biograft.kb.names import HAN_CHARACTER
from biograft.linking.normalisation import HALF_WIDTH, chinese
from biograft.text.tokens import simplify

Meanings = tuple[tuple[str, ...], ...]
"""The meanings of a short form, each with its wordings."""

MAX_LENGTH = 4
"""Maximum characters of a name in capitals that may be a short form of something else."""
_CACHE_SIZE = 1 << 14
_LATIN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z](?:[A-Za-z0-9/]*[A-Za-z0-9])?(?![A-Za-z0-9])")
_CAPITALS = re.compile(r"(?<![A-Za-z0-9\-])[A-Z][A-Za-z0-9/]*[A-Z0-9]s?(?![A-Za-z0-9\-])")
_TYPE = re.compile(r"(?:[1-9１-９一二三四ⅠⅡⅢ]|I{1,3})\s*型\s*$")
"""Type number before a short form in Chinese: 2型DM."""
_PERCENT = re.compile(r"[%％]\s*(?:(?:on|in)\s+)?$")
_BEFORE = re.compile(r"(?:^|\n)[\s\-*•#>]*(?:\d+[.)]\s*)?$")
_BEHIND = re.compile(r"[ \t]*(?:[:：\-]|\n|$)")


@dataclass(frozen=True)
class ShortFormList:
    """Content of ``short_forms.toml``."""

    headings: frozenset[str]
    also_mentions: frozenset[str]
    """Headings that are mentions elsewhere in a line."""
    after_percent: frozenset[str]
    """Short forms that are units after a percentage: 96% RA, room air."""
    english: dict[str, Meanings]
    chinese: dict[str, Meanings]

    def is_heading(self, text: str, start: int, end: int) -> bool:
        """Return whether a span is a heading, or what else is never a mention there.

        Args:
            text: A text.
            start: Start of the span.
            end: Its end.
        """
        short = text[start:end]
        if short in self.after_percent and _PERCENT.search(text, max(0, start - 8), start):
            return True
        if short not in self.headings:
            return False
        if short not in self.also_mentions and short not in self.english:
            return True
        before = _BEFORE.search(text, max(0, text.rfind("\n", 0, start)), start)
        return bool(before) and bool(_BEHIND.match(text, end))

    def meanings(self, short: str, *, in_chinese: bool) -> Meanings:
        """Return the meanings of a short form.

        Args:
            short: The short form.
            in_chinese: It stands in Chinese text: its Chinese meanings, if there are any.
        """
        found = self.chinese.get(short, ()) if in_chinese else ()
        return found or self.english.get(short, ())


@cache
def short_form_list() -> ShortFormList:
    """Load the list."""
    content = tomllib.loads((files("biograft.linking") / "short_forms.toml").read_text("utf-8"))
    return ShortFormList(
        frozenset(content["headings"]),
        frozenset(content["also_mentions"]),
        frozenset(content["after_percent"]),
        {short: _meanings(value) for short, value in content["en"].items()},
        {short: _meanings(value) for short, value in content["zh"].items()},
    )


def _meanings(value: str | list[str]) -> Meanings:
    values = [value] if isinstance(value, str) else value
    return tuple(tuple(wording.strip() for wording in each.split("|")) for each in values)


def is_short(text: str) -> bool:
    """Whether a text in capitals may be a short form: *RA*, *CD4*, *DMs*; not *Hip*."""
    plain = text[:-1] if is_plural(text) else text
    n_letters = sum(map(str.isalnum, plain))
    return plain.isascii() and plain.isupper() and 2 <= n_letters <= MAX_LENGTH and " " not in plain


def is_plural(text: str) -> bool:
    """Whether a text is the plural of capitals: *MIs*."""
    return text.endswith("s") and len(text) > 2 and text[:-1].isupper() and text.isascii()


class KnownForm(NamedTuple):
    """A short form in a text, and the wording to look up for it."""

    start: int
    end: int
    short: str
    long: str


class KnownShortForms:
    """The listed short forms, with the concepts of a store that they mean."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._list = short_form_list()
        self._rows = lru_cache(_CACHE_SIZE)(lambda text: frozenset(kb.rows_by_name(text)))

    def is_heading(self, text: str, start: int, end: int) -> bool:
        """Return whether a span heads a section, or is a word that is never a mention.

        Args:
            text: A text.
            start: Start of the span.
            end: Its end.
        """
        return self._list.is_heading(text, start, end)

    def find(self, text: str, mentions: Collection[str]) -> Iterator[KnownForm]:
        """Find the short forms in a text that have a meaning in the store.

        Args:
            text: A text.
            mentions: Texts of its mentions, which decide between several meanings.
        """
        in_chinese, plain = HAN_CHARACTER.search(text) is not None, text.translate(HALF_WIDTH)
        for match in _CAPITALS.finditer(plain):
            short = self._listed(match[0], in_chinese=in_chinese)
            if short is None:
                continue
            start, long = match.start(), self._long(short, mentions, in_chinese=in_chinese)
            if in_chinese and (kind := _TYPE.search(plain, max(0, start - 6), start)):
                typed = self.expand(plain[kind.start() : match.end()])
                if typed and self._rows(typed):
                    start, long = kind.start(), typed
            if long:
                yield KnownForm(start, match.end(), text[start : match.end()], long)

    def expand(self, mention: str, mentions: Collection[str] = ()) -> str | None:
        """Return the long form of a given mention, or None; 2型DM becomes 2型糖尿病.

        Args:
            mention: The mention.
            mentions: Texts of the other mentions, which decide between several meanings.

        >>> KnownShortForms(kb).expand("HTN")  # doctest: +SKIP
        'hypertension'
        """
        plain = chinese(simplify(mention)).strip()
        in_chinese = HAN_CHARACTER.search(plain) is not None
        for match in _LATIN.finditer(plain):
            if match[0] != plain and not in_chinese:
                return None
            short = self._listed(match[0], in_chinese=in_chinese)
            if short is None:
                continue
            before, after = plain[: match.start()], plain[match.end() :]
            if before or after:
                meanings = self._list.meanings(short, in_chinese=True)
                names = (f"{before}{wording}{after}" for each in meanings for wording in each)
                if name := next((name for name in names if self._rows(name)), None):
                    return name
            if long := self._long(short, mentions, in_chinese=in_chinese):
                return f"{before}{long}{after}"
        return None

    def agrees(self, short: str, concept_row: int) -> bool:
        """Return whether the list has a single meaning of a short form, and it is this concept.

        Args:
            short: The short form.
            concept_row: Row of the concept.
        """
        meanings = self._list.meanings(
            self._listed(short, in_chinese=False) or "", in_chinese=False
        )
        return len(meanings) == 1 and concept_row in self._concepts(meanings[0])

    def _listed(self, short: str, *, in_chinese: bool) -> str | None:
        """Return a short form as listed: in capitals, without a plural *s*."""
        forms = (short.upper(), short.removesuffix("s").upper())
        return next((f for f in forms if self._list.meanings(f, in_chinese=in_chinese)), None)

    def _long(self, short: str, mentions: Collection[str], *, in_chinese: bool) -> str | None:
        """Return the wording to look up, or None where the short form itself is looked up."""
        meanings = self._list.meanings(short, in_chinese=in_chinese)
        if len(meanings) > 1:
            named = frozenset[int]().union(*map(self._rows, set(mentions) - {short, f"{short}s"}))
            meanings = tuple(each for each in meanings if self._concepts(each) & named)
        if len(meanings) != 1 or self._rows(short) & self._concepts(meanings[0]):
            return None
        return next((wording for wording in meanings[0] if self._rows(wording)), None)

    def _concepts(self, wordings: Iterable[str]) -> frozenset[int]:
        return frozenset[int]().union(*map(self._rows, wordings))
