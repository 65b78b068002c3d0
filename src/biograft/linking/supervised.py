"""Trained rankers: a small network scores candidate concepts by their features.

The features are scores of the generators, overlap of words, and counts in the training mentions.
:class:`MentionMemory` counts which concepts a text was linked to in the training mentions, with
one fold left out, so that a training mention does not see its own answer.

The ranker runs on numpy; torch is only needed to train it
(:mod:`biograft.training.linkers.supervised`).
"""

from __future__ import annotations

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import erf, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from biograft.arrays import Flags, Float32s, Ints
from biograft.artifacts import ArtifactKind, open_array, save_array
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Candidate, Context, Rows
from biograft.linking.fusion import CandidateBuilder, CandidatePool
from biograft.linking.lexical.index import NORMALISED
from biograft.linking.normalisation import DEFAULT_STEPS
from biograft.linking.trained_configs import RankerConfig

CountArray = Float32s
ALL = -1
"""Leave out no fold: every document counts."""
KNOWN = -2
"""The fold of mentions that are counted but not trained on; it is never left out."""


def assign_folds(documents: Iterable[str], n: int, seed: int) -> dict[str, int]:
    """Assign each document to one of n folds, deterministically for a seed.

    Args:
        documents: Names of documents; equal ones are one.
        n: Number of folds.
        seed: Seed of the shuffling.
    """
    names = sorted(set(documents))
    order = np.random.default_rng(seed).permutation(len(names))
    return {name: int(position) % n for name, position in zip(names, order, strict=True)}


def _key(text: str) -> str:
    """Normalise whitespace and case, as counts and names of a store do."""
    return " ".join(text.split()).casefold()


def _known(counts: Mapping[str, int], kb: KnowledgeBase) -> Iterator[tuple[int, int]]:
    """Yield the row and count of each concept that the store still has."""
    for identifier, n in counts.items():
        if (row := kb.find_row(identifier)) is not None:
            yield row, n


class MentionMemory:
    """Counts of texts and concepts in the training mentions, with one fold left out."""

    def __init__(self, n_concepts: int) -> None:
        self._texts: defaultdict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
        self._totals: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._n_concepts = n_concepts
        self._of_concept: dict[int, CountArray] = {}

    def add(self, text: str, concepts: Iterable[int], fold: int = 0) -> None:
        """Count a mention: a text linked to concepts in a document of a fold.

        Args:
            text: Text of the mention.
            concepts: Rows of its concepts.
            fold: Fold of its document.
        """
        key = _key(text)
        self._totals[key][fold] += 1
        of_fold = self._of_concept.setdefault(fold, np.zeros(self._n_concepts, np.float32))
        for concept in concepts:
            self._texts[key][concept, fold] += 1
            of_fold[concept] += 1

    def folds_of(self, text: str, concept: int) -> frozenset[int]:
        """Return the folds in which a text was linked to a concept.

        Args:
            text: Text of mentions.
            concept: Row of the concept.
        """
        counts: Mapping[tuple[int, int], int] = self._texts.get(_key(text), {})
        return frozenset(fold for (row, fold), n in counts.items() if row == concept and n)

    def linked(self, text: str, leave_out: int = ALL) -> tuple[dict[int, int], int]:
        """Return the counts of the concepts a text was linked to, and of the text itself.

        Args:
            text: Text of mentions.
            leave_out: Fold whose mentions do not count; default: all count.
        """
        key = _key(text)
        counts: Counter[int] = Counter()
        linked: Mapping[tuple[int, int], int] = self._texts.get(key, {})
        for (concept, fold), n in linked.items():
            if fold != leave_out:
                counts[concept] += n
        totals: Mapping[int, int] = self._totals.get(key, {})
        return counts, sum(n for fold, n in totals.items() if fold != leave_out)

    def frequency(self, leave_out: int = ALL) -> CountArray:
        """Return the number of mentions of each concept."""
        total = np.zeros(self._n_concepts, np.float32)
        for fold, counts in self._of_concept.items():
            if fold != leave_out:
                total += counts
        return total

    def to_json(self, kb: KnowledgeBase) -> dict[str, Any]:
        """Return all counts as plain values, concepts by id; folds are summed up."""
        texts = {}
        for key in sorted(self._totals):
            counts, total = self.linked(key)
            texts[key] = [total, {kb.id_at(row): n for row, n in sorted(counts.items())}]
        frequency = self.frequency().tolist()
        concepts = {kb.id_at(row): int(n) for row, n in enumerate(frequency) if n}
        return {"texts": texts, "concepts": concepts}

    @classmethod
    def from_json(cls, values: Mapping[str, Any], kb: KnowledgeBase) -> MentionMemory:
        """Read counts back; concepts that the store no longer has are dropped.

        Args:
            values: What ``to_json`` returned.
            kb: Knowledge base of the concepts.
        """
        memory = cls(len(kb))
        of_concept = memory._of_concept.setdefault(0, np.zeros(len(kb), np.float32))
        for key, (total, concepts) in values["texts"].items():
            memory._totals[key][0] = total
            for row, n in _known(concepts, kb):
                memory._texts[key][row, 0] = n
        for row, n in _known(values["concepts"], kb):
            of_concept[row] = n
        return memory


