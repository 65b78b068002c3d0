"""The lexical index of a store: exact and normalised look-up, other words, nearest by n-grams.

A *form* is a name after the normalising steps; names that share a form share its place. On disk
an index is a folder of numpy arrays, memory-mapped when opened, and ``manifest.json``.

==================  =========================================================================
``keys, numbers``   open-addressed table of n-grams
``postings``        forms of each n-gram; ``posting_starts`` says where each n-gram's begin
``grams``           n-grams of each form; ``gram_ends`` says where each form's end
``rarity``          inverse document frequency of each n-gram
``inverse_norm``    one over the length of each form's vector; forms stand in order of length
``ranks``           the order in which forms are met in the store, which decides between equals
``block_starts``    blocks of forms; ``shortest`` and ``longest`` bound the scores of each
``rows``            rows of the store's names of each form; ``row_starts`` says where they begin
``exchanges``       which words stand for which others; ``bag_keys``, ``bag_forms``: forms by words
==================  =========================================================================
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import NameHits, Rows, Scores
from biograft.linking.lexical.building import MAX_LENGTH, LexicalConfig, Parts, build_parts
from biograft.linking.lexical.ngrams import join_texts
from biograft.linking.lexical.retrieval import score_texts, search_texts
from biograft.linking.lexical.rewording import Rewording
from biograft.linking.provenance import store_fingerprint
from biograft.linking.steps import Steps
from biograft.manifests import Kind, file_sizes
from biograft.progress import Progress
from biograft.runs import new_folder

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
