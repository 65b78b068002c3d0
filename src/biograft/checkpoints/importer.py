"""Bring a published checkpoint in: a folder that all of biograft loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BertTokenizer

from biograft.artifacts import ArtifactKind, hash_file, new_folder
from biograft.checkpoints.layouts import LAYOUTS
from biograft.checkpoints.published import Published, read_published
from biograft.errors import InputError, shorten
from biograft.nn.pretrained import load_tokenizer, quiet_transformers

ORIGIN = ArtifactKind(
    format="biograft-imported-checkpoint",
    version=1,
    called="imported checkpoint",
    remedy="import it again",
    file="biograft_import.json",
)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was brought in."""

    checkpoint: str
    layout: str
    n_weights: int
    facts: Mapping[str, Any]
    """What the layout tells of the model."""
    summary: str
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    """Weights that have no place in the model."""

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain values."""
        own = {"checkpoint": self.checkpoint, "layout": self.layout, "n_weights": self.n_weights}
        return {**own, **self.facts, "left_out": list(self.left_out)}


def import_checkpoint(
    path: str | Path, out: str | Path, *, as_published: bool = False, overwrite: bool = False
) -> ImportReport:
    """Read a published checkpoint of any known layout, and write it as a folder of ours.

    ``as_published`` keeps the slips of the published code, so that its outputs come out exactly.
    """
    published = read_published(Path(path))
    name = _recognise(published)
    made = LAYOUTS.load(name).convert(published, as_published=as_published)
    tokenizer = _load_tokenizer(published)
    if len(tokenizer) > made.model.config.vocab_size:
        raise InputError(
            f"has {len(tokenizer):,} tokens, the weights know {made.model.config.vocab_size:,}",
            path=published.folder, remedy="bring the tokenizer that belongs to them",
        )  # fmt: skip
    n_weights = len(published.weights) - len(made.left_out)
    report = ImportReport(
        str(out), name, n_weights, made.facts, made.summary, made.notes, made.left_out
    )
    with new_folder(Path(out), overwrite=overwrite) as work, quiet_transformers():
        made.model.save_pretrained(work)
        tokenizer.save_pretrained(work)
        source = {"file": published.file.name, "sha256": hash_file(published.file)}
        ORIGIN.write(work, {"source": source, "as_published": as_published, **_told(report)})
    return report


def _told(report: ImportReport) -> dict[str, Any]:
    return {key: value for key, value in report.to_json().items() if key != "checkpoint"}


def _recognise(published: Published) -> str:
    keys = published.weights.keys()
    for name in LAYOUTS:
        if LAYOUTS.load(name).recognise(keys):
            return name
    raise InputError(
        f"is of no layout that biograft imports ({', '.join(LAYOUTS)}; its first weight is "
        f"{shorten(min(keys))})",
        path=published.file, remedy="a plain BERT or T5 needs no import, give its folder",
    )  # fmt: skip


def _load_tokenizer(published: Published) -> Any:
    # a folder that says no kind of model, and has a list of pieces, is an old one of BERT
    old = "model_type" not in published.config and (published.folder / "vocab.txt").is_file()
    return load_tokenizer(published.folder, BertTokenizer if old else AutoTokenizer)
