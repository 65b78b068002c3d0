"""Low-rank adapters: what is trained, what is saved, and that peft reads it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from tiny_causal import tiny_causal_folder
from tiny_models import tiny_encoder_folder
from transformers import AutoModel, AutoModelForCausalLM

from biograft.errors import ConfigError, MissingExtraError
from biograft.models import Seq2SeqModel, TextEncoder
from biograft.models.adapters import LoraSettings, merge_adapters

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
TEXTS = ["heart attack", "myocardial infarction", "flu"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_encoder_folder(tmp_path_factory.mktemp("plain") / "bert", TEXTS)


def encoder_of(folder, **lora):
    return TextEncoder.from_pretrained(folder, pooling="mean", lora=LoraSettings(**lora))


def change(model):
    """Give every adapter weights that are not 0."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name:
                weight.normal_(std=0.3)


def test_only_adapters_are_trained_and_they_change_nothing_at_first(folder):
    plain = TextEncoder.from_pretrained(folder, pooling="mean")
    encoder = encoder_of(folder, r=4, modules=("query", "value"))
    trained = [name for name, weight in encoder.model.named_parameters() if weight.requires_grad]
    assert len(trained) == 2 * 2 * 2  # layers, modules, factors
    assert all("lora_" in name for name in trained)
    np.testing.assert_array_equal(encoder.encode(TEXTS), plain.encode(TEXTS))
    assert encoder.fingerprint() == plain.fingerprint()
    everywhere = encoder_of(folder)
    assert sum(w.requires_grad for w in everywhere.model.parameters()) > 2 * 2 * 6


def test_the_saved_folder_is_plain_and_has_the_adapter_beside_it(folder, tmp_path):
    encoder = encoder_of(folder, r=4, alpha=8)
    change(encoder.model)
    before = encoder.encode(TEXTS, precision="fp32")
    encoder.save_pretrained(tmp_path / "saved")
    again = TextEncoder.from_pretrained(tmp_path / "saved")
    assert not [name for name, _ in again.model.named_parameters() if "lora" in name]
    np.testing.assert_allclose(again.encode(TEXTS, precision="fp32"), before, atol=1e-6)
    assert again.fingerprint() == encoder.fingerprint()
    # the weights are exactly base + alpha / r * B A, and the encoder goes on as it was
    np.testing.assert_array_equal(encoder.encode(TEXTS, precision="fp32"), before)
    states = dict(encoder.model.named_parameters())
    merged = dict(AutoModel.from_pretrained(tmp_path / "saved").named_parameters())
    name = "encoder.layer.0.attention.self.query"
    down, up = (states[f"{name}.lora_{half}.default.weight"] for half in "AB")
    expected = states[f"{name}.base_layer.weight"] + 8 / 4 * up @ down
    torch.testing.assert_close(merged[f"{name}.weight"], expected)
    # peft puts the adapter on the base, transformers and sentence-transformers read the rest
    theirs = peft.PeftModel.from_pretrained(
        AutoModel.from_pretrained(folder), tmp_path / "saved" / "adapter"
    )
    plain = merge_adapters(encoder.model).eval()
    tokens = encoder.tokenize(TEXTS)
    tokens.pop("pooled")
    with torch.no_grad():
        ours, found = (model(**tokens).last_hidden_state for model in (plain, theirs.eval()))
    torch.testing.assert_close(ours, found)
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), before, atol=1e-5)


def test_a_causal_model_with_adapters(tmp_path):
    folder = tiny_causal_folder(tmp_path / "qwen", TEXTS)
    model = Seq2SeqModel.from_pretrained(folder, lora=LoraSettings(r=2))
    names = [name for name, weight in model.model.named_parameters() if weight.requires_grad]
    assert names
    assert not [name for name in names if "lm_head" in name]
    change(model.model)
    model.save_pretrained(tmp_path / "saved")
    again = Seq2SeqModel.from_pretrained(tmp_path / "saved")
    assert again.fingerprint() == model.fingerprint()
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    given = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        ours, theirs = (m(input_ids=given).logits for m in (model.model.eval(), plain))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    assert (tmp_path / "saved" / "adapter" / "adapter_model.safetensors").exists()


def test_refusals(folder, monkeypatch):
    with pytest.raises(ConfigError, match=r"lora\.modules: .*nowhere"):
        encoder_of(folder, modules=("nowhere",))
    with pytest.raises(ConfigError, match="r: expected"):
        LoraSettings(r=0)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'biograft\[lora\]'"):
        encoder_of(folder)
