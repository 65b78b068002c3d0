"""Assertion status: whether a mention is negated, uncertain, historical, about another person.

Negation detection (NegEx) and context (ConText) by rules, for clinical notes and articles, English
and Chinese:

>>> text = "No fever or chills, but cough. Mother had asthma."
>>> [assertion.status for assertion in assert_status(text, [(3, 8), (12, 18), (24, 29), (42, 48)])]
['absent', 'absent', 'present', 'family']
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from biograft.clinical.events import NoteLayout, find_events, read_layout
from biograft.clinical.rules import FLAGS, IMPLIED, LANGUAGES, MORE_FLAGS, AssertionRules
from biograft.clinical.scope import (
    ACTIVE,
    AFFIRMED,
    CONDITIONAL,
    FAMILY,
    HISTORICAL,
    HYPOTHETICAL,
    NEGATED,
    OTHER_PERSON,
    RECURRENT,
    RESOLVED,
    UNCERTAIN,
    Found,
    Scan,
    follows_on,
)
from biograft.errors import ConfigError
from biograft.kb.names import HAN_CHARACTER
from biograft.text.documents import Document, Mention

STATUSES = (
    "present",
    "absent",
    "possible",
    "conditional",
    "historical",
    "hypothetical",
    "family",
    "other_person",
)
"""The statuses, of which each assertion has one."""
_ORDER = (
    (FAMILY, "family"),
    (OTHER_PERSON, "other_person"),
    (HYPOTHETICAL, "hypothetical"),
    (NEGATED, "absent"),
    (UNCERTAIN, "possible"),
    (CONDITIONAL, "conditional"),
    (HISTORICAL, "historical"),
)
"""The flag that decides the status, first to last."""
AXES: dict[str, dict[str, str]] = {
    "polarity": {"": "affirmed", "negated": "negated"},
    "certainty": {"": "confirmed", "unlikely": "unlikely", "uncertain": "possible"},
    "time": {"": "current", "hypothetical": "future", "historical": "past"},
    "course": {"": "", "resolved": "resolved", "recurrent": "recurrent", "active": "active"},
    "experiencer": {
        "": "patient",
        "family": "family",
        "donor": "donor",
        "other_person": "contact",
    },
    "plan": {"": "", "planned": "planned"},
    "condition": {
        "": "",
        "planned": "",
        "conditional": "conditional",
        "hypothetical": "hypothetical",
    },
}
"""Values of each axis by the flag that gives them, first to last; "" has the default."""
FLAG_OF = {
    axis: {value: flag for flag, value in reversed(values.items())} for axis, values in AXES.items()
}
"""The flag that gives each value of an axis; "" gives the default."""
_AROUND = 12
"""Characters around a mention that decide its language."""
_EXPLICIT = (
    1 << UNCERTAIN
    | 1 << HISTORICAL
    | 1 << HYPOTHETICAL
    | 1 << FAMILY
    | 1 << OTHER_PERSON
    | 1 << CONDITIONAL
    | 1 << ACTIVE
    | 1 << AFFIRMED
)
"""Flags of a trigger that replace the default of a section."""
_IMPLIED = {FLAGS.index(flag): FLAGS.index(other) for flag, other in IMPLIED.items()}
_WEAK = (UNCERTAIN, HYPOTHETICAL, CONDITIONAL)
"""Defaults of sections that any trigger replaces."""
_COURSE = 1 << ACTIVE | 1 << RESOLVED | 1 << RECURRENT
"""Flags that replace no weak default."""
_NOT_THERE = 1 << NEGATED | 1 << HYPOTHETICAL
"""Absent or hypothetical mentions cannot be conditional: *no pain on exertion*."""
_REACTION = re.compile(r"[(（:：=→>–—][^;；.。\n]*$|\s-\s[^;；.。\n]*$")
"""Separator between substance and reaction: *penicillin (hives)*, *latex: rash*."""


class Trigger(NamedTuple):
    """Evidence of an assertion: the text that decided a flag."""

    start: int
    """Character offset of its first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """The words of the text, as written."""
    flag: str
    """Flag of the assertion that it set."""
    rule: str
    """Name of the rule that matched."""


