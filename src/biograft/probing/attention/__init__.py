"""What an encoder attends to: around an entity under three names, and inside a long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.probing.attention.config import AttentionConfig
    from biograft.probing.attention.curves import Curves, ReplacedSentence, compare_names
    from biograft.probing.attention.figures import draw_curves, draw_insides, draw_summary
    from biograft.probing.attention.html import curves_page, insides_page, summary_page
    from biograft.probing.attention.inside import InsideEntity, look_inside
    from biograft.probing.attention.maps import AttentionMap, UnfitError
    from biograft.probing.attention.reading import AttentionReader
    from biograft.probing.attention.sentence_file import find_entity, read_sentences
    from biograft.probing.attention.substitutes import SubstituteConfig, Substitutes
    from biograft.probing.attention.summary import AttentionSummary, compare_many

__all__ = [
    "AttentionConfig",
    "AttentionMap",
    "AttentionReader",
    "AttentionSummary",
    "Curves",
    "InsideEntity",
    "ReplacedSentence",
    "SubstituteConfig",
    "Substitutes",
    "UnfitError",
    "compare_many",
    "compare_names",
    "curves_page",
    "draw_curves",
    "draw_insides",
    "draw_summary",
    "find_entity",
    "insides_page",
    "look_inside",
    "read_sentences",
    "summary_page",
]

_HOMES = {
    "AttentionConfig": "biograft.probing.attention.config",
    "AttentionMap": "biograft.probing.attention.maps",
    "AttentionReader": "biograft.probing.attention.reading",
    "AttentionSummary": "biograft.probing.attention.summary",
    "Curves": "biograft.probing.attention.curves",
    "InsideEntity": "biograft.probing.attention.inside",
    "ReplacedSentence": "biograft.probing.attention.curves",
    "SubstituteConfig": "biograft.probing.attention.substitutes",
    "Substitutes": "biograft.probing.attention.substitutes",
    "UnfitError": "biograft.probing.attention.maps",
    "compare_many": "biograft.probing.attention.summary",
    "compare_names": "biograft.probing.attention.curves",
    "curves_page": "biograft.probing.attention.html",
    "draw_curves": "biograft.probing.attention.figures",
    "draw_insides": "biograft.probing.attention.figures",
    "draw_summary": "biograft.probing.attention.figures",
    "find_entity": "biograft.probing.attention.sentence_file",
    "insides_page": "biograft.probing.attention.html",
    "look_inside": "biograft.probing.attention.inside",
    "read_sentences": "biograft.probing.attention.sentence_file",
    "summary_page": "biograft.probing.attention.html",
}

__getattr__ = load_on_use(__name__, _HOMES)
