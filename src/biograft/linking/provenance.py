"""Which store an index was made from."""

from __future__ import annotations

from biograft.kb import KnowledgeBase, fingerprint

_NAMED_BY = ("concepts", "ids", "names")
"""The tables that an index repeats or points into."""


def store_fingerprint(kb: KnowledgeBase) -> str:
    """Hash the parts of a store that an index depends on; the same for equal content."""
    return fingerprint(kb, _NAMED_BY)
