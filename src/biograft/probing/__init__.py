"""What a masked language model knows of a store's relations, asked by texts with a blank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.probing.cloze import ClozeAnswers as ClozeAnswers, ask as ask, example as example
    from biograft.probing.decoding import DecodingConfig as DecodingConfig, decode as decode
    from biograft.probing.judging import Gold as Gold, gold_of as gold_of
    from biograft.probing.queries import (
        ClozeQueries as ClozeQueries,
        ClozeQuery as ClozeQuery,
        QueryConfig as QueryConfig,
        build_queries as build_queries,
    )
    from biograft.probing.query_file import (
        read_queries as read_queries,
        write_queries as write_queries,
    )
    from biograft.probing.report import PARTS as PARTS, ClozeReport as ClozeReport
    from biograft.probing.wording import read_wording as read_wording


__getattr__, __dir__, __all__ = lazify(__name__)
