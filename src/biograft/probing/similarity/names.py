"""The names of a store side by side, each known by its normalised key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from biograft.errors import ConfigError, nearest
from biograft.text import normalise

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoreNames:
    """A row for each different key of a concept in a language; the first spelling stands for it."""

    texts: list[str]
    concepts: Ints  # (rows,), ascending
    languages: Ints  # (rows,): numbers in the store
    keys: Ints  # (rows,): places in key_texts
    key_texts: list[str]
    _starts: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n_concepts = int(self.concepts.max(initial=-1)) + 1
        starts = np.searchsorted(self.concepts, np.arange(n_concepts + 1))
        object.__setattr__(self, "_starts", starts.astype(np.int64))

    def bounds(self, concepts: Ints) -> tuple[Ints, Ints]:
        """Say where the rows of concepts begin, and how many each has."""
        last = len(self._starts) - 1
        begin = self._starts[np.minimum(concepts, last)]
        return begin, self._starts[np.minimum(concepts + 1, last)] - begin

    def keys_of(self, concepts: Ints) -> Ints:
        """Give the keys of all names of some concepts."""
        begin, n = self.bounds(concepts)
        rows = [np.arange(b, b + k) for b, k in zip(begin.tolist(), n.tolist(), strict=True)]
        return self.keys[np.concatenate(rows)] if rows else np.zeros(0, np.int64)


def read_names(base: KnowledgeBase, languages: tuple[str, ...] = ()) -> StoreNames:
    """Read the names of a store, all or those in some languages."""
    table = base.table("names")
    tags = table.column("language").to_numpy().astype(np.int64)
    chosen = np.ones(len(tags), np.bool_)
    if languages:
        for tag in languages:
            if tag not in base.languages:
                raise ConfigError(
                    f"languages: {base.folder} has no names in {tag!r}; "
                    f"{nearest(tag, base.languages)}"
                )
        chosen = np.isin(tags, [base.languages.index(tag) for tag in languages])
    rows = np.flatnonzero(chosen)
    texts: list[str] = table.column("text").take(rows).to_pylist()
    places: dict[str, int] = {}
    keys = np.array([places.setdefault(normalise(t), len(places)) for t in texts], np.int64)
    concepts = table.column("concept").to_numpy()[rows].astype(np.int64)
    rank = (concepts * len(base.languages) + tags[rows]) * max(len(places), 1) + keys
    first = np.sort(np.unique(rank, return_index=True)[1])
    return StoreNames(
        [texts[k] for k in first.tolist()],
        concepts[first],
        tags[rows][first],
        keys[first],
        list(places),
    )
