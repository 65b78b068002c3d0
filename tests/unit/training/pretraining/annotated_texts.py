"""Annotated text made on the spot: names found in some texts, written as shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from biograft.artifacts import describe_files
from biograft.text import SHARDS, AnnotatedDocument, LinkedSpan, shard_path, write_shard

TEXTS = [
    "Aspirin may prevent myocardial infarction in some patients with diabetes. It is cheap.",
    "Type 2 diabetes is common. Obesity and hypertension are risk factors for type 2 diabetes.",
    "患者有急性心肌梗死病史，服用阿司匹林。血压正常。",
    "Breast cancer was not found! Tumours were seen in both lungs.",
    "No concept here.",
]
NAMES = {
    "Aspirin": "D1",
    "myocardial infarction": "D2",
    "diabetes": "D3",
    "Type 2 diabetes": "D3",
    "type 2 diabetes": "D3",
    "Obesity": "D4",
    "hypertension": "D5",
    "心肌梗死": "D2",
    "阿司匹林": "D1",
    "Breast cancer": "D6",
    "Tumours": "D7",
}


def annotate(text: str, names: dict[str, str] = NAMES, score: float = 0.9) -> AnnotatedDocument:
    """Find names in a text, the longest first; spans are disjoint."""
    spans, taken = [], set[int]()
    for name in sorted(names, key=len, reverse=True):
        start = text.find(name)
        while start >= 0:
            covered = set(range(start, start + len(name)))
            if not covered & taken:
                spans.append(LinkedSpan(start, start + len(name), names[name], score))
                taken |= covered
            start = text.find(name, start + 1)
    return AnnotatedDocument("", text, tuple(sorted(spans, key=lambda span: span.start)))


def write_shards(folder: Path, documents: list[AnnotatedDocument]) -> Path:
    """Write documents as two parts, with frequencies and manifest."""
    folder.mkdir(parents=True)
    half = len(documents) // 2
    for number, part in enumerate((documents[:half], documents[half:])):
        write_shard(shard_path(folder, number), part, {})
    counts = Counter(span.concept for document in documents for span in document.spans)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    table = {
        "concept": pa.array([key for key, _ in ordered], pa.string()),
        "count": pa.array([count for _, count in ordered], pa.int64()),
    }
    pq.write_table(pa.table(table), folder / "frequencies.parquet")
    content = {"n_shards": 2, "n_documents": len(documents), "files": describe_files(folder)}
    SHARDS.write(folder, content)
    return folder
