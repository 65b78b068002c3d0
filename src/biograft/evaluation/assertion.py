"""Evaluation on notes: assertion status of marked mentions, and findings in plain text.

The gold standard has one JSON object a line: ``id``, ``text``, optionally ``language``, and
``mentions``, each with ``start``, ``end``, ``text`` and ``status``, the list of its flags (see
``docs/clinical.md``). An empty list is a mention that is present. Flags of the course, of plans and
so on (``MORE_FLAGS``) count only where the gold standard marks them at all.

Findings are what a linker finds in the plain text of each note, with concept and assertion status.
Levels, each with precision, recall and F1:

* ``spans``: mentions with exactly the gold span;
* ``findings``: mentions with the gold span and concept;
* ``statuses``: findings that also have the gold status, and each status on its own;
* ``documents``: the concepts of each note, and ``document statuses`` the concepts with a status.

Only concepts of the given types count, in the gold standard and in the answers. Of misspelt
mentions, the fraction is given whose span was found, and whose concept is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

from biograft.clinical import FLAGS, MORE_FLAGS, STATUSES, AssertionModel, RuleAssertions, status_of
from biograft.clinical.rules import IMPLIED, LANGUAGES
from biograft.errors import ConfigError, FormatError, nearest
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.json_files import decode_json
from biograft.linking import Linker
from biograft.metrics.precision_recall import Counts, percent
from biograft.text.documents import Document

_MENTION_KEYS = frozenset(("start", "end", "text", "status", "concept", "name", "typo"))
NOTES = tuple(f"notes-{name}-{half}" for name in ("en", "zh") for half in ("dev", "test", "demo"))
"""Gold standards that ship with biograft: synthetic notes to develop on, held out, and shown."""


@dataclass(frozen=True, slots=True)
class GoldAssertion:
    """A mention with the flags that hold for it."""

    start: int
    """Character offset of the mention's first character."""
    end: int
    """Character offset behind its last character."""
    flags: frozenset[str]
    """Names of the flags of an ``Assertion`` that are set; empty: present."""
    concept: str | None = None
    """Id of its concept, where the gold standard has it."""
    typo: bool = False
    """Whether it is misspelt."""


@dataclass(frozen=True, slots=True)
class AssertionDocument:
    """A text with mentions of known status; without a language, its script decides."""

    id: str
    """Id of the document."""
    text: str
    """Its text, which the offsets refer to."""
    mentions: tuple[GoldAssertion, ...]
    """Mentions with their flags."""
    language: str | None = None
    """``en`` or ``zh``."""


