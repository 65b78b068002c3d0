"""The plain BERT that is given away computes what the stack computes without knowledge."""

import pytest
import torch
from transformers import BertForMaskedLM, BertModel

from biograft.checkpoints import FORMS, export_checkpoint, import_checkpoint
from biograft.checkpoints.export import EXPORT
from biograft.errors import BiograftError, InputError, NotFoundError
from biograft.nn import TextEncoder
from biograft.nn.pretrained import load_masked_lm

IDS = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]])


def test_it_is_the_stack_with_its_head(published, tmp_path):
    import_checkpoint(published(), tmp_path / "ours")
    told = export_checkpoint(tmp_path / "ours", tmp_path / "plain")
    assert told == {
        "checkpoint": str(tmp_path / "plain"), "form": "bert", "n_layers": 3, "token_head": True,
    }  # fmt: skip
    ours = load_masked_lm(tmp_path / "ours").model
    plain = BertForMaskedLM.from_pretrained(tmp_path / "plain")
    assert "knowledge_after" not in plain.config.to_dict()
    mask = (IDS != 0).long()
    with torch.no_grad():
        states = ours.model.bert(IDS, mask).last_hidden_state
        torch.testing.assert_close(plain(IDS, mask).logits, ours.cls(states))
    assert EXPORT.read(tmp_path / "plain")["source"] == "ours"
    assert not load_masked_lm(tmp_path / "plain").new_head


def test_an_encoder_stays_one(published, tmp_path):
    import_checkpoint(published(head=False), tmp_path / "ours")
    TextEncoder.from_pretrained(tmp_path / "ours", pooling="cls", max_length=9).save_pretrained(
        tmp_path / "encoder"
    )
    told = export_checkpoint(tmp_path / "encoder", tmp_path / "plain")
    assert not told["token_head"]
    encoder = TextEncoder.from_pretrained(tmp_path / "plain")
    assert isinstance(encoder.model, BertModel)
    assert (encoder.pooling, encoder.max_length) == ("cls", 9)


def test_what_has_no_knowledge_is_refused(tiny_encoder, tmp_path):
    folder = tiny_encoder(["heart attack"])
    with pytest.raises(InputError, match="is a bert, which has no knowledge layer to leave out"):
        export_checkpoint(folder, tmp_path / "plain")


def test_what_is_not_there_or_unknown_is_said(published, tmp_path):
    with pytest.raises(NotFoundError, match="no such folder"):
        export_checkpoint(tmp_path / "nothing", tmp_path / "plain")
    with pytest.raises(BiograftError, match="no form of checkpoint is called 'gpt'"):
        export_checkpoint(published(), tmp_path / "plain", form="gpt")


@pytest.mark.parametrize("name", list(FORMS))
def test_every_form_loads(name):
    assert callable(FORMS.load(name))
    assert FORMS.help()[name]
