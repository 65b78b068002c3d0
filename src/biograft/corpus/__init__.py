"""Text with mentions: read and write corpora, find abbreviations, find names of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.corpus.abbreviations import Abbreviation, LongForms, find_abbreviations
    from biograft.corpus.dictionary import DictionaryMatch, DictionaryMatcher
    from biograft.corpus.formats.pubtator import read_pubtator, write_pubtator
    from biograft.corpus.patterns import DictionaryConfig

__all__ = [
    "Abbreviation",
    "DictionaryConfig",
    "DictionaryMatch",
    "DictionaryMatcher",
    "LongForms",
    "find_abbreviations",
    "read_pubtator",
    "write_pubtator",
]

_HOMES = {
    "Abbreviation": "biograft.corpus.abbreviations",
    "DictionaryConfig": "biograft.corpus.patterns",
    "DictionaryMatch": "biograft.corpus.dictionary",
    "DictionaryMatcher": "biograft.corpus.dictionary",
    "LongForms": "biograft.corpus.abbreviations",
    "find_abbreviations": "biograft.corpus.abbreviations",
    "read_pubtator": "biograft.corpus.formats.pubtator",
    "write_pubtator": "biograft.corpus.formats.pubtator",
}

__getattr__ = load_on_use(__name__, _HOMES)
