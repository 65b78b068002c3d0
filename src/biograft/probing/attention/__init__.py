"""What an encoder attends to: around an entity under three names, and inside a long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.probing.attention.config import AttentionConfig as AttentionConfig
    from biograft.probing.attention.curves import (
        Curves as Curves,
        ReplacedSentence as ReplacedSentence,
        compare_names as compare_names,
    )
    from biograft.probing.attention.figures import (
        draw_curves as draw_curves,
        draw_insides as draw_insides,
        draw_summary as draw_summary,
    )
    from biograft.probing.attention.html import (
        curves_page as curves_page,
        insides_page as insides_page,
        summary_page as summary_page,
    )
    from biograft.probing.attention.inside import (
        InsideEntity as InsideEntity,
        look_inside as look_inside,
    )
    from biograft.probing.attention.maps import (
        AttentionMap as AttentionMap,
        UnfitError as UnfitError,
    )
    from biograft.probing.attention.reading import AttentionReader as AttentionReader
    from biograft.probing.attention.sentence_file import (
        find_entity as find_entity,
        read_sentences as read_sentences,
    )
    from biograft.probing.attention.substitutes import (
        SubstituteConfig as SubstituteConfig,
        Substitutes as Substitutes,
    )
    from biograft.probing.attention.summary import (
        AttentionSummary as AttentionSummary,
        compare_many as compare_many,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
