"""Fingerprints of a store: hashes that tell whether what was made from it is still valid."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from biograft.kb.store import KnowledgeBase


def fingerprint(
    base: KnowledgeBase, tables: Sequence[str], vocabularies: Iterable[Sequence[str]] = ()
) -> str:
    """Hash tables and vocabularies of a store; equal content gives equal hashes.

    Args:
        base: Knowledge base.
        tables: Names of its tables.
        vocabularies: Lists of texts that codes in the tables stand for.
    """
    digest = hashlib.sha256()
    for table in tables:
        name = f"{table}.arrow"
        digest.update(f"{name} {base.manifest['files'][name]['sha256']}\n".encode())
    for vocabulary in vocabularies:
        digest.update(json.dumps(list(vocabulary)).encode())
    return digest.hexdigest()


_VERSION = 16
"""Characters of the hash of a store that tell it from others."""


def store_version(kb: KnowledgeBase) -> str:
    """Return the beginning of the fingerprint of a store, which mapping sets name it by."""
    return store_fingerprint(kb)[:_VERSION]


def store_fingerprint(kb: KnowledgeBase) -> str:
    """Hash the tables that an index depends on; equal content gives equal hashes."""
    return fingerprint(kb, ("concepts", "ids", "names"))
