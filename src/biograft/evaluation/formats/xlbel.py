"""XL-BEL: ``ids||mention||sentence``, the mention in the sentence within ``<tgt>`` marks.

Several ids, joined by ``|``, are equally good: the mention is ambiguous, not composite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from biograft.evaluation.queries import GoldConfig, LinkQuery, gold_ids
from biograft.sources.files import read_lines
from biograft.sources.log import ReadLog

OPEN, CLOSE = "<tgt>", "</tgt>"


def read(path: str, config: GoldConfig, log: ReadLog) -> Iterator[LinkQuery]:
    """Read queries in the order of the lines."""
    for number, line in read_lines(Path(path)):
        if not line.strip():
            continue
        log.read()
        cells = line.split("||", 2)
        if len(cells) < 2 or not cells[1].strip():
            log.reject("not of the form ids||mention||sentence", number, line)
            continue
        ids, mention = frozenset(gold_ids(cells[0].split("|"))), cells[1].strip()
        context, span = _unmark(cells[2] if len(cells) > 2 else "")
        yield LinkQuery(
            mention,
            ids,
            needed=(ids,) if ids else (),
            document=f"line {number}",
            start=span[0] if span else None,
            end=span[1] if span else None,
            context=context,
        )


def _unmark(sentence: str) -> tuple[str, tuple[int, int] | None]:
    """Take the marks out of a sentence and say where the mention stands then."""
    before, opened, rest = sentence.partition(OPEN)
    inside, closed, after = rest.partition(CLOSE)
    if not (opened and closed):
        return sentence, None
    return before + inside + after, (len(before), len(before) + len(inside))
