"""Linking: from text to the concepts of a knowledge base, every answer with its evidence.

>>> from biograft.linking import Linker
>>> linker = Linker.open("KB")  # doctest: +SKIP
>>> linker("Type 2 diabetes (T2D) was found.").mentions[0].concept  # doctest: +SKIP
'D003924'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.linking.calibration import Calibration, choose_threshold, fit_calibration
    from biograft.linking.candidates import (
        Candidate,
        Evidence,
        Generator,
        LinkedDocument,
        LinkedMention,
        NameHits,
    )
    from biograft.linking.config import LinkerConfig
    from biograft.linking.detection import DictionaryDetector, GivenMentions, MentionDetector
    from biograft.linking.fusing import FusedSearch
    from biograft.linking.html import write_html
    from biograft.linking.linker import Linker
    from biograft.linking.opening import IndexConfig, build_index, open_index, update_index

__all__ = [
    "Calibration",
    "Candidate",
    "DictionaryDetector",
    "Evidence",
    "FusedSearch",
    "Generator",
    "GivenMentions",
    "IndexConfig",
    "LinkedDocument",
    "LinkedMention",
    "Linker",
    "LinkerConfig",
    "MentionDetector",
    "NameHits",
    "build_index",
    "choose_threshold",
    "fit_calibration",
    "open_index",
    "update_index",
    "write_html",
]

_HOMES = {
    "Calibration": "biograft.linking.calibration",
    "Candidate": "biograft.linking.candidates",
    "DictionaryDetector": "biograft.linking.detection",
    "Evidence": "biograft.linking.candidates",
    "FusedSearch": "biograft.linking.fusing",
    "Generator": "biograft.linking.candidates",
    "GivenMentions": "biograft.linking.detection",
    "IndexConfig": "biograft.linking.opening",
    "LinkedDocument": "biograft.linking.candidates",
    "LinkedMention": "biograft.linking.candidates",
    "Linker": "biograft.linking.linker",
    "LinkerConfig": "biograft.linking.config",
    "MentionDetector": "biograft.linking.detection",
    "NameHits": "biograft.linking.candidates",
    "build_index": "biograft.linking.opening",
    "choose_threshold": "biograft.linking.calibration",
    "fit_calibration": "biograft.linking.calibration",
    "open_index": "biograft.linking.opening",
    "update_index": "biograft.linking.opening",
    "write_html": "biograft.linking.html",
}

__getattr__ = load_on_use(__name__, _HOMES)