_VOTE = np.float32(0.05)
"""Temperature of the softmax over the names of a concept, the usual one of cosines."""


class CandidateFeatures(NamedTuple):
    """The features of the candidate concepts of one text."""

    concepts: Ints  # (candidates,): rows of concepts, ascending
    features: Float32s  # (candidates, features)
    best: Ints  # (candidates,): column of the best name in the candidate pool


def feature_names(generators: Sequence[str]) -> list[str]:
    """Return the names of the features, in order."""
    kinds = ("best", "second", "below", "first", "together")
    names = [f"{generator} {kind}" for generator in generators for kind in kinds]
    names += [f"{a} of best {b}" for a in generators for b in generators if a != b]
    names += ["exact", "normalised", "words shared", "fraction of training", "seen in training"]
    return [*names, "linked in training", "meant in training", "number of names"]


class FeatureExtractor:
    """Computes the features of a candidate pool for one store and one memory.

    Args:
        kb: Knowledge base of the candidates.
        memory: Counts of the training mentions.
    """

    def __init__(self, kb: KnowledgeBase, memory: MentionMemory) -> None:
        self._concepts: Ints = kb.numbers("names", "concept").astype(np.int64)
        self._names = kb.texts("names", "text")
        self._n_names = np.bincount(self._concepts, minlength=len(kb)).astype(np.float32)
        self._memory = memory
        self._frequency = functools.cache(memory.frequency)
        self._words_of = functools.cache(lambda row: _words(self._names[row]))

    def concepts_of(self, rows: Ints) -> Ints:
        """Return the concepts of names."""
        concepts: Ints = self._concepts[rows]
        return concepts

    def compute(
        self,
        text: str,
        pool: CandidatePool,
        index: int,
        *,
        leave_out: int = ALL,
        excluded: Flags | None = None,
    ) -> CandidateFeatures:
        """Compute the features of the candidates of text ``index``, without excluded names.

        Args:
            text: The mention.
            pool: Candidates of several texts.
            index: Index of the mention among them.
            leave_out: Fold whose training mentions do not count; default: all count.
            excluded: Candidate names, by column, that are left out.
        """
        rows = pool.rows[index]
        included = rows >= 0 if excluded is None else (rows >= 0) & ~excluded
        columns = np.flatnonzero(included)
        of_name = self._concepts[rows[columns]]
        order = np.argsort(of_name, kind="stable")
        columns, of_name = columns[order], of_name[order]
        concepts, starts = np.unique(of_name, return_index=True)
        scores = pool.scores[:, index, columns]  # (generators, names)
        scores = np.where(np.isfinite(scores), scores, 0).astype(np.float32)
        if not len(concepts):
            width = len(feature_names(pool.generators))
            return CandidateFeatures(concepts, np.zeros((0, width), np.float32), concepts)
        parts = self._of_scores(scores, starts)
        parts += self._of_text(text, rows[columns], scores, starts)
        parts += self._of_memory(text, concepts, leave_out)
        best = columns[_first_best(scores.sum(axis=0), starts)]
        return CandidateFeatures(concepts, np.stack(parts, axis=1).astype(np.float32), best)

    def _of_scores(self, scores: Float32s, starts: Ints) -> list[Float32s]:
        parts: list[Float32s] = []
        for own in scores:  # of one generator
            best = np.maximum.reduceat(own, starts)
            first = _first_best(own, starts)
            others = own.copy()
            others[first] = 0
            second = np.maximum.reduceat(others, starts)
            below = best - best.max()
            parts += [best, second, below, (below > -1e-6).astype(np.float32)]
            votes = np.add.reduceat(np.exp((own - 1) / _VOTE), starts)
            parts.append((_VOTE * np.log(votes) + 1).astype(np.float32))
        for a, own in enumerate(scores):
            for b, other in enumerate(scores):
                if a != b:
                    parts.append(own[_first_best(other, starts)])
        return parts

    def _of_text(self, text: str, rows: Ints, scores: Float32s, starts: Ints) -> list[Float32s]:
        """Compare the names with the text itself; the first generator is the lexical one."""
        folded, words = text.casefold(), _words(text)
        equal = np.zeros(len(rows), np.float32)
        normalised = (scores[0] >= NORMALISED - 1e-4).astype(np.float32)
        for column in np.flatnonzero(normalised).tolist():
            equal[column] = self._names[int(rows[column])].casefold() == folded
        shared = np.zeros(len(rows), np.float32)
        for column, row in enumerate(rows.tolist()):
            own = self._words_of(row)
            shared[column] = len(words & own) / max(len(words | own), 1)
        return [np.maximum.reduceat(values, starts) for values in (equal, normalised, shared)]

    def _of_memory(self, text: str, concepts: Ints, leave_out: int) -> list[Float32s]:
        counts, total = self._memory.linked(text, leave_out)
        linked = np.array([counts.get(int(c), 0) for c in concepts], np.float32)
        seen = np.full(len(concepts), float(total > 0), np.float32)
        return [
            linked / np.float32(max(total, 1)),
            seen,
            np.log1p(linked),
            np.log1p(self._frequency(leave_out)[concepts]),
            np.log1p(self._n_names[concepts]),
        ]


