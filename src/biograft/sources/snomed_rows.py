"""Rows of an RF2 file on their way through the checks: what fails is counted and dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from biograft.sources.log import KEPT_EXAMPLES, ReadLog

if TYPE_CHECKING:
    import polars as pl


class Rows:
    """A block of rows; every check leaves fewer of them."""

    def __init__(self, frame: pl.DataFrame, path: Path, log: ReadLog) -> None:
        import polars as pl

        self.frame = frame.with_columns(pl.col("line").cast(pl.Int64))
        self.path, self._log = path, log

    def column(self, name: str) -> pl.Series:
        """Give one column."""
        return self.frame[name]

    def is_id(self, name: str) -> pl.Series:
        """Say which rows have an SCTID in a column: six to eighteen digits."""
        return self.frame[name].str.contains(r"^[1-9][0-9]{5,17}$")

    def doubt(self, wrong: pl.Series, reason: str) -> None:
        """Keep rows that are wrong, with examples in the report."""
        self._tell(wrong, reason, self._log.doubt)

    def reject_unless(self, right: pl.Series, reason: str) -> None:
        """Drop rows that are wrong, with examples in the report."""
        if not right.all():
            self._tell(~right, reason, self._log.reject)
            self.frame = self.frame.filter(right)

    def filter_unless(self, wanted: pl.Series, reason: str) -> None:
        """Drop rows that are not wanted, with their number in the report."""
        if not wanted.all():
            kept = self.frame.filter(wanted)
            self._log.filter(reason, self.frame.height - kept.height)
            self.frame = kept

    def _tell(self, wrong: pl.Series, reason: str, tell: Callable[..., None]) -> None:
        """Count rows, with the first as examples."""
        n = int(wrong.sum())
        if not n:
            return
        examples = self.frame.filter(wrong).head(KEPT_EXAMPLES)
        for row in examples.iter_rows(named=True):
            text = "\t".join(str(value) for name, value in row.items() if name != "line")
            tell(reason, row["line"], text, path=self.path)
        if n > examples.height:
            tell(reason, path=self.path, n=n - examples.height)
