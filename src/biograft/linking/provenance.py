"""Which store an index was made from."""

from __future__ import annotations

import hashlib

from biograft.kb import KnowledgeBase

_NAMED_BY = ("concepts.arrow", "ids.arrow", "names.arrow")
"""The tables that an index repeats or points into."""


def store_fingerprint(kb: KnowledgeBase) -> str:
    """Hash the parts of a store that an index depends on; the same for equal content."""
    digest = hashlib.sha256()
    for name in _NAMED_BY:
        digest.update(f"{name} {kb.manifest['files'][name]['sha256']}\n".encode())
    return digest.hexdigest()
