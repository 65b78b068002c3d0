"""Events of a text: the triggers, words and punctuation that decide about scope, in text order."""

from __future__ import annotations

import re
import string
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from biograft.clinical.phrases import PhraseTokens
from biograft.clinical.rules import AssertionRules, CompiledRule, EventKind
from biograft.text.sentences import FoldedText
from biograft.text.tokens import simplify

Event: TypeAlias = tuple[int, int, CompiledRule]
"""Start, end, and the rule of what stands there."""

HEADING_END = CompiledRule("heading", EventKind.LINE)
"""Ends the statement before a heading, and the heading itself."""
_WORD_BACKWARD = re.compile(r"\w[\w.]*")
_FULL_STOP = re.compile(r"\.(?=[\s)”\"]|$)")
_PLAIN = {ord(c) + 0xFEE0: c for c in string.ascii_lowercase + string.digits}
_HEADING_MARK = re.compile(r"[\n:：【]")
"""Without it, a text has no heading."""
_LONG_TEXT = 400
"""Characters from which on sentences without a mention are left out."""
_LONGEST_LEAD = 40
"""Characters of a phrase before a mention that it holds."""
_BEFORE_INITIALS = frozenset("by with of from and or for to no in dr the as against".split())
_LONGEST_WORD = 16


class Section(NamedTuple):
    """A part of a note: where its content starts, its name, and the flags that it implies."""

    start: int
    name: str
    flags: tuple[int, ...]


def lower(text: str, rules: AssertionRules) -> str:
    """Return the text in lower case and simplified Chinese, every character at its offset.

    Letters and digits of full width are plain ones.

    Args:
        text: A text.
        rules: Rules whose language counts.
    """
    low = text.lower()
    if len(low) != len(text):
        low = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    if low.isascii():
        return low
    return (simplify(low) if rules.language == "zh" else low).translate(_PLAIN)


class NoteLayout:
    """A text as rules read it: wrapped lines and runs of blanks folded, in lower case, by sections.

    Args:
        text: A text.
        rules: Rules that know the headings.
    """

    def __init__(self, text: str, rules: AssertionRules) -> None:
        self.low = lower(text, rules)
        found: tuple[list[Section], list[tuple[int, int]]] = [], []
        if "\n" in text:  # a heading keeps its line break
            found = find_sections(text, self.low, rules)
        self.folded = FoldedText(text, found[1])
        self.text = self.folded.text
        if self.text != text:
            self.low = lower(self.text, rules)
        if self.text != text or "\n" not in text:
            found = find_sections(self.text, self.low, rules)
        self.sections, self.headings = found


@lru_cache(64)  # more than a batch of documents
def read_layout(text: str, rules: AssertionRules) -> NoteLayout:
    """Return the layout of a text; what links a text and what asserts share it.

    Args:
        text: A text.
        rules: Rules that know the headings.
    """
    return NoteLayout(text, rules)


def find_sections(
    text: str, low: str, rules: AssertionRules
) -> tuple[list[Section], list[tuple[int, int]]]:
    """Return the sections of a text, and the spans of their headings.

    Args:
        text: A text.
        low: The same text in lower case.
        rules: Rules that know the headings.
    """
    sections: list[Section] = []
    spans: list[tuple[int, int]] = []
    if not _HEADING_MARK.search(low):
        return sections, spans
    for match in rules.heading.finditer(low):
        if match["name"] is not None:
            if not _is_heading(text, match):
                continue
            name, flags, reach = rules.section_of(match["name"])
            sections.append(Section(match.start("name"), name, ()))  # the heading itself
            sections.append(Section(match.end(), name, flags))
            spans.append((match.start("name"), match.end()))
            if flags and (end := _section_end(text, match.end(), reach)) is not None:
                sections.append(Section(end, "", ()))
        elif _ends_section(text[match.start("other") : match.end("other")], rules):
            sections.append(Section(match.end(), "", ()))
    sections.sort()
    return _without_early_ends(sections), spans


def _ends_section(line: str, rules: AssertionRules) -> bool:
    """Whether the beginning of a line, up to its colon, is a heading that no section has."""
    return line.isupper() or line[:-1].rsplit(maxsplit=1)[-1].lower() in rules.heading_words


