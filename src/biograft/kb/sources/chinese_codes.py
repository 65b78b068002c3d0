"""Chinese tables of codes: ICD-10 and ICD-9-CM-3 in the editions 国临版 and 医保版.

A header pairs a column of codes (``…编码``, ``…代码``) with one of names (``…名称``). Pairs of one
code system are its levels (``类目``, ``亚目``, ``诊断``); pairs of several systems stand side by
side, and the codes of one row refer to each other. A name ends with its alias in square brackets:
``弥漫性毒性甲状腺肿[Graves病]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from biograft.errors import FormatError
from biograft.kb.names import language_of_script
from biograft.kb.records import IS_A, Facts, IdKind, NameKind, Record
from biograft.kb.sources.format import Format, Item, Probe, SourceConfig
from biograft.kb.sources.log import ReadLog
from biograft.kb.sources.table import find_delimiter, read_cells

_CODE = re.compile(r"(.*?)(?:\(?ICD\S*?\)?)?(?:主要)?(?:编码|代码|code)(?:范围)?$", re.IGNORECASE)
_NAME = re.compile(r"(.*?)(?:的)?(?:名称|诊断名|中文名)$")
_EXTRA, _CATEGORY = "附加编码", "类别"
_EDITIONS = {"医保": "YB", "国临": "LC", "临床": "LC", "国标": "GB"}
"""Words of a header, a title or a file name, and the edition that they name."""
_DIAGNOSIS = re.compile(r"[A-Z]\d{2}(?:\.?[0-9A-Za-z]{1,8})?$")
_PROCEDURE = re.compile(r"\d{2}(?:\.[0-9A-Za-z]{1,8})?$")
_RANGE = re.compile(r"[A-Z]?\d{2}\S*-[A-Z]?\d{2}\S*$")
_ALIAS = re.compile(r"^(.+?)\s*[\[［【]([^\[\]［］【】]+)[\]］】]$")
_MARKS = re.compile(r"[+*†☆★]+$")
_HEADER_ROWS = 10


@dataclass(frozen=True, slots=True)
class _Pair:
    """A column of codes and the column of their names."""

    code: int
    name: int
    edition: str


def _pairs(header: Sequence[str]) -> list[_Pair]:
    """Pair the columns of codes of a header with those of names; an empty list: it is none."""
    cells = [re.sub(r"\s", "", cell) for cell in header]
    names = {k: match[1] for k, cell in enumerate(cells) if (match := _NAME.fullmatch(cell))}
    pairs: list[_Pair] = []
    for k, cell in enumerate(cells):
        match = _CODE.fullmatch(cell)
        if not match or cell == _EXTRA:
            continue
        stem = match[1]
        same = [n for n, other in names.items() if other == stem]
        after = [n for n in names if n > k]
        if n := next(iter(same or after), None):
            taken = any(pair.name == n for pair in pairs)
            if not taken:
                edition = next((e for word, e in _EDITIONS.items() if word in cell), "")
                pairs.append(_Pair(k, n, edition))
    return pairs


def recognise(probe: Probe) -> bool:
    """A row near the start with columns of codes and names, and codes of ICD below it."""
    lines = [line.split(find_delimiter(line)) for line in probe.lines(_HEADER_ROWS + 10)]
    for k, cells in enumerate(lines[:_HEADER_ROWS]):
        if pairs := _pairs([cell.strip('" ') for cell in cells]):
            return any(
                len(row) > pairs[-1].code and _vocabulary(row[pairs[-1].code].strip('" '))
                for row in lines[k + 1 :]
            )
    return False


def _vocabulary(code: str) -> str:
    if _DIAGNOSIS.match(code):
        return "ICD10"
    return "ICD9CM3" if _PROCEDURE.match(code) else ""


def read(config: SourceConfig, log: ReadLog) -> Iterator[Item]:
    """Yield the codes of every row, then the parents that the table does not state."""
    table: _Table | None = None
    title = config.path.name
    width = 0
    for line, cells in read_cells(config, quoted_tsv=True):
        if table is None:
            if pairs := _pairs(cells):
                table, width = _Table(config, log, cells, pairs, title), len(cells)
            elif line > 2 * _HEADER_ROWS:
                break
            title += "".join(cells)
            continue
        if not any(map(str.strip, cells)):
            continue
        log.read()
        if len(cells) > width and any(cells[width:]):
            log.reject(f"{len(cells)} cells, expected {width}", line, "\t".join(cells))
            continue
        padded = [*cells, *[""] * (width - len(cells))]
        yield from table.row([cell.strip() for cell in padded], line)
    if table is None:
        raise FormatError(
            "no row names a column of codes and a column of names",
            path=config.path,
            line=1,
            remedy="expected a header such as 诊断代码, 诊断名称",
        )
    yield from table.finish()


class _Table:
    """The columns of a table, and the codes that were read from it."""

    def __init__(
        self, config: SourceConfig, log: ReadLog, header: list[str], pairs: list[_Pair], title: str
    ) -> None:
        self._config, self._log, self._pairs = config, log, pairs
        named = [re.sub(r"\s", "", cell) for cell in header]
        self._extra = named.index(_EXTRA) if _EXTRA in named else None
        self._category = named.index(_CATEGORY) if _CATEGORY in named else None
        self._edition = next((e for word, e in _EDITIONS.items() if word in title), "CN")
        self._side_by_side = len({pair.edition for pair in pairs}) > 1
        self._codes: dict[str, dict[str, int]] = {}
        """Vocabulary -> the codes that were defined, with their lines."""
        self._with_parent: set[str] = set()
        self._additional: list[tuple[Facts, str]] = []
        """Concepts, and their additional codes for the manifestation."""
        read = {k for pair in pairs for k in (pair.code, pair.name)}
        unused = [
            name
            for k, name in enumerate(named)
            if name and k not in read and k not in (self._extra, self._category)
        ]
        if unused:
            log.note(f"columns not used: {', '.join(unused)}")

    def row(self, cells: list[str], line: int) -> Iterator[Record]:
        """Yield the codes of a row.

        Args:
            cells: The cells.
            line: Number of the row.
        """
        found: list[str] = []
        for pair in self._pairs:
            code, name = _MARKS.sub("", cells[pair.code]), cells[pair.name]
            if not code and not name:
                continue
            kind = _vocabulary(code)
            if not kind and _RANGE.match(code):
                kind = "ICD10" if code[0].isalpha() else "ICD9CM3"
            if not kind or not name:
                reason = "no name" if kind else "not a code of ICD"
                if not (not kind and pair.code != self._pairs[-1].code):
                    self._log.reject(reason, line, f"{code} {name}")
                continue
            vocabulary = f"{kind}{pair.edition or self._edition}"
            facts = Facts(f"{vocabulary}:{code}", line)
            known = self._codes.setdefault(vocabulary, {})
            if code not in known:
                known[code] = line
                yield from self._concept(facts, code, name, cells)
            elif pair is self._pairs[-1]:
                self._log.doubt("code given twice", line, f"{code} {name}")
                yield from self._names(facts, name, NameKind.SYNONYM)
            if self._side_by_side:
                yield from (facts.id(other, IdKind.XREF) for other in found)
            elif found and found[-1] != facts.concept:
                self._with_parent.add(facts.concept)
                yield facts.relation(IS_A, found[-1])
            found.append(facts.concept)

    def _concept(self, facts: Facts, code: str, name: str, cells: list[str]) -> Iterator[Record]:
        yield facts.exists()
        yield from self._names(facts, name, NameKind.PREFERRED)
        yield from map(facts.id, dict.fromkeys((code, code.replace(".", ""))))
        if self._extra is not None and (extra := _MARKS.sub("", cells[self._extra])):
            self._additional.append((facts, extra))
        category = cells[self._category] if self._category is not None else ""
        if kind := category or self._config.default_type:
            yield facts.type(kind, kind)

    def _names(self, facts: Facts, name: str, kind: NameKind) -> Iterator[Record]:
        """Yield a name; the alias in square brackets at its end is a name of its own."""
        parts = [name]
        if match := _ALIAS.match(name):
            parts += [match[1], *re.split(r"[，,、;；]", match[2])]
        for part in parts:
            if part.strip():
                language = self._config.language or language_of_script(part)
                yield facts.name(part.strip(), kind, language)
            kind = NameKind.SYNONYM

    def finish(self) -> Iterator[Record]:
        """Yield as the parent of a code the longest code in the table that it begins with.

        Additional codes that the table defines are relations, too.
        """
        for facts, extra in self._additional:
            vocabulary = facts.concept.partition(":")[0]
            if extra in self._codes[vocabulary]:
                yield facts.relation("additional-code", f"{vocabulary}:{extra}")
            else:
                self._log.filter("additional code that is not in the table")
        for vocabulary, codes in self._codes.items():
            for code, line in codes.items():
                facts = Facts(f"{vocabulary}:{code}", line)
                if facts.concept in self._with_parent or _RANGE.match(code):
                    continue
                for end in range(len(code) - 1, 1, -1):
                    shorter = code[:end].rstrip(".")
                    if shorter != code and shorter in codes:
                        yield facts.relation(IS_A, f"{vocabulary}:{shorter}")
                        break


FORMAT = Format(recognise, read, tabular=True)
