"""Tables of what is learned from annotated text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biograft_lab.replication.tables import markdown

_SETS = {
    "ncbi-disease": "NCBI diseases",
    "bc5cdr-disease": "BC5CDR diseases",
    "gsc-plus": "GSC+ (`--overlaps all --reworded`)",
}


def learned_forms(result: Mapping[str, Any]) -> str:
    """Return F1 before and after, the gain with its interval, and the forms of each set."""
    rows = []
    for name, title in _SETS.items():
        of = result["found"][name]
        low, high = of["interval"]
        learned = of["cross_validated"]
        forms = f"{learned['n_forms']} / {learned['n_no_mention']}"
        gain = f"{of['gain']:+.1f} ({low:+.1f} to {high:+.1f})"
        rows.append([title, f"{of['before']['f1']:.1f}", f"{of['after']['f1']:.1f}", gain, forms])
    heads = ("", "untrained", "learned", "gain", "forms with a concept / no mention")
    return markdown(heads, rows)
