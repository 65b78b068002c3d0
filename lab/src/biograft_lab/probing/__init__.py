"""Cloze probe: what a masked language model knows about the relations of a knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft_lab.probing.cloze import (
        QUERY_TYPES as QUERY_TYPES,
        ClozeAnswers as ClozeAnswers,
        ClozeGold as ClozeGold,
        ClozeReport as ClozeReport,
        answer_queries as answer_queries,
        cloze_gold as cloze_gold,
        example_answers as example_answers,
    )
    from biograft_lab.probing.cloze_decoding import (
        decode as decode,
    )
    from biograft_lab.probing.cloze_queries import (
        ClozeQueries as ClozeQueries,
        ClozeQuery as ClozeQuery,
        build_queries as build_queries,
        read_wording as read_wording,
    )
    from biograft_lab.probing.config import (
        DecodingConfig as DecodingConfig,
        QueryConfig as QueryConfig,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
