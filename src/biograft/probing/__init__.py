"""What a masked language model knows of a store's relations, asked by texts with a blank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.probing.cloze import (
        PARTS as PARTS,
        ClozeAnswers as ClozeAnswers,
        ClozeReport as ClozeReport,
        Gold as Gold,
        ask as ask,
        example as example,
        gold_of as gold_of,
    )
    from biograft.probing.cloze_decoding import DecodingConfig as DecodingConfig, decode as decode
    from biograft.probing.cloze_queries import (
        ClozeQueries as ClozeQueries,
        ClozeQuery as ClozeQuery,
        QueryConfig as QueryConfig,
        build_queries as build_queries,
        read_queries as read_queries,
        read_wording as read_wording,
        write_queries as write_queries,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
