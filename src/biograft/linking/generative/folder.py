"""The folder of a generative linker, and the mixing of its scores with those of a search.

The score of a name is ``w * g + (1 - w) * s``. g is the geometric mean of the probabilities of
the name's tokens (0 if the name was not generated), s the score of the search (0 if the name is
not in its candidate pool), and w the weight of generation, which is fitted on held-out mentions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.artifacts import ArtifactKind, describe_files, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Scores
from biograft.linking.fusion import CandidatePool, fuse_scores, normalise_weights
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.names import NAME_TRIE, NameTrie
from biograft.linking.rankers import GENERATIVE_FORMAT
from biograft.models.seq2seq import Seq2SeqModel

GENERATIVE = "generative"
GENERATION_WEIGHTS = tuple(step / 20 for step in range(21))
"""The weights that are tried."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Mixing:
    """The weight of generation beside a search, and the weights of the search's generators."""

    generation_weight: float = 1.0
    rescore: int = 0
    """The first names of the search are scored by the model, this many if not generated."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of the generators of the search; empty means the defaults, for any generators."""

    def __post_init__(self) -> None:
        if not 0 <= self.generation_weight <= 1 or self.rescore < 0:
            raise ValueError(f"expected a weight from 0 to 1 and a rescore of at least 0: {self}")

    def __call__(self, scored: CandidatePool) -> Scores:
        """Compute the final score of each name; generation is the last generator of the pool."""
        generated: Scores = scored.scores[-1]
        if self.generation_weight == 1:
            return generated
        return self.mix(generated, self.search_scores(search_pool(scored)), scored.rows >= 0)

    def mix(self, generated: Scores, searched: Scores, valid: Flags) -> Scores:
        """Compute the weighted mean of two scores of each name."""
        weight = self.generation_weight
        parts = ((weight, generated), (1 - weight, searched))
        total = sum(w * np.where(np.isfinite(s), s, 0) for w, s in parts)
        return np.where(valid, total, -np.inf).astype(np.float32)

    def search_scores(self, pool: CandidatePool) -> Scores:
        """Compute the score of the search for each name."""
        names = pool.generators
        if not names:
            return np.full(pool.rows.shape, -np.inf, np.float32)
        if self.weights and set(names) != set(self.weights):
            raise StoreError(
                "the weight of generation was fitted beside "
                f"{' and '.join(sorted(self.weights))}, the index has "
                f"{' and '.join(sorted(names))}; use the kind of index it was trained with"
            )
        return fuse_scores(pool, normalise_weights(names, self.weights))


def search_pool(scored: CandidatePool) -> CandidatePool:
    """Return a pool without its last generator, which is generation."""
    return CandidatePool(scored.generators[:-1], scored.rows, scored.scores[:-1], scored.ranks[:-1])


class HeldOutScores(NamedTuple):
    """The names of one held-out text: both scores, and which names are correct."""

    query: int
    """The query that the text is a part of; a query is correct if all its parts are."""
    generated: Scores
    searched: Scores
    right: Flags


def fit_weight(held_out: Sequence[HeldOutScores]) -> tuple[float, dict[str, float]]:
    """Choose the weight of generation with the highest accuracy; also return the accuracies.

    Ties go to the higher weight.
    """
    if not held_out:
        raise ConfigError("fit_weight: there is no held-out mention to fit it on; give --dev")
    results = {weight: accuracy(held_out, weight) for weight in GENERATION_WEIGHTS}
    best = max(GENERATION_WEIGHTS, key=lambda weight: (results[weight], weight))
    return best, {"searched": results[0.0], GENERATIVE: results[1.0], "mixed": results[best]}


def accuracy(held_out: Sequence[HeldOutScores], weight: float) -> float:
    """Compute the ratio of queries whose parts all have a correct name first."""
    right: dict[int, bool] = {}
    mixing = Mixing(weight)
    for item in held_out:
        valid = np.ones(len(item.right), np.bool_)
        scores = mixing.mix(item.generated, item.searched, valid)
        first = bool(len(scores)) and bool(item.right[int(np.argmax(scores))])
        right[item.query] = right.get(item.query, True) and first
    return sum(right.values()) / len(right)


MODEL, TRIE = "model", "trie"
GENERATIVE_LINKER = ArtifactKind(
    format=GENERATIVE_FORMAT,
    version=2,
    called="generative linker",
    remedy="train the linker again",
    keys=("config", "mixing", "report", "provenance"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkerMetadata:
    """The manifest of a generative linker: everything but its model and its names."""

    config: GenerativeConfig
    mixing: Mixing
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLinker:
    """The parts of a generative linker, loaded for a store."""

    seq2seq: Seq2SeqModel
    names: NameTrie
    config: GenerativeConfig
    mixing: Mixing


def write_linker(folder: Path, names: NameTrie, metadata: LinkerMetadata) -> None:
    """Write a generative linker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        names.seq2seq.save_pretrained(work / MODEL)
        files = describe_files(work)  # without the trie, which can be rebuilt
        names.save(work / TRIE)
        GENERATIVE_LINKER.write(work, {**asdict(metadata), "files": files})


def read_metadata(folder: Path) -> LinkerMetadata:
    """Read the manifest of a linker; refuse other formats, versions and damaged folders."""
    manifest = GENERATIVE_LINKER.read(folder)
    GENERATIVE_LINKER.check_files(folder, manifest)
    try:
        return LinkerMetadata(
            config=from_mapping(GenerativeConfig, manifest["config"], "config."),
            mixing=Mixing(**manifest["mixing"]),
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise GENERATIVE_LINKER.damaged(folder / GENERATIVE_LINKER.file, repr(error)) from error


def load_folder(folder: Path, kb: KnowledgeBase) -> LoadedLinker:
    """Load a linker for a store, which need not be the one it was trained with.

    A plain encoder-decoder, as pre-training or an import writes it, gets the default settings,
    which are those of the paper.
    """
    if not GENERATIVE_LINKER.is_at(folder):
        config = GenerativeConfig()
        seq2seq = Seq2SeqModel.from_pretrained(folder)
        names = NameTrie.build(kb, seq2seq, config.names)
        return LoadedLinker(seq2seq=seq2seq, names=names, config=config, mixing=Mixing())
    metadata = read_metadata(folder)
    config = metadata.config
    seq2seq = Seq2SeqModel.from_pretrained(
        folder / MODEL, max_source=config.max_source, max_target=config.max_target
    )
    if NAME_TRIE.is_at(folder / TRIE):
        names = NameTrie.open(folder / TRIE, kb, seq2seq, config.names)
    else:
        names = NameTrie.build(kb, seq2seq, config.names)
    return LoadedLinker(seq2seq=seq2seq, names=names, config=config, mixing=metadata.mixing)
