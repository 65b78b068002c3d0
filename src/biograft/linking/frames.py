"""Data frames: link a column of texts of pandas or polars, one row a finding.

When this module is imported, frames of both get ``frame.biograft``:

>>> notes.biograft.link("text", "KB")  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking import Linker
from biograft.linking.outputs.findings import COLUMNS, finding_rows
from biograft.linking.outputs.output import new_run, storable
from biograft.text.documents import Document
from biograft.text.tasks.rows import is_missing

ROW = "row"
"""The column that says which row of the frame a finding is from, counted from 0."""
_KINDS = {name: kind for name, kind in COLUMNS.items() if name != "document"}
_OUTPUT_SETTINGS = ("prefer", "all_ids")


def link_frame(
    frame: Any,
    column: str,
    linker: Linker | KnowledgeBase | str | Path,
    *,
    n_process: int = 1,
    **settings: Any,
) -> Any:
    """Link the texts in a column of a data frame; return a frame with one row a finding.

    The result is of the kind of ``frame``. Its column ``row`` counts the rows of ``frame`` from 0,
    and a pandas result has their index labels, so that either joins back. The other columns are
    those of ``biograft link --to csv``. Empty cells (None, NaN) have no findings.

    Args:
        frame: A data frame of pandas or polars.
        column: Column of the texts.
        linker: A linker, or a knowledge base, for which one is opened.
        n_process: Number of processes.
        settings: Options of ``Linker.open``, such as ``index``, where ``linker`` is a knowledge
            base; ``prefer`` and ``all_ids`` for both.

    >>> link_frame(notes, "text", "KB", prefer=["MSH"])[["row", "concept"]]  # doctest: +SKIP
    """
    library = _library(frame)
    texts = dict(_texts(frame, column, library))
    chosen = {name: settings.pop(name) for name in _OUTPUT_SETTINGS if name in settings}
    if not isinstance(linker, Linker):
        linker = Linker.open(linker, **settings)
    elif settings:
        raise ConfigError(
            f"{next(iter(settings))}: the linker is open already; give the option to Linker.open"
        )
    run = new_run(linker.kb, chosen)
    documents = (Document("", text) for text in texts.values())
    rows: list[dict[str, Any]] = []
    found = finding_rows(linker.pipe(documents, n_process=n_process), run)
    for row, findings in zip(texts, found, strict=True):
        rows += ({ROW: row, **finding} for finding in findings)
    return _to_polars(rows) if library == "polars" else _to_pandas(rows, frame)


def _library(frame: Any) -> str:
    """Return the library of a data frame, which need not be imported to be recognised."""
    library, kind = type(frame).__module__.partition(".")[0], type(frame).__name__
    if library not in ("pandas", "polars"):
        found = kind
    elif kind == "DataFrame":
        return library
    else:
        found = f"a {library} {kind}{'; call collect() first' if kind == 'LazyFrame' else ''}"
    raise ConfigError(f"frame: expected a pandas or polars DataFrame, found {found}")


def _texts(frame: Any, column: str, library: str) -> Iterator[tuple[int, str]]:
    """Give the row and the text of each cell that is not empty."""
    names = list(map(str, frame.columns))
    if names.count(column) != 1:
        problem = "several columns" if column in names else "no column"
        raise ConfigError(f"column: the frame has {problem} {column!r}; {nearest(column, names)}")
    cells = frame[column].to_list() if library == "polars" else frame[column].tolist()
    for row, value in enumerate(cells):
        if isinstance(value, str):
            yield row, value
        elif not is_missing(value):
            raise ConfigError(
                f"column {column!r}, row {row}: expected a text, found {type(value).__name__}"
            )


def _to_polars(rows: list[dict[str, Any]]) -> Any:
    import polars as pl

    types = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    schema = {name: types.get(kind, pl.List(pl.String)) for name, kind in _KINDS.items()}
    # as the row index of polars itself (with_row_index)
    schema = {ROW: pl.UInt32, **schema}
    columns = {name: [storable(row[name]) for row in rows] for name in schema}
    return pl.DataFrame(columns, schema=schema)


def _to_pandas(rows: list[dict[str, Any]], frame: Any) -> Any:
    import pandas as pd

    types = {str: "string", int: "int64", float: "float64", bool: "boolean"}
    index = frame.index.take([row[ROW] for row in rows])
    columns = {
        name: pd.Series(
            [storable(row[name]) for row in rows], index, dtype=types.get(kind, "object")
        )
        for name, kind in {ROW: int, **_KINDS}.items()
    }
    return pd.DataFrame(columns, index=index)


class FrameAccessor:
    """``frame.biograft``: what biograft does with a data frame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def link(
        self, column: str, linker: Linker | KnowledgeBase | str | Path, **settings: Any
    ) -> Any:
        """Link the texts in a column, as :func:`link_frame` does.

        Args:
            column: Column of the texts.
            linker: A linker, or a knowledge base, for which one is opened.
            settings: As for :func:`link_frame`.
        """
        return link_frame(self._frame, column, linker, **settings)


_REGISTRIES = {
    "pandas": ("pandas.api.extensions", "register_dataframe_accessor"),
    "polars": ("polars.api", "register_dataframe_namespace"),
}


def _register_accessors() -> None:
    """Give ``frame.biograft`` to the frames of the libraries that are installed."""
    for library, (module, register) in _REGISTRIES.items():
        if importlib.util.find_spec(library) is None:
            continue
        if not hasattr(importlib.import_module(library).DataFrame, "biograft"):
            getattr(importlib.import_module(module), register)("biograft")(FrameAccessor)


_register_accessors()