def _first_best(values: Float32s, starts: Ints) -> Ints:
    """Return the index of the first maximum of each group."""
    ends = np.append(starts[1:], len(values))
    group = np.repeat(np.arange(len(starts)), ends - starts)
    order = np.lexsort((np.arange(len(values)), -values, group))
    return order[starts]


def _words(text: str) -> frozenset[str]:
    return frozenset(DEFAULT_STEPS(text).split())


_AXES = (1, 1, 3, 2, 2)
"""The number of axes of each array of a network."""
_erf = np.vectorize(erf, otypes=[np.float64])


@dataclass(frozen=True)
class Network:
    """An ensemble of networks with one hidden layer, whose scores are averaged."""

    mean: Float32s  # (features,)
    """Mean of each feature in training."""
    scale: Float32s  # (features,)
    """Scale of each feature in training."""
    inner: Float32s  # (networks, hidden, features)
    """Weights of the hidden layers, (networks, hidden, features)."""
    inner_bias: Float32s  # (networks, hidden)
    """Biases of the hidden layers."""
    outer: Float32s  # (networks, hidden)
    """Weights of the outputs."""

    def score(self, features: Float32s) -> Float32s:
        """Score candidates: (candidates, features) to (candidates,)."""
        inputs = (features - self.mean) / self.scale
        states = np.einsum("cf,nhf->nch", inputs, self.inner) + self.inner_bias[:, None]
        active = states * 0.5 * (1 + _erf(states / sqrt(2)))  # GELU
        scores: Float32s = np.einsum("nch,nh->c", active, self.outer) / len(self.outer)
        return scores

    def save(self, folder: Path) -> None:
        """Write the weights as numpy arrays."""
        for name, array in self.__dict__.items():
            save_array(folder / f"{name}.npy", array)

    @classmethod
    def load(cls, folder: Path, n_features: int) -> Network:
        """Load the weights, refusing shapes that are inconsistent.

        Args:
            folder: Folder of the ranker.
            n_features: Number of features that it must read.
        """
        try:
            arrays = {
                name: open_array(folder / f"{name}.npy", np.float32, n_axes=n_axes)
                for name, n_axes in zip(cls.__annotations__, _AXES, strict=True)
            }
        except ValueError as error:
            raise StoreError(f"{folder}: damaged ({error}); train the linker again") from error
        network = cls(**arrays)
        n, hidden = network.inner_bias.shape
        expected = [(n_features,)] * 2 + [(n, hidden, n_features), (n, hidden), (n, hidden)]
        if not n or [array.shape for array in arrays.values()] != expected:
            raise StoreError(f"{folder}: damaged: weights of wrong shapes; train the linker again")
        # an infinite scale disables a feature that was constant in training
        finite = all(np.isfinite(a).all() for name, a in arrays.items() if name != "scale")
        if not finite or not (network.scale > 0).all():
            raise StoreError(
                f"{folder}: its weights hold NaN, infinity or a scale of 0; train the linker again"
            )
        return network


