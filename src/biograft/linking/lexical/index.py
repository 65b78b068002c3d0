"""The lexical index: finds the names of a store by character n-grams and synonym substitution.

The names are normalised to forms; equal forms are indexed once. Scores: 1 for the text itself but
for case, 0.99 for an equal form, below that the TF-IDF cosine of the n-grams times 0.98, or the
score of a synonym substitution if it is higher.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from biograft.arrays import Array, Float32s, Ints, Uints
from biograft.artifacts import (
    ArraySpec,
    ArtifactKind,
    check_range,
    open_arrays,
    save_arrays,
)
from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import NameHits, Rows, Scores, names_in
from biograft.linking.lexical.ngrams import (
    ROUNDING,
    NgramVocabulary,
    Weights,
    build_vocabulary,
    check_vocabulary,
    encode_texts,
    join_texts,
    weigh,
)
from biograft.linking.lexical.search import score_texts, search_texts
from biograft.linking.lexical.spellings import other_spellings
from biograft.linking.lexical.synonyms import WordSynonyms
from biograft.linking.normalisation import DEFAULT_STEPS, Steps
from biograft.progress import Progress

MAX_LENGTH = 500
_ADVANCE = 10_000
"""Texts are truncated to this number of characters; no name is nearly as long."""
_ARRAYS = {
    "keys": ArraySpec("uint64", ("slots",)),
    "numbers": ArraySpec("uint32", ("slots",)),
    "grams": ArraySpec("uint32", ("occurrences",)),
    "gram_ends": ArraySpec("int64", ("texts + 1",), ends="occurrences", outer=True),
    "rarity": ArraySpec("float32", ("n-grams",), low=1, high=100),  # 0 would be that of none
    "inverse_norm": ArraySpec("float32", ("texts",)),
    "ranks": ArraySpec("uint32", ("texts",)),
    "block_starts": ArraySpec("int64", ("blocks + 1",), ends="texts"),
    "largest": ArraySpec("float32", ("n-grams",), low=0, high=1 + ROUNDING),
    "table_rows": ArraySpec("int64", ("n-grams",), low=-1, below="frequent"),
    "table": ArraySpec("uint8", ("frequent", "blocks")),
    "list_starts": ArraySpec("int64", ("n-grams + 1",), ends="listed"),
    "list_blocks": ArraySpec("uint32", ("listed",)),
    "list_impacts": ArraySpec("uint8", ("listed",)),
    "rows": ArraySpec("uint32", ("rows",)),
    "row_starts": ArraySpec("int64", ("texts + 1",), ends="rows", outer=True),
}
"""The arrays of an index; what is as large as the texts is checked where a search reads it."""


@dataclass(frozen=True, kw_only=True)
class LexicalConfig:
    """Settings of normalisation, and of the names that are indexed."""

    steps: str = str(DEFAULT_STEPS)
    """Steps of normalisation, in order."""
    languages: tuple[str, ...] = ()
    """Languages of the names to index; empty: all."""
    synonym_substitution: bool = True
    """Also look up variants of a text with words replaced by synonyms learned from the store."""

    def __post_init__(self) -> None:
        Steps.parse(self.steps)


@dataclass(frozen=True)
class IndexArrays:
    """The arrays of a lexical index, as stored on disk."""

    vocabulary: NgramVocabulary
    weights: Weights
    rows: Uints
    row_starts: Ints

    def arrays(self) -> dict[str, Array]:
        """Return all arrays by name."""
        rows = {"rows": self.rows, "row_starts": self.row_starts}
        return self.vocabulary._asdict() | self.weights._asdict() | rows

    @classmethod
    def load(cls, folder: Path, n_names: int) -> IndexArrays:
        """Memory-map the arrays of a folder.

        Args:
            folder: Folder of the index.
            n_names: Number of names of the store; arrays that do not fit raise a ``ValueError``.
        """
        # copy-on-write, though nothing is written: compiled loops need writable arrays
        arrays = open_arrays(folder, _ARRAYS, mode="c")
        vocabulary = NgramVocabulary(arrays["keys"], arrays["numbers"])
        check_vocabulary(vocabulary, len(arrays["rarity"]))
        weights = Weights(**{name: arrays[name] for name in Weights._fields})
        rows = arrays["rows"]
        if len(rows) > n_names:
            raise ValueError(f"rows: expected at most {n_names}, found {len(rows)}")
        return cls(vocabulary, weights, rows, arrays["row_starts"])

    def find_rows(self, forms: Ints, n_names: int) -> tuple[Ints, Ints]:
        """Return the name rows of some forms, one form after the other, and their counts.

        Args:
            forms: Numbers of forms.
            n_names: Number of names of the store.
        """
        first = self.row_starts[forms]
        counts = self.row_starts[forms + 1] - first
        check_range("row_starts", counts, 0, len(self.rows))
        check_range("row_starts", first, 0, len(self.rows))
        check_range("row_starts", first + counts, 0, len(self.rows))
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self.rows[np.repeat(first, counts) + offsets].astype(np.int64)
        check_range("rows", rows, 0, n_names - 1)
        return rows, counts


def build_arrays(
    kb: KnowledgeBase, config: LexicalConfig, progress: Progress
) -> tuple[IndexArrays, WordSynonyms | None]:
    """Build the arrays, and learn the synonyms of words.

    Args:
        kb: Knowledge base of the names.
        config: Settings of the index.
        progress: Progress of building.
    """
    progress.start("normalising names")
    forms, of_row = _normalise_names(kb, config, progress)
    progress.start("counting n-grams")
    texts = join_texts(forms)
    vocabulary, n_grams, total = build_vocabulary(texts)
    grams, ends = encode_texts(texts, vocabulary, total)
    del texts  # with millions of names these hold a gigabyte
    progress.start("inverting")
    weights = weigh(grams, ends, n_grams)
    del grams, ends
    new_ids = np.full(len(forms) + 1, -1, np.int64)  # the last is for excluded names
    new_ids[weights.ranks] = np.arange(len(forms))
    of_row = new_ids[of_row]
    substitution = None
    if config.synonym_substitution:
        progress.start("learning words")
        ordered = [forms[form] for form in weights.ranks.tolist()]
        concepts = kb.numbers("names", "concept").astype(np.int64)
        substitution = WordSynonyms.learn(ordered, of_row, concepts)
    progress.finish()
    rows = np.flatnonzero(of_row >= 0)
    order = np.argsort(of_row[rows], kind="stable")
    starts = np.zeros(len(forms) + 1, np.int64)
    np.cumsum(np.bincount(of_row[rows], minlength=len(forms)), out=starts[1:])
    arrays = IndexArrays(vocabulary, weights, rows[order].astype(np.uint32), starts)
    return arrays, substitution


def _normalise_names(
    kb: KnowledgeBase, config: LexicalConfig, progress: Progress
) -> tuple[list[str], Ints]:
    """Return the distinct forms of the names, and the form of each name (-1: excluded)."""
    steps, n_names = Steps.parse(config.steps), kb.n_names
    included = names_in(kb, config.languages).tolist()
    form_ids: dict[str, int] = {}
    of_row = np.full(n_names, -1, np.int64)
    for row, text in enumerate(kb.texts("names", "text")):
        if included[row]:
            of_row[row] = form_ids.setdefault(steps(text)[:MAX_LENGTH], len(form_ids))
        if (row + 1) % _ADVANCE == 0:
            progress.advance(_ADVANCE, row / n_names)
    return list(form_ids), of_row


LEXICAL_INDEX = ArtifactKind(
    format="biograft-lexical",
    version=4,
    called="lexical index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("config", "store", "files"),
)

EXACT, NORMALISED, SIMILAR = 1.0, 0.99, 0.98
"""Scores of a name equal to the text but for case, of an equal form, and the limit of others."""
_SUBSTITUTED, _BY_RATIO, _SUBSTITUTED_MAX = 0.85, 0.13, 0.975
"""Score of a synonym substitution: the first plus the second times the root of the ratio, at most
the third. Chosen on the dev sets of NCBI disease and BC5CDR (see the lab log)."""

_RESPELT = 10
"""Forms found by each other spelling."""
_EQUAL = 0.9999
"""A form with a higher cosine may be equal to that of the text."""
_FEW, _CHUNK = 32, 256
"""The least texts that are worth another core, and the most that are searched together."""


class LexicalIndex:
    """Finds the names of a store that are most similar to a text by their characters.

    Args:
        kb: Knowledge base of the names.
        config: Settings that it was built with.
        arrays: Arrays of the index.
        substitution: Synonyms of words, if they were learned.
        folder: Folder it was opened from, if any.
    """

    name = "lexical"

    def __init__(
        self,
        kb: KnowledgeBase,
        config: LexicalConfig,
        arrays: IndexArrays,
        substitution: WordSynonyms | None = None,
        folder: Path | None = None,
    ) -> None:
        self._folder = folder
        self.kb, self.config, self._substitution = kb, config, substitution
        self._arrays = arrays
        self._vocabulary, self._weights = arrays.vocabulary, arrays.weights
        self._steps = Steps.parse(config.steps)
        self._unknown = float(np.log(1 + self.n_forms) + 1)

    @property
    def n_forms(self) -> int:
        """Number of distinct forms of the names."""
        return len(self._weights.inverse_norm)

    @classmethod
    def build(
        cls,
        kb: KnowledgeBase,
        config: LexicalConfig | None = None,
        progress: Progress | None = None,
    ) -> LexicalIndex:
        """Build the index of a store in memory.

        Args:
            kb: Knowledge base of the names.
            config: Settings of the index.
            progress: Progress of building.
        """
        config, progress = config or LexicalConfig(), progress or Progress(enabled=False)
        return cls(kb, config, *build_arrays(kb, config, progress))

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the index to a folder.

        Args:
            folder: Folder to write.
            overwrite: Replace a folder that exists.
        """
        content = {
            "config": asdict(self.config),
            "store": store_fingerprint(self.kb),
            "n_forms": self.n_forms,
            "n_names": len(self._arrays.rows),
        }
        with LEXICAL_INDEX.new(folder, content, overwrite=overwrite) as work:
            save_arrays(work, self._arrays.arrays())
            if self._substitution is not None:
                self._substitution.save(work)

    @classmethod
    def open(cls, folder: Path, kb: KnowledgeBase) -> LexicalIndex:
        """Open an index that was built from this store.

        Args:
            folder: Folder of the index.
            kb: Knowledge base that it was built from.
        """
        manifest = LEXICAL_INDEX.read(folder)
        if manifest["store"] != store_fingerprint(kb):
            raise StoreError(
                f"{folder}: was built from another store than {kb.folder}; "
                "run `biograft index` again"
            )
        LEXICAL_INDEX.check_files(folder, manifest)
        try:
            arrays = IndexArrays.load(folder, kb.n_names)
            config = from_mapping(LexicalConfig, manifest["config"])
            n_forms = len(arrays.weights.inverse_norm)
            substitution = (
                WordSynonyms.load(folder, n_forms) if config.synonym_substitution else None
            )
        except (OSError, ValueError) as error:
            raise LEXICAL_INDEX.damaged(folder, error) from error
        return cls(kb, config, arrays, substitution, folder)

    @staticmethod
    def config_of(folder: Path) -> LexicalConfig:
        """Read the configuration of an index without its store."""
        return from_mapping(LexicalConfig, LEXICAL_INDEX.read(folder)["config"])

    def search(self, texts: Sequence[str], k: int) -> NameHits:
        """Find the k nearest names of each text, exactly.

        Args:
            texts: Texts to search for.
            k: Number of names of each.
        """
        if k < 1:
            raise ConfigError(f"k: expected at least 1, found {k}")
        with self._checked():
            return self._search_texts(texts, k)

    def _search_texts(self, texts: Sequence[str], k: int) -> NameHits:
        distinct = list(dict.fromkeys(text[:MAX_LENGTH] for text in texts))
        forms = [self._steps(text) for text in distinct]
        if not forms:
            return NameHits(np.full((0, k), -1, np.int64), np.zeros((0, k), np.float32))
        n_cores = os.cpu_count() or 1
        size = min(max(-(-len(forms) // n_cores), _FEW), _CHUNK)
        chunks = [forms[a : a + size] for a in range(0, len(forms), size)]
        if len(chunks) == 1:
            found = [self._nearest(k, forms)]
        else:
            with ThreadPoolExecutor(n_cores) as pool:
                found = list(pool.map(partial(self._nearest, k), chunks))
        all_hits = [self._with_substituted(*each, k) for each in zip(chunks, found, strict=True)]
        hits = NameHits(*(np.concatenate(arrays) for arrays in zip(*all_hits, strict=True)))
        self._prefer_equal(distinct, forms, hits)
        index_of = {text: i for i, text in enumerate(distinct)}
        order = np.array([index_of[text[:MAX_LENGTH]] for text in texts])
        return NameHits(hits.rows[order], hits.scores[order])

    def score(self, texts: Sequence[str], rows: Rows) -> Scores:
        """Score the given names for each text, as a search would: (texts, names).

        Args:
            texts: The texts.
            rows: Rows of names for each text, -1 for none.

        Returns:
            The scores, -inf for a name that is not indexed.
        """
        with self._checked():
            return self._score_texts(texts, rows)

    def _score_texts(self, texts: Sequence[str], rows: Rows) -> Scores:
        forms = [self._steps(text[:MAX_LENGTH]) for text in texts]
        name_forms = np.where(rows >= 0, self._form_of_row[rows], -1).astype(np.int64)
        cosines = score_texts(
            join_texts(forms), self._vocabulary, self._weights, self._unknown, name_forms
        )
        scores = np.where(name_forms >= 0, cosines * np.float32(SIMILAR), -np.inf)
        scores = scores.astype(np.float32)
        for query, synonyms, synonym_scores in self._find_substituted(forms):
            for synonym, score in zip(synonyms.tolist(), synonym_scores.tolist(), strict=True):
                same = name_forms[query] == synonym
                scores[query, same] = np.maximum(scores[query, same], np.float32(score))
        for query, column in zip(*np.nonzero(scores > SIMILAR * _EQUAL), strict=True):
            name = self.kb.name_texts[int(rows[query, column])]
            scores[query, column] = self._equality(texts[query], forms[query], name)
        return scores

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """Report what a search has read; an index in memory has no file to be damaged."""
        try:
            yield
        except ValueError as error:
            raise LEXICAL_INDEX.damaged(self._folder, error) if self._folder else error from error

    def _equality(self, text: str, form: str, name: str) -> float:
        """Score a name with the n-grams of the text: equal but for case, equal in form, or not."""
        if name.casefold() == text.casefold():
            return EXACT
        return NORMALISED if self._steps(name) == form else SIMILAR

    @cached_property
    def _form_of_row(self) -> Ints:
        forms = np.full(self.kb.n_names + 1, -1, np.int64)
        rows, counts = self._arrays.find_rows(np.arange(self.n_forms), self.kb.n_names)
        forms[rows] = np.repeat(np.arange(self.n_forms), counts)
        return forms

    def _nearest(self, k: int, forms: list[str]) -> tuple[Ints, Scores]:
        queries = join_texts(forms)
        texts, cosines = search_texts(queries, self._vocabulary, self._weights, self._unknown, k)
        return texts, cosines

    def _with_substituted(self, forms: list[str], found: tuple[Ints, Scores], k: int) -> NameHits:
        """Add the names with synonymous words to the nearest ones.

        Args:
            forms: What was searched.
            found: The nearest forms, and their cosines.
            k: Names of each.
        """
        hits, scores = found[0], found[1] * np.float32(SIMILAR)
        for query, synonyms, synonym_scores in self._find_substituted(forms):
            merged = np.append(hits[query], synonyms)
            merged_scores = np.append(scores[query], synonym_scores)
            order = np.lexsort((self._weights.ranks[merged], -merged_scores))
            # a form found both ways keeps its better rank
            _, first = np.unique(merged[order], return_index=True)
            order = order[np.sort(first)][:k]
            order = order[np.isfinite(merged_scores[order])]
            hits[query] = -1
            scores[query] = -np.inf
            hits[query, : len(order)] = merged[order]
            scores[query, : len(order)] = merged_scores[order]
        return self._to_rows(hits, scores)

    def _find_substituted(self, forms: list[str]) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield the hits of other spellings and of synonyms: index of the query, forms, scores."""
        yield from self._find_respelt(forms)
        if self._substitution is None:
            return
        queries, hits, ratios = self._substitution.find(forms)
        scores = np.minimum(_SUBSTITUTED + _BY_RATIO * np.sqrt(ratios), _SUBSTITUTED_MAX)
        starts = np.flatnonzero(np.diff(queries, prepend=-1))  # queries ascend
        for start, end in itertools.pairwise([*starts.tolist(), len(queries)]):
            yield int(queries[start]), hits[start:end], scores[start:end].astype(np.float32)

    def _find_respelt(self, forms: list[str]) -> Iterator[tuple[int, Rows, Scores]]:
        """Yield the hits of Chinese forms with another character, as ``_find_substituted``."""
        spelt = other_spellings(join_texts(forms), self._vocabulary)
        if not spelt:
            return
        hits, cosines = self._nearest(_RESPELT, [other for _, other in spelt])
        for (query, other), found, scores in zip(spelt, hits, cosines, strict=True):
            share = np.float32(SIMILAR * (1 - 1.5 / len(other)))
            yield query, found[found >= 0], scores[found >= 0] * share

    def _to_rows(self, forms: Ints, scores: Float32s) -> NameHits:
        """Replace each form by its names, and keep the first k."""
        query, column = np.nonzero(forms >= 0)  # line by line
        out_rows = np.full(forms.shape, -1, np.int64)
        out = np.full(forms.shape, -np.inf, np.float32)
        rows, counts = self._arrays.find_rows(forms[query, column], self.kb.n_names)
        source = np.repeat(np.arange(len(query)), counts)
        n_before = np.searchsorted(query[source], np.arange(len(forms)))  # names of lines above
        position = np.arange(len(rows)) - n_before[query[source]]
        kept = position < forms.shape[1]
        query, column, position = query[source[kept]], column[source[kept]], position[kept]
        out_rows[query, position] = rows[kept]
        out[query, position] = scores[query, column]
        return NameHits(out_rows, out)

    def _prefer_equal(self, texts: list[str], forms: list[str], hits: NameHits) -> None:
        """Move names equal to the text to the front, then names of an equal form (in place)."""
        equal = hits.scores > SIMILAR * _EQUAL
        for query in np.flatnonzero(equal[:, 0]):
            n = int(equal[query].sum())
            for column in range(n):
                name = self.kb.name_texts[int(hits.rows[query, column])]
                hits.scores[query, column] = self._equality(texts[query], forms[query], name)
            order = np.lexsort((hits.rows[query, :n], -hits.scores[query, :n]))
            hits.rows[query, :n] = hits.rows[query, order]
            hits.scores[query, :n] = hits.scores[query, order]