def _is_heading(text: str, match: re.Match[str]) -> bool:
    """Whether a heading is one: within a line with a mark, behind a word in capitals, too."""
    start, end = match.span("name")
    last, begins = text[match.end() - 1], text[match.start() - 1 : match.start()] in "\n"
    if match["inside"] is not None:
        return end - start > _SHORT_HEADING and text[start:end].isupper() and last in ":："
    return begins or not (last == "\n" or last.isalnum())


_BLANKS = re.compile(r"\s*")
_SHORT_HEADING = 4
_GOES_ON = re.compile(r"[ \t]*(?:[-*•·\d(（]|[a-z])")
"""Beginning of a line that belongs to the one before: an item of a list, or a small letter."""
_SENTENCE_END = re.compile(r"[.;](?=\s+[A-Z])|[。；]")


def _section_end(text: str, start: int, reach: str) -> int | None:
    """Return where the flags of the section that starts here end, if before the next heading.

    That is a blank line; where there is text on the line of the heading, the end of that line.
    """
    line_end = text.find("\n", start)
    if text[start:line_end].strip() and "\n" not in text[start - 1 : start]:
        stop = _SENTENCE_END.search(text, start, line_end if line_end >= 0 else len(text))
        if reach == "sentence" and stop is not None:
            return stop.end()
        while line_end >= 0 and _GOES_ON.match(text, line_end + 1):
            line_end = text.find("\n", line_end + 1)
        return None if line_end < 0 else line_end
    content = _BLANKS.match(text, start)
    blank = text.find("\n\n", content.end() if content else start)
    return None if blank < 0 else blank


def _without_early_ends(sections: list[Section]) -> list[Section]:
    """Drop the blank lines that come after the next heading."""
    kept: list[Section] = []
    for section in sections:
        if section.name or not kept or kept[-1].name:
            kept.append(section)
    return kept


