"""How well embeddings predict the end that a triple lacks: MRR, hits at k, mean rank.

A rank is *optimistic* if the true entity stands before all that are as near, *pessimistic* if
behind them, *realistic* as the mean of both; a rank of 3.5 is no hit at 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.errors import InputError
from biograft.graph.embedding.config import ModelConfig
from biograft.graph.embedding.entity_ranks import SIDES, Counts, rank_triples
from biograft.graph.embedding.scoring import Tables
from biograft.graph.triples import Triples
from biograft.progress import Progress

CUTOFFS = (1, 3, 10)
TIES = ("realistic", "optimistic", "pessimistic")

Ranks = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """The ranks of true entities, by side."""

    counts: dict[str, Counts]
    n_candidates: int

    def ranks(self, side: str = "both", ties: str = "realistic") -> Ranks:
        """Give ranks from 1: of tails, then of heads, for ``both``."""
        share = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}[ties]
        wanted = SIDES if side == "both" else (side,)
        return np.concatenate(
            [1 + self.counts[s].better + share * self.counts[s].equal for s in wanted]
        )

    def metrics(self, side: str = "both", ties: str = "realistic") -> dict[str, float]:
        """Give MRR and hits as shares of 1, and the mean rank."""
        ranks = self.ranks(side, ties)
        hits = {f"hits@{k}": float(np.mean(ranks <= k)) for k in CUTOFFS}
        return {"mrr": float(np.mean(1 / ranks)), **hits, "mean_rank": float(np.mean(ranks))}

    def to_json(self) -> dict[str, Any]:
        """Give the figures as plain values; all but mean ranks in percent."""
        return {
            **in_percent(self.metrics()),
            "unit": "percent",
            **{side: in_percent(self.metrics(side)) for side in SIDES},
            **{ties: in_percent(self.metrics(ties=ties)) for ties in TIES[1:]},
            "n": len(self.counts["tail"].better),
            "n_candidates": self.n_candidates,
        }


def in_percent(metrics: dict[str, float]) -> dict[str, float]:
    """Turn shares into percent; ranks stay."""
    return {
        name: round(value if name == "mean_rank" else 100 * value, 4)
        for name, value in metrics.items()
    }


def predict_links(
    tables: Tables,
    config: ModelConfig,
    triples: Triples,
    split: str = "test",
    progress: Progress | None = None,
) -> LinkPrediction:
    """Rank the true entities of one split among all entities that stand in a triple.

    Filtered by the triples of all splits, those of ``test`` too, as is usual.
    """
    asked = triples.of_split(split)
    if not len(asked):
        raise InputError(
            f"holds no {split} triples",
            path="graph",
            remedy=f"build the knowledge base from files called train, valid and test, or rank "
            f"another part (not {split})",
        )
    counts = rank_triples(tables, config, asked, triples, progress)
    stand = np.unique(np.concatenate([triples.heads, triples.tails]))
    return LinkPrediction(counts, len(stand))
