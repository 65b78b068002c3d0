"""What a masked language model knows of a store's relations, asked by texts with a blank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.probing.cloze import ClozeAnswers, ask, example
    from biograft.probing.decoding import DecodingConfig, decode
    from biograft.probing.judging import Gold, gold_of
    from biograft.probing.queries import ClozeQueries, ClozeQuery, QueryConfig, build_queries
    from biograft.probing.query_file import read_queries, write_queries
    from biograft.probing.report import PARTS, ClozeReport
    from biograft.probing.wording import read_wording

__all__ = [
    "PARTS",
    "ClozeAnswers",
    "ClozeQueries",
    "ClozeQuery",
    "ClozeReport",
    "DecodingConfig",
    "Gold",
    "QueryConfig",
    "ask",
    "build_queries",
    "decode",
    "example",
    "gold_of",
    "read_queries",
    "read_wording",
    "write_queries",
]

_HOMES = {
    "ClozeAnswers": "biograft.probing.cloze",
    "ClozeQueries": "biograft.probing.queries",
    "ClozeQuery": "biograft.probing.queries",
    "ClozeReport": "biograft.probing.report",
    "DecodingConfig": "biograft.probing.decoding",
    "Gold": "biograft.probing.judging",
    "PARTS": "biograft.probing.report",
    "QueryConfig": "biograft.probing.queries",
    "ask": "biograft.probing.cloze",
    "build_queries": "biograft.probing.queries",
    "decode": "biograft.probing.decoding",
    "example": "biograft.probing.cloze",
    "gold_of": "biograft.probing.judging",
    "read_queries": "biograft.probing.query_file",
    "read_wording": "biograft.probing.wording",
    "write_queries": "biograft.probing.query_file",
}

__getattr__ = load_on_use(__name__, _HOMES)
