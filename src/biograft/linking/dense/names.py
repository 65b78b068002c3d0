"""The distinct texts of the names of a store, and which names each of them stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.linking.dense.vectors import Rows


@dataclass(frozen=True, slots=True)
class NameTexts:
    """Distinct texts in the order of their first names.

    The names of text t are ``rows[starts[t]:starts[t + 1]]``, rows of the store's table, rising.
    """

    texts: pa.Array
    starts: Rows
    rows: Rows

    def __len__(self) -> int:
        return len(self.texts)


def gather_texts(
    kb: KnowledgeBase, prepare: Callable[[str], str], languages: Sequence[str]
) -> NameTexts:
    """Prepare the names of a store as an encoder sees them, each distinct text once.

    A name of which nothing is left stands for no text.
    """
    names = kb.table("names")
    rows = np.arange(names.num_rows)
    if languages:
        rows = rows[np.isin(names["language"].to_numpy(), _codes(kb, languages))]
    written = _combined(names["text"].take(pa.array(rows))).dictionary_encode()
    prepared = [prepare(text) or None for text in written.dictionary.to_pylist()]
    distinct = pa.array(prepared, pa.large_string()).dictionary_encode()
    texts = _numbers(distinct.indices)[_numbers(written.indices)]  # (names,): -1 for no text
    rows, texts = rows[texts >= 0], texts[texts >= 0]
    n_names = np.bincount(texts, minlength=len(distinct.dictionary))
    starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(n_names)))
    return NameTexts(distinct.dictionary, starts, rows[np.argsort(texts, kind="stable")])


def find_texts(texts: pa.Array, known: pa.Array) -> Rows:
    """Find where each text stands among known ones: -1 where it does not."""
    return _numbers(pc.index_in(texts, value_set=known))


def _codes(kb: KnowledgeBase, languages: Sequence[str]) -> list[int]:
    for language in languages:
        if language not in kb.languages:
            raise ConfigError(
                f"languages: {kb.folder} has no names in {language!r}; "
                f"{nearest(language, kb.languages)}"
            )
    return [kb.languages.index(language) for language in languages]


def _combined(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def _numbers(indices: pa.Array) -> Rows:
    numbers: npt.NDArray[np.generic] = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)
