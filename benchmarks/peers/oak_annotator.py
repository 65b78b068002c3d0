"""The text annotator of the Ontology Access Kit, on the OBO file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGES = ("oaklib",)


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Open the ontology; its lexical index is made with the first text."""
    from oaklib import get_adapter

    adapter: Any = get_adapter(f"simpleobo:{work / 'hp.obo'}")
    return lambda text: [
        (each.subject_start - 1, each.subject_end, each.object_id)
        for each in adapter.annotate_text(text)
    ]