@dataclass(frozen=True, slots=True)
class AssertionMistake:
    """A mention whose flags are not those of the gold standard."""

    document: str
    """Id of the document."""
    start: int
    """Character offset of the mention's first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """Text of the mention."""
    expected: tuple[str, ...]
    """Flags of the gold standard."""
    found: tuple[str, ...]
    """Flags that were assigned."""
    triggers: tuple[str, ...]
    """Words of the text that set the flags."""


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """Counts of each flag, and the mentions with a wrong one."""

    flags: dict[str, Counts]
    """Right, wrong and missed mentions, by flag."""
    n_documents: int
    """Number of documents."""
    n_mentions: int
    """Number of mentions in them."""
    mistakes: tuple[AssertionMistake, ...]
    """Mentions with other flags than the gold standard has."""

    @property
    def accuracy(self) -> float:
        """Fraction of the mentions with exactly the flags of the gold standard."""
        return 1 - len(self.mistakes) / self.n_mentions if self.n_mentions else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "n_documents": self.n_documents,
            "n_mentions": self.n_mentions,
            "accuracy": percent(self.accuracy),
            "flags": {flag: counts.to_json() for flag, counts in self.flags.items()},
            "unit": "percent",
        }


def read_assertions(path: str | Path) -> Iterator[AssertionDocument]:
    """Read a gold standard of assertion status, one JSON object a line.

    Args:
        path: The file; a name of ``NOTES`` stands for the notes that ship with biograft.

    Raises:
        FormatError: A line is not a text with assertions.

    >>> len(list(read_assertions("notes-en-test")))
    29
    """
    if str(path) in NOTES and not Path(path).exists():
        name = str(path).removeprefix("notes-")
        with as_file(files("biograft") / "starter" / "notes" / f"{name}.jsonl") as shipped:
            yield from read_assertions(shipped)
        return
    for number, line in read_lines(Path(path)):
        if not line.strip():
            continue
        try:
            yield _read_document(decode_json(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"missing key {error}" if isinstance(error, KeyError) else str(error)
            raise FormatError(
                f"not a text with assertions: {problem}", path=path, line=number
            ) from None


def _read_document(values: Any) -> AssertionDocument:
    language = values.get("language") or None
    if language is not None and language not in LANGUAGES:
        raise ValueError(f"language: expected one of {', '.join(LANGUAGES)}, found {language!r}")
    text = values["text"]
    mentions = tuple(_read_mention(mention, text) for mention in values["mentions"])
    return AssertionDocument(str(values["id"]), text, mentions, language)


def _read_mention(values: Any, text: str) -> GoldAssertion:
    for key in values:
        if key not in _MENTION_KEYS:
            raise ValueError(f"unknown key {key!r} of a mention; {nearest(key, _MENTION_KEYS)}")
    start, end = values["start"], values["end"]
    if text[start:end] != values["text"]:
        raise ValueError(
            f"mention {values['text']!r}: the text from {start} to {end} is {text[start:end]!r}"
        )
    for flag in values["status"]:
        if flag not in FLAGS:
            raise ValueError(f"unknown status {flag!r}; {nearest(str(flag), FLAGS)}")
    concept, typo = values.get("concept"), bool(values.get("typo"))
    implied = [IMPLIED.get(flag, flag) for flag in values["status"]]
    return GoldAssertion(start, end, frozenset([*values["status"], *implied]), concept, typo)


def evaluate_assertions(
    documents: Iterable[AssertionDocument], model: AssertionModel | None = None
) -> AssertionResult:
    """Compare the assertions of a model with a gold standard.

    Args:
        documents: The gold standard.
        model: The model; None: the shipped rules.
    """
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    mistakes: list[AssertionMistake] = []
    documents = list(documents)
    marked = {flag for document in documents for each in document.mentions for flag in each.flags}
    counted = [flag for flag in FLAGS if flag in marked or flag not in MORE_FLAGS]
    for document in documents:
        asserting = model or RuleAssertions(document.language)
        spans = [(mention.start, mention.end) for mention in document.mentions]
        answers = asserting.assert_status(document.text, spans)
        for gold, answer in zip(document.mentions, answers, strict=True):
            flags = frozenset(answer.flags).intersection(counted)
            right.update(flags & gold.flags)
            wrong.update(flags - gold.flags)
            missed.update(gold.flags - flags)
            if flags != gold.flags:
                mistakes.append(
                    AssertionMistake(
                        document.id,
                        gold.start,
                        gold.end,
                        document.text[gold.start : gold.end],
                        tuple(flag for flag in FLAGS if flag in gold.flags),
                        tuple(flag for flag in FLAGS if flag in flags),
                        tuple(trigger.text for trigger in answer.triggers),
                    )
                )
    counts = {flag: Counts(right[flag], wrong[flag], missed[flag]) for flag in counted}
    n_mentions = sum(len(document.mentions) for document in documents)
    return AssertionResult(counts, len(documents), n_mentions, tuple(mistakes))


# ---- findings


class Finding(NamedTuple):
    """A mention with its concept and its status."""

    start: int
    """Character offset of the mention's first character."""
    end: int
    """Character offset behind its last character."""
    concept: str
    """Id of the concept; empty for NIL."""
    status: str
    """Assertion status, as ``present`` or ``absent``."""


FINDING_LEVELS: dict[str, Callable[[Finding], Hashable]] = {
    "spans": lambda finding: finding[:2],
    "findings": lambda finding: finding[:3],
    "statuses": lambda finding: finding,
    "documents": lambda finding: finding.concept,
    "document statuses": lambda finding: finding[2:],
}
"""Values that are compared at each level."""


