"""Answers ranked for questions, with any encoder that reads both together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.tasks.ranking.config import RankingConfig as RankingConfig
    from biograft.tasks.ranking.model import (
        RankingAnswer as RankingAnswer,
        RankingModel as RankingModel,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
