"""How much generation counts beside a search: the final score of each name, and a fitted share.

The score of a name is ``share * g + (1 - share) * s``, where g is the probability of a token of
the name on average (the exponential of the mean log-probability, 0 to 1; 0 of a name that was not
generated) and s is the score of the search (0 of a name that it did not gather).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from biograft.artifacts import Kind, file_sizes, new_folder
from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.candidates import Scores
from biograft.linking.fusion import Gathered, fuse_scores, weight_shares
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.generative.names import NAME_TRIE, NameTrie
from biograft.linking.rankers import GENERATIVE_FORMAT
from biograft.nn.seq2seq import Namer

GENERATIVE = "generative"
SHARES = tuple(step / 20 for step in range(21))
"""The shares that are tried."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Mixing:
    """How much generation counts, and how what searches counts among itself."""

    share: float = 1.0
    rescore: int = 0
    """So many names that the search found first are scored exactly, if not generated."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How each generator of the search counts; none: as usual, whichever there are."""

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.rescore < 0:
            raise ValueError(f"expected a share from 0 to 1 and a number to rescore, found {self}")

    def __call__(self, scored: Gathered) -> Scores:
        """Give the final score of each name; what is generated comes last among ``scored``."""
        generated: Scores = scored.scores[-1]
        if self.share == 1:
            return generated
        return self.mix(generated, self.search_scores(searched(scored)), scored.rows >= 0)

    def mix(self, generated: Scores, searched: Scores, there: Flags) -> Scores:
        """Bring two scores of each name to one."""
        parts = ((self.share, generated), (1 - self.share, searched))
        total = sum(share * np.where(np.isfinite(s), s, 0) for share, s in parts)
        return np.where(there, total, -np.inf).astype(np.float32)

    def search_scores(self, gathered: Gathered) -> Scores:
        """Give what the search says of each name."""
        names = gathered.generators
        if not names:
            return np.full(gathered.rows.shape, -np.inf, np.float32)
        if self.weights and set(names) != set(self.weights):
            raise StoreError(
                f"the share of generation was fitted beside {' and '.join(sorted(self.weights))}, "
                f"the index has {' and '.join(sorted(names))}; use the kind of index it was "
                "trained with"
            )
        return fuse_scores(gathered, weight_shares(names, self.weights))


def searched(scored: Gathered) -> Gathered:
    """Give what the search alone says of names that were also generated."""
    return Gathered(scored.generators[:-1], scored.rows, scored.scores[:-1], scored.ranks[:-1])


class Held(NamedTuple):
    """The names gathered for one text held out: both scores, and which are right."""

    query: int
    """Which query the text is part of; one is right if all its parts are."""
    generated: Scores
    searched: Scores
    right: Flags


def fit_share(held: Sequence[Held]) -> tuple[float, dict[str, float]]:
    """Choose the share that puts right names first most often; give the accuracies, too.

    Of equally good shares that nearest to generation alone is taken.
    """
    if not held:
        raise ConfigError("fit_share: there is no mention held out to fit it on; give --dev")
    found = {share: accuracy(held, share) for share in SHARES}
    best = max(SHARES, key=lambda share: (found[share], share))
    told = {"searched": found[0.0], GENERATIVE: found[1.0], "mixed": found[best]}
    return best, told


def accuracy(held: Sequence[Held], share: float) -> float:
    """Say how many queries have a right name first in each part; equal scores by lower row."""
    right: dict[int, bool] = {}
    mixing = Mixing(share)
    for each in held:
        there = np.ones(len(each.right), np.bool_)
        scores = mixing.mix(each.generated, each.searched, there)
        first = bool(len(scores)) and bool(each.right[int(np.argmax(scores))])
        right[each.query] = right.get(each.query, True) and first
    return sum(right.values()) / len(right)


MODEL, TRIE = "model", "trie"
GENERATIVE_LINKER = Kind(
    format=GENERATIVE_FORMAT,
    version=1,
    called="generative linker",
    remedy="train the linker again",
    keys=("config", "mixing", "report", "provenance"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of a generative linker but its weights and its names."""

    config: GenerativeConfig
    mixing: Mixing
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What lies in a folder, ready for a store."""

    namer: Namer
    names: NameTrie
    config: GenerativeConfig
    mixing: Mixing


def write_folder(folder: Path, names: NameTrie, described: Description) -> None:
    """Write a linker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        names.namer.save(work / MODEL)
        sizes = file_sizes(work)  # without the trie, which can be made again
        names.save(work / TRIE)
        GENERATIVE_LINKER.write(work, {**asdict(described), "files": sizes})


def read_description(folder: Path) -> Description:
    """Read what a linker is, refusing what is none, of another version or not whole."""
    manifest = GENERATIVE_LINKER.read(folder)
    GENERATIVE_LINKER.check_files(folder, manifest)
    try:
        return Description(
            config=from_mapping(GenerativeConfig, manifest["config"], "config."),
            mixing=Mixing(**manifest["mixing"]),
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise GENERATIVE_LINKER.damaged(folder / GENERATIVE_LINKER.file, repr(error)) from error


def open_folder(folder: Path, kb: KnowledgeBase) -> Opened:
    """Open a linker for a store, which need not be the one it was trained with.

    A folder of an encoder-decoder alone, as pre-training or an import leaves it, is read as the
    paper reads.
    """
    if not GENERATIVE_LINKER.is_at(folder):
        config = GenerativeConfig()
        namer = Namer.from_pretrained(folder)
        names = NameTrie.build(kb, namer, config.names)
        return Opened(namer=namer, names=names, config=config, mixing=Mixing())
    described = read_description(folder)
    config = described.config
    namer = Namer.from_pretrained(
        folder / MODEL, max_source=config.max_source, max_target=config.max_target
    )
    if NAME_TRIE.is_at(folder / TRIE):
        names = NameTrie.open(folder / TRIE, kb, namer, config.names)
    else:
        names = NameTrie.build(kb, namer, config.names)
    return Opened(namer=namer, names=names, config=config, mixing=described.mixing)
