"""Loading with transformers: what a folder may contain; its code is never run."""

from __future__ import annotations

import io
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from mischief import Mischief
from safetensors.torch import load_file, save_file
from tiny_models import tiny_encoder_folder
from transformers import AutoModelForSeq2SeqLM, BertTokenizer

from biograft.errors import BiograftError, StoreError
from biograft.models import (
    MaskedLanguageModel,
    Seq2SeqModel,
    TextEncoder,
    load_config,
    load_masked_lm,
    load_model,
    load_tokenizer,
)

LOADERS: list[Any] = [
    TextEncoder.from_pretrained,
    MaskedLanguageModel.from_pretrained,
    Seq2SeqModel.from_pretrained,
    load_masked_lm,
    load_config,
    load_tokenizer,
    lambda folder: load_model(AutoModelForSeq2SeqLM, folder),
    lambda folder: load_tokenizer(folder, BertTokenizer),
]


def with_code(folder: Path, file: str = "config.json", **more: Any) -> Path:
    """Let a file of an encoder's folder name a module, which writes a file if it is imported."""
    tiny_encoder_folder(folder, ["flu"])
    witness = folder.parent / "it-ran"
    (folder / "mischief.py").write_text(f"open({str(witness)!r}, 'w').close()\n")
    names = ("AutoConfig", "AutoModel", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM")
    auto_map: dict[str, Any] = dict.fromkeys(names, "mischief.Anything")
    auto_map["AutoTokenizer"] = ["mischief.Anything", "mischief.Anything"]
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), "auto_map": auto_map, **more}))
    return witness


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize(
    ("file", "more"),
    [
        ("config.json", {}),
        ("config.json", {"model_type": "mischief"}),
        ("tokenizer_config.json", {"tokenizer_class": "Mischief"}),
    ],
)
def test_no_code_of_a_folder_is_run_and_there_is_no_prompt(tmp_path, monkeypatch, load, file, more):
    """Guards: a module named by ``auto_map`` ran once somebody, or a pipe, had answered "y"."""
    witness = with_code(tmp_path / "E", file, **more)
    stdin = io.StringIO("y\n" * 9)
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(BiograftError) as caught:
        load(tmp_path / "E")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "E") in str(caught.value)
    assert "auto_map" in str(caught.value)
    assert not witness.exists()
    assert stdin.tell() == 0


def test_code_that_is_named_elsewhere_is_not_run_either(tmp_path, monkeypatch):
    """Guards: ``configuration_files`` leads transformers to a file that nobody had looked into."""
    witness = with_code(tmp_path / "E", model_type="mischief")
    config = tmp_path / "E" / "config.json"
    config.rename(config.with_name("config.4.0.0.json"))
    config.write_text(json.dumps({"configuration_files": ["config.4.0.0.json"]}))
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    for load in (TextEncoder.from_pretrained, Seq2SeqModel.from_pretrained, load_config):
        with pytest.raises(StoreError):
            load(tmp_path / "E")
    assert not witness.exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("kernel", ["any/kernel", {"": "any/kernel"}, "paged|any/kernel"])
def test_no_kernel_of_the_hub_is_loaded_for_a_folder(tmp_path, key, kernel):
    """Guards: transformers downloads and runs the kernel that config.json names."""
    tiny_encoder_folder(tmp_path / "E", ["flu"])
    vectors = TextEncoder.from_pretrained(tmp_path / "E").encode(["flu"])
    config = tmp_path / "E" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), key: kernel}))
    encoder = TextEncoder.from_pretrained(tmp_path / "E")
    assert encoder.model.config._attn_implementation in ("sdpa", "eager")
    assert encoder.encode(["flu"]).tolist() == vectors.tolist()


def test_weights_that_need_another_package_are_an_error_of_one_line(tmp_path):
    tiny_encoder_folder(tmp_path / "E", ["flu"])
    config = tmp_path / "E" / "config.json"
    quantised = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    config.write_text(json.dumps({**json.loads(config.read_text()), **quantised}))
    with pytest.raises(StoreError) as caught:
        TextEncoder.from_pretrained(tmp_path / "E")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["pickle", "torch file with a pickle", "empty", "no weights"])
def test_weights_in_a_bin_file_are_an_error_of_one_line_and_no_pickle_runs(tmp_path, capsys, what):
    """Guards: errors of ``pytorch_model.bin`` were tracebacks, or *Aborted!* alone."""
    tiny_encoder_folder(tmp_path / "E", ["flu"])
    (tmp_path / "E" / "model.safetensors").unlink()
    path = tmp_path / "E" / "pytorch_model.bin"
    path.write_bytes(pickle.dumps(Mischief(), 2) if what == "pickle" else b"")
    if what not in ("pickle", "empty"):
        torch.save([1, 2] if what == "no weights" else {"a": Mischief()}, path)
    with pytest.raises(StoreError) as caught:
        TextEncoder.from_pretrained(tmp_path / "E")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "E") in str(caught.value)
    assert capsys.readouterr().out == ""


def without_pooler(folder: Path) -> Path:
    """Take the pooler's weights away, as in many published encoders."""
    tiny_encoder_folder(folder, ["flu", "heart attack"])
    path = folder / "model.safetensors"
    weights = {key: value for key, value in load_file(path).items() if "pooler." not in key}
    save_file(weights, path, {"format": "pt"})
    return folder


def test_an_encoder_without_pooler_is_saved_the_same_whatever_was_drawn_before(tmp_path):
    folder = without_pooler(tmp_path / "E")
    for name in "ab":
        torch.rand(3)
        TextEncoder.from_pretrained(folder).save_pretrained(tmp_path / name)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in "ab")
    assert "pooler.dense.weight" in first
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_the_saved_tokenizer_does_not_depend_on_what_was_encoded_before(tmp_path):
    tiny_encoder_folder(tmp_path / "E", ["flu", "heart attack"])
    encoder = TextEncoder.from_pretrained(tmp_path / "E")
    encoder.save_pretrained(tmp_path / "a")
    encoder.encode(["flu", "heart attack"])
    encoder.save_pretrained(tmp_path / "b")
    first, second = (tmp_path / name / "tokenizer.json" for name in "ab")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("n", [-1, 0, "two", None])
def test_an_encoder_of_no_layers_is_refused(tmp_path, n):
    """Guards: it was read without a word, and its vectors were those of the words alone."""
    tiny_encoder_folder(tmp_path / "e", ["flu"])
    path = tmp_path / "e" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_hidden_layers": n}))
    with pytest.raises(StoreError, match=r"num_hidden_layers|no encoder that can be loaded"):
        TextEncoder.from_pretrained(tmp_path / "e")
