"""Give a model away in a form that other programs read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from biograft.checkpoints.layouts import FORMS
from biograft.errors import NotFoundError
from biograft.manifests import Kind
from biograft.nn.loading import load_tokenizer, quiet_transformers
from biograft.runs import new_folder

EXPORT = Kind(
    format="biograft-exported-checkpoint",
    version=1,
    called="exported checkpoint",
    remedy="export it again",
    file="biograft_export.json",
)
_BESIDE = (
    *("biograft_encoder.json", "modules.json", "sentence_bert_config.json"),
    *("config_sentence_transformers.json", "1_Pooling", "2_Normalize"),
)
"""How texts become vectors, of an encoder; it holds for what is exported too."""


def export_checkpoint(
    folder: str | Path, out: str | Path, *, form: str = "bert", overwrite: bool = False
) -> dict[str, Any]:
    """Write a model of ours in another form, with its tokenizer; give what was written."""
    folder = Path(folder)
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: no such folder; expected that of a model")
    model = FORMS.load(form)(folder)
    told = {
        "form": form,
        "n_layers": model.config.num_hidden_layers,
        "token_head": model.get_output_embeddings() is not None,
    }
    with new_folder(Path(out), overwrite=overwrite) as work, quiet_transformers():
        model.save_pretrained(work)
        load_tokenizer(folder).save_pretrained(work)
        for name in _BESIDE:
            if (folder / name).is_dir():
                shutil.copytree(folder / name, work / name)
            elif (folder / name).is_file():
                shutil.copy(folder / name, work / name)
        EXPORT.write(work, {"source": folder.name, **told})
    return {"checkpoint": str(out), **told}