def find_events(
    low: str,
    rules: AssertionRules,
    headings: list[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
) -> list[Event]:
    """Return the events of a text in lower case; a phrase holds a span whole, or none of it.

    What a phrase holds is a mention that is part of a trigger, *mother* in *her mother had asthma*,
    or of what looks like one, *month* in *a six month history of*.

    Args:
        low: A text in lower case.
        rules: Rules with the phrases.
        headings: Spans of the headings, in text order.
        spans: Spans of the mentions, in text order.
    """
    marks, starts, starting = rules.marks, rules.starts, rules.starting
    tokens = PhraseTokens(low, _stretches(low, spans, rules), rules.trie)
    texts, places = tokens.texts, tokens.spans
    begun = done = 0
    events: list[Event] = []
    for index in [n for n, text in enumerate(texts) if text in starting or "0" <= text < ":"]:
        if index < done:
            continue
        (start, end), text = places[index], texts[index]
        longest, known = None, starts.get(text)
        if known is not None and texts[index + 1] not in known[0]:
            rule = known[1]
        else:
            while begun < len(spans) and spans[begun][0] <= start:
                begun += 1
            longest, rule = _longest_phrase(low, rules, tokens, index, spans, begun), None
        if longest is not None:
            last, rule = longest
            end, done = places[last][1], last + 1
        elif rule is None and text in marks and _counts(low, start, marks[text], rules):
            rule = marks[text]
        if rule is not None and not _is_second_part(low, start):
            events.append((start, end, rule))
    return _apart_from(headings, events) if headings else events


def _longest_phrase(
    low: str,
    rules: AssertionRules,
    tokens: PhraseTokens,
    index: int,
    spans: Sequence[tuple[int, int]],
    begun: int,
) -> tuple[int, CompiledRule | None] | None:
    """Return the last token and the rule of the longest phrase; ``begun`` spans begin before it."""
    start, first = tokens.spans[index][0], begun
    limit = spans[begun][0] if begun < len(spans) else sys.maxsize
    if begun and start < spans[begun - 1][1]:
        limit, first = spans[begun - 1][1], begun - 1
    wide = limit
    if first < len(spans) and 0 <= spans[first][0] - start <= _LONGEST_LEAD:
        wide = spans[first + 2][0] if first + 2 < len(spans) else sys.maxsize
    longest, wider = rules.trie.match_within(low, tokens, index, limit, wide)
    if wider is longest or wider is None:
        return longest
    (last, rule), (begin, end) = wider, spans[first]
    stop = tokens.spans[last][1]
    is_last = stop <= end
    if stop < end or any(a < stop < b for a, b in spans[first + 1 : first + 2]):
        return longest
    if rule is None:  # *six month history of*, *found by her mother*, but not *pain with*
        is_participle = low.endswith("ed", begin, end)  # *complicated by*
        holds = (not is_last or low[begin:end] in rules.trie.root) and (
            begin > start or last > index + 1 or is_participle
        )
    else:
        is_name = rule.kind is EventKind.TRIGGER or end - begin > 2  # no *w* of *w/*
        holds = rule.may_be_mention or (not is_last and is_name)
    return wider if holds else longest


def _stretches(
    low: str, spans: Sequence[tuple[int, int]], rules: AssertionRules
) -> list[tuple[int, int]]:
    """Return the sentences of a long text that have a span; no scope goes beyond a full stop."""
    if len(low) < _LONG_TEXT or not spans:
        return [(0, len(low))]
    stops = [
        found.end()
        for found in _FULL_STOP.finditer(low)
        if _counts(low, found.start(), rules.marks["."], rules)
    ]
    stretches: list[tuple[int, int]] = []
    for start, end in spans:
        if stretches and end <= stretches[-1][1]:
            continue
        before, after = bisect_right(stops, start), bisect_left(stops, end)
        begin = stops[before - 1] if before else 0
        last = stops[after] if after < len(stops) else len(low)
        if stretches and begin < stretches[-1][1]:
            begin = stretches[-1][1]
        stretches.append((begin, last))
    return stretches


def _is_second_part(low: str, start: int) -> bool:
    """Whether a hyphen joins the word before: *L-NIL*."""
    return low[start - 1 : start] == "-" and low[start - 2 : start - 1].isalnum()


def _counts(low: str, start: int, rule: CompiledRule, rules: AssertionRules) -> bool:
    """Whether a punctuation mark ends or parts anything."""
    if rule.kind is EventKind.PERIOD:
        if low[start + 1 : start + 2].strip(' \t\n)"”’'):
            return False
        return _ends_sentence(low, start, rules)
    if rule.kind is EventKind.DASH:
        apart = low[start - 1 : start].isspace() and low[start + 1 : start + 2].isspace()
        return apart and not _is_bullet(low, start)
    return True


def _is_bullet(low: str, start: int) -> bool:
    return not low[low.rfind("\n", 0, start) + 1 : start].strip()


def _ends_sentence(low: str, dot: int, rules: AssertionRules) -> bool:
    word = _last_word(low, dot)
    if not word:
        return True
    start = dot - len(word)
    if word in rules.abbreviations:
        return dot + 1 >= len(low)
    if word.isdigit():  # the number of a list item
        return bool(low[low.rfind("\n", 0, dot) + 1 : start].strip())
    if len(word) != 1 or not word.isalpha():
        return True
    before = _last_word(low, max(0, start - 1))
    return before != "" and before not in _BEFORE_INITIALS  # *hepatitis B.*, *by E. coli*


def _last_word(low: str, end: int) -> str:
    """Return the word, with inner full stops, that ends at an offset."""
    found = _WORD_BACKWARD.match(low[max(0, end - _LONGEST_WORD) : end][::-1])
    return found[0][::-1] if found else ""


def _apart_from(headings: list[tuple[int, int]], events: list[Event]) -> list[Event]:
    """Put ends around headings, and drop the events in them."""
    return list(_merge(headings, events))


def _merge(headings: list[tuple[int, int]], events: list[Event]) -> Iterator[Event]:
    position = 0
    for start, end in headings:
        while position < len(events) and events[position][0] < start:
            yield events[position]
            position += 1
        yield start, start, HEADING_END
        yield end, end, HEADING_END
        while position < len(events) and events[position][0] < end:
            position += 1
    yield from events[position:]