class Assertion(NamedTuple):
    """Assertion status of a mention."""

    negated: bool = False
    """The finding is absent."""
    uncertain: bool = False
    """The finding is possible, suspected or to be ruled out."""
    historical: bool = False
    """The finding belongs to the past."""
    hypothetical: bool = False
    """The finding may occur later: a risk, a warning, a plan."""
    family: bool = False
    """The finding is that of a relative."""
    other_person: bool = False
    """The finding is that of another person, such as a donor or contact."""
    conditional: bool = False
    """The finding occurs only under a condition, such as on exertion."""
    active: bool = False
    """The text says that the finding is present now."""
    resolved: bool = False
    """The finding was present and has ended."""
    recurrent: bool = False
    """The finding has come back."""
    unlikely: bool = False
    """The low end of ``uncertain``, which is set as well."""
    planned: bool = False
    """A plan, so that ``hypothetical`` is set as well."""
    donor: bool = False
    """The ``other_person`` is a donor."""
    status: str = "present"
    """The flags in one word, see ``STATUSES``."""
    section: str = ""
    """Name of the section of the note, empty where no heading is known."""
    triggers: tuple[Trigger, ...] = ()
    """The words of the text that set the flags."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the flags that are set."""
        return tuple(compress(FLAGS, self))

    @property
    def label(self) -> str:
        """The status with what else is said: "historical, resolved"; empty for present alone."""
        said = [self.status] if self.status != "present" else []
        return ", ".join([*said, *(flag for flag in MORE_FLAGS if getattr(self, flag))])

    @property
    def axes(self) -> dict[str, str]:
        """Value of each axis, see ``AXES``."""
        return {axis: self._value(axis) for axis in AXES}

    @property
    def polarity(self) -> str:
        """Polarity: affirmed or negated."""
        return self._value("polarity")

    @property
    def certainty(self) -> str:
        """Certainty: confirmed, possible or unlikely."""
        return self._value("certainty")

    @property
    def time(self) -> str:
        """Time: current, past or future."""
        return self._value("time")

    @property
    def course(self) -> str:
        """Course: active, resolved or recurrent; empty where the text does not say."""
        return self._value("course")

    @property
    def experiencer(self) -> str:
        """Person with the finding: patient, family, contact or donor."""
        return self._value("experiencer")

    @property
    def plan(self) -> str:
        """Plan: planned, or empty."""
        return self._value("plan")

    @property
    def condition(self) -> str:
        """Condition: conditional, hypothetical, or empty; a plan is none."""
        return self._value("condition")

    def evidence(self, axis: str) -> tuple[Trigger, ...]:
        """Return the triggers that gave an axis its value; none if it is a default.

        >>> (found,) = assert_status("Pneumonia, now resolved.", [(0, 9)])
        >>> found.course, [trigger.text for trigger in found.evidence("course")]
        ('resolved', ['resolved'])
        """
        flag = self._deciding(axis)
        return tuple(t for t in self.triggers if t.flag == flag and AXES[axis][flag])

    def _value(self, axis: str) -> str:
        return AXES[axis][self._deciding(axis)]

    def _deciding(self, axis: str) -> str:
        """Return the flag that gives an axis its value."""
        return next((flag for flag in AXES[axis] if flag and getattr(self, flag)), "")

    def to_json(self) -> dict[str, Any]:
        """Return the assertion as plain values."""
        triggers = [trigger._asdict() for trigger in self.triggers]
        return {**self._asdict(), "axes": self.axes, "triggers": triggers}


PRESENT = Assertion()


class AssertionModel(Protocol):
    """Anything that asserts the status of mentions: the rules, or a model of your own."""

    def assert_status(self, text: str, spans: Sequence[tuple[int, int]]) -> list[Assertion]:
        """Return one assertion for each span.

        Args:
            text: A text.
            spans: Start and end of each mention, in characters of the text.
        """


