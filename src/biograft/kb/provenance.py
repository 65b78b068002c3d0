"""Which store something was made from: told by the content of the tables that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from biograft.kb.store import KnowledgeBase


def fingerprint(
    base: KnowledgeBase, tables: Sequence[str], vocabularies: Iterable[Sequence[str]] = ()
) -> str:
    """Hash some tables of a store, and some of its lists of words; equal content, equal hash."""
    digest = hashlib.sha256()
    for table in tables:
        name = f"{table}.arrow"
        digest.update(f"{name} {base.manifest['files'][name]['sha256']}\n".encode())
    for words in vocabularies:
        digest.update(json.dumps(list(words)).encode())
    return digest.hexdigest()
