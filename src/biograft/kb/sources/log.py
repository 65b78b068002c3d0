"""The log of reading a source: counts of records read, rejected and filtered, with examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biograft.errors import shorten, visible
from biograft.kb.iris import Iris

KEPT_EXAMPLES = 5
MAX_REASONS = 1000
"""Reasons that are told apart: some name a key of the file, and a file may hold any number."""
_REASON_LENGTH = 300
_OTHER = "another reason"


@dataclass(frozen=True, slots=True)
class RejectionExample:
    """A rejected record: its file, line and text."""

    path: str
    """File of the record."""
    line: int
    """Line of the record, from 1."""
    text: str
    """Beginning of the record."""


@dataclass
class Rejections:
    """Counts by reason, with the first examples of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    """Number of records by reason."""
    examples: dict[str, list[RejectionExample]] = field(default_factory=dict)
    """First records of each reason."""

    def add(self, reason: str, example: RejectionExample | None = None, n: int = 1) -> None:
        """Count rejected rows, keeping the example if it is among the first.

        Args:
            reason: Why they are wrong.
            example: One of them.
            n: Number of rows.
        """
        reason = _bounded(reason, self.counts)
        self.counts[reason] += n
        examples = self.examples.setdefault(reason, [])
        if example is not None and len(examples) < KEPT_EXAMPLES:
            examples.append(example)

    def to_json(self) -> dict[str, Any]:
        """Return the count and the examples of each reason, most frequent first."""
        return {
            reason: {
                "n": n,
                "examples": [
                    {"file": e.path, "line": e.line, "text": e.text}
                    for e in self.examples.get(reason, [])
                ],
            }
            for reason, n in self.counts.most_common()
        }


class ReadLog:
    """The log of one reader and one source.

    *Rejected* records are wrong and were dropped, *doubtful* records are wrong and were kept, and
    *filtered* records were dropped on request (or are marked as withdrawn).

    Args:
        path: File or folder of the source.
        advanced: Called with the bytes read since, and the fraction done, for a progress.
        on_open: Called with each file that is opened.
        iris: Ids of concepts that sources name by IRIs; default: new ones.
    """

    def __init__(
        self,
        path: Path,
        advanced: Callable[[int, float | None], None] | None = None,
        on_open: Callable[[Path], object] | None = None,
        iris: Iris | None = None,
    ) -> None:
        self.path = path
        self.n_read = 0
        self.rejected = Rejections()
        self.filtered: Counter[str] = Counter()
        self.files: list[Path] = []
        self.notes: list[str] = []
        self.doubtful = Rejections()
        """Records that are wrong and were kept, such as an id defined twice."""
        self.left_out: list[Iterable[str]] = []
        """Ids of filtered concepts, so that facts about them do not count as wrong."""
        self.iris = Iris() if iris is None else iris
        """Ids of concepts that sources name by IRIs, the same for all sources of a build."""
        self._advanced, self._on_open = advanced, on_open
        self._defined: set[str] = set()

    def opened(self, path: Path) -> None:
        """Note that a file is being read.

        Args:
            path: The file.
        """
        if path not in self.files:
            self.files.append(path)
            if self._on_open is not None:
                self._on_open(path)

    def read(self, n: int = 1, fraction: float | None = None) -> None:
        """Count rows (lines, terms, elements) read.

        Args:
            n: Number of rows.
            fraction: Fraction of the file that has been read.
        """
        self.n_read += n
        if self._advanced is not None:
            self._advanced(n, fraction)

    def reject(
        self, reason: str, line: int = 0, text: str = "", *, path: Path | None = None, n: int = 1
    ) -> None:
        """Count a rejected record, with its line.

        Args:
            reason: Why it is wrong.
            line: Its line; 0: none.
            text: Its text.
            path: The file, if the source has several.
            n: Number of records.
        """
        self.rejected.add(reason, self._example(path, line, text), n)

    def doubt(
        self, reason: str, line: int = 0, text: str = "", *, path: Path | None = None, n: int = 1
    ) -> None:
        """Count a doubtful record, which is wrong but kept.

        Args:
            reason: Why it is wrong.
            line: Its line; 0: none.
            text: Its text.
            path: The file, if the source has several.
            n: Number of records.
        """
        self.doubtful.add(reason, self._example(path, line, text), n)

    def _example(self, path: Path | None, line: int, text: str) -> RejectionExample:
        return RejectionExample(str(path or self.path), line, _encodable(shorten(text)))

    def define(self, concept: str, line: int, *, path: Path | None = None) -> bool:
        """Note that a concept is defined; return False, as doubtful, if it was already.

        Args:
            concept: Its id.
            line: Line of the definition.
            path: The file, if the source has several.
        """
        is_new = concept not in self._defined
        if not is_new:
            self.doubt("id defined twice", line, concept, path=path)
        self._defined.add(concept)
        return is_new

    def leave_out(self, concepts: Iterable[str]) -> None:
        """Note the ids of filtered concepts; a concept with a kept name stays.

        Args:
            concepts: The ids.
        """
        self.left_out.append(concepts)

    def filter(self, reason: str, n: int = 1) -> None:
        """Count filtered records.

        Args:
            reason: Why they are dropped.
            n: Number of records.
        """
        if n:
            self.filtered[_bounded(reason, self.filtered)] += n

    def note(self, text: str) -> None:
        """Keep a remark for the report, such as the licence a file states.

        Args:
            text: The remark.
        """
        text = _encodable(text)
        if text not in self.notes:
            self.notes.append(text)


def _bounded(reason: str, counts: Counter[str]) -> str:
    """Return a reason as it is counted: one line, not too long, and one of not too many."""
    if reason in counts:
        return reason
    line = visible(reason)[:_REASON_LENGTH]
    return line if len(counts) < MAX_REASONS or line in counts else _OTHER


def _encodable(text: str) -> str:
    """Replace lone surrogates, which neither a terminal nor a file can hold."""
    return text.encode(errors="replace").decode()
