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
from biograft.linking.supervised.memory import concept_rows
from biograft.sources import SourceConfig

MENTIONS = "mentions"
"""The source of names that were mentions."""


def grow_store(
    kb: KnowledgeBase, mentions: Iterable[LabelledMention], out: Path, *, overwrite: bool = False
) -> KnowledgeBase:
    """Build a copy of a store with the texts of mentions as further names."""
    names: dict[str, dict[str, None]] = {}
    for mention in mentions:
        for row in sorted(concept_rows(kb, mention)):
            names.setdefault(kb.id_at(row), {})[mention.text] = None
    with tempfile.TemporaryDirectory() as work:
        base, grown = Path(work) / "base.jsonl", Path(work) / "mentions.jsonl"
        export(kb, base, "jsonl")
        with grown.open("w", encoding="utf-8") as file:
            for concept, texts in names.items():
                described = [{"text": text, "source": MENTIONS} for text in texts]
                line = {"id": concept, "names": described}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        paths = [base, grown] if names else [base]
        sources = tuple(SourceConfig(path=path, format="jsonl") for path in paths)
        build_store(BuildConfig(sources=sources), out, overwrite=overwrite)
    return KnowledgeBase.open(out)
