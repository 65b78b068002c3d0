"""FastHPOCR, made for HPO, with an index of its own; building it takes about half an hour."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGES = ("FastHPOCR", "pronto")


def build(work: Path, settings: dict[str, Any]) -> None:
    """Index the OBO file."""
    from FastHPOCR.IndexHPO import IndexHPO

    folder = work / "fasthpocr"
    folder.mkdir()
    IndexHPO(str(work / "hp.obo"), str(folder)).index()


def open_text(work: Path, settings: dict[str, Any]) -> Callable[[str], Any]:
    """Open the index."""
    from FastHPOCR.HPOAnnotator import HPOAnnotator

    annotator = HPOAnnotator(str(work / "fasthpocr" / "hp.index"))
    return lambda text: [
        (each.startOffset, each.endOffset, each.hpoUri) for each in annotator.annotate(text)
    ]
