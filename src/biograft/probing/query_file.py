"""Queries as lines of prompt, relation and ids of right concepts, parted by tabs.

The ids are parted by ``|``. It is the layout of the published probe, so that the same queries can
be asked of other models and by other programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.errors import FormatError, OutputError
from biograft.probing.queries import ClozeQuery
from biograft.probing.wording import BLANK
from biograft.runs import new_file
from biograft.sources.files import read_lines

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase


def write_queries(path: Path, queries: Iterable[ClozeQuery], *, overwrite: bool = False) -> None:
    """Write queries, a line each."""
    with new_file(path, overwrite=overwrite) as file:
        for query in queries:
            for text in (query.relation, *query.answers):
                if set(text) & set("\t\n\r") or (text != query.relation and "|" in text):
                    raise OutputError(f"{path}: cannot hold {text!r}; it has a tab, a line or '|'")
            fields = (query.prompt, query.relation, "|".join(query.answers))
            file.write(("\t".join(fields) + "\n").encode())


def read_queries(path: Path, base: KnowledgeBase) -> tuple[ClozeQuery, ...]:
    """Read queries; every right concept must be in the store, which knows its names."""
    queries = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.rstrip("\n").split("\t")
        if len(fields) != 3 or fields[0].count(BLANK) != 1:
            raise FormatError(
                f"expected a prompt with one {BLANK}, a relation and ids, parted by tabs",
                path=path, line=number, text=line,
            )  # fmt: skip
        answers = tuple(fields[2].split("|"))
        unknown = [answer for answer in answers if base.find_row(answer) is None]
        if unknown:
            raise FormatError(
                f"no concept of {base.folder} has the id {unknown[0]!r}",
                path=path, line=number, remedy="ask with the knowledge base they were made of",
            )  # fmt: skip
        queries.append(ClozeQuery(fields[0], fields[1], answers))
    if not queries:
        raise FormatError("holds no queries", path=path)
    return tuple(queries)
