"""Scope: which triggers reach which mentions, in one pass over the events of a text.

A trigger that looks forward stays active until something ends its scope, and holds for each
mention on the way. A mention stays open until something closes it, and takes the triggers after it
that look backward. What ends a scope depends on its rank:

========  ==========================================================================
next      the mention that directly follows
phrase    up to a comma, a verb or a preposition
list      through commas, *and*, *or*, up to a verb, a preposition or a new clause
clause    through verbs and prepositions, up to a new clause or a word such as *but*
sentence  up to the end of the sentence
========  ==========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from biograft.clinical.events import Event
from biograft.clinical.rules import FLAGS, AssertionRules, CompiledRule, EventKind
from biograft.text.sentences import BULLET

(NEGATED, UNCERTAIN, HISTORICAL, HYPOTHETICAL, FAMILY, OTHER_PERSON, CONDITIONAL) = range(7)
(ACTIVE, RESOLVED, RECURRENT, UNLIKELY, PLANNED, DONOR) = range(7, len(FLAGS))
AFFIRMED = len(FLAGS)
"""Bit of a mention that a trigger says to be present."""
NEXT, PHRASE, LIST, CLAUSE, SENTENCE = range(5)
_LAST_WORDS = re.compile(
    r"\s*(?:[.,;:!?)\]\n，。；、）]|$|(?:by|on|with|via|at|this|as|but|and|due|given|in|today)\b)"
)
"""Words after a trigger that looks backward: *PE ruled out by CT*."""
_BEFORE_BOX = re.compile(r"[^\[☐□☑☒]*\w[^\w\[☐□☑☒:：]*[\[☐□☑☒]")
"""A word before the first box of a row, which is no heading."""
_NEXT_GAP, _ZH_NEXT_GAP = 24, 2
_VERB_GAP = 28
"""Characters between a verb and its complement: *was therefore completely excluded*."""
_MODALS = ("may ", "might ", "could ")
"""Words that a trigger of uncertainty may begin with: verbs of a clause all the same."""
_BUT = re.compile(r",? but\b")
_SEGMENT_GAP = 12
_BESIDE = " \t\"'”’*()（）"
"""Characters that may stand between a mention and what is said of it alone."""
_SLASHED = re.compile(rf"(?:[{re.escape(_BESIDE)}]|/ ?\w+)*")
"""Text between it and a mention that shares its statement: *nausea/vomiting*."""
_VALUE = re.compile(r"\s*(?:of|was|is|[:=<>])?\s*\d")
"""A value after a mention in brackets: *AKI (Cr 2.4) resolved*."""
_RESULTS = re.compile(r"\s+(?:results?|reports?|pathology|read)\b|结果|报告")
"""Results of what is done already."""
_SAMPLE = re.compile(
    r"(?:biops(?:y|ies)|(?:cyt|hist|path|ser)olog(?:y|ies)|(?:culture|swab|smear|test|lab|titer)s?)$"
)
"""Samples that were taken and wait for their result: *biopsies pending*."""
_ITEMS = r"\s*(?:[^,.;:\n]{1,40},\s*)*?[^,.;:\n]{0,40}?"
_AND_ITEM = re.compile(_ITEMS + r"(?:\b(?:and|or|then)\b|[/&+])\s*(?:(?:an?|the)\s+)?")
_COMMA_ITEM = re.compile(_ITEMS + r",\s*(?:(?:an?|the)\s+)?")
"""Text between a plan and a later item of its list: *scheduled for MRI, EEG and colonoscopy*."""
_MORE_ITEMS = re.compile(r"(?:[^,.;:\n]{0,40},){0,8}[^,.;:\n]{0,40}?\s(?:and|or|then)\s")
"""Further items after one that follows a comma, up to the conjunction before the last."""
_LIST_GAP = 160
_JOINED_GAP = 40
"""Characters of the rest of a list before a colon: *nausea and severe vomiting: denied*."""
_ZH_ITEM = 4
"""Characters of an item of a Chinese list after a comma; a longer one is a new clause."""
_OUTSIDE_CLAUSE = frozenset(
    {
        EventKind.COMMA,
        EventKind.END,
        EventKind.PERIOD,
        EventKind.LINE,
        EventKind.STOP,
        EventKind.AFFIRM,
    }
)

_FINDING_ENDS = (_OUTSIDE_CLAUSE - {EventKind.COMMA}) | {
    EventKind.TRIGGER,
    EventKind.VERB,
    EventKind.PREPOSITION,
}
_SENTENCE_ENDS = frozenset({EventKind.PERIOD, EventKind.LINE})

_LIST_ENDS = _OUTSIDE_CLAUSE | {EventKind.AND, EventKind.OR}


def follows_on(low: str, start: int) -> bool:
    """Whether a mention is what another is *on*: *diabetes on metformin*, *AKI on CKD*.

    Args:
        low: A text in lower case.
        start: Start of the mention.
    """
    return low.endswith(" on ", 0, start) and not low.endswith("acute on ", 0, start)


class Active:
    """A trigger whose scope is open.

    Args:
        flag: Index of its flag in ``FLAGS``.
        rule: Rule of the trigger.
        start: Start of its phrase in the text.
        end: End of its phrase.
        segment: Number of the segment it stands in.
    """

    __slots__ = ("end", "flag", "listed", "rank", "rule", "segment", "start")

    def __init__(self, flag: int, rule: CompiledRule, start: int, end: int, segment: int) -> None:
        self.flag, self.rule, self.rank = flag, rule, rule.rank
        self.start, self.end, self.segment = start, end, segment
        self.listed = False
        """A plan whose list goes on: what joins the next item to it decides."""

    @property
    def plans(self) -> bool:
        """Whether it is a plan, of each item of a list."""
        return self.flag == HYPOTHETICAL and PLANNED in self.rule.details


class Found:
    """A mention with what was found about it so far.

    Args:
        start: Start of the mention in the text.
        end: End of the mention.
        segment: Number of the segment it stands in.
        shielded: Triggers in front of it do not reach it.
    """

    __slots__ = ("bits", "end", "segment", "shielded", "start", "triggers")

    def __init__(self, start: int, end: int, segment: int, *, shielded: bool) -> None:
        self.start, self.end, self.segment, self.shielded = start, end, segment, shielded
        self.bits = 0
        self.triggers: list[Active] = []

    def add(self, trigger: Active) -> None:
        """Take a trigger; the last one of a flag stays."""
        self.drop(trigger.flag)
        self.bits |= 1 << trigger.flag
        self.triggers.append(trigger)

    def drop(self, flag: int) -> None:
        """Forget what was found about a flag."""
        if self.bits & 1 << flag:
            self.bits &= ~(1 << flag)
            self.triggers = [other for other in self.triggers if other.flag != flag]

    def drop_earlier(self, first: int, second: int) -> None:
        """Keep of two flags the one whose trigger is nearer.

        Args:
            first: One flag.
            second: The other.
        """
        starts = {trigger.flag: trigger.start for trigger in self.triggers}
        if starts[first] != starts[second]:
            self.drop(first if starts[first] < starts[second] else second)

    def reached_by_comma(self) -> bool:
        """Whether a negation came over a comma, and so is weaker than what stands beside it."""
        return any(
            trigger.flag == NEGATED and trigger.segment < self.segment and trigger.end <= self.start
            for trigger in self.triggers
        )


class Scan:
    """One pass over a text.

    Args:
        low: A text in lower case.
        events: Its events and mentions, in text order.
        rules: Rules of one language.
    """

    def __init__(self, low: str, events: Sequence[Event], rules: AssertionRules) -> None:
        self.low, self.events, self.rules = low, events, rules
        self.chinese = chinese = rules.language == "zh"
        self.next_gap = _ZH_NEXT_GAP if chinese else _NEXT_GAP
        self.active: list[Active] = []
        self.saved: list[tuple[list[Active], list[Found]]] = []
        self.carried: list[Active] = []
        self.open: list[Found] = []
        self.closing: list[Found] = []
        self.verb_end = self.last_end = self.trigger_end = -1
        self.segment, self.first_item = 0, -1
        self.separator: tuple[int, int] | None = None
        self.joined = self.shield = self.affirmed = self.seen = False

    def run(self, spans: Sequence[tuple[int, int]]) -> list[Found]:
        """Return what is found about each span, in text order."""
        found: list[Found] = []
        steps = _STEPS
        waiting = iter(spans)
        span = next(waiting, None)
        for index, (start, end, rule) in enumerate(self.events):
            while span is not None and span[0] <= start:
                if rule.may_be_mention and span[0] == start:
                    self.trigger_end = max(end, self.trigger_end)
                found.append(self._mention(*span))
                span = next(waiting, None)
            if found and span is None and rule.kind in _SENTENCE_ENDS and not self.open:
                break
            if found and start < found[-1].end and end - start < found[-1].end - found[-1].start:
                continue  # part of the mention
            steps[rule.kind](self, index, start, end, rule)
        while span is not None:
            found.append(self._mention(*span))
            span = next(waiting, None)
        return found

    # ---- mentions

    def _mention(self, start: int, end: int) -> Found:
        mention = Found(start, end, self.segment, shielded=self.shield)
        if end <= self.trigger_end:  # a trigger that is a concept as well: *mother*
            return mention
        if self.active:
            self._take(mention)
        if self.affirmed:
            mention.bits |= 1 << AFFIRMED
        self.open.append(mention)
        self.last_end = max(end, self.last_end)
        return mention

    def _take(self, mention: Found) -> None:
        for trigger in self.active:
            inside = trigger.flag == NEGATED and trigger.start < mention.start
            if trigger.end > mention.start and not inside:
                continue
            if trigger.flag == HISTORICAL and follows_on(self.low, mention.start):
                continue  # *history of diabetes on metformin*
            if trigger.plans and _RESULTS.match(self.low, mention.end):
                continue  # *await biopsy results*
            if trigger.rank == NEXT and not self._is_next(trigger, mention):
                continue
            mention.add(trigger)
            trigger.listed = trigger.plans
        bits = mention.bits
        if bits & 1 << NEGATED:
            mention.drop(UNCERTAIN)
        for flag in (NEGATED, UNCERTAIN):
            if mention.bits & 1 << HYPOTHETICAL and mention.bits & 1 << flag:
                mention.drop_earlier(flag, HYPOTHETICAL)
        if any(trigger.rank == NEXT for trigger in self.active):
            self.active = [t for t in self.active if t.rank != NEXT or t.listed]

    def _is_next(self, trigger: Active, mention: Found) -> bool:
        """Whether a mention directly follows a trigger, or continues the list that it plans."""
        gap = 0 if trigger.rule.condition == "attached" else self.next_gap
        low, end, start = self.low, trigger.end, mention.start
        if trigger.listed and start - end <= _LIST_GAP:
            if _AND_ITEM.fullmatch(low, end, start):
                return True
            more = low.startswith(":", end) or _MORE_ITEMS.match(low, mention.end)
            end += low.startswith(":", end)
            return bool(more and _COMMA_ITEM.fullmatch(low, end, start))
        return not trigger.listed and start - end <= gap

    # ---- triggers

    def _trigger(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        if rule.may_be_mention:
            self.trigger_end = max(end, self.trigger_end)
        direction = rule.direction
        if direction == "row":
            row = self.low[self.low.rfind("\n", 0, start) + 1 : start + 1]
            direction = "backward" if _BEFORE_BOX.match(row) else "forward"
        elif direction == "either":
            direction = "backward" if self._looks_back(start, end, rule) else "forward"
        if direction != "forward":
            self._backward(start, end, rule)
        if direction != "backward":
            self._forward(start, end, rule)

    def _looks_back(self, start: int, end: int, rule: CompiledRule) -> bool:
        """Whether a trigger of either direction belongs to what is before it."""
        is_last = _LAST_WORDS.match(self.low, end) is not None
        if self.open:
            if rule.kind is EventKind.COURSE:  # *肺炎复发2次*
                return is_last or not self.low[self.open[-1].end : start].strip()
            if self.chinese or rule.rank != PHRASE or NEGATED not in rule.flags:
                return is_last
            return is_last or not self.low[self.open[-1].end : start].strip(" \t")  # *HIV neg*
        near = bool(self.closing) and start - self.verb_end <= _VERB_GAP
        if near and self.separator is not None and self.separator[0] > self.verb_end:
            return is_last  # *it occurred in ten, and none died*
        return near and (is_last or UNCERTAIN not in rule.flags)

    def _forward(self, start: int, end: int, rule: CompiledRule) -> None:
        if self.separator is not None and self.active:
            since, until = self.separator
            if start - until <= _SEGMENT_GAP:
                self.active = [
                    t for t in self.active if t.start > since or FAMILY <= t.flag <= CONDITIONAL
                ]
        if any(t.flag in rule.flags and t.rank > rule.rank for t in self.active):
            return  # *neither the patient nor his wife reported*
        self.active = [t for t in self.active if t.flag not in rule.flags]
        if self.chinese and UNCERTAIN in rule.flags:  # 排除结核后考虑肺炎, 结核 a mention or not
            low = self.low
            is_after = low.startswith("后", start) or low.endswith(("后", "后，", "后,"), 0, start)
            said = start if is_after else self.open[-1].start if self.open else -1
            self.active = [t for t in self.active if t.flag != NEGATED or t.end > said]
        self.active += [Active(flag, rule, start, end, self.segment) for flag in rule.flags]
        self.affirmed = False

    def _backward(self, start: int, end: int, rule: CompiledRule) -> None:
        inside = [m for m in self.open if m.end > start]  # *trauma* in *trauma history*
        targets = [*self._targets(start, rule), *inside]
        for mention in targets:
            for flag in rule.flags:
                if flag == HISTORICAL and mention.bits & 1 << FAMILY:
                    continue  # the past of another person
                if flag == NEGATED:  # *screening for depression was negative*
                    mention.drop(UNCERTAIN)
                    mention.drop(HYPOTHETICAL)
                elif flag == UNCERTAIN and mention.bits & 1 << NEGATED:
                    if not mention.reached_by_comma():
                        continue
                    mention.drop(NEGATED)
                elif rule.kind is EventKind.COURSE and mention.bits & 1 << NEGATED:
                    if not mention.reached_by_comma():
                        continue
                    mention.drop(NEGATED)  # *no fever, cough resolved*
                elif flag == ACTIVE:
                    mention.drop(HISTORICAL)
                elif PLANNED in rule.details:
                    is_sample = _SAMPLE.search(self.low, mention.start, mention.end)
                    waits = is_sample and self.low.endswith("pending", start, end)
                    if mention.shielded or waits:
                        continue  # *no surgery for the aneurysm is planned*
                mention.add(Active(flag, rule, start, end, self.segment))
        # *sarcoidosis was considered but ruled out*
        again = UNCERTAIN in rule.flags and _BUT.match(self.low, end) is not None
        self.open, self.closing = [], list(targets) if again else []
        self.verb_end = end if again else self.verb_end

    def _targets(self, start: int, rule: CompiledRule) -> list[Found]:
        """Return the open mentions that a trigger after them reaches."""
        reached = [m for m in self.open if m.end <= start]
        if not reached:
            reached = self.closing if start - self.verb_end <= _VERB_GAP else []
        if not reached:
            return []
        last = reached[-1]
        if rule.rank == NEXT:
            if rule.condition == "end" and self.joined and start - last.end <= _JOINED_GAP:
                return [m for m in reached if m.segment == last.segment and not m.shielded]
            return [m for m in reached if self._beside(m, start)]
        beside = not self.low[last.end : start].strip(" ,，")
        if follows_on(self.low, last.start):  # *AKI on CKD resolved*
            reached = reached[:-1]
            if not reached:
                return []
            last = reached[-1]
        if rule.kind is EventKind.COURSE and self._follows_comma(start):
            reached = [m for m in reached if m.segment == last.segment]
            return reached if self.joined else [last]  # *pneumonia s/p treatment, resolved*
        if beside:
            alone = self.chinese and not self.joined
            return [last] if alone else [m for m in reached if m.segment == last.segment]
        reached = [m for m in reached if not m.shielded]
        if rule.rank == PHRASE or not self.joined or self.shield:
            reached = [m for m in reached if m.segment == self.segment]
        return reached

    def _follows_comma(self, start: int) -> bool:
        """Whether a trigger stands directly after the last comma."""
        comma = self.separator
        return comma is not None and self.low[comma[0] : start].strip() in (",", "，", "")

    def _beside(self, mention: Found, start: int) -> bool:
        """Whether only other words of its kind are between: *nausea/vomiting: denied*."""
        return _SLASHED.fullmatch(self.low, mention.end, start) is not None

    def _affirm(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        if rule.direction == "backward":
            for mention in self._targets(start, rule):
                if rule.rank == NEXT or mention.reached_by_comma():
                    mention.drop(NEGATED)
                    mention.bits |= 1 << AFFIRMED
            return
        ended = rule.flags or (NEGATED, UNCERTAIN, HISTORICAL)
        self.active = [t for t in self.active if t.flag not in ended or t.rank == SENTENCE]
        self.affirmed = HISTORICAL in ended
        self._verb(index, start, end, rule)

    # ---- words that end scopes

    def _verb(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self._end_scopes(rule)
        if self.open:
            self.closing, self.open = self.open, []
            if rule.direction == "backward":
                self.closing = self.closing[-1:]
                self.closing[0].shielded, self.closing[0].segment = False, self.segment
        elif start - self.verb_end > _VERB_GAP:
            self.closing = []
        self.verb_end = end
        self.shield = False

    def _preposition(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self._end_scopes(rule)
        self.shield = True

    def _stop(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self._end_scopes(rule)
        if rule.rank >= CLAUSE and not rule.flags:
            self._close_mentions()

    def _end_scopes(self, rule: CompiledRule) -> None:
        if self.active:
            rank, flags = rule.rank, rule.flags
            self.active = [
                t for t in self.active if t.rank > rank or (flags and t.flag not in flags)
            ]

    def _close_mentions(self) -> None:
        self.open, self.closing = [], []
        self.verb_end = -1
        self.shield = self.joined = self.affirmed = self.seen = False
        self.separator = None

    # ---- lists

    def _and(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        if self.open and self._follows_clause(start) and self._begins_clause(index):
            self.open = []
        self.joined = True
        self.separator = (start, end)
        if self.active and self._begins_clause(index):
            self.active = [t for t in self.active if t.rank > CLAUSE]
            self.affirmed = False
        elif self.active and not self.chinese and self._begins_finding(index):
            self._end_negation()

    def _follows_clause(self, start: int) -> bool:
        """Whether a clause with a verb ends at the comma before."""
        comma = self.separator
        return (
            self.verb_end >= 0 and comma is not None and self.low[comma[0] : start].strip() == ","
        )

    def _or(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self.joined, self.separator = True, None

    def _seen(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        """End a list: *no mass seen, small cyst*."""
        self.seen = True

    def _comma(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self.segment += 1
        self.separator = (start, end)
        self.shield = self.joined = False
        if self.active:
            ended = CLAUSE if self._begins_clause(index) else PHRASE
            plans = [t for t in self.active if t.rank == NEXT and t.plans and ended == PHRASE]
            self.active = [t for t in self.active if t.rank > ended] + plans
            for trigger in plans:
                trigger.listed = True
            if self.active and (self.seen or self._begins_finding(index)):
                self._end_negation()
        self.seen = False

    def _end_negation(self) -> None:
        """End the negations that go through lists."""
        self.active = [t for t in self.active if t.rank > LIST or NEGATED not in t.rule.flags]

    def _begins_finding(self, index: int) -> bool:
        """Whether a finding that is there follows a comma or *and*: *no fever, mild cough*.

        The last item of a list may be such a finding, *no fever, mild cough, or chills* not.
        """
        if not self.rules.modifier.match(self.low, self.events[index][1]):
            return False
        if self.chinese:
            return True
        for _, _, rule in self.events[index + 1 :]:
            if rule.kind is EventKind.OR:
                return False
            if rule.kind in _FINDING_ENDS:
                break
        return True

    def _begins_clause(self, index: int) -> bool:
        """Whether a clause of its own, with a verb, follows a comma or *and*."""
        if self.chinese:
            return self._begins_chinese_clause(index)
        events, joined = self.events, self.events[index][2].kind is EventKind.AND
        for position in range(index + 1, len(events)):
            rule = events[position][2]
            if rule.name == "who":
                return False  # *a man with gout and asthma who came in*
            if rule.kind is EventKind.VERB or self.low.startswith(_MODALS, events[position][0]):
                following = events[position + 1][2].kind if position + 1 < len(events) else None
                return not joined or following is not EventKind.SEEN
            if rule.kind is EventKind.AND and not joined:
                joined = True
            elif rule.kind in _LIST_ENDS or (
                rule.kind is EventKind.TRIGGER and rule.direction == "forward"
            ):
                return False
        return False

    def _begins_chinese_clause(self, index: int) -> bool:
        begin = self.events[index][1]
        if index + 1 == len(self.events):
            return len(self.low) - begin > _ZH_ITEM
        start, _, rule = self.events[index + 1]
        if rule.kind is EventKind.OR or rule.kind is EventKind.AND:
            return start - begin > _ZH_ITEM
        return rule.kind not in _OUTSIDE_CLAUSE or start - begin > _ZH_ITEM

    # ---- punctuation

    def _open(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self.saved.append((list(self.active), list(self.open)))

    def _close(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        if self.saved:
            self.active, before = self.saved.pop()
            inside = [m for m in self.open if m not in before]
            self.open = before + [m for m in inside if not _VALUE.match(self.low, m.end)]
        elif self.low[start - 1 : start].isdigit():  # *1) hernia s/p repair 2) gout*
            self.first_item = start if self.first_item < 0 else self.first_item
            self.active = [t for t in self.active if t.end <= self.first_item]
            self._close_mentions()

    def _colon(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        """End what a heading of one line does not begin with: *Denies: fever* goes on."""
        since = max(self.last_end, self.separator[0] if self.separator else -1)
        self.active = [t for t in self.active if t.end > since or t.rank == SENTENCE]
        self._close_mentions()

    def _end(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self.active = [t for t in self.active if t.rank == SENTENCE]
        self._close_mentions()

    def _dash(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        """End what comes before a dash with spaces around it."""
        self.active = [t for t in self.active if t.rank > CLAUSE or t.end >= start - 2]
        self._close_mentions()

    def _period(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        self.active, self.carried, self.saved, self.first_item = [], [], [], -1
        self._close_mentions()

    def _line(self, index: int, start: int, end: int, rule: CompiledRule) -> None:
        """End a line; what leads a list of bullets goes on in its items."""
        led = index > 0 and self.events[index - 1][2].kind is EventKind.COLON
        if led and not self.low[self.events[index - 1][1] : start].strip():
            self.carried = list(self.active)
        is_item = start < end and BULLET.match(self.low, end) is not None
        self.active = list(self.carried) if is_item else []
        if not is_item:
            self.carried = []
        self.saved = []
        self._close_mentions()


_STEPS = (
    Scan._trigger,
    Scan._affirm,
    Scan._verb,
    Scan._preposition,
    Scan._stop,
    Scan._and,
    Scan._or,
    Scan._seen,
    Scan._comma,
    Scan._open,
    Scan._close,
    Scan._colon,
    Scan._end,
    Scan._period,
    Scan._line,
    Scan._dash,
    Scan._trigger,
)
"""Actions of events by kind."""