class RuleAssertions:
    """Assertion status by rules.

    Args:
        language: ``en`` or ``zh``; None decides by the script around each span.
        rules: Rules, of one language or several, or the file of some, for texts in their language;
            the shipped ones are for others.

    >>> RuleAssertions("en").assert_status("Denies fever.", [(7, 12)])[0].negated
    True
    """

    def __init__(
        self,
        language: str | None = None,
        rules: AssertionRules | str | Path | Sequence[AssertionRules] | None = None,
    ) -> None:
        if isinstance(rules, str | Path):
            rules = AssertionRules.load(rules)
        if language is not None and language not in LANGUAGES:
            raise ConfigError(
                f"language: expected one of {', '.join(LANGUAGES)}, or None, found {language!r}"
            )
        own = [rules] if isinstance(rules, AssertionRules) else rules or ()
        for each in own:
            if language not in (None, each.language):
                raise ConfigError(
                    f"{each.where}: has rules of language {each.language!r}, expected {language!r}"
                )
        self._language, self._own = language, {each.language: each for each in own}

    def assert_status(self, text: str, spans: Sequence[tuple[int, int]]) -> list[Assertion]:
        """Return one assertion for each span, in the order given.

        Args:
            text: A text.
            spans: Start and end of each mention, in characters of the text.
        """
        for start, end in spans:
            if not 0 <= start <= end <= len(text):
                raise ConfigError(
                    f"spans: ({start}, {end}) is not within the text of {len(text)} characters"
                )
        if self._language is not None:
            return _apply(self.rules_of(self._language), text, spans)
        return self._by_script(text, spans)

    def rules_of(self, language: str) -> AssertionRules:
        """Return the rules for texts in a language."""
        return self._own.get(language) or AssertionRules.shipped(language)

    def _by_script(self, text: str, spans: Sequence[tuple[int, int]]) -> list[Assertion]:
        """Use for each span the rules of the language around it."""
        if text.isascii() or not HAN_CHARACTER.search(text):
            return _apply(self.rules_of("en"), text, spans)
        chinese = [is_chinese(text, start, end) for start, end in spans]
        results: list[Assertion] = [PRESENT] * len(spans)
        for language, in_chinese in (("en", False), ("zh", True)):
            rows = [row for row, value in enumerate(chinese) if value is in_chinese]
            if rows:
                found = _apply(self.rules_of(language), text, [spans[row] for row in rows])
                for row, assertion in zip(rows, found, strict=True):
                    results[row] = assertion
        return results


def is_chinese(text: str, start: int, end: int) -> bool:
    """Return True if a mention, or what touches it, or else the nearest letter is Chinese.

    Args:
        text: A text.
        start: Start of the mention.
        end: End of the mention.
    """
    if HAN_CHARACTER.search(text, max(0, start - 1), end + 1):
        return True
    before = text[max(0, start - _AROUND) : start][::-1]
    nearest = next(filter(str.isalpha, before + text[end : end + _AROUND]), "")
    return HAN_CHARACTER.match(nearest) is not None


def assert_status(
    text: str,
    spans: Sequence[tuple[int, int]],
    language: str | None = "en",
    rules: AssertionRules | str | Path | None = None,
) -> list[Assertion]:
    """Return the assertion status of each span of a text.

    Args:
        text: A text.
        spans: Start and end of each mention, in characters of the text.
        language: Language of the rules, "en" or "zh"; None decides by the script around each span.
        rules: Rules, or the file of some; a file with ``extends`` adds to the shipped ones.

    >>> [a.negated for a in assert_status("无发热、咳嗽，伴头痛", [(1, 3), (4, 6), (8, 10)], "zh")]
    [True, True, False]
    """
    if rules is None:
        return _by_language(language).assert_status(text, spans)
    # the file says which language its rules are for
    return RuleAssertions(None if language == "en" else language, rules).assert_status(text, spans)


@functools.cache
def _by_language(language: str | None) -> RuleAssertions:
    return RuleAssertions(language)


