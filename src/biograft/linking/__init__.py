"""Linking: from text to the concepts of a knowledge base, every answer with its evidence.

>>> from biograft.linking import Linker
>>> linker = Linker.open("KB")  # doctest: +SKIP
>>> linker("Type 2 diabetes (T2D) was found.").mentions[0].concept  # doctest: +SKIP
'D003924'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.linking.calibration import (
        Calibration as Calibration,
        choose_threshold as choose_threshold,
        fit_calibration as fit_calibration,
    )
    from biograft.linking.candidates import (
        Candidate as Candidate,
        Evidence as Evidence,
        Generator as Generator,
        LinkedDocument as LinkedDocument,
        LinkedMention as LinkedMention,
        NameHits as NameHits,
    )
    from biograft.linking.config import LinkerConfig as LinkerConfig
    from biograft.linking.detection import (
        DictionaryDetector as DictionaryDetector,
        GivenMentions as GivenMentions,
        MentionDetector as MentionDetector,
        ModelDetector as ModelDetector,
        UnionDetector as UnionDetector,
    )
    from biograft.linking.fusion import (
        CandidateBuilder as CandidateBuilder,
        FusedSearch as FusedSearch,
    )
    from biograft.linking.index import (
        IndexConfig as IndexConfig,
        build_index as build_index,
        open_index as open_index,
        update_index as update_index,
    )
    from biograft.linking.linker import Linker as Linker
    from biograft.linking.outputs import write_linked as write_linked
    from biograft.linking.rankers import (
        MODELS as MODELS,
        LoadRanker as LoadRanker,
        NameFinder as NameFinder,
    )
    from biograft.linking.recipes import (
        LINKERS as LINKERS,
        LinkerKind as LinkerKind,
        Outcome as Outcome,
        label_mentions as label_mentions,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
