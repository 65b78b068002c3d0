"""Import published checkpoints, and export models in the formats of others."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel, BertTokenizer

from biograft.artifacts import ArtifactKind, hash_file, new_folder, peek
from biograft.errors import InputError, NotFoundError, shorten
from biograft.models.checkpoints.layouts import FORMS, LAYOUTS
from biograft.models.checkpoints.published import Published, check_tokenizer, read_published
from biograft.models.knowledge import KnowledgeBertConfig
from biograft.models.knowledge.config import MODEL_IDENTITY
from biograft.models.pretrained import (
    TOKENIZER_FILES,
    find_encoder,
    load_masked_lm,
    load_tokenizer,
    quiet_transformers,
)

_KNOWLEDGE = KnowledgeBertConfig().to_dict().keys() - BertConfig().to_dict().keys()
_OURS = {*MODEL_IDENTITY, *_KNOWLEDGE}
"""Configuration keys that a plain BERT does not have."""


def plain_bert(folder: Path) -> Any:
    """Return the BERT of a model without its knowledge layers, with its token head if any."""
    loaded = load_masked_lm(folder)
    config = loaded.model.config
    if not isinstance(config, KnowledgeBertConfig):
        raise InputError(
            f"is a {config.model_type}, which has no knowledge layer to remove", path=folder
        )
    values = {key: value for key, value in config.to_dict().items() if key not in _OURS}
    stack = loaded.model.model.bert.state_dict()
    if loaded.new_head:
        bert: Any = BertModel(BertConfig(**values), add_pooling_layer=False)
        bert.load_state_dict(stack)
        return bert
    bert = BertForMaskedLM(BertConfig(**values))
    bert.bert.load_state_dict(stack)
    bert.cls.load_state_dict(loaded.model.cls.state_dict())
    return bert


EXPORT = ArtifactKind(
    format="biograft-exported-checkpoint",
    version=1,
    called="exported checkpoint",
    remedy="export it again",
    file="biograft_export.json",
)
_ENCODER_FILES = (
    *("biograft_encoder.json", "modules.json", "sentence_bert_config.json"),
    *("config_sentence_transformers.json", "1_Pooling", "2_Normalize"),
)
"""Settings of a text encoder, copied with the export."""


def export_checkpoint(
    folder: str | Path, out: str | Path, *, form: str = "bert", overwrite: bool = False
) -> dict[str, Any]:
    """Export a biograft model with its tokenizer; return the facts of the export.

    Args:
        folder: Folder of a biograft model.
        out: Folder to write.
        form: Layout, one of ``FORMS``: ``bert`` is the plain encoder that any reader of BERT loads.
        overwrite: Replace a folder that exists.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: no such folder; expected the folder of a model")
    model = FORMS.load(form)(folder)
    facts = {
        "form": form,
        "n_layers": model.config.num_hidden_layers,
        "token_head": model.get_output_embeddings() is not None,
    }
    with new_folder(Path(out), overwrite=overwrite) as work, quiet_transformers():
        model.save_pretrained(work)
        load_tokenizer(folder).save_pretrained(work)
        for name in _ENCODER_FILES:
            if (folder / name).is_dir():
                shutil.copytree(folder / name, work / name)
            elif (folder / name).is_file():
                shutil.copy(folder / name, work / name)
        EXPORT.write(work, {"source": folder.name, **facts})
    return {"checkpoint": str(out), **facts}


ORIGIN = ArtifactKind(
    format="biograft-imported-checkpoint",
    version=1,
    called="imported checkpoint",
    remedy="import it again",
    file="biograft_import.json",
)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import."""

    checkpoint: str
    """Folder that was written."""
    layout: str
    """Name of the published layout."""
    n_weights: int
    """Number of weights that were read."""
    facts: Mapping[str, Any]
    """Sizes and properties of the model."""
    summary: str
    """One line about the model."""
    notes: tuple[str, ...]
    """Remarks for the user."""
    left_out: tuple[str, ...]
    """Names of weights that the model does not have."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        own = {"checkpoint": self.checkpoint, "layout": self.layout, "n_weights": self.n_weights}
        return {**own, **self.facts, "left_out": list(self.left_out)}


def import_checkpoint(
    path: str | Path,
    out: str | Path,
    *,
    tokenizer: str | Path = "",
    as_published: bool = False,
    overwrite: bool = False,
) -> ImportReport:
    """Convert a published checkpoint of any known layout to a folder that biograft loads.

    Args:
        path: File or folder of the checkpoint.
        out: Folder to write.
        tokenizer: Folder or name on the hub of a tokenizer, for weights published without one.
        as_published: Keep the errors of the published code, to reproduce its outputs exactly.
        overwrite: Replace a folder that exists.
    """
    published = read_published(Path(path))
    home = find_encoder(tokenizer, TOKENIZER_FILES) if tokenizer else published.folder
    check_tokenizer(home)
    name = _recognise(published)
    converted = LAYOUTS.load(name).convert(published, as_published=as_published)
    loaded = _load_tokenizer(home, converted.model.config.vocab_size)
    report = ImportReport(
        checkpoint=str(out),
        layout=name,
        n_weights=len(published.weights) - len(converted.left_out),
        facts=converted.facts,
        summary=converted.summary,
        notes=converted.notes,
        left_out=converted.left_out,
    )
    about = {key: value for key, value in report.to_json().items() if key != "checkpoint"}
    with new_folder(Path(out), overwrite=overwrite) as work, quiet_transformers():
        converted.model.save_pretrained(work)
        loaded.save_pretrained(work)
        source = {"file": published.file.name, "sha256": hash_file(published.file)}
        ORIGIN.write(
            work,
            {"source": source, "tokenizer": str(tokenizer), "as_published": as_published, **about},
        )
    return report


def _recognise(published: Published) -> str:
    keys = published.weights.keys()
    for name in LAYOUTS:
        if LAYOUTS.load(name).recognise(keys):
            return name
    raise InputError(
        f"has no layout that biograft imports ({', '.join(LAYOUTS)}; its first weight is "
        f"{shorten(min(keys))})",
        path=published.file,
        remedy="a plain BERT or T5 needs no import: use its folder",
    )


def _load_tokenizer(folder: Path, n_tokens: int) -> Any:
    """Load a tokenizer; refuse one with more tokens than the weights have."""
    # a folder with vocab.txt and without a model type is an old BERT
    known = "model_type" in peek(folder / "config.json")
    old = not known and (folder / "vocab.txt").is_file()
    tokenizer = load_tokenizer(folder, BertTokenizer if old else AutoTokenizer)
    if len(tokenizer) > n_tokens:
        raise InputError(
            f"has {len(tokenizer):,} tokens, the weights have {n_tokens:,}",
            path=folder,
            remedy="take the tokenizer that belongs to them",
        )
    return tokenizer
