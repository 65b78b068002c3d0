"""Evaluation of assertion status: precision, recall and F1 of each flag, on marked mentions.

The gold standard has one JSON object a line: ``id``, ``text``, optionally ``language``, and
``mentions``, each with ``start``, ``end``, ``text`` and ``status``, the list of its flags (see
``docs/clinical.md``). An empty list is a mention that is present.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from biograft.clinical import FLAGS, Assertion, AssertionModel, RuleAssertions
from biograft.clinical.rules import LANGUAGES
from biograft.errors import FormatError, nearest
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.json_files import decode_json
from biograft.metrics.precision_recall import Counts

_MENTION_KEYS = frozenset(("start", "end", "text", "status", "concept", "name", "typo"))
NOTES = tuple(f"notes-{name}-{half}" for name in ("en", "zh") for half in ("dev", "test", "demo"))
"""Gold standards that ship with biograft: synthetic notes to develop on, held out, and shown."""


@dataclass(frozen=True, slots=True)
class GoldAssertion:
    """A mention with the flags that hold for it."""

    start: int
    end: int
    flags: frozenset[str]
    concept: str | None = None
    """Id of its concept, where the gold standard has it."""
    typo: bool = False
    """Whether it is misspelt."""


@dataclass(frozen=True, slots=True)
class AssertionDocument:
    """A text with mentions of known status; without a language, its script decides."""

    id: str
    text: str
    mentions: tuple[GoldAssertion, ...]
    language: str | None = None


@dataclass(frozen=True, slots=True)
class AssertionMistake:
    """A mention whose flags are not those of the gold standard."""

    document: str
    start: int
    end: int
    text: str
    expected: tuple[str, ...]
    found: tuple[str, ...]
    triggers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """Counts of each flag, and the mentions with a wrong one."""

    flags: dict[str, Counts]
    n_documents: int
    n_mentions: int
    mistakes: tuple[AssertionMistake, ...]

    @property
    def accuracy(self) -> float:
        """Fraction of the mentions with exactly the flags of the gold standard."""
        return 1 - len(self.mistakes) / self.n_mentions if self.n_mentions else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "n_documents": self.n_documents,
            "n_mentions": self.n_mentions,
            "accuracy": _percent(self.accuracy),
            "flags": {
                flag: {
                    "precision": _percent(counts.precision),
                    "recall": _percent(counts.recall),
                    "f1": _percent(counts.f1),
                    "right": counts.right,
                    "wrong": counts.wrong,
                    "missed": counts.missed,
                }
                for flag, counts in self.flags.items()
            },
            "unit": "percent",
        }


def _percent(value: float) -> float:
    return round(100 * value, 4)


def read_assertions(path: str | Path) -> Iterator[AssertionDocument]:
    """Read a gold standard of assertion status, one JSON object a line.

    A name of ``NOTES`` stands for the notes that ship with biograft.

    >>> len(list(read_assertions("notes-en-test")))
    29
    """
    if str(path) in NOTES and not Path(path).exists():
        name = str(path).removeprefix("notes-")
        with as_file(files("biograft.starter") / "notes" / f"{name}.jsonl") as shipped:
            yield from _read_lines(shipped)
        return
    yield from _read_lines(Path(path))


def _read_lines(path: Path) -> Iterator[AssertionDocument]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            yield _read_document(decode_json(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            missing = isinstance(error, KeyError)
            problem = f"missing key {error}" if missing else str(error)
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
    return GoldAssertion(start, end, frozenset(values["status"]), concept, typo)


def evaluate_assertions(
    documents: Iterable[AssertionDocument], model: AssertionModel | None = None
) -> AssertionResult:
    """Compare the assertions of a model, or of the shipped rules, with a gold standard."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    mistakes: list[AssertionMistake] = []
    n_documents = n_mentions = 0
    for document in documents:
        n_documents += 1
        n_mentions += len(document.mentions)
        asserting = model or RuleAssertions(document.language)
        spans = [(mention.start, mention.end) for mention in document.mentions]
        answers = asserting.assert_status(document.text, spans)
        for gold, answer in zip(document.mentions, answers, strict=True):
            found = frozenset(answer.flags)
            right.update(found & gold.flags)
            wrong.update(found - gold.flags)
            missed.update(gold.flags - found)
            if found != gold.flags:
                mistakes.append(_mistake(document, gold, answer))
    flags = {flag: Counts(right[flag], wrong[flag], missed[flag]) for flag in FLAGS}
    return AssertionResult(flags, n_documents, n_mentions, tuple(mistakes))


def _mistake(
    document: AssertionDocument, gold: GoldAssertion, answer: Assertion
) -> AssertionMistake:
    return AssertionMistake(
        document.id,
        gold.start,
        gold.end,
        document.text[gold.start : gold.end],
        tuple(flag for flag in FLAGS if flag in gold.flags),
        answer.flags,
        tuple(trigger.text for trigger in answer.triggers),
    )
