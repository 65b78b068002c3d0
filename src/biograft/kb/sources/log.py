"""Short ids of IRIs, as the OBO standard forms them, and the namespace that owns each prefix.

The log of reading a source: counts of records read, rejected and filtered, with examples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biograft.errors import shorten, visible
from biograft.kb.vocabularies import OBO, OBO_PREFIXES, vocabulary_name

_LAST_PART = re.compile(r"[/#]([A-Za-z][\w.-]*?)_([A-Z]*\d[\w.-]*)$")
_SCHEMES = ("http://", "https://")
_SCHEME = re.compile(r"https?://(?:www\.)?")
_OBO_HOSTS = ("purl.obolibrary.org/obo/", "purl.org/obo/")
"""The OBO namespace without its scheme, and its earlier spelling."""
_SHOWN = 5


def short_id(iri: str) -> str:
    """Shorten an IRI as the OBO standard does; other text is returned unchanged.

    Args:
        iri: IRI of a class, concept or property, or any other text.

    >>> short_id("http://purl.obolibrary.org/obo/DOID_0001816")
    'DOID:0001816'
    >>> short_id("http://purl.obolibrary.org/obo/uberon/core#part_of")
    'part_of'
    >>> short_id("http://purl.obolibrary.org/obo/GO#_x1")
    'GO:x1'
    >>> short_id("http://www.orpha.net/ORDO/Orphanet_558")
    'Orphanet:558'
    >>> short_id("http://identifiers.org/hgnc/1101")
    'http://identifiers.org/hgnc/1101'
    """
    if not iri.startswith(_SCHEMES):
        return iri
    if iri.startswith(OBO) and "#" in iri:
        ontology, _, fragment = iri[len(OBO) :].partition("#")
        if fragment.startswith("_") and len(fragment) > 1:
            return f"{ontology}:{fragment[1:]}"
        return fragment or iri
    match = _LAST_PART.search(iri)
    return f"{match[1]}:{match[2]}" if match else iri


class ConceptIris:
    """Short ids of the concepts of one build, of which no two IRIs share one.

    A prefix belongs to the first namespace that uses it; the prefixes of the OBO Foundry belong to
    its namespace from the start. Under any other namespace the IRI itself is the id.

    >>> iris = ConceptIris()
    >>> [iris.id_of(i) for i in ("http://a.org/lab/C_0001", "http://b.com/codes#C_0001")]
    ['C:0001', 'http://b.com/codes#C_0001']
    """

    def __init__(self) -> None:
        self._owners = {vocabulary_name(prefix): (_OBO_HOSTS[0], "") for prefix in OBO_PREFIXES}
        """Vocabulary -> its namespace, and the IRI that claimed it."""
        self._names: dict[str, str] = {}
        self._kept_whole: dict[tuple[str, str], str] = {}
        """First IRI of each vocabulary and namespace that is not its owner."""

    def id_of(self, iri: str) -> str:
        """Return the id of a concept.

        Args:
            iri: IRI of the concept; any other text is returned unchanged.
        """
        short = short_id(iri)
        if short is iri:
            return iri
        prefix, colon, local = short.partition(":")
        if colon:
            if (name := self._names.get(prefix)) is None:
                name = self._names[prefix] = vocabulary_name(prefix)
            namespace = _SCHEME.sub("", iri[: -len(local)], count=1)
            if namespace.startswith(_OBO_HOSTS):
                namespace = _OBO_HOSTS[0]
        else:  # a fragment of an OBO ontology
            name, namespace = f"#{short}", iri
        owner, _ = self._owners.setdefault(name, (namespace, iri))
        if owner == namespace:
            return short
        self._kept_whole.setdefault((name, namespace), iri)
        return iri

    def warnings(self) -> list[str]:
        """Return a line for each namespace that uses the prefix of another, a few of many."""
        lines = []
        for (name, _), iri in list(self._kept_whole.items())[:_SHOWN]:
            owner, first = self._owners[name]
            lines.append(
                f"the concepts under {iri} keep their IRIs as ids: the short id {short_id(iri)} "
                f"is of {first or f'http://{owner}'}"
            )
        if len(self._kept_whole) > _SHOWN:
            more = len(self._kept_whole) - _SHOWN
            lines.append(f"the concepts of {more:,} more namespaces keep their IRIs as ids")
        return lines


KEPT_EXAMPLES = 5
MAX_REASONS = 1000
"""Reasons that are told apart: some name a key of the file, and a file may hold any number."""
_REASON_LENGTH = 300
_OTHER = "another reason"


@dataclass(frozen=True, slots=True)
class RejectionExample:
    """A rejected record: its file, line and text."""

    path: str
    line: int
    text: str


@dataclass
class Rejections:
    """Counts by reason, with the first examples of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[RejectionExample]] = field(default_factory=dict)

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
        iris: ConceptIris | None = None,
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
        self.iris = ConceptIris() if iris is None else iris
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
