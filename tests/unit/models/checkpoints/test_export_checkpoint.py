"""Export as a plain BERT, which computes the same as the model without its knowledge layers."""

import json

import pytest
import torch
from transformers import BertForMaskedLM, BertModel

from biograft.errors import BiograftError, InputError, NotFoundError
from biograft.models import TextEncoder, load_masked_lm
from biograft.models.checkpoints import export_checkpoint, import_checkpoint

IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]])


def test_it_is_the_stack_with_its_head(published, tmp_path):
    import_checkpoint(published(), tmp_path / "ours")
    facts = export_checkpoint(tmp_path / "ours", tmp_path / "plain")
    assert facts == {
        "checkpoint": str(tmp_path / "plain"),
        "form": "bert",
        "n_layers": 3,
        "token_head": True,
    }
    ours = load_masked_lm(tmp_path / "ours").model
    plain = BertForMaskedLM.from_pretrained(tmp_path / "plain")
    assert "knowledge_layers" not in plain.config.to_dict()
    mask = (IDS != 0).long()
    with torch.no_grad():
        states = ours.model.bert(IDS, mask).last_hidden_state
        torch.testing.assert_close(plain(IDS, mask).logits, ours.cls(states))
    described = json.loads((tmp_path / "plain" / "biograft_export.json").read_text())
    assert described["source"] == "ours"
    assert not load_masked_lm(tmp_path / "plain").new_head


def test_an_encoder_stays_one(published, tmp_path):
    import_checkpoint(published(head=False), tmp_path / "ours")
    TextEncoder.from_pretrained(tmp_path / "ours", pooling="cls", max_length=9).save_pretrained(
        tmp_path / "encoder"
    )
    facts = export_checkpoint(tmp_path / "encoder", tmp_path / "plain")
    assert not facts["token_head"]
    encoder = TextEncoder.from_pretrained(tmp_path / "plain")
    assert isinstance(encoder.model, BertModel)
    assert (encoder.pooling, encoder.max_length) == ("cls", 9)


def test_a_model_without_knowledge_layers_is_refused(tiny_encoder, tmp_path):
    folder = tiny_encoder(["heart attack"])
    with pytest.raises(InputError, match="is a bert, which has no knowledge layer"):
        export_checkpoint(folder, tmp_path / "plain")


def test_missing_folders_and_unknown_forms_are_refused(published, tmp_path):
    with pytest.raises(NotFoundError, match="no such folder"):
        export_checkpoint(tmp_path / "nothing", tmp_path / "plain")
    with pytest.raises(BiograftError, match="no form of checkpoint is called 'gpt'"):
        export_checkpoint(published(), tmp_path / "plain", form="gpt")
