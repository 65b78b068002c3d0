"""Evaluation of findings: what a linker finds in notes, with concept and assertion status.

The linker sees the plain text of each note. Levels, each with precision, recall and F1:

* ``spans``: mentions with exactly the gold span;
* ``findings``: mentions with the gold span and concept;
* ``statuses``: findings that also have the gold status, and each status on its own;
* ``documents``: the concepts of each note, and ``document statuses`` the concepts with a status.

Only concepts of the given types count, in the gold standard and in the answers. Of misspelt
mentions, the fraction is given whose span was found, and whose concept is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from biograft.clinical import STATUSES, status_of
from biograft.errors import ConfigError
from biograft.evaluation.assertion import AssertionDocument
from biograft.kb import KnowledgeBase
from biograft.linking import LinkedDocument, Linker
from biograft.metrics.precision_recall import Counts
from biograft.text.documents import Document

FINDING_LEVELS = ("spans", "findings", "statuses", "documents", "document statuses")


class Finding(NamedTuple):
    """A mention with its concept and its status."""

    start: int
    end: int
    concept: str
    status: str


@dataclass(frozen=True, slots=True)
class FindingMistake:
    """A finding that is missing, wrong, or has a wrong status."""

    document: str
    start: int
    end: int
    text: str
    expected: tuple[str, ...]
    """Concept and status of the gold standard; empty for an answer without one."""
    found: tuple[str, ...]
    """Concept and status of the answer; empty for a missed finding."""


@dataclass(frozen=True, slots=True)
class FindingsResult:
    """Counts of each level and each status, and the mistakes."""

    levels: dict[str, Counts]
    statuses: dict[str, Counts]
    typos: dict[str, int]
    """Number of misspelt mentions, of those found (``spans``), and linked right (``findings``)."""
    n_documents: int
    n_findings: int
    mistakes: tuple[FindingMistake, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as plain values, in percent."""
        return {
            "n_documents": self.n_documents,
            "n_findings": self.n_findings,
            "levels": {name: _counts(counts) for name, counts in self.levels.items()},
            "statuses": {name: _counts(counts) for name, counts in self.statuses.items()},
            "typos": self.typos,
            "unit": "percent",
        }


def _counts(counts: Counts) -> dict[str, float]:
    metrics = {
        name: round(100 * getattr(counts, name), 4) for name in ("precision", "recall", "f1")
    }
    return {**metrics, "right": counts.right, "wrong": counts.wrong, "missed": counts.missed}


def evaluate_findings(
    linker: Linker, documents: Iterable[AssertionDocument], types: Sequence[str] = ()
) -> FindingsResult:
    """Compare the findings of a linker in plain text with those of a gold standard.

    ``types`` are types of concepts, such as "disease"; without them all concepts count.
    """
    if not linker.config.assertions:
        raise ConfigError("assertions: the linker must ask for the status of mentions; set it True")
    documents = list(documents)
    counted = _Types(linker.kb, types)
    tally: dict[str, Counter[str]] = {}
    typos = Counter(dict.fromkeys(("mentions", "spans", "findings"), 0))
    mistakes: list[FindingMistake] = []
    n_findings = 0
    plain = [Document(d.id, d.text, language=d.language or "") for d in documents]
    for document, linked in zip(documents, linker.pipe(plain), strict=True):
        gold = [finding for finding in _gold_of(document) if counted(finding.concept)]
        found = [finding for finding in _found_of(linked) if counted(finding.concept)]
        n_findings += len(gold)
        for level, (expected, answers) in _levels(gold, found).items():
            _add(tally, level, expected, answers)
        spans, pairs = {f[:2] for f in found}, {f[:3] for f in found}
        for mention in document.mentions:
            if mention.typo and counted(mention.concept):
                span = (mention.start, mention.end)
                typos.update(mentions=1, spans=span in spans)
                typos["findings"] += (*span, mention.concept) in pairs
        mistakes += _mistakes(document, gold, found, linker.kb)
    return FindingsResult(
        {level: _total(tally, level) for level in FINDING_LEVELS},
        {status: _total(tally, status) for status in STATUSES},
        dict(typos),
        len(documents),
        n_findings,
        tuple(mistakes),
    )


class _Types:
    """Semantic types of the concepts that count."""

    def __init__(self, kb: KnowledgeBase, types: Sequence[str]) -> None:
        self.kb, self.types = kb, frozenset(types)
        unknown = self.types - {kind.code for kind in kb.types}
        if unknown:
            raise ConfigError(f"types: {', '.join(sorted(unknown))}: not a type of {kb.folder}")
        self.known: dict[str, bool] = {}

    def __call__(self, concept: str | None) -> bool:
        if concept is None:
            return False
        if concept not in self.known:
            self.known[concept] = not self.types or (
                concept in self.kb
                and any(kind.code in self.types for kind in self.kb[concept].types)
            )
        return self.known[concept]


def _gold_of(document: AssertionDocument) -> Iterator[Finding]:
    for mention in document.mentions:
        if mention.concept is not None:
            yield Finding(mention.start, mention.end, mention.concept, status_of(mention.flags))


def _found_of(linked: LinkedDocument) -> Iterator[Finding]:
    for mention in linked.mentions:
        if mention.concept is not None and mention.status is not None:
            yield Finding(mention.start, mention.end, mention.concept, mention.status)


def _levels(
    gold: Sequence[Finding], found: Sequence[Finding]
) -> dict[str, tuple[set[Any], set[Any]]]:
    """Return what is compared at each level and for each status: expected, found."""
    levels = {
        "spans": _both(gold, found, lambda f: f[:2]),
        "findings": _both(gold, found, lambda f: f[:3]),
        "statuses": _both(gold, found, lambda f: f),
        "documents": _both(gold, found, lambda f: f.concept),
        "document statuses": _both(gold, found, lambda f: f[2:]),
    }
    for status in STATUSES:
        of = [f for f in gold if f.status == status], [f for f in found if f.status == status]
        levels[status] = _both(*of, lambda f: f)
    return levels


def _both(gold: Sequence[Finding], found: Sequence[Finding], key: Any) -> tuple[set[Any], set[Any]]:
    return {key(finding) for finding in gold}, {key(finding) for finding in found}


def _add(tally: dict[str, Counter[str]], level: str, gold: set[Any], found: set[Any]) -> None:
    counts = tally.setdefault(level, Counter())
    counts["right"] += len(gold & found)
    counts["wrong"] += len(found - gold)
    counts["missed"] += len(gold - found)


def _total(tally: dict[str, Counter[str]], level: str) -> Counts:
    counts = tally.get(level, Counter())
    return Counts(counts["right"], counts["wrong"], counts["missed"])


def _mistakes(
    document: AssertionDocument,
    gold: Sequence[Finding],
    found: Sequence[Finding],
    kb: KnowledgeBase,
) -> Iterator[FindingMistake]:
    """Yield what differs, span by span."""

    def words(findings: Iterable[Finding]) -> tuple[str, ...]:
        return tuple(
            word
            for f in findings
            for word in (kb[f.concept].name if f.concept in kb else f.concept, f.status)
        )

    for start, end in sorted({f[:2] for f in (*gold, *found)}):
        expected = sorted({f for f in gold if f[:2] == (start, end)})
        answers = sorted({f for f in found if f[:2] == (start, end)})
        if expected != answers:
            text = document.text[start:end]
            yield FindingMistake(document.id, start, end, text, words(expected), words(answers))
