"""Import of GenBioEL: a BART for the generative linker; each fault is one line."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from mischief import Mischief
from safetensors.torch import load_file, save_file
from tiny_seq2seq import tiny_seq2seq
from transformers import BartForConditionalGeneration

from biograft.errors import InputError
from biograft.models import Seq2SeqModel
from biograft.models.checkpoints import import_checkpoint

NAMES = ["heart attack", "breast cancer"]


@pytest.fixture
def published(tmp_path):
    """Write one as DeepSpeed leaves it: ``published(weights=lambda w: {...}, config={...})``."""

    def write(weights=lambda w: w, config=(), file="pytorch_model.bin"):
        folder = tmp_path / "published"
        tiny_seq2seq(NAMES).save_pretrained(folder)
        whole = {k: v.half() for k, v in load_file(folder / "model.safetensors").items()}
        for half in ("encoder", "decoder"):
            whole[f"model.{half}.embed_tokens.weight"] = whole["model.shared.weight"].clone()
        (folder / "model.safetensors").unlink()
        save = torch.save if file.endswith(".bin") else save_file
        save(weights(whole), folder / file)
        values = json.loads((folder / "config.json").read_text())
        values |= {"forced_eos_token_id": 2, "forced_bos_token_id": 0, **dict(config)}
        (folder / "config.json").write_text(json.dumps(values))
        return folder

    return write


@pytest.mark.parametrize("file", ["pytorch_model.bin", "model.safetensors"])
def test_the_weights_come_over_and_no_token_is_forced(published, tmp_path, file):
    folder = published(file=file)
    report = import_checkpoint(folder, tmp_path / "ours")
    facts = report.facts
    assert report.layout == "genbioel"
    assert (facts["n_layers"], facts["n_decoder_layers"], facts["width"]) == (1, 1, 16)
    assert report.left_out == ()
    seq2seq, expected = Seq2SeqModel.from_pretrained(tmp_path / "ours"), tiny_seq2seq(NAMES)
    assert seq2seq.start == 2
    assert seq2seq.model.dtype == torch.float32
    theirs = expected.model.half().float().state_dict()
    ours = seq2seq.model.state_dict()
    assert set(ours) == set(theirs)
    for name in theirs:
        assert torch.equal(ours[name], theirs[name]), name
    for config in (seq2seq.model.config, seq2seq.model.generation_config):
        for key in ("forced_bos_token_id", "forced_eos_token_id"):
            assert getattr(config, key, None) is None
    assert seq2seq.tokens(["heart attack"]) == expected.tokens(["heart attack"])
    shared = seq2seq.model.model
    assert shared.encoder.embed_tokens.weight is shared.decoder.embed_tokens.weight
    assert seq2seq.model.lm_head.weight is shared.shared.weight


def test_it_writes_what_the_stock_model_writes(published, tmp_path):
    folder = published()
    import_checkpoint(folder, tmp_path / "ours")
    stock = BartForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    ours = Seq2SeqModel.from_pretrained(tmp_path / "ours").model.eval()
    given = {"input_ids": torch.tensor([[0, 9, 7, 2]]), "decoder_input_ids": torch.tensor([[2, 5]])}
    with torch.no_grad():
        assert torch.allclose(stock(**given).logits, ours(**given).logits, atol=1e-5)


def test_left_out_weights_are_reported_and_sizes_follow_from_the_weights(published, tmp_path):
    def with_more(weights):
        return {
            **weights,
            "classification_head.dense.weight": torch.ones(2, 2),
            "soft_prompt_enc.weight": torch.ones(0, 16),
        }

    folder = published(with_more, config={"encoder_layers": 12, "d_model": 1024})
    report = import_checkpoint(folder, tmp_path / "ours")
    assert report.left_out == ("classification_head.dense.weight", "soft_prompt_enc.weight")
    assert report.facts["n_layers"] == 1


def _without(key):
    return lambda weights: {name: value for name, value in weights.items() if name != key}


@pytest.mark.parametrize(
    ("weights", "config", "problem"),
    [
        (lambda w: {**w, "soft_prompt_enc.weight": torch.ones(4, 16)}, {}, "has soft prompts"),
        (lambda w: {**w, "soft_prompt_dec.weight": torch.ones(4, 16)}, {}, "has soft prompts"),
        (
            _without("model.decoder.layers.0.fc1.bias"),
            {},
            "lacks 1 weights of a BART, first model.decoder.layers.0.fc1.bias",
        ),
        (_without("model.encoder.layers.0.fc1.weight"), {}, "lacks the weight model.encoder"),
        (
            lambda w: {**w, "model.encoder.layers.0.fc2.bias": torch.ones(3)},
            {},
            r"expected \(16,\) for model.encoder.layers.0.fc2.bias, found \(3,\)",
        ),
        (lambda w: w, {"model_type": "mbart"}, "is a mbart, expected a bart"),
        (
            lambda w: {
                k: v[:200] if "shared" in k or "embed_tokens" in k or "lm_head" in k else v
                for k, v in w.items()
            },
            {},
            "tokens, the weights have 200",
        ),
    ],
)
def test_faults_are_one_line(published, tmp_path, weights, config, problem):
    def shortened(whole):
        made = weights(whole)
        bias = made.get("final_logits_bias")
        rows = len(made["model.shared.weight"])
        return made if bias is None else {**made, "final_logits_bias": bias[:, :rows]}

    folder = published(shortened, config)
    with pytest.raises(InputError, match=problem) as caught:
        import_checkpoint(folder, tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ours").exists()


def test_pickled_soft_prompts_are_refused_unread(published, tmp_path, capsys):
    folder = published()
    with (folder / "soft_prompt_enc.pth").open("wb") as file:
        pickle.dump(Mischief(), file)
    with pytest.raises(InputError, match=r"soft prompts in soft_prompt_enc.pth, a pickled module"):
        import_checkpoint(folder, tmp_path / "ours")
    assert capsys.readouterr().out == ""
