"""Bring a published checkpoint in: a folder that all of biograft loads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from biograft.checkpoints.layouts import LAYOUTS
from biograft.checkpoints.published import Published, read_published
from biograft.errors import InputError, shorten
from biograft.manifests import Kind
from biograft.nn.loading import quiet_transformers
from biograft.runs import hash_file, new_folder

ORIGIN = Kind(
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
    n_layers: int
    knowledge_after: int
    n_entities: int
    entity_dim: int
    named: bool
    """Whether it is known what the rows of the table stand for."""
    token_head: bool
    left_out: tuple[str, ...]
    """Weights that have no place in an encoder."""

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain values."""
        return {**asdict(self), "left_out": list(self.left_out)}


def import_checkpoint(
    path: str | Path, out: str | Path, *, as_published: bool = False, overwrite: bool = False
) -> ImportReport:
    """Read a published checkpoint of any known layout, and write it as a folder of ours.

    ``as_published`` keeps the slips of the published code, so that its outputs come out exactly.
    """
    published = read_published(Path(path))
    name = _recognise(published)
    model, left_out = LAYOUTS.load(name).convert(published, as_published=as_published)
    tokenizer = _load_tokenizer(published)
    config = model.config
    if len(tokenizer) > config.vocab_size:
        raise InputError(
            f"has {len(tokenizer):,} tokens, the weights know {config.vocab_size:,}",
            path=published.folder, remedy="bring the tokenizer that belongs to them",
        )  # fmt: skip
    report = ImportReport(
        checkpoint=str(out),
        layout=name,
        n_weights=len(published.weights) - len(left_out),
        n_layers=config.num_hidden_layers,
        knowledge_after=config.knowledge_after,
        n_entities=config.n_entities,
        entity_dim=config.entity_dim,
        named=bool(model.entities),
        token_head=model.get_output_embeddings() is not None,
        left_out=tuple(left_out),
    )
    with new_folder(Path(out), overwrite=overwrite) as work, quiet_transformers():
        model.save_pretrained(work)
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
        path=published.file, remedy="a plain BERT needs no import, give its folder",
    )  # fmt: skip


def _load_tokenizer(published: Published) -> Any:
    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(published.folder, local_files_only=True)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = shorten(str(error).strip().partition("\n")[0])
        raise InputError(
            f"holds no tokenizer that can be loaded ({reason})", path=published.folder
        ) from error
