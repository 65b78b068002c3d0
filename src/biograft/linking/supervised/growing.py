"""A store grown by training mentions: each becomes a name of the concept it was linked to.

That is how the field's test dictionaries were made, and it makes everything else simple: the
grown store is indexed, searched and linked to like any other.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from biograft.kb import BuildConfig, KnowledgeBase, build_store, export
from biograft.linking.labelled import LabelledMention
from biograft.sources import SourceConfig

MENTIONS = "mentions"
"""The source of names that were mentions."""


def grow_store(
    kb: KnowledgeBase, mentions: Iterable[LabelledMention], out: Path, *, overwrite: bool = False
) -> KnowledgeBase:
    """Build a copy of a store with the texts of mentions as further names.

    They are in the language of the concept's own name, so that what is one already stays so.
    """
    names: dict[int, dict[str, None]] = {}
    for mention in mentions:
        text = mention.text.strip()
        for row in kb.rows_of(mention.concepts) if text else ():
            names.setdefault(row, {})[text] = None
    with tempfile.TemporaryDirectory() as work:
        base, grown = Path(work) / "base.jsonl", Path(work) / "mentions.jsonl"
        export(kb, base, "jsonl")
        with grown.open("w", encoding="utf-8") as file:
            for row, texts in names.items():
                told = {"source": MENTIONS, **_language(kb, row)}
                line = {"id": kb.id_at(row), "names": [{"text": text, **told} for text in texts]}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        paths = [base, grown] if names else [base]
        sources = tuple(SourceConfig(path=path, format="jsonl") for path in paths)
        build_store(BuildConfig(sources=sources), out, overwrite=overwrite)
    return KnowledgeBase.open(out)


def _language(kb: KnowledgeBase, row: int) -> dict[str, str]:
    own = kb.concept_at(row).names[:1]
    return {"language": own[0].language} if own else {}
