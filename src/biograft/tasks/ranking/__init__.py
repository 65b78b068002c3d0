"""Answers ranked for questions, with any encoder that reads both together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.tasks.ranking.config import RankingConfig
    from biograft.tasks.ranking.model import RankingAnswer, RankingModel

__all__ = ["RankingAnswer", "RankingConfig", "RankingModel"]

_HOMES = {
    "RankingAnswer": "biograft.tasks.ranking.model",
    "RankingConfig": "biograft.tasks.ranking.config",
    "RankingModel": "biograft.tasks.ranking.model",
}

__getattr__ = load_on_use(__name__, _HOMES)
