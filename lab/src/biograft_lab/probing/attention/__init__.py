"""Attention probe (EMBERT): attention around an entity under three names, and inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft_lab.probing.attention.curves import (
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
    )
    from biograft_lab.probing.attention.maps import (
        AttentionMap as AttentionMap,
        AttentionReader as AttentionReader,
        UnfitError as UnfitError,
    )
    from biograft_lab.probing.attention.sentence_file import (
        find_entity as find_entity,
        read_sentences as read_sentences,
    )
    from biograft_lab.probing.attention.substitutes import (
        Substitutes as Substitutes,
    )
    from biograft_lab.probing.config import (
        AttentionConfig as AttentionConfig,
        SubstituteConfig as SubstituteConfig,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