@dataclass(frozen=True, slots=True)
class FindingMistake:
    """A finding that is missing, wrong, or has a wrong status."""

    document: str
    """Id of the document."""
    start: int
    """Character offset of the mention's first character."""
    end: int
    """Character offset behind its last character."""
    text: str
    """Text of the mention."""
    expected: tuple[str, ...]
    """Concept and status of the gold standard; empty for an answer without one."""
    found: tuple[str, ...]
    """Concept and status of the answer; empty for a missed finding."""


@dataclass(frozen=True, slots=True)
class FindingsResult:
    """Counts of each level and each status, and the mistakes."""

    levels: dict[str, Counts]
    """Right, wrong and missed findings at each level: span, concept, concept with status."""
    statuses: dict[str, Counts]
    """Right, wrong and missed findings by status."""
    typos: dict[str, int]
    """Number of misspelt mentions, of those found (``spans``), and linked right (``findings``)."""
    n_documents: int
    """Number of documents."""
    n_findings: int
    """Number of findings of the gold standard."""
    mistakes: tuple[FindingMistake, ...]
    """Findings that are missing, wrong or superfluous."""

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "n_documents": self.n_documents,
            "n_findings": self.n_findings,
            "levels": {name: counts.to_json() for name, counts in self.levels.items()},
            "statuses": {name: counts.to_json() for name, counts in self.statuses.items()},
            "typos": self.typos,
            "unit": "percent",
        }


def evaluate_findings(
    linker: Linker, documents: Iterable[AssertionDocument], types: Sequence[str] = ()
) -> FindingsResult:
    """Compare the findings of a linker in plain text with those of a gold standard.

    Args:
        linker: The linker; it has to find mentions and their status.
        documents: The gold standard.
        types: Types of the concepts that count, such as "disease"; none: all.

    Raises:
        ConfigError: The linker gives no status, or a type is unknown.
    """
    if not linker.config.assertions:
        raise ConfigError("assertions: the linker must ask for the status of mentions; set it True")
    kb, documents = linker.kb, list(documents)
    unknown = set(types) - {kind.code for kind in kb.types}
    if unknown:
        raise ConfigError(f"types: {', '.join(sorted(unknown))}: not a type of {kb.folder}")

    @cache
    def counts(concept: str) -> bool:
        has_type = concept in kb and any(kind.code in types for kind in kb[concept].types)
        return not types or has_type

    levels = dict.fromkeys(FINDING_LEVELS, Counts())
    statuses = dict.fromkeys(STATUSES, Counts())
    typos = Counter(dict.fromkeys(("mentions", "spans", "findings"), 0))
    mistakes: list[FindingMistake] = []
    n_findings = 0
    plain = [Document(d.id, d.text, language=d.language or "") for d in documents]
    for document, linked in zip(documents, linker.pipe(plain), strict=True):
        marked = [
            (Finding(m.start, m.end, m.concept, status_of(m.flags)), m.typo)
            for m in document.mentions
            if m.concept is not None and counts(m.concept)
        ]
        n_findings += len(marked)
        gold = {finding for finding, _ in marked}
        found = {
            Finding(m.start, m.end, m.concept, m.status)
            for m in linked.mentions
            if m.concept is not None and m.status is not None and counts(m.concept)
        }
        for level, key in FINDING_LEVELS.items():
            levels[level] += Counts.from_answers(set(map(key, gold)), set(map(key, found)))
        for status in STATUSES:
            with_status = [
                {f for f in findings if f.status == status} for findings in (gold, found)
            ]
            statuses[status] += Counts.from_answers(*with_status)
        spans, pairs = {f[:2] for f in found}, {f[:3] for f in found}
        for finding in (finding for finding, is_misspelt in marked if is_misspelt):
            typos.update(mentions=1, spans=finding[:2] in spans, findings=finding[:3] in pairs)
        for start, end in sorted({f[:2] for f in gold ^ found}):
            expected, answers = (
                tuple(
                    word
                    for f in sorted(findings)
                    if f[:2] == (start, end)
                    for word in (kb[f.concept].name if f.concept in kb else f.concept, f.status)
                )
                for findings in (gold, found)
            )
            text = document.text[start:end]
            mistakes.append(FindingMistake(document.id, start, end, text, expected, answers))
    return FindingsResult(
        levels, statuses, dict(typos), len(documents), n_findings, tuple(mistakes)
    )
