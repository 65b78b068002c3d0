"""Make the arrays of a lexical index from the names of a store."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.arrays import check_ends, check_length, check_range, open_array
from biograft.artifacts import Kind, file_sizes, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import NameHits, Rows, Scores
from biograft.linking.lexical.ngrams import (
    Vocabulary,
    Weights,
    check_vocabulary,
    check_weights,
    join_texts,
    number_grams,
    spell_texts,
    weigh,
)
from biograft.linking.lexical.search import score_texts, search_texts
from biograft.linking.lexical.synonyms import Rewording
from biograft.linking.normalisation import DEFAULT_STEPS, Steps
from biograft.linking.provenance import store_fingerprint
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


LEXICAL_INDEX = Kind(
    format="biograft-lexical",
    version=2,
    called="lexical index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "store", "files"),
)

EXACT, NORMALISED, SIMILAR = 1.0, 0.99, 0.98
"""Scores: a name as written (but for case), a name of the same form; others below the third."""
_REWORDED, _BY_SHARE, _REWORDED_MOST = 0.85, 0.13, 0.975
"""Scores of names in other words: the first, and the second times the root of the share, up to
the third. Chosen on the dev sets of NCBI disease and BC5CDR (see the lab log)."""

_EQUAL = 0.9999
"""A cosine above this may mean the same form."""
_CHUNK = 256


class LexicalIndex:
    """Finds the names of a store that look most like a text."""

    name = "lexical"

    def __init__(
        self,
        kb: KnowledgeBase,
        config: LexicalConfig,
        parts: Parts,
        rewording: Rewording | None = None,
    ) -> None:
        self.kb, self.config, self._rewording = kb, config, rewording
        self._parts = parts
        self._vocabulary, self._weights = parts.vocabulary, parts.weights
        self._steps = Steps.parse(config.steps)
        self._unknown = float(np.log(1 + self.n_forms) + 1)
        self._names = kb.table("names").column("text")

    @property
    def n_forms(self) -> int:
        """How many different forms the names have."""
        return len(self._weights.inverse_norm)

    @classmethod
    def build(
        cls,
        kb: KnowledgeBase,
        config: LexicalConfig | None = None,
        progress: Progress | None = None,
    ) -> LexicalIndex:
        """Make the index of a store in memory."""
        config, progress = config or LexicalConfig(), progress or Progress(enabled=False)
        return cls(kb, config, *build_parts(kb, config, progress))

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the index to a folder."""
        with new_folder(folder, overwrite=overwrite) as work:
            for name, array in self._parts.arrays().items():
                np.save(work / f"{name}.npy", array)
            if self._rewording is not None:
                self._rewording.save(work)
            content = {
                "config": asdict(self.config),
                "store": store_fingerprint(self.kb),
                "n_forms": self.n_forms,
                "n_names": len(self._parts.rows),
                "files": file_sizes(work),
            }
            LEXICAL_INDEX.write(work, content)

    @classmethod
    def open(cls, folder: Path, kb: KnowledgeBase) -> LexicalIndex:
        """Open an index that was made from this store."""
        manifest = LEXICAL_INDEX.read(folder)
        if manifest["store"] != store_fingerprint(kb):
            raise StoreError(
                f"{folder}: was made from another store than {kb.folder}; "
                "run `biograft index` again"
            )
        LEXICAL_INDEX.check_files(folder, manifest)
        try:
            parts = Parts.load(folder, kb.n_names)
            config = from_mapping(LexicalConfig, manifest["config"])
            n_forms = len(parts.weights.inverse_norm)
            rewording = Rewording.load(folder, n_forms) if config.reword else None
        except (OSError, ValueError) as error:
            raise LEXICAL_INDEX.damaged(folder, error) from error
        return cls(kb, config, parts, rewording)

    @staticmethod
    def config_of(folder: Path) -> LexicalConfig:
        """Read what an index was made with, whatever its store."""
        return from_mapping(LexicalConfig, LEXICAL_INDEX.read(folder)["config"])

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k nearest names of each text, exactly."""
        if k < 1:
            raise ConfigError(f"k: expected at least 1, found {k}")
        distinct = list(dict.fromkeys(text[:MAX_LENGTH] for text in texts))
        forms = [self._steps(text) for text in distinct]
        parts = [forms[a : a + _CHUNK] for a in range(0, len(forms), _CHUNK)]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            found = list(pool.map(lambda part: self._search_forms(part, k), parts))
        if not found:
            return NameHits(np.full((0, k), -1, np.int64), np.zeros((0, k), np.float32))
        hits = NameHits(*(np.concatenate(side) for side in zip(*found, strict=True)))
        self._prefer_equal(distinct, forms, hits)
        places = {text: place for place, text in enumerate(distinct)}
        order = np.array([places[text[:MAX_LENGTH]] for text in texts])
        return NameHits(hits.rows[order], hits.scores[order])

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score names of one's own choice for each text: (texts, names), as a search would."""
        forms = [self._steps(text[:MAX_LENGTH]) for text in texts]
        queries, known = join_texts(forms), rows >= 0
        places = np.where(known, self._form_of_row[rows], -1)
        cosines = score_texts(
            queries, self._vocabulary, self._weights, self._unknown, places.astype(np.int64)
        )
        scores = np.where(places >= 0, cosines * np.float32(SIMILAR), -np.inf).astype(np.float32)
        for query, others, their_scores in self._reworded(forms):
            for other, score in zip(others.tolist(), their_scores.tolist(), strict=True):
                same = places[query] == other
                scores[query, same] = np.maximum(scores[query, same], np.float32(score))
        for query, column in zip(*np.nonzero(scores > SIMILAR * _EQUAL), strict=True):
            name = self._names[int(rows[query, column])].as_py()
            scores[query, column] = self._equality(texts[query], forms[query], name)
        return scores

    def _equality(self, text: str, form: str, name: str) -> float:
        """Score a name whose letters are those of the text: written alike, of one form, or not."""
        if name.casefold() == text.casefold():
            return EXACT
        return NORMALISED if self._steps(name) == form else SIMILAR

    @cached_property
    def _form_of_row(self) -> npt.NDArray[np.int64]:
        forms = np.full(len(self._names) + 1, -1, np.int64)
        counts = np.diff(self._parts.row_starts)
        forms[self._parts.rows] = np.repeat(np.arange(self.n_forms), counts)
        return forms

    def _search_forms(self, forms: list[str], k: int) -> NameHits:
        found, cosines = search_texts(
            join_texts(forms), self._vocabulary, self._weights, self._unknown, k
        )
        scores = cosines * np.float32(SIMILAR)
        for query, others, their_scores in self._reworded(forms):
            together = np.append(found[query], others)
            scored = np.append(scores[query], their_scores)
            order = np.lexsort((self._weights.ranks[together], -scored))
            # of a form that both ways found, the better place counts
            _, first = np.unique(together[order], return_index=True)
            order = order[np.sort(first)][:k]
            kept = np.isfinite(scored[order])
            found[query] = -1
            scores[query] = -np.inf
            found[query, : kept.sum()] = together[order][kept]
            scores[query, : kept.sum()] = scored[order][kept]
        return self._to_rows(found, scores)

    def _reworded(self, forms: list[str]) -> Iterator[tuple[int, Rows, Scores]]:
        """Give what is found in other words: place of the query, forms, scores."""
        if self._rewording is None:
            return
        queries, found, shares = self._rewording.find(forms)
        scores = np.minimum(_REWORDED + _BY_SHARE * np.sqrt(shares), _REWORDED_MOST)
        starts = np.flatnonzero(np.diff(queries, prepend=-1))  # queries ascend
        for start, end in itertools.pairwise([*starts.tolist(), len(queries)]):
            yield int(queries[start]), found[start:end], scores[start:end].astype(np.float32)

    def _to_rows(self, found: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]) -> NameHits:
        """Put the names of each form in its place, and keep as many as were asked for."""
        n_queries, k = found.shape
        starts = self._parts.row_starts
        hit = found >= 0
        if not hit.any():  # of an empty store too, which has no form to be safe with
            return NameHits(found, scores)
        safe = np.where(hit, found, 0)
        counts = np.where(hit, starts[safe + 1] - starts[safe], 0)  # (queries, k)
        first = np.cumsum(counts, axis=1) - counts
        counts = np.clip(k - first, 0, counts)
        flat = counts.ravel()
        inside = np.arange(flat.sum()) - np.repeat(np.cumsum(flat) - flat, flat)
        query = np.repeat(np.repeat(np.arange(n_queries), k), flat)
        column = np.repeat(first.ravel(), flat) + inside
        rows = np.full((n_queries, k), -1, np.int64)
        out = np.full((n_queries, k), -np.inf, np.float32)
        rows[query, column] = self._parts.rows[np.repeat(starts[safe].ravel(), flat) + inside]
        out[query, column] = np.repeat(scores.ravel(), flat)
        return NameHits(rows, out)

    def _prefer_equal(self, texts: list[str], forms: list[str], hits: NameHits) -> None:
        """Put first, in place, names written like the text, then names of the same form."""
        equal = hits.scores > SIMILAR * _EQUAL
        for query in np.flatnonzero(equal[:, 0]):
            n = int(equal[query].sum())
            for column in range(n):
                name = self._names[int(hits.rows[query, column])].as_py()
                hits.scores[query, column] = self._equality(texts[query], forms[query], name)
            order = np.lexsort((hits.rows[query, :n], -hits.scores[query, :n]))
            hits.rows[query, :n] = hits.rows[query, order]
            hits.scores[query, :n] = hits.scores[query, order]
