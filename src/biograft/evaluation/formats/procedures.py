"""Terms as written in records and their standard names, joined by ``##``, after a tab.

The gold is given by name: the store says whose names they are. Several standard names are meant
together.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biograft.evaluation.queries import GoldConfig, LinkQuery
from biograft.sources.files import read_lines
from biograft.sources.log import ReadLog

HEADER = ["原始词", "标准词"]
JOINED = "##"


def read(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the lines."""
    for number, line in read_lines(Path(path)):
        cells = [cell.strip() for cell in line.split("\t")]
        if not line.strip() or cells == HEADER:
            continue
        log.read()
        names = tuple(name.strip() for name in cells[-1].split(JOINED) if name.strip())
        if len(cells) != 2 or not cells[0] or not names:
            log.reject("not of the form term, standard names (a tab between)", number, line)
            continue
        yield LinkQuery(cells[0], gold_names=names)
