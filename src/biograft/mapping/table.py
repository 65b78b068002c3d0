"""A mapping as CSV or TSV: one row a term, with fixed columns, safe to open in a spreadsheet.

A person fills in the column ``verdict``; what has one is read back as a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError, EncodingError, FormatError
from biograft.linking.outputs.delimited import delimited_rows, plain
from biograft.linking.outputs.findings import DECIMALS
from biograft.mapping.decisions import NIL, Decision, read_decisions
from biograft.mapping.mapped import MappingRun
from biograft.mapping.terms import TermMapping
from biograft.sources.format import SourceConfig
from biograft.sources.table import read_cells

COLUMNS = (
    *("source_term", "concept", "name", "score", "probability", "flag"),
    *("source_code", "frequency", "relation", "verdict"),
)
"""The first columns; then come ``context``, where there is one, and ``candidate_N``, ``name_N`` and
``score_N`` for N from 2 to k."""
DELIMITERS = {"csv": ",", "tsv": "\t"}


def table_chunks(
    mappings: Iterable[TermMapping], run: MappingRun, to: str = "csv"
) -> Iterator[str]:
    """Give the header, then a row a term."""
    numbers, delimiter = range(2, run.k + 1), DELIMITERS[to]
    header = ["context"] if run.has_context else []
    header += [f"{what}_{n}" for n in numbers for what in ("candidate", "name", "score")]
    yield delimited_rows([[*COLUMNS, *header]], delimiter)
    for mapping in mappings:
        yield delimited_rows([_row(mapping, run, len(numbers))], delimiter)


def _row(mapping: TermMapping, run: MappingRun, n_others: int) -> list[Any]:
    term, concept = mapping.term, mapping.concept
    decision = mapping.decision if mapping.flag == "seen" else None
    cells: list[Any] = [
        term.text,
        None if concept is None else run.ids.chosen(concept),
        mapping.name,
        _rounded(mapping.score),
        _rounded(mapping.probability),
        mapping.flag,
        term.code,
        term.frequency,
        decision and decision.relation,
        decision and decision.verdict,
        *([term.context_text] if run.has_context else []),
    ]
    for other in mapping.others[:n_others]:
        cells += [run.ids.chosen(other.concept), other.concept_name, _rounded(other.score)]
    return cells + [None] * (len(COLUMNS) + run.has_context + 3 * n_others - len(cells))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DECIMALS)


def read_earlier(path: str | Path, encoding: str = "utf-8") -> list[Decision]:
    """Read decisions: an SSSOM file, or a table that ``table_chunks`` wrote and a person edited."""
    path = Path(path)
    try:
        source = SourceConfig(path=path, encoding=encoding)
        _, header = next(read_cells(source, quoted_tsv=True))
        is_table = {"source_term", "concept"} <= {cell.strip() for cell in header}
        return _read_table(path, encoding) if is_table else read_decisions(path, encoding)
    except EncodingError as error:
        raise EncodingError(
            error.problem,
            path=path,
            line=error.line,
            remedy="save it as UTF-8 (in a spreadsheet: CSV UTF-8)",
        ) from error


def _read_table(path: Path, encoding: str) -> list[Decision]:
    """Read the decisions of a table: its rows with a verdict."""
    rows = read_cells(SourceConfig(path=path, encoding=encoding), quoted_tsv=True)
    _, first = next(rows)
    header = [cell.strip() for cell in first]
    decisions = []
    for line, cells in rows:
        if len(cells) != len(header):
            raise FormatError(f"{len(cells)} cells, expected {len(header)}", path=path, line=line)
        row = {name: plain(cell.strip()).strip() for name, cell in zip(header, cells, strict=True)}
        if row.get("verdict"):
            try:
                decisions.append(_decision(row))
            except (ConfigError, ValueError) as error:
                raise FormatError(str(error), path=path, line=line) from error
    if not decisions:
        raise FormatError(
            "no row has a verdict",
            path=path,
            remedy="fill in the column 'verdict' with approved, rejected or nil where you decided",
        )
    return decisions


def _decision(row: Mapping[str, str]) -> Decision:
    verdict = row["verdict"].lower()
    return Decision(
        term=row["source_term"],
        code=row.get("source_code", ""),
        context=row.get("context", ""),
        concept="" if verdict == NIL else row["concept"],
        name="" if verdict == NIL else row.get("name", ""),
        relation=row.get("relation", "").lower() or "exact",
        verdict=verdict,
        probability=float(row["probability"]) if row.get("probability") else None,
        frequency=int(row.get("frequency") or 1),
    )
