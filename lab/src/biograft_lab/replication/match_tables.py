"""Tables of matched ontologies: precision and recall by confidence, beside other tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biograft_lab.replication.tables import markdown

_TOOLS = {
    "biograft match": "biograft",
    "labels": "equal labels, then equal synonyms",
    "lexmatch": "OAK lexmatch",
}


def match_ontologies(result: Mapping[str, Any]) -> str:
    """Return the rows of each tool; thresholds between which it answers the same are left out."""
    rows = []
    for name, title in _TOOLS.items():
        last: object = None
        for row in result["found"].get(name, ()):
            if row["recall"] and (row["precision"], row["recall"]) != last:
                last = (row["precision"], row["recall"])
                rows.append([title, str(row["threshold"]), _with_interval(row, "precision")])
                rows[-1].append(_with_interval(row, "recall"))
    heads = ("Disease Ontology to MEDIC", "confidence from", "precision", "recall")
    return markdown(heads, rows)


def _with_interval(row: Mapping[str, Any], of: str) -> str:
    low, high = row[f"{of}_interval"]
    return f"{row[of]:.1f} ({low:.1f}–{high:.1f})"
