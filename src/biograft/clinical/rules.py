"""Assertion rules: triggers and where their scope ends, read from a TOML file.

The package ships ``rules/en.toml`` and ``rules/zh.toml``; a file of your own has the same keys
(``docs/clinical.md``). An error names the file and the rule.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

from biograft.clinical.phrases import PhraseTrie, compile_words, expand
from biograft.config import Choice, Config, from_mapping, load_toml
from biograft.errors import ConfigError

T = TypeVar("T")
FLAGS: tuple[str, ...] = (
    "negated",
    "uncertain",
    "historical",
    "hypothetical",
    "family",
    "other_person",
    "conditional",
    "active",
    "resolved",
    "recurrent",
    "unlikely",
    "planned",
    "donor",
)
"""Flags of a mention, in the order of the fields of an ``Assertion``."""
MORE_FLAGS = FLAGS[7:]
"""Flags that decide no status by themselves."""
COURSE = frozenset(("active", "resolved", "recurrent"))
IMPLIED = {"unlikely": "uncertain", "planned": "hypothetical", "donor": "other_person"}
"""Flags that say more of another flag, which they imply."""
KINDS = ("trigger", "affirm", "ignore", "verb", "preposition", "stop", "and", "or", "seen")
DIRECTIONS = ("forward", "backward", "either", "both", "row")
"""``row``: forward where a box begins the line, *[ ] asthma [x] gout*, else backward."""
SCOPES = ("next", "phrase", "list", "clause", "sentence")
WHERE = ("", "end", "attached", "leading", "begins", "sentence", "object", "not_attribute")
REACHES = ("section", "sentence")
SHIPPED = Path(__file__).with_name("rules")
LANGUAGES = ("en", "zh")


class EventKind(IntEnum):
    """Effect of a position in the text on the scopes around it."""

    TRIGGER = 0
    AFFIRM = 1
    VERB = 2
    PREPOSITION = 3
    STOP = 4
    AND = 5
    OR = 6
    SEEN = 7
    COMMA = 8
    OPEN = 9
    CLOSE = 10
    COLON = 11
    END = 12
    PERIOD = 13
    LINE = 14
    DASH = 15
    COURSE = 16


@dataclass(frozen=True, kw_only=True)
class RuleEntry(Config):
    """A ``[[rule]]`` of the file."""

    name: str
    kind: Annotated[str, Choice(*KINDS)]
    phrases: tuple[str, ...]
    flags: tuple[Annotated[str, Choice(*FLAGS)], ...] = ()
    """Flags that a trigger asserts; for ``stop``: flags that it ends, empty for all."""
    direction: Annotated[str, Choice(*DIRECTIONS)] = "forward"
    scope: Annotated[str, Choice(*SCOPES)] = "list"
    where: Annotated[str, Choice(*WHERE)] = ""
    """``end``: the phrase counts only where its statement ends after it, *Fever: no*;
    ``attached``: only where it touches the next word, and not the one before, *-fever*;
    ``leading``: only with a word after it on the line, and apart from the one before, *? flu*;
    ``begins``: only where a clause begins; ``sentence``: only where a sentence, line or item
    begins, *Resolved pneumonia*; ``object``: only with a word after it;
    ``not_attribute``: not before 性 or 型, 非萎缩性."""


@dataclass(frozen=True, kw_only=True)
class SectionEntry(Config):
    """A ``[[section]]`` of the file."""

    name: str
    headings: tuple[str, ...]
    flags: tuple[Annotated[str, Choice(*FLAGS)], ...] = ()
    """Default flags of a mention in the section, without a trigger."""
    reach: Annotated[str, Choice(*REACHES)] = "section"
    """``sentence``: a heading with text on its line is for the first sentence only: *FH: MI.*"""


@dataclass(frozen=True, kw_only=True)
class RuleFile(Config):
    """A whole file."""

    language: Annotated[str | None, Choice(*LANGUAGES)] = None
    extends: Annotated[str | None, Choice(*LANGUAGES)] = None
    """Language whose shipped rules the file adds to; its own phrases and headings go first."""
    rule: tuple[Any, ...] = ()
    """Tables of ``RuleEntry``."""
    section: tuple[Any, ...] = ()
    """Tables of ``SectionEntry``."""
    lists: Mapping[str, Any] | None = None
    fillers: tuple[str, ...] = ()
    """Words that may stand between the words of any phrase."""
    modifiers: tuple[str, ...] = ()
    """Words of what is there, *mild*: after a comma they end a negation."""
    abbreviations: tuple[str, ...] = ()
    """Words whose full stop ends no sentence."""
    heading_words: tuple[str, ...] = ()
    """Last words of a heading that no section has: it ends the section before."""


def flag_indices(flags: Iterable[str]) -> tuple[int, ...]:
    """Return the positions of flags in ``FLAGS``, each once."""
    return tuple(map(FLAGS.index, dict.fromkeys(flags)))


class CompiledRule:
    """A rule as the scan needs it.

    Args:
        name: Name of the rule, which is the evidence of an assertion.
        kind: Kind of event that the phrase is.
        rank: How far its scope reaches, from ``NEXT`` to ``SENTENCE``.
        entry: Entry of the file of rules; None has neither flags nor a condition.

    Its ``flags`` take part in the scan; its ``details`` are flags that say more of one of these.
    """

    __slots__ = ("condition", "details", "direction", "flags", "kind", "name", "rank")

    def __init__(
        self, name: str, kind: EventKind, rank: int = 0, entry: RuleEntry | None = None
    ) -> None:
        self.name, self.kind, self.rank = name, kind, rank
        flags = entry.flags if entry else ()
        self.flags = flag_indices(IMPLIED.get(flag, flag) for flag in flags)
        self.details = flag_indices(flag for flag in flags if flag in IMPLIED)
        self.direction = entry.direction if entry else "forward"
        self.condition = entry.where if entry else ""

    @property
    def may_be_mention(self) -> bool:
        """Whether a mention may be this trigger: *risk*, *on exertion*, but no *remission*."""
        if self.kind is not EventKind.TRIGGER or FLAGS.index("negated") in self.flags:
            return False
        others = {FLAGS.index("family"), FLAGS.index("conditional")}
        return self.direction == "forward" or not others.isdisjoint(self.flags)

    def holds(self, low: str, start: int, end: int) -> bool:
        """Whether its condition holds for a phrase between two offsets.

        Args:
            low: A text in lower case.
            start: Start of the phrase.
            end: End of the phrase.
        """
        if not self.condition:
            return True
        if self.condition == "end":
            return _AT_END.match(low, end) is not None
        if self.condition == "not_attribute":
            return _ATTRIBUTE.match(low, end) is None
        if self.condition == "object":
            return low[end : end + 1].isalnum()
        before = low[start - 1 : start]
        if self.condition == "begins":
            return not before or before in " \t\n，,。；;：:！？.()（）"
        if self.condition == "sentence":
            return low[max(0, start - _INDENT) : start].rstrip(" \t#*-•)")[-1:] in (
                "",
                *"\n.;:。；：",
            )
        if self.condition == "leading":
            return _LEADING.match(low, end) is not None and before in " \t\n(,;/"
        return _ATTACHED.match(low, end) is not None and before in " \t(,;/"


_MARKS = {
    EventKind.COMMA: ",，",
    EventKind.OPEN: "(（[",
    EventKind.CLOSE: ")）]",
    EventKind.COLON: ":：",
    EventKind.END: ";；。！？!?|",
    EventKind.PERIOD: ".",
    EventKind.LINE: "\n",
    EventKind.DASH: "-–—",
}
_HEADING_NUMBER = (
    r"(?:(?:[\d一二三四五六七八九十]{1,2}(?:\.\d)?|[ivx]{1,4})[.)、]\s?"
    r"|[(（][\d一二三四五六七八九十]{1,2}[)）]\s?)?"
)
_AT_END = re.compile(r"[ \t]*(?:[,;.)|\]，；。、）\n]|$|[ \t]{2})")
_ATTRIBUTE = re.compile(r"[^\s，。、；：,;.:]{1,5}?[性型]")
_ATTACHED = re.compile(r"[^\W\d]")
_INDENT = 12
"""Characters of a bullet with its blanks."""
_LEADING = re.compile(r"[ \t]*[^\W\d]")


class AssertionRules:
    """The rules of a language, compiled.

    Args:
        values: Tables of a file of rules.
        where: Name of the file in errors.
    """

    def __init__(self, values: Mapping[str, Any], where: str = "rules") -> None:
        self.where = where
        entries = self._read_file(values)
        parts, shipped = [entries], entries.extends
        if shipped:
            parts.append(self._read_file(load_toml(SHIPPED / f"{shipped}.toml")))
        self.language = entries.language or shipped or ""
        if not self.language:
            raise ConfigError(f"{where}: missing key 'language', or 'extends'")
        if shipped not in (None, self.language):
            raise ConfigError(f"{where}: language: is {self.language!r}, but extends {shipped!r}")
        self._lists: dict[str, tuple[str, ...]] = {}
        for part in parts:
            self._read_lists(part.lists or {})

        def words(key: str) -> tuple[str, ...]:
            return tuple(word for part in parts for word in getattr(part, key))

        self.abbreviations = frozenset(words("abbreviations"))
        self.heading_words = frozenset(words("heading_words"))
        self.modifier = self._compile_modifiers(words("modifiers"))
        self.marks = {
            mark: CompiledRule(mark, kind) for kind, marks in _MARKS.items() for mark in marks
        }
        self.trie: PhraseTrie[CompiledRule] = PhraseTrie(
            characters=self.language == "zh", fillers=words("fillers")
        )
        own: frozenset[str] = frozenset()
        for part in parts:  # a phrase of the first file replaces the shipped one
            rules = _read_entries(RuleEntry, "rule", part.rule, where)
            rules.sort(key=lambda entry: not entry.where)
            own = frozenset([wording for entry in rules for wording in self._add(entry, own)])
        self._read_starts()
        self.sections: dict[str, tuple[str, tuple[int, ...], str]] = {}
        for part in parts:
            self._add_sections(_read_entries(SectionEntry, "section", part.section, where))
        self.heading = self._compile_headings()

    def _read_starts(self) -> None:
        self.starting = frozenset([*self.trie.root, *self.marks])
        """Tokens that an event may begin with, but for numbers."""
        alone = self.starting.difference(self.trie.root)
        self.starts = {**dict.fromkeys(alone, (frozenset(), None)), **self.trie.starts()}

    def with_rules(self, entries: Iterable[RuleEntry], where: str) -> AssertionRules:
        """Return these rules with others, whose phrases replace theirs.

        Args:
            entries: The others, without a phrase in common.
            where: Where they are from, in errors.
        """
        rules = copy(self)
        rules.where, rules.trie = where, self.trie.copy()
        for entry in entries:
            list(rules._add(entry, ()))
        rules._read_starts()
        return rules

    @classmethod
    def load(cls, path: str | Path) -> AssertionRules:
        """Read and compile a rule file.

        >>> AssertionRules.load("my-rules.toml")  # doctest: +SKIP
        """
        return cls(load_toml(Path(path)), str(path))

    @classmethod
    def shipped(cls, language: str) -> AssertionRules:
        """Return the rules of the package for a language, compiled once."""
        return _load_shipped(language)

    def section_of(self, heading: str) -> tuple[str, tuple[int, ...], str]:
        """Return the name of a section, the flags that it implies, and how far it reaches."""
        return self.sections[" ".join(heading.split())]

    def _compile_modifiers(self, words: Sequence[str]) -> re.Pattern[str]:
        """Compile what makes the item after a comma a finding: its first word, in Chinese any."""
        known = compile_words(words)
        if self.language == "zh":
            return re.compile(rf"[^，。；,;\n]{{0,12}}?(?:{known}|\d+(?:余|多|\+)?个?[天日周月年])")
        return re.compile(rf"\s+{known}(?![\w-])")

    def _read_file(self, values: Mapping[str, Any]) -> RuleFile:
        try:
            return from_mapping(RuleFile, values)
        except ConfigError as error:
            raise ConfigError(f"{self.where}: {error}") from None

    def _read_lists(self, lists: Mapping[str, Any]) -> None:
        """Add the words of each list to those that it has."""
        for name, words in lists.items():
            if not isinstance(words, Sequence) or isinstance(words, str) or not words:
                raise ConfigError(f"{self.where}: lists.{name}: expected a list of words")
            self._lists[name] = (*self._lists.get(name, ()), *map(str, words))

    def _add(self, entry: RuleEntry, known: Collection[str]) -> Iterator[str]:
        """Enter the wordings of the phrases of a rule in the trie, but for those known."""
        where = f"{self.where}: rule {entry.name!r}"
        if entry.kind == "trigger" and not entry.flags:
            raise ConfigError(f"{where}: flags: a trigger asserts at least one of {FLAGS}")
        if not entry.phrases:
            raise ConfigError(f"{where}: phrases: expected at least one")
        rule = None
        if entry.kind != "ignore":
            course = entry.kind == "trigger" and COURSE.issuperset(entry.flags)
            kind = EventKind.COURSE if course else EventKind[entry.kind.upper()]
            rule = CompiledRule(entry.name, kind, SCOPES.index(entry.scope), entry)
        for phrase in entry.phrases:
            for wording in filter(None, self._wordings(phrase, where)):
                if wording not in known:
                    same = self.trie.add(wording, rule)
                    self._refuse_two(entry, wording, same)
                    yield wording

    def _wordings(self, phrase: str, where: str) -> list[str]:
        try:
            return expand(phrase.lower(), self._lists)
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from None

    def _refuse_two(
        self, entry: RuleEntry, wording: str, rules: Sequence[CompiledRule | None]
    ) -> None:
        """Refuse a phrase that another rule has under the same condition."""
        for other in rules[:-1]:
            name, condition = (other.name, other.condition) if other else ("", "")
            if (
                name != entry.name
                and condition == entry.where
                and (other or entry.kind != "ignore")
            ):
                raise ConfigError(
                    f"{self.where}: rule {entry.name!r}: phrase {wording!r} is also in "
                    f"{f'rule {name!r}' if name else 'a rule to ignore'}; keep one"
                )

    def _add_sections(self, sections: Sequence[SectionEntry]) -> None:
        """Enter headings; those of two sections of a file are of the later one."""
        read: dict[str, tuple[str, tuple[int, ...], str]] = {}
        for section in sections:
            implied = [IMPLIED.get(flag, flag) for flag in section.flags]
            flags = flag_indices([*implied, *section.flags])
            for heading in section.headings:
                for wording in self._wordings(heading, f"{self.where}: section {section.name!r}"):
                    read[wording] = (section.name, flags, section.reach)
        self.sections = {**read, **self.sections}

    def _compile_headings(self) -> re.Pattern[str]:
        known = compile_words(self.sections).replace(r"\ ", r"[ \t]+")
        return re.compile(
            r"(?<![^\s。；])"  # most places fail by one look
            r"(?:(?:^|(?<=[.;。；]\s)|(?<=[。；])|(?P<inside>(?<=[^\W\d_]\s)|(?<=:\s)))"
            rf"[ \t#*_=<>|\[【]*{_HEADING_NUMBER}[*_]*"
            rf"(?P<name>{known})"
            r"[ \t*_\]】>]*(?:[:：|][*_]*|[ \t]-[ \t]|=*$|\n|(?<=[】\]]))"
            r"|^[ \t]*(?=(?P<other>[a-z][a-z /&,-]{2,40}:)))",
            re.MULTILINE,
        )


def _read_entries(cls: type[T], kind: str, tables: Sequence[Any], where: str) -> list[T]:
    """Check the tables of a file; an error names the one that is wrong."""
    entries = []
    for number, table in enumerate(tables, 1):
        name = table.get("name") if isinstance(table, Mapping) else None
        label = f"{where}: {kind} {repr(name) if name else number}"
        if not isinstance(table, Mapping):
            raise ConfigError(f"{label}: expected a table, found {table!r}")
        try:
            entries.append(from_mapping(cls, table))
        except ConfigError as error:
            raise ConfigError(f"{label}: {error}") from None
    return entries


@functools.cache
def _load_shipped(language: str) -> AssertionRules:
    if language not in LANGUAGES:
        raise ConfigError(
            f"language: expected one of {', '.join(LANGUAGES)}, or None, found {language!r}"
        )
    return AssertionRules.load(SHIPPED / f"{language}.toml")
