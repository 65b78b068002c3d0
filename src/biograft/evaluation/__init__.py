"""Evaluate linkers: read gold standards, ask, judge, compare, report.

>>> from biograft.evaluation import evaluate_linking, read_gold
>>> gold = read_gold("starter", "sample")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.evaluation.comparison import Comparison, paired
    from biograft.evaluation.end_to_end import Score, TextResult, evaluate_text
    from biograft.evaluation.gold import GOLD_FORMATS, Gold, read_gold
    from biograft.evaluation.gold_texts import TEXT_FORMATS, GoldTexts, read_gold_texts
    from biograft.evaluation.ids import StoreIds, resolve_gold
    from biograft.evaluation.linking import (
        EvaluationConfig,
        LinkingResult,
        QueryRow,
        evaluate_linking,
    )
    from biograft.evaluation.mistakes import Mistake, find_mistakes
    from biograft.evaluation.nil import nil_as_linked
    from biograft.evaluation.populations import Population, similarity_buckets, sub_populations
    from biograft.evaluation.queries import GoldConfig, LinkQuery
    from biograft.evaluation.ranking import NameRanker, Ranker
    from biograft.evaluation.report import LinkingReport, write_report

__all__ = [
    "GOLD_FORMATS",
    "TEXT_FORMATS",
    "Comparison",
    "EvaluationConfig",
    "Gold",
    "GoldConfig",
    "GoldTexts",
    "LinkQuery",
    "LinkingReport",
    "LinkingResult",
    "Mistake",
    "NameRanker",
    "Population",
    "QueryRow",
    "Ranker",
    "Score",
    "StoreIds",
    "TextResult",
    "evaluate_linking",
    "evaluate_text",
    "find_mistakes",
    "nil_as_linked",
    "paired",
    "read_gold",
    "read_gold_texts",
    "resolve_gold",
    "similarity_buckets",
    "sub_populations",
    "write_report",
]

_HOMES = {
    "Comparison": "biograft.evaluation.comparison",
    "EvaluationConfig": "biograft.evaluation.linking",
    "GOLD_FORMATS": "biograft.evaluation.gold",
    "Gold": "biograft.evaluation.gold",
    "GoldConfig": "biograft.evaluation.queries",
    "GoldTexts": "biograft.evaluation.gold_texts",
    "LinkQuery": "biograft.evaluation.queries",
    "LinkingReport": "biograft.evaluation.report",
    "LinkingResult": "biograft.evaluation.linking",
    "Mistake": "biograft.evaluation.mistakes",
    "NameRanker": "biograft.evaluation.ranking",
    "Population": "biograft.evaluation.populations",
    "QueryRow": "biograft.evaluation.linking",
    "Ranker": "biograft.evaluation.ranking",
    "Score": "biograft.evaluation.end_to_end",
    "StoreIds": "biograft.evaluation.ids",
    "TEXT_FORMATS": "biograft.evaluation.gold_texts",
    "TextResult": "biograft.evaluation.end_to_end",
    "evaluate_linking": "biograft.evaluation.linking",
    "evaluate_text": "biograft.evaluation.end_to_end",
    "find_mistakes": "biograft.evaluation.mistakes",
    "nil_as_linked": "biograft.evaluation.nil",
    "paired": "biograft.evaluation.comparison",
    "read_gold": "biograft.evaluation.gold",
    "read_gold_texts": "biograft.evaluation.gold_texts",
    "resolve_gold": "biograft.evaluation.ids",
    "similarity_buckets": "biograft.evaluation.populations",
    "sub_populations": "biograft.evaluation.populations",
    "write_report": "biograft.evaluation.report",
}

__getattr__ = load_on_use(__name__, _HOMES)
