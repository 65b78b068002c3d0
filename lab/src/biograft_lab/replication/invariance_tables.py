"""Tables of findings in other layouts of notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from biograft_lab.replication.tables import markdown

_STORES = {"medic": "English, MEDIC", "chinese": "Chinese, built-in"}


def layout_invariance(result: Mapping[str, Any]) -> str:
    """Return the number of variants of each kind, and of those that changed a finding."""
    kinds = dict.fromkeys(kind for name in _STORES for kind in result[name]["kinds"])
    rows = [
        [kind, *(_changed(result[name]["kinds"].get(kind)) for name in _STORES)] for kind in kinds
    ]
    return markdown(("changed of all variants", *_STORES.values()), rows)


def _changed(of: Mapping[str, Any] | None) -> str:
    return "" if of is None else f"{of['changed']:,} of {of['variants']:,}"
