"""Learning statuses from annotated text: words beside findings whose status the rules get wrong.

1. The rules assert the status of every marked finding; those that the text marks otherwise are
   mistakes. What is marked are the attributes of mentions: ``status``, and axes (*course*).
2. The words before a finding, those after it, and its own, are phrases that may say what the rules
   miss. Where they say what is not marked, the trigger with the words around it is a phrase that
   may mean nothing.
3. Of each phrase it is counted how many of the findings beside it are marked so. Phrases that are
   mostly right and fix more than they break are taken, those first that fix most; of several that
   stand in the same places, the longest.
4. Phrases become rules of the assertion engine, before the shipped ones. They are measured by
   cross-validation over documents, and kept only if more statuses are right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biograft.clinical import FLAGS, MORE_FLAGS, Assertion, RuleAssertions, status_of
from biograft.clinical.assertion import FLAG_OF, is_chinese
from biograft.clinical.events import read_layout
from biograft.clinical.phrases import PhraseTokens
from biograft.linking.learned import StatusPhrase, rules_with
from biograft.metrics.precision_recall import Counts, percent
from biograft.metrics.significance import Difference, paired_counts
from biograft.text.documents import Document, Mention
from biograft.text.name_rules import FUNCTION_WORDS

_FEW = 20
"""Below this number of documents a gain is enough; from it on, its interval must be above 0."""
_FLAG_OF = {
    "status": {status_of([flag]): flag for flag in FLAGS if flag not in MORE_FLAGS},
    **FLAG_OF,
}
_FLAG_OF["status"]["present"] = ""
_MIN_FIXED, _MIN_ITSELF, _MIN_PRECISION = 2, 5, 0.75
"""Least number of findings that a phrase fixes, and a finding itself; least precision, with one
right and one wrong case added."""
_SHAPE = {"en": (" ", 1, 4), "zh": ("", 2, 6)}
"""Separator of the words of a phrase, and their least and largest number; in Chinese characters."""
_MAX_AROUND = 2
_REACH = 60
"""Characters beside a finding that are read."""
_BOUND = re.compile(r"[\n.;:!?,()\[\]|。；：！？，、（）]")
_ENDS = re.compile(r"[\n.;!?。；！？]")
_WORD = re.compile(r"[^\W\d_]+(?:['’/-][^\W\d_]+)*")
_ABOUT_PATIENTS = ("pt ", "pts ", "patient ", "patients ", "患者", "病人")
_ITSELF, _AROUND = "itself", "around"


@dataclass(frozen=True, slots=True)
class StatusLearning:
    """Result of learning statuses, with its gain."""

    n_mentions: int
    """Mentions with a status."""
    n_phrases: int = 0
    is_applied: bool = False
    accuracy_before: float = 0.0
    """Mentions whose status is right, in percent, by the rules alone."""
    accuracy_after: float = 0.0
    """The same with what is learned from the other documents."""
    gain: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    """95 % interval of the gain, over documents."""
    phrases: tuple[StatusPhrase, ...] = field(default=(), repr=False)


class _Finding(NamedTuple):
    """A marked finding in the text as rules read it."""

    document: int
    low: str
    start: int
    end: int
    beside: tuple[int, int]
    """End of the finding before it, start of the one after it."""
    language: str
    said: Mapping[str, str]
    found: Assertion
    triggers: tuple[tuple[int, int, str], ...]
    """Start, end and flag of the triggers of the rules."""

    @property
    def is_right(self) -> bool:
        return all(getattr(self.found, axis) == value for axis, value in self.said.items())

    def has(self, flag: str) -> bool:
        """Whether it is marked with a flag."""
        return flag in flags_of(self.said)


class _Phrase(NamedTuple):
    """Words at a place beside findings; around a trigger, also its flag."""

    language: str
    words: str
    place: str
    flag: str = ""


def said_of(mention: Mention) -> dict[str, str]:
    """Return the status and the axes that a mention is marked with.

    Args:
        mention: A mention with attributes.
    """
    said = {name.lower(): value.lower() for name, value in mention.attributes}
    return {axis: value for axis, value in said.items() if value in _FLAG_OF.get(axis, ())}


def flags_of(said: Mapping[str, str]) -> set[str]:
    """Return the flags that status and axes mean; "" for a default.

    Args:
        said: The values of these, as ``said_of`` returns them.
    """
    return {_FLAG_OF[axis][value] for axis, value in said.items()}


def fit_statuses(
    documents: Sequence[Document], folds: Any, rules: str | Path | None = None
) -> StatusLearning | None:
    """Learn status phrases from annotated text, and measure them by cross-validation.

    Where any mention has a status, one without is present.

    Args:
        documents: Documents with their mentions.
        folds: The fold of each document.
        rules: File of rules that are used; default: the shipped ones.

    Returns:
        What was learned; None where no mention has a status.
    """
    if not any(said_of(mention) for document in documents for mention in document.mentions):
        return None
    own = RuleAssertions(rules=rules)
    notes = [_read(n, document, own) for n, document in enumerate(documents)]
    before = [_counts(each.is_right for each in note) for note in notes]
    after = list(before)
    for fold in range(int(folds.max()) + 1):
        others = [note for note, other in zip(notes, folds, strict=True) if other != fold]
        held_out = np.flatnonzero(folds == fold).tolist()
        if phrases := choose_phrases(others, own):
            learned = RuleAssertions(rules=rules_with(phrases, rules))
            for n in held_out:
                after[n] = _counts(each.is_right for each in _read(n, documents[n], learned))
    phrases = choose_phrases(notes, own)
    applied, gain = gain_of(after, before)
    return StatusLearning(
        n_mentions=sum(map(len, notes)),
        n_phrases=len(phrases),
        is_applied=applied,
        accuracy_before=percent(sum(before, Counts()).f1),
        accuracy_after=percent(sum(after, Counts()).f1),
        **in_percent("", gain),
        phrases=tuple(phrases),
    )


def gain_of(after: Sequence[Counts], before: Sequence[Counts]) -> tuple[bool, Difference]:
    """Return whether a gain is applied, and the gain.

    Args:
        after: Counts of each document with what is learned from others.
        before: Counts without it.
    """
    gain, _ = paired_counts(after, before)
    return gain.difference > 0 and (len(after) < _FEW or gain.interval.low > 0), gain


def in_percent(name: str, gain: Difference) -> dict[str, Any]:
    """Return a gain and its interval as fields of a report.

    Args:
        name: Beginning of the names of the fields.
        gain: The gain.
    """
    bounds = (percent(gain.interval.low), percent(gain.interval.high))
    return {f"{name}gain": percent(gain.difference), f"{name}interval": bounds}


def _counts(right: Iterable[bool]) -> Counts:
    """Return counts whose F1 is the accuracy."""
    answers = list(right)
    n_wrong = answers.count(False)
    return Counts(len(answers) - n_wrong, n_wrong, n_wrong)


def _read(number: int, document: Document, model: RuleAssertions) -> list[_Finding]:
    """Return the findings of a document in text order, as rules see them."""
    marked: dict[tuple[int, int], dict[str, str]] = {}
    for mention in document.mentions:
        marked.setdefault((mention.start, mention.end), said_of(mention))
    spans, text = sorted(marked), document.text
    found: list[_Finding] = []
    answers = model.assert_status(text, spans)
    for k, (span, answer) in enumerate(zip(spans, answers, strict=True)):
        language = "zh" if is_chinese(text, *span) else "en"
        layout = read_layout(text, model.rules_of(language))
        fold = layout.folded.fold
        before = max((end for _, end in spans[:k] if end <= span[0]), default=0)
        after = next((start for start, _ in spans[k + 1 :] if start >= span[1]), len(text))
        triggers = tuple((fold(t.start), fold(t.end), t.flag) for t in answer.triggers)
        found.append(
            _Finding(
                number,
                layout.low,
                fold(span[0]),
                fold(span[1]),
                (fold(before), fold(after)),
                language,
                marked[span] or {"status": "present"},
                answer,
                triggers,
            )
        )
    return found


def choose_phrases(
    notes: Sequence[Sequence[_Finding]], model: RuleAssertions
) -> list[StatusPhrase]:
    """Return phrases that fix the status of more findings than they break.

    Args:
        notes: The findings of each document.
        model: Rules that asserted them.
    """
    findings = [each for note in notes for each in note]
    following = {id(a): b for note in notes for a, b in pairwise(note)}
    places: defaultdict[_Phrase, list[_Finding]] = defaultdict(list)
    wanted: dict[tuple[_Phrase, str], None] = {}
    for each in findings:
        wrong = sorted(_missing(each))
        for phrase in dict.fromkeys(_phrases(each)):
            places[phrase].append(each)
            for flag in wrong:
                if bool(flag) == (phrase.place != _AROUND):
                    wanted[phrase, flag] = None
    candidates = []
    for phrase, flag in wanted:
        if not _is_plain(phrase) and not (flag and _is_known(phrase, model)):
            beside, least = places[phrase], _MIN_FIXED
            if phrase.place == _ITSELF:  # where nothing else says it
                beside, least = [each for each in beside if not each.triggers], _MIN_ITSELF
            right = [each for each in beside if _agrees(each, phrase, flag)]
            fixed = [each for each in right if not each.is_right]
            net = len(fixed) - sum(each.is_right for each in beside) + len(right) - len(fixed)
            precision = (len(right) + 1) / (len(beside) + 2)
            if len(fixed) >= least and precision >= _MIN_PRECISION and net > 0:
                order = (-net, -precision, -len(phrase.words), phrase, flag)
                candidates.append((order, fixed, _made(phrase, flag, beside, right, following)))
    chosen: dict[tuple[str, str], StatusPhrase] = {}
    done: set[int] = set()
    for _, fixed, made in sorted(candidates, key=lambda each: each[0]):
        if not done.issuperset(map(id, fixed)):
            chosen.setdefault((made.language, made.phrase), made)
            done.update(map(id, fixed))
    return list(chosen.values())


def _missing(finding: _Finding) -> set[str]:
    """Return the flags that a finding is marked with and the rules miss; "" for one too many."""
    wrong = [
        (_FLAG_OF[axis][value], _FLAG_OF[axis][getattr(finding.found, axis)])
        for axis, value in finding.said.items()
        if getattr(finding.found, axis) != value
    ]
    return {flag for flag, _ in wrong} | {"" for _, other in wrong if other}


def _agrees(finding: _Finding, phrase: _Phrase, flag: str) -> bool:
    """Whether a finding is marked as a phrase beside it would say."""
    return finding.has(flag) if phrase.place != _AROUND else not finding.has(phrase.flag)


def _made(
    phrase: _Phrase,
    flag: str,
    beside: Sequence[_Finding],
    right: Sequence[_Finding],
    following: Mapping[int, _Finding],
) -> StatusPhrase:
    scope, direction = "next", "forward" if phrase.place == "forward" else "backward"
    if direction == "forward":  # a list, unless the findings that follow say otherwise
        after = [(a, following[id(a)]) for a in right if id(a) in following]
        listed = [b.has(flag) for a, b in after if not _ENDS.search(a.low, a.end, b.start)]
        scope = "list" if 2 * sum(listed) >= len(listed) else "next"
    n_documents = len({each.document for each in right})
    counts = (len(right), len(beside), n_documents)
    return StatusPhrase(phrase.words, flag, phrase.language, direction, scope, *counts)


def _is_plain(phrase: _Phrase) -> bool:
    """Whether a phrase has function words alone, or begins with whom it is about."""
    begins = f"{phrase.words} ".startswith(_ABOUT_PATIENTS)
    return begins or FUNCTION_WORDS.issuperset(phrase.words.split())


def _is_known(phrase: _Phrase, model: RuleAssertions) -> bool:
    """Whether the rules have a phrase."""
    trie, size = model.rules_of(phrase.language).trie, len(phrase.words)
    tokens = PhraseTokens(phrase.words, [(0, size)], trie)
    found = trie.match(phrase.words, tokens, 0, size)
    return found is not None and found[0] == len(tokens.spans) - 1


def _phrases(finding: _Finding) -> Iterator[_Phrase]:
    """Yield the phrases before, after, of, and around the triggers of a finding."""
    language, low, start, end = finding.language, finding.low, finding.start, finding.end
    since, until = max(finding.beside[0], start - _REACH), min(finding.beside[1], end + _REACH)
    joined, shortest, longest = _SHAPE[language]
    before = _words(language, _BOUND.split(low[since:start])[-1], from_end=True)
    after = _words(language, _BOUND.split(low[end:until].lstrip(" (（:：-"))[0])
    trimmed = [*dropwhile(FUNCTION_WORDS.__contains__, before[::-1])][::-1]
    for words, place in ((before, "forward"), (trimmed, "forward"), (after, "backward")):
        for n in range(shortest, min(longest, len(words)) + 1):
            part = words[-n:] if place == "forward" else words[:n]
            yield _Phrase(language, joined.join(part), place)
    own = _words(language, low[start:end])
    if len(own) <= longest and joined.join(own) == low[start:end]:
        yield _Phrase(language, low[start:end], _ITSELF)
    for first, last, flag in finding.triggers:
        trigger = _words(language, low[first:last])
        if joined.join(trigger) != low[first:last]:
            continue
        left = _words(language, _BOUND.split(low[since:first])[-1], from_end=True)
        stop = start if last <= start else until
        right = _words(language, _BOUND.split(low[last:stop])[0])
        for n in range(min(_MAX_AROUND, len(left)) + 1):
            for m in range(min(_MAX_AROUND, len(right)) + 1):
                around = [*left[len(left) - n :], *trigger, *right[:m]]
                yield _Phrase(language, joined.join(around), _AROUND, flag)


def _words(language: str, text: str, *, from_end: bool = False) -> list[str]:
    """Return the first words of a text, or its last ones, up to what is none; Chinese: letters."""
    words = text.split() if language == "en" else list(text)
    ordered = words[::-1] if from_end else words
    n = next((k for k, word in enumerate(ordered) if not _WORD.fullmatch(word)), len(words))
    return words[len(words) - n :] if from_end else words[:n]
