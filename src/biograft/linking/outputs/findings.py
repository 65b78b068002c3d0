"""Findings as rows, one a mention that was linked: data frames, CSV, TSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from biograft.artifacts import new_file
from biograft.clinical import FLAGS
from biograft.linking.candidates import Candidate, LinkedDocument, LinkedMention
from biograft.linking.outputs.output import Documents, Output, OutputRun, reported, storable

DECIMALS = 6
_ROWS = 1 << 14
"""Rows of a group of Parquet, which are kept in memory until it is written."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is a formula, or a command, to a spreadsheet."""
SEPARATOR = "|"
"""Between the items of a list in a cell."""
COLUMNS: dict[str, type] = {
    "document": str,
    "start": int,
    "end": int,
    "text": str,
    "form": str,
    "concept": str,
    "name": str,
    "types": list,
    "score": float,
    "probability": float,
    "status": str,
    **dict.fromkeys(FLAGS, bool),
    "section": str,
    "measurements": list,
    "tied": list,
    "found_by": str,
    "ids": list,
}
"""The columns of a table of findings, with the type of their values; lists are of texts."""


def finding_rows(
    documents: Iterable[LinkedDocument], run: OutputRun
) -> Iterator[list[dict[str, Any]]]:
    """Give the findings of each document: a row a mention, with the columns of ``COLUMNS``.

    Args:
        documents: The linked documents.
        run: The settings and the ids of concepts.
    """
    for linked in reported(documents, run):
        yield [_row(linked.document.id, mention) for mention in linked.mentions]


def _row(document: str, mention: LinkedMention) -> dict[str, Any]:
    answer = mention.answer
    first = mention.candidates[0] if mention.candidates else None
    said = mention.assertion
    return {
        "document": document,
        "start": mention.start,
        "end": mention.end,
        "text": mention.text,
        "form": mention.form,
        "concept": mention.concept,
        "name": mention.name,
        "types": list(mention.types),
        "score": None if mention.score is None else round(mention.score, DECIMALS),
        "probability": (
            None if mention.probability is None else round(mention.probability, DECIMALS)
        ),
        "status": mention.status,
        **{flag: None if said is None else getattr(said, flag) for flag in FLAGS},
        "section": mention.section,
        "measurements": [each.text for each in mention.measurements],
        "tied": list(mention.ambiguous) if answer else [],
        "found_by": None if first is None else found_by(first),
        "ids": list(answer.ids) if answer else [],
    }


def found_by(candidate: Candidate) -> str:
    """Say what found a candidate: the generators, their ranks, and the name if it is another.

    Args:
        candidate: The candidate.
    """
    ranks = ", ".join(f"{item.generator} #{item.rank}" for item in candidate.evidence)
    if candidate.name == candidate.concept_name:
        return ranks
    return f"{ranks}: {candidate.name}" if ranks else candidate.name


def neutral(text: str) -> str:
    """Return a cell that no spreadsheet runs as a formula: one that begins like it is quoted.

    A text that looks like such a cell is quoted, too, so that ``plain`` gives back every text.

    >>> neutral("=1+1"), neutral("'=1+1"), neutral("fever")
    ("'=1+1", "''=1+1", 'fever')
    """
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def plain(cell: str) -> str:
    """Return the text of a cell that ``neutral`` made.

    >>> plain("'=1+1"), plain("=1+1"), plain("'fever'")
    ('=1+1', '=1+1', "'fever'")
    """
    quoted = cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA)
    return cell[1:] if quoted else cell


def cut(text: str, length: int) -> str:
    """Return the start of a text that has no more characters than a column, its quote included.

    Args:
        text: The text.
        length: Characters of the column.
    """
    start = text[:length]
    return start if neutral(start) == start else start[: length - 1]


def cell(value: Any) -> str:
    """Return a value as text: lists joined, true and false in lower case, nothing if there is none.

    >>> cell(["T047", "T191"]), cell(True), cell(-0.5), cell(None)
    ('T047|T191', 'true', '-0.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return neutral(SEPARATOR.join(value))
    return neutral(value) if isinstance(value, str) else str(value)


def delimited_rows(rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """Return rows as lines; cells with quotes, delimiters or line ends are quoted.

    Args:
        rows: Values of cells.
        delimiter: What separates cells.
    """
    return "".join(delimited_line([cell(value) for value in row], delimiter) for row in rows)


def delimited_line(cells: Sequence[str], delimiter: str) -> str:
    """Return a line; the writer quotes both characters of its own line end, which is replaced.

    Args:
        cells: The cells.
        delimiter: What separates them.
    """
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return text.getvalue()[:-2] + "\n"


def _output(delimiter: str, media_type: str, ending: str) -> Output:
    def chunks(documents: Documents, run: OutputRun) -> Iterator[str]:
        yield delimited_rows([list(COLUMNS)], delimiter)
        for rows in finding_rows(documents, run):
            yield delimited_rows(([row[column] for column in COLUMNS] for row in rows), delimiter)

    return Output(chunks=chunks, media_type=media_type, endings=(ending,), resumable=True)


CSV = _output(",", "text/csv; charset=utf-8", ".csv")
TSV = _output("\t", "text/tab-separated-values; charset=utf-8", ".tsv")


def _write_parquet(documents: Documents, run: OutputRun, path: Path, overwrite: bool) -> None:
    """Write the findings, a group of rows at a time; types, tied concepts and ids are lists.

    A Parquet file cannot be continued. For a run that may be killed the groups are also kept as
    they are, and written again.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        list: pa.list_(pa.string()),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])

    def write(rows: list[dict[str, Any]]) -> None:
        columns = {
            name: pa.array([storable(row[name]) for row in rows], types[kind])
            for name, kind in COLUMNS.items()
        }
        table = pa.table(columns, schema=schema)
        writer.write_table(table)
        if groups is not None:
            with pa.ipc.new_stream(groups, schema) as stream:
                stream.write_table(table)

    waiting: list[dict[str, Any]] = []
    kept = run.work.open(path.with_name("groups")) if run.work is not None else nullcontext()
    with (
        kept as groups,
        new_file(path, overwrite=overwrite) as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        if groups is not None:
            end = groups.tell()
            groups.seek(0)
            while groups.tell() < end:
                writer.write_table(pa.ipc.open_stream(groups).read_all())
        for rows in finding_rows(documents, run):
            waiting += rows
            run.state["held"] = 0 < len(waiting) < _ROWS
            if len(waiting) >= _ROWS:
                write(waiting)
                waiting = []
        write(waiting)


PARQUET = Output(write=_write_parquet, needs="file", endings=(".parquet",), resumable=True)
