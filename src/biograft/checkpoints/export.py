"""The plain BERT that stands in a model with a knowledge layer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from transformers import BertConfig, BertForMaskedLM, BertModel

from biograft.artifacts import ArtifactKind, new_folder
from biograft.checkpoints.layouts import FORMS
from biograft.errors import InputError, NotFoundError
from biograft.nn.knowledge import KnowledgeBertConfig
from biograft.nn.knowledge.config import NAMING
from biograft.nn.pretrained import load_masked_lm, load_tokenizer, quiet_transformers

_KNOWLEDGE = KnowledgeBertConfig().to_dict().keys() - BertConfig().to_dict().keys()
_OURS = {*NAMING, *_KNOWLEDGE}
"""What a plain BERT's configuration does not say."""


def plain_bert(folder: Path) -> Any:
    """Give the stack of a model, and its token head if the folder holds one."""
    loaded = load_masked_lm(folder)
    config = loaded.model.config
    if not isinstance(config, KnowledgeBertConfig):
        raise InputError(
            f"is a {config.model_type}, which has no knowledge layer to leave out", path=folder
        )
    told = {key: value for key, value in config.to_dict().items() if key not in _OURS}
    stack = loaded.model.model.bert.state_dict()
    if loaded.new_head:
        bert: Any = BertModel(BertConfig(**told), add_pooling_layer=False)
        bert.load_state_dict(stack)
        return bert
    bert = BertForMaskedLM(BertConfig(**told))
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
