"""Annotated text: corpus formats, dictionary matching, abbreviations, sentences, segmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.corpus.abbreviations import (
        Abbreviation as Abbreviation,
        LongForms as LongForms,
        find_abbreviations as find_abbreviations,
    )
    from biograft.corpus.formats.pubtator import (
        read_pubtator as read_pubtator,
        write_pubtator as write_pubtator,
    )
    from biograft.corpus.name_rules import NamesIndexConfig as NamesIndexConfig
    from biograft.corpus.names_index import NameMatch as NameMatch, NamesIndex as NamesIndex


__getattr__, __dir__, __all__ = lazify(__name__)
