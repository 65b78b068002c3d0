"""Fingerprint of the store that an index was built from."""

from __future__ import annotations

from biograft.kb import KnowledgeBase, fingerprint

_NAMED_BY = ("concepts", "ids", "names")
"""The tables that an index copies or refers to."""


def store_fingerprint(kb: KnowledgeBase) -> str:
    """Hash the tables of a store that an index depends on; equal content gives equal hashes."""
    return fingerprint(kb, _NAMED_BY)
