"""Make the arrays of a lexical index from the names of a store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.arrays.files import check_ends, check_length, check_range, open_array
from biograft.errors import ConfigError
from biograft.kb import KnowledgeBase
from biograft.linking.lexical.checking import check_vocabulary, check_weights
from biograft.linking.lexical.ngrams import Vocabulary, join_texts, number_grams, spell_texts
from biograft.linking.lexical.rewording import Rewording
from biograft.linking.lexical.weighing import Weights, weigh
from biograft.linking.steps import DEFAULT_STEPS, Steps
from biograft.progress import Progress

MAX_LENGTH = 500
"""Texts are cut to so many characters: no name is nearly that long."""
_KINDS: dict[str, type[np.generic]] = {
    "keys": np.uint64,
    "posting_starts": np.int64,
    "gram_ends": np.int64,
    "rarity": np.float32,
    "inverse_norm": np.float32,
    "block_starts": np.int64,
    "shortest": np.float32,
    "longest": np.float32,
    "repeats": np.int64,
    "row_starts": np.int64,
}
"""What the numbers of each array are, if not ``uint32``."""


@dataclass(frozen=True, kw_only=True)
class LexicalConfig:
    """How names are made into forms, and which names are taken."""

    steps: str = str(DEFAULT_STEPS)
    languages: tuple[str, ...] = ()
    reword: bool = True
    """Look up names in other words too, as learned from the store's synonyms."""

    def __post_init__(self) -> None:
        Steps.parse(self.steps)


@dataclass(frozen=True)
class Parts:
    """The arrays of an index, as they are on disk."""

    vocabulary: Vocabulary
    weights: Weights
    rows: npt.NDArray[np.uint32]
    row_starts: npt.NDArray[np.int64]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Name every array."""
        own = {"rows": self.rows, "row_starts": self.row_starts}
        return self.vocabulary._asdict() | self.weights._asdict() | own

    @classmethod
    def load(cls, folder: Path, n_names: int) -> Parts:
        """Map the arrays of a folder into memory; ``ValueError`` where they fit no such store."""

        def array(name: str) -> npt.NDArray[Any]:
            # private copies on write, which nobody makes: compiled loops want writable arrays
            kind, n_axes = _KINDS.get(name, np.uint32), 2 if name == "posting_starts" else 1
            return np.asarray(open_array(folder / f"{name}.npy", kind, n_axes=n_axes, mode="c"))

        parts = cls(
            Vocabulary(*map(array, Vocabulary._fields)),
            Weights(*map(array, Weights._fields)),
            array("rows"),
            array("row_starts"),
        )
        parts._check(n_names)
        return parts

    def _check(self, n_names: int) -> None:
        check_weights(self.weights)
        check_vocabulary(self.vocabulary, len(self.weights.rarity))
        check_length("row_starts", self.row_starts, len(self.weights.inverse_norm) + 1)
        check_ends("row_starts", self.row_starts, len(self.rows))
        check_range("rows", self.rows, 0, n_names - 1)


def build_parts(
    kb: KnowledgeBase, config: LexicalConfig, progress: Progress
) -> tuple[Parts, Rewording | None]:
    """Make the arrays, and learn what words stand for others."""
    progress.start("normalising names")
    forms, of_row = _normalise_names(kb, config, progress)
    progress.start("counting n-grams")
    texts = join_texts(forms)
    vocabulary, n_grams, total = number_grams(texts)
    grams, ends = spell_texts(texts, vocabulary, total)
    progress.start("inverting")
    weights = weigh(grams, ends, n_grams)
    of_row = _renumber(of_row, weights.ranks)
    rewording = None
    if config.reword:
        progress.start("learning words")
        ordered = [forms[place] for place in weights.ranks.tolist()]
        concepts = kb.table("names").column("concept").to_numpy().astype(np.int64)
        rewording = Rewording.learn(ordered, of_row, concepts)
    progress.finish()
    return Parts(vocabulary, weights, *_group_rows(of_row, len(forms))), rewording


def _normalise_names(
    kb: KnowledgeBase, config: LexicalConfig, progress: Progress
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Give the distinct forms of the names, and the form of each name (-1: left out)."""
    steps, table = Steps.parse(config.steps), kb.table("names")
    wanted = np.ones(table.num_rows, bool)
    if config.languages:
        for language in config.languages:
            if language not in kb.languages:
                raise ConfigError(
                    f"languages: {kb.folder} has no names in {language!r}; "
                    f"it has {', '.join(kb.languages)}"
                )
        tags = [kb.languages.index(language) for language in config.languages]
        wanted = np.isin(table.column("language").to_numpy(), tags)
    numbers: dict[str, int] = {}
    of_row = np.full(table.num_rows, -1, np.int64)
    row = 0
    for chunk in table.column("text").iterchunks():
        for text in chunk.to_pylist():
            if wanted[row]:
                of_row[row] = numbers.setdefault(steps(text)[:MAX_LENGTH], len(numbers))
            row += 1
        progress.advance(len(chunk), row / max(table.num_rows, 1))
    return list(numbers), of_row


def _renumber(
    of_row: npt.NDArray[np.int64], ranks: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int64]:
    """Give each name's form its place in the new order of the forms."""
    places = np.full(len(ranks) + 1, -1, np.int64)  # the last is for names left out
    places[ranks] = np.arange(len(ranks))
    return places[of_row]


def _group_rows(
    of_row: npt.NDArray[np.int64], n_forms: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Give the rows of the names of each form, and where those of each begin."""
    rows = np.flatnonzero(of_row >= 0)
    order = np.argsort(of_row[rows], kind="stable")
    starts = np.zeros(n_forms + 1, np.int64)
    np.cumsum(np.bincount(of_row[rows], minlength=n_forms), out=starts[1:])
    return rows[order].astype(np.uint32), starts
