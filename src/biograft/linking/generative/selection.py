"""Which names of a store may be generated, and how they are written.

A name is generated as it is learnt: in small letters, signs as blanks. Names of a store that are
written alike so are one text, which may be a name of several concepts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from biograft.corpus.mention_text import clean_name
from biograft.errors import ConfigError, nearest
from biograft.kb import KnowledgeBase
from biograft.kb.names_table import shared_to_drop
from biograft.kb.type_filter import close_types
from biograft.linking.generative.config import NamesConfig

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selection:
    """The texts that may be generated, and the names of the store that each stands for."""

    texts: tuple[str, ...]
    """Distinct, in the order in which the store has them."""
    numbers: Ints
    """The text of each row of the table of names; -1 of a row that is left out."""
    concepts: Ints
    """The concept of each row."""

    @property
    def lengths(self) -> Ints:
        """How many characters each text has."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))


def select_names(kb: KnowledgeBase, config: NamesConfig) -> Selection:
    """Choose the names of a store, and write them as they are generated."""
    concepts = kb.table("names").column("concept").to_numpy().astype(np.int64)
    texts, numbers = _write_names(kb, config, wanted_rows(kb, config))
    if config.shared == "fewest":
        _keep_in_one_concept(numbers, concepts)
    if config.per_concept != "all":
        _keep_one_a_concept(numbers, concepts, texts, config)
    if not (numbers >= 0).any():
        raise ConfigError(
            f"names: none of the {kb.n_names:,} names of {kb.folder} is left; ask for more types, "
            "languages or sources"
        )
    return _renumber(texts, numbers, concepts)


def wanted_rows(kb: KnowledgeBase, config: NamesConfig) -> Flags:
    """Say which rows of the table of names are of the types, languages and sources asked for."""
    table = kb.table("names")
    wanted = np.ones(table.num_rows, np.bool_)
    for column, known in (("language", kb.languages), ("source", kb.sources)):
        names = getattr(config, f"{column}s")
        if names:
            places = [_place(f"{column}s", name, known) for name in names]
            wanted &= np.isin(table.column(column).to_numpy(), places)
    if config.types:
        wanted &= _of_types(kb, config.types)[table.column("concept").to_numpy()]
    return wanted


def _of_types(kb: KnowledgeBase, types: tuple[str, ...]) -> Flags:
    """Say which concepts are of some types, given by code or label, or of types below those."""
    codes = {kind.label: kind.code for kind in kb.types if kind.label}
    known = [kind.code for kind in kb.types]
    wanted = tuple(known[_place("types", codes.get(name, name), known)] for name in types)
    below = close_types({kind.code: kind.tree for kind in kb.types}, wanted)
    places = [place for place, code in enumerate(known) if code in below]
    table, flags = kb.table("types"), np.zeros(len(kb), np.bool_)
    chosen = np.isin(table.column("type").to_numpy(), places)
    flags[table.column("concept").to_numpy()[chosen]] = True
    return flags


def _place(field: str, name: str, known: list[str]) -> int:
    if name not in known:
        raise ConfigError(f"{field}: no name of the store is of {name!r}; {nearest(name, known)}")
    return known.index(name)


def _write_names(kb: KnowledgeBase, config: NamesConfig, wanted: Flags) -> tuple[list[str], Ints]:
    """Write the wanted names; give the distinct texts, and the text of each row."""
    places: dict[str, int] = {}
    numbers = np.full(len(wanted), -1, np.int64)
    row = 0
    for chunk in kb.table("names").column("text").iterchunks():
        for name in chunk.to_pylist():
            if wanted[row] and (text := clean_name(name, lower=config.lower)):
                numbers[row] = places.setdefault(text, len(places))
            row += 1
    return list(places), numbers


def _keep_in_one_concept(numbers: Ints, concepts: Ints) -> None:
    """Leave a text to the concept that has the fewest; none is left without a name by that."""
    kept = np.flatnonzero(numbers >= 0)
    rows, keys = concepts[kept].astype(np.uint32), numbers[kept].astype(np.uint64)
    numbers[kept[shared_to_drop(rows, keys)]] = -1


def _keep_one_a_concept(
    numbers: Ints, concepts: Ints, texts: list[str], config: NamesConfig
) -> None:
    """Leave each concept one name: its shortest, or one drawn by the seed."""
    kept = np.flatnonzero(numbers >= 0)
    if config.per_concept == "shortest":
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        order = np.lexsort((kept, lengths[numbers[kept]], concepts[kept]))
    else:
        drawn = np.random.default_rng(config.seed).random(len(numbers))
        order = np.lexsort((drawn[kept], concepts[kept]))
    _, first = np.unique(concepts[kept[order]], return_index=True)
    chosen = kept[order[first]]
    text_of = numbers[chosen]
    numbers[:] = -1
    numbers[chosen] = text_of


def _renumber(texts: list[str], numbers: Ints, concepts: Ints) -> Selection:
    """Number the texts that are left anew, in their order."""
    left = np.unique(numbers[numbers >= 0])
    places = np.full(len(texts) + 1, -1, np.int64)  # the last is for rows left out
    places[left] = np.arange(len(left))
    return Selection(tuple(texts[place] for place in left.tolist()), places[numbers], concepts)