def assert_documents(
    documents: Iterable[Document],
    language: str | None = None,
    rules: AssertionRules | str | Path | None = None,
) -> Iterator[tuple[Document, list[Assertion]]]:
    """Yield each document with the assertions of its mentions, in their order.

    Args:
        documents: Documents with mentions.
        language: Language of the rules; default: that of the document, else by the script of its
            text.
        rules: Rules, or the file of some; a file with ``extends`` adds to the shipped ones.
    """
    models: dict[str | None, RuleAssertions] = {}
    for document in documents:
        own = language or (document.language if document.language in LANGUAGES else None)
        if own not in models:
            models[own] = RuleAssertions(own, rules)
        spans = [(mention.start, mention.end) for mention in document.mentions]
        yield document, models[own].assert_status(document.text, spans)


def _apply(rules: AssertionRules, text: str, spans: Sequence[tuple[int, int]]) -> list[Assertion]:
    if not spans:
        return []
    layout = read_layout(text, rules)
    fold = layout.folded.fold
    moved = [(fold(start), fold(end)) for start, end in spans]
    ordered = sorted(set(moved))  # the parts of a composite share a span
    events = find_events(layout.low, rules, layout.headings, ordered)
    scan = Scan(layout.low, events, rules)
    results = {
        span: _conclude(found, layout, text)
        for span, found in zip(ordered, scan.run(ordered), strict=True)
    }
    return [results[span] for span in moved]


def _conclude(found: Found, layout: NoteLayout, original: str) -> Assertion:
    """Make the assertion of what was found, with the default of its section."""
    text, sections = layout.text, layout.sections
    if found.bits & _NOT_THERE:
        found.drop(CONDITIONAL)
        if found.bits & 1 << NEGATED and found.bits & _COURSE:  # *no active bleeding*
            found.drop(ACTIVE)
            found.drop(RECURRENT)
    bits, section = found.bits, ""
    if not bits and not sections:
        return PRESENT
    if sections:
        position = bisect_right(sections, found.start, key=lambda each: each.start) - 1
        if position >= 0:
            start, section, defaults = sections[position]
            for flag in defaults:
                past = 1 << HISTORICAL if flag == FAMILY else 0  # *FH: no history of gout*
                weak = flag in _WEAK and found.bits & ~_COURSE
                if weak or found.bits & _EXPLICIT & ~past:
                    continue
                if flag == HISTORICAL and follows_on(text, found.start):
                    continue
                if flag == CONDITIONAL and not _REACTION.search(text, start, found.start):
                    continue
                bits |= 1 << flag
    bits &= ~(1 << AFFIRMED)
    if not bits:
        return PRESENT if not section else Assertion(section=section)
    said = [(t, t.flag) for t in found.triggers]
    for t in found.triggers:
        for flag in t.rule.details:
            if _IMPLIED[flag] == t.flag:
                bits |= 1 << flag
                said.append((t, flag))
    triggers = []
    for t, flag in said:
        start, end = layout.folded.unfold(t.start, t.end)
        triggers.append(Trigger(start, end, original[start:end], FLAGS[flag], t.rule.name))
    return Assertion._make((*_values(bits), section, tuple(triggers)))


def as_absent(assertion: Assertion, mention: Mention) -> Assertion:
    """Return the assertion of a mention that says itself that the finding is absent: *afebrile*.

    Args:
        assertion: What the text around it says.
        mention: The mention.
    """
    if assertion.negated:
        return assertion
    trigger = Trigger(mention.start, mention.end, mention.text, "negated", "word of absence")
    return assertion._replace(
        negated=True,
        status=status_of((*assertion.flags, "negated")),
        triggers=(*assertion.triggers, trigger),
    )


def status_of(flags: Iterable[str]) -> str:
    """Return the status of a mention in one word, of the flags that hold for it.

    >>> status_of(["negated", "historical"])
    'absent'
    """
    held = {IMPLIED.get(flag, flag) for flag in flags}
    return next((name for flag, name in _ORDER if FLAGS[flag] in held), "present")


@functools.cache
def _values(bits: int) -> tuple[Any, ...]:
    """Return the flags of a bit mask, and its status."""
    flags = [bool(bits & 1 << flag) for flag in range(len(FLAGS))]
    return (*flags, next((name for flag, name in _ORDER if flags[flag]), "present"))