MEMORY = "memory.json"
RANKER = ArtifactKind(
    format="biograft-ranker",
    version=1,
    called="trained ranker",
    remedy="train the linker again",
)


class TrainedRanker:
    """Ranks the concepts of a candidate pool by a network trained on labelled mentions.

    Args:
        kb: Knowledge base of the candidates.
        network: Scores the features of a candidate.
        memory: Counts of the training mentions.
        generators: Names of the generators whose candidates it ranks, in their order.
    """

    name = "ranker"
    uses_context = False

    def __init__(
        self,
        kb: KnowledgeBase,
        network: Network,
        memory: MentionMemory,
        generators: Sequence[str],
    ) -> None:
        self.kb, self.network, self.memory = kb, network, memory
        self.generators = tuple(generators)
        self._features = FeatureExtractor(kb, memory)
        self._maker = CandidateBuilder(kb)

    def rank_candidates(
        self, texts: Sequence[str], pool: CandidatePool, contexts: Sequence[Context]
    ) -> list[list[Candidate]]:
        """Return one candidate per concept, best first; ties go to the lower concept.

        Args:
            texts: Mentions.
            pool: Names that a search found for each of them.
            contexts: Text around each of them; unused.
        """
        if pool.generators != self.generators:
            raise StoreError(
                f"the trained linker ranks what {' and '.join(self.generators)} find, the index "
                f"has {' and '.join(pool.generators)}; use the kind of index it was trained "
                "with"
            )
        scores = np.full(pool.rows.shape, -np.inf, np.float32)
        for index, text in enumerate(texts):
            candidates = self._features.compute(text, pool, index)
            scores[index] = self._name_scores(pool.rows[index], candidates)
        return self._maker.by_concept(pool, scores, pool.rows.shape[1])

    def _name_scores(self, rows: Rows, candidates: CandidateFeatures) -> Float32s:
        """Give every name the score of its concept, and the concept's best name a little more."""
        scores = np.full(len(rows), -np.inf, np.float32)
        if len(candidates.concepts):
            of_concept = self.network.score(candidates.features)
            valid = rows >= 0
            concept = np.searchsorted(candidates.concepts, self._features.concepts_of(rows[valid]))
            scores[valid] = of_concept[concept] - np.float32(1e-4)
            scores[candidates.best] = of_concept
        return scores

    def save(
        self, folder: Path, config: RankerConfig, report: dict[str, Any], *, overwrite: bool = False
    ) -> None:
        """Write the ranker to a folder.

        Args:
            folder: Folder to write.
            config: Settings that it was trained with.
            report: Results of the training, kept in the manifest.
            overwrite: Replace a ranker that exists.
        """
        content = {
            "store": store_fingerprint(self.kb),
            "config": asdict(config),
            "generators": list(self.generators),
            "features": feature_names(self.generators),
            "report": report,
        }
        with RANKER.new(folder, content, overwrite=overwrite) as work:
            self.network.save(work)
            memory = json.dumps(self.memory.to_json(self.kb), ensure_ascii=False)
            (work / MEMORY).write_text(memory, encoding="utf-8")


def load_trained_ranker(folder: Path, kb: KnowledgeBase) -> TrainedRanker:
    """Load a trained ranker.

    Args:
        folder: Its folder.
        kb: A store, which need not be the one it was trained with.

    Returns:
        The ranker.

    Raises:
        StoreError: The folder is damaged, of another format, or trained with other features.
    """
    manifest = RANKER.read(folder)
    try:
        generators = [str(name) for name in manifest["generators"]]
        features = list(manifest["features"])
    except (KeyError, TypeError) as error:
        raise RANKER.damaged(folder / RANKER.file, repr(error)) from error
    expected, path = feature_names(generators), folder / MEMORY
    if features != expected:
        raise StoreError(f"{folder}: trained with other features; train the linker again")
    network = Network.load(folder, len(expected))
    try:
        memory = MentionMemory.from_json(json.loads(path.read_bytes()), kb)
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise RANKER.damaged(path, repr(error)) from error
    RANKER.check_files(folder, manifest, hashes=True)
    return TrainedRanker(kb, network, memory, generators)
