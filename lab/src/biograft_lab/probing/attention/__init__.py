"""Attention probe (EMBERT): attention around an entity under three names, and inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft_lab.probing.attention.curves import (
        AttentionSummary as AttentionSummary,
        Curves as Curves,
        InsideEntity as InsideEntity,
        ReplacedSentence as ReplacedSentence,
        compare_many as compare_many,
        compare_names as compare_names,
        look_inside as look_inside,
    )
    from biograft_lab.probing.attention.figures import (
        draw_curves as draw_curves,
        draw_insides as draw_insides,
        draw_summary as draw_summary,
    )
    from biograft_lab.probing.attention.html import (
        curves_page as curves_page,
        insides_page as insides_page,
        summary_page as summary_page,
    )
    from biograft_lab.probing.attention.maps import (
        AttentionConfig as AttentionConfig,
        AttentionMap as AttentionMap,
        AttentionReader as AttentionReader,
        UnfitError as UnfitError,
    )
    from biograft_lab.probing.attention.sentence_file import (
        find_entity as find_entity,
        read_sentences as read_sentences,
    )
    from biograft_lab.probing.attention.substitutes import (
        SubstituteConfig as SubstituteConfig,
        Substitutes as Substitutes,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
