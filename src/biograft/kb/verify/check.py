"""Verification of files: every id with its label judged; what is wrong, with its line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.errors import InputError
from biograft.kb.names import language_of_script
from biograft.kb.sources.files import exists
from biograft.kb.store import KnowledgeBase
from biograft.kb.value_set_files import read_value_set
from biograft.kb.verify.config import VerifyConfig
from biograft.kb.verify.judge import Judgement, Status, Verifier
from biograft.kb.verify.pairs import Pair, PairFinder, SourceText

_SHOWN = 3
_KEPT = 1 << 17
"""Judgements that are kept: the same ids stand in many rows of a file."""
_BATCH = 512
"""Ids that are looked up at once."""
_LONGEST_LABEL = 12
"""Words before an id in a text that may be its label."""


@dataclass(frozen=True, slots=True)
class IdFinding:
    """A faulty id or label: its place, the fault, and the correction."""

    path: str
    """File with the id."""
    line: int
    """Line of the id, from 1."""
    column: int
    """Column of the id, from 1."""
    cell: str
    """Cell of a workbook, in place of line and column."""
    id: str
    """The id as written."""
    label: str
    """The label as written; empty if there is none."""
    status: Status
    """Kind of the fault."""
    level: str
    """``error`` or ``warning``."""
    message: str
    """Sentence for the user."""
    concept: str = ""
    """Id of the concept that has the id."""
    name: str = ""
    """Preferred name of this concept."""
    suggestions: tuple[str, ...] = ()
    """Ids that may be meant, the best first."""
    fixed: bool = False
    """Whether the file was corrected."""

    @property
    def place(self) -> str:
        """Place in the style of compilers: file, line and column."""
        return (
            f"{self.path}: {self.cell}" if self.cell else f"{self.path}:{self.line}:{self.column}"
        )

    def __str__(self) -> str:
        label = f' "{self.label}"' if self.label else ""
        done = " (fixed)" if self.fixed else ""
        return f"{self.place}: {self.level}: {self.id}{label}: {self.message} [{self.status}]{done}"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {key: value for key, value in asdict(self).items() if value not in ("", 0, ())}


@dataclass
class Verification:
    """Counts of what was verified so far."""

    n_files: int = 0
    """Number of files."""
    n_pairs: int = 0
    """Number of ids, with or without a label."""
    counts: Counter[Status] = field(default_factory=Counter)
    """Number of ids by status."""
    n_fixed: int = 0
    """Number of ids and labels that were corrected."""

    def n(self, level: str) -> int:
        """Return the number of findings of a level.

        Args:
            level: ``error`` or ``warning``.
        """
        return sum(n for status, n in self.counts.items() if Judgement(status).level == level)


class FileVerifier:
    """Verifies files by a knowledge base.

    Args:
        kb: Knowledge base with the ids.
        config: What is expected of the ids.

    >>> verifier = FileVerifier(kb)  # doctest: +SKIP
    >>> [finding.status for finding in verifier.verify(Path("phenotypes.tsv"))]  # doctest: +SKIP
    []
    """

    def __init__(self, kb: KnowledgeBase, config: VerifyConfig | None = None) -> None:
        self.kb, self.config = kb, config or VerifyConfig()
        self.done = Verification()
        value_set = self.config.value_set
        self.value_set = read_value_set(kb, value_set) if value_set else None
        """The members of the value set that ids must be of."""
        members = self.value_set.flags if self.value_set else None
        self._judge = Verifier(kb, self.config.vocabularies, self.config.below, members)
        self._judge_again = lru_cache(_KEPT)(self._judge.judge)
        self._finder = PairFinder(self._is_wanted, self.config.columns, kb.iris.id_of)

    @property
    def vocabularies(self) -> list[str]:
        """The vocabularies whose ids are looked for."""
        return sorted(filter(None, self._judge.held))

    def _is_wanted(self, identifier: str) -> bool:
        if self.config.vocabularies and self.config.columns:
            return True  # whatever stands in the column is to be an id
        return self._judge.holds(identifier)

    def verify(self, path: Path, *, fix: bool = False) -> Iterator[IdFinding]:
        """Yield what is wrong in a file, in its order.

        Args:
            path: The file.
            fix: Write what is certain into the file: the successor of a retired id where there is
                one, and the right spelling of a label.

        Raises:
            InputError: The file cannot be read.
        """
        source = SourceText.open(path, self.config.format, self.config.encoding)
        self.done.n_files += 1
        edits: list[tuple[int, int, str]] = []
        findings = []
        for found in self._looked_up(self._finder.find(source)):
            self.done.n_pairs += 1
            pair, judged = self._judged(found)
            self.done.counts[judged.status] += 1
            if not judged.level:
                continue
            pair = pair.located()
            wanted = self._edits(pair, judged, source) if fix else []
            edits += wanted
            finding = self._finding(pair, judged, source)
            findings.append((pair.start, replace(finding, fixed=bool(wanted))))
        if edits:
            self.done.n_fixed += sum(finding.fixed for _, finding in findings)
            _rewrite(path, source.text, edits)
        yield from (finding for _, finding in sorted(findings, key=itemgetter(0)))

    def _looked_up(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        while batch := list(islice(pairs, _BATCH)):
            self._judge.look_up(pair.id for pair in batch)
            yield from batch

    def _judged(self, pair: Pair) -> tuple[Pair, Judgement]:
        """Judge a pair; of the words before an id in a text those that are a name are its label."""
        if pair.exact or not pair.label:
            return pair, self._judge_again(pair.id, pair.label)
        alone = self._judge.judge(pair.id)
        if alone.row is None:
            return pair._replace(label=""), alone
        words = list(re.finditer(r"\S+", pair.label))[-_LONGEST_LABEL:]
        best: tuple[Pair, Judgement] = (pair._replace(label=""), alone)
        for n, word in enumerate(words):
            label = pair.label[word.start() :].strip(" ,*_`\"'")
            judged = self._judge.judge(pair.id, label)
            shorter = pair._replace(label=label)
            if not judged.level:
                return shorter, judged
            is_whole = n == 0 and word.start() == 0
            if judged.status is Status.MISSPELT_LABEL or (
                judged.status is Status.LABEL_OF_ANOTHER and is_whole
            ):
                best = (shorter, judged)
        return best

    def _finding(self, pair: Pair, judged: Judgement, source: SourceText) -> IdFinding:
        line, column = source.place(pair.start) if pair.start >= 0 else (pair.row, 0)
        concept = "" if judged.row is None else self.kb.id_at(judged.row)
        name = "" if judged.row is None else self._named(judged.row)
        message, suggestions = self._explained(pair, judged, concept, name)
        return IdFinding(
            path=str(source.path),
            line=line,
            column=column,
            cell=pair.column if source.sheets else "",
            id=pair.id,
            label=pair.label,
            status=judged.status,
            level=judged.level,
            message=message,
            concept=concept,
            name=name,
            suggestions=suggestions[:_SHOWN],
        )

    def _explained(
        self, pair: Pair, judged: Judgement, concept: str, name: str
    ) -> tuple[str, tuple[str, ...]]:
        """Say what is wrong, and which ids may be meant."""
        others = "; ".join(map(self._described, judged.others[:_SHOWN]))
        if judged.status is Status.RETIRED and (new := judged.replacement):
            ids = (*new.replaced_by, *new.consider)
            how = "replaced by" if new.replaced_by else "consider"
            return f"is retired; {how} {'; '.join(map(self._described, ids[:_SHOWN]))}", ids
        if judged.status is Status.UNKNOWN_ID:
            meant = f'; "{pair.label}" is {others}' if others else ""
            return f"no concept has this id{meant}", judged.others
        if judged.status is Status.NEWER_ID:
            return "no concept has this id; it may be newer than the knowledge base", ()
        if judged.status is Status.LABEL_OF_ANOTHER:
            return f"the label is a name of {others}, the id is {name!r}", judged.others
        if judged.status is Status.MISSPELT_LABEL:
            return f"the label is misspelt, the name is {judged.label!r}", ()
        if judged.status is Status.WRONG_VOCABULARY:
            return f"is no id of {' or '.join(self.config.vocabularies)}", ()
        if judged.status is Status.WRONG_BRANCH:
            return f"{name!r} is not below {' or '.join(self.config.below)}", ()
        if judged.status is Status.NOT_IN_VALUE_SET:
            return f"{name!r} is not in {self.config.value_set}", ()
        return f"the label is no name of the concept, which is {name!r}", (concept,)

    def _described(self, identifier: str) -> str:
        return f"{identifier} ({self._named(self.kb.row(identifier))})"

    def _named(self, row: int) -> str:
        return self.kb.name_in(row, self.config.name_language)

    # ---- corrections

    def _edits(
        self, pair: Pair, judged: Judgement, source: SourceText
    ) -> list[tuple[int, int, str]]:
        """Return the parts of the text to replace; none where what is right is not certain."""
        if pair.start < 0:
            return []
        if judged.status is Status.MISSPELT_LABEL:
            return _label_edit(pair, judged.label, source)
        new = judged.replacement.replaced_by if judged.replacement else ()
        if judged.status is not Status.RETIRED or len(new) != 1:
            return []
        raw = source.text[pair.start : pair.end]
        identifier = _like(raw, self.kb.iris.id_of(pair.id), new[0])
        if not identifier:
            return []
        edits = [(pair.start, pair.end, identifier)]
        if pair.label and self._judge.judge(new[0], pair.label).level:
            row = self.kb.row(new[0])
            language = language_of_script(pair.label)
            if not (relabelled := _label_edit(pair, self.kb.name_in(row, language), source)):
                return []
            edits += relabelled
        return edits


def _like(raw: str, old: str, new: str) -> str:
    """Write a new id as the old one is written in a text; empty if that cannot be done."""
    if raw == old:
        return new
    old_prefix, _, old_local = old.rpartition(":")
    new_prefix, _, new_local = new.rpartition(":")
    same = old_prefix.upper() == new_prefix.upper() and raw.endswith(old_local)
    return raw[: -len(old_local)] + new_local if same else ""


_PLAIN_YAML = re.compile(r"[A-Za-z\u3400-\u9fff][^:#\n]*")


def _label_edit(pair: Pair, name: str, source: SourceText) -> list[tuple[int, int, str]]:
    """Return the edit that writes a name in place of a label, by the rules of the format."""
    if pair.label_start < 0 or pair.label_end <= pair.label_start:
        return []
    before = source.text[pair.label_start - 1 : pair.label_start]
    text = name
    if source.format == "json" or (source.format == "yaml" and before == '"'):
        text = json.dumps(name, ensure_ascii=False)[1:-1]
    elif source.format == "yaml":
        if before == "'":
            text = name.replace("'", "''")
        elif not _PLAIN_YAML.fullmatch(name):
            return []
    elif source.format == "turtle":
        text = name.replace("\\", "\\\\").replace('"', '\\"')
    elif source.format == "table" and before == '"':
        text = name.replace('"', '""')
    elif source.format == "table" and (source.delimiter in name or '"' in name):
        text = '"' + name.replace('"', '""') + '"'
        if source.delimiter == "\t":
            return []
    elif source.format == "text" and "|" in name:
        return []
    return [(pair.label_start, pair.label_end, text)]


def _rewrite(path: Path, text: str, edits: list[tuple[int, int, str]]) -> None:
    """Write a text with its edits over the file, whole or not at all."""
    with path.open("rb") as file:
        data = file.read()
    try:
        if data.decode("utf-8-sig") != text:
            raise UnicodeError
    except UnicodeError as error:
        raise InputError(
            "is compressed or not UTF-8, so it is not corrected", path=path, remedy="convert it"
        ) from error
    for start, end, new in sorted(set(edits), reverse=True):
        text = text[:start] + new + text[end:]
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    with new_file(path, overwrite=True) as file:
        file.write(mark + text.encode())


_KNOWN = frozenset(
    ".csv .tsv .tab .hpoa .json .jsonl .ndjson .yaml .yml .obo .ttl .nt .md .txt .rst .xlsx .ods "
    ".xls".split()
)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return files, and those of folders that have a known ending.

    Args:
        paths: Files and folders.

    Raises:
        InputError: A path does not exist, or a folder has no such file.
    """
    found: list[Path] = []
    for path in paths:
        if not exists(path):
            raise InputError("does not exist", path=path, remedy="check the path")
        if not path.is_dir():
            found.append(path)
            continue
        inside = [
            each
            for each in sorted(path.rglob("*"))
            if each.is_file()
            and each.suffix.lower() in _KNOWN
            and not any(part.startswith(".") for part in each.relative_to(path).parts)
        ]
        if not inside:
            raise InputError("holds no file that is verified", path=path, remedy="name the files")
        found += inside
    return found
