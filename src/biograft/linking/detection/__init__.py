"""Mention detection: finding the spans of a text that are to be linked.

Mentions are found by the names of a store (:class:`DictionaryDetector`), also misspelt
ones (:class:`MisspeltDetector`), by a trained model of
named entity recognition (:class:`ModelDetector`), or by both (:class:`UnionDetector`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.linking.detection.choice import open_detector as open_detector
    from biograft.linking.detection.detector import (
        GivenMentions as GivenMentions,
        MentionDetector as MentionDetector,
        in_text_order as in_text_order,
        outside as outside,
    )
    from biograft.linking.detection.dictionary import DictionaryDetector as DictionaryDetector
    from biograft.linking.detection.misspelt import (
        MisspeltDetector as MisspeltDetector,
        MisspeltMention as MisspeltMention,
        looked_up as looked_up,
    )
    from biograft.linking.detection.model import ModelDetector as ModelDetector
    from biograft.linking.detection.union import UnionDetector as UnionDetector


__getattr__, __dir__, __all__ = lazify(__name__)
