"""Ranking as a kind of task."""

from __future__ import annotations

from biograft.tasks.kinds import TaskKind
from biograft.tasks.ranking.config import RankingConfig
from biograft.tasks.ranking.model import RankingModel
from biograft.tasks.reading import reader_of

KIND = TaskKind(
    config=RankingConfig,
    read=reader_of("ranking"),
    start=RankingModel.start,
    build=RankingModel,
    figures=("acc@1", "mrr"),
)
