"""The Chinese base: its text has no test texts, its encoder only the tokens of the text."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import torch
from tiny_models import tiny_tokenizer
from transformers import BertConfig, BertModel

from biograft.errors import InputError
from biograft.models.pretrained import load_parts
from biograft_lab.replication import chinese_base

TEST = "妊娠期糖尿病应该如何治疗比较好"


def test_test_texts_leave_the_training_text(tmp_path, monkeypatch):
    monkeypatch.setattr(chinese_base, "_TESTS", ("q/test.txt", "n/test.json", "l/list.json"))
    zh = tmp_path / "zh"
    for folder in ("q", "n", "l", "medical_kg"):
        (zh / folder).mkdir(parents=True)
    (tmp_path / "text").mkdir()
    (zh / "q" / "test.txt").write_text(f"1\t{TEST}？\t短文\n", "utf-8")
    line = {"text": "肝癌晚期患者的饮食护理要点", "label": "无"}
    (zh / "n" / "test.json").write_text(json.dumps(line) + "\n", "utf-8")
    (zh / "l" / "list.json").write_text(
        json.dumps([{"text": "支气管哮喘急性发作时的处理"}], indent=1)
    )
    questions = f"请问{TEST}呢\n感冒了怎么办\n支气管哮喘急性发作时的处理\n"
    with gzip.open(tmp_path / "text" / "chinese_medical.txt.gz", "wt", encoding="utf-8") as file:
        file.write(questions)
    page = {"id": "1", "desc": "这种病与遗传和环境有关。" * 20, "name": "某病"}
    (zh / "medical_kg" / "diseases.jsonl").write_text(json.dumps(page) + "\n", "utf-8")
    report = chinese_base.write_text(tmp_path, tmp_path / "out")
    kept = (tmp_path / "out" / "text.txt").read_text("utf-8").splitlines()
    assert kept == ["感冒了怎么办", page["desc"]]
    assert (report["test_texts"], report["questions"]["removed"]) == (3, 2)
    with pytest.raises(InputError, match="BIOGRAFT_DATA"):
        chinese_base.write_text(tmp_path / "nothing", tmp_path / "out2")


def test_a_cut_vocabulary_keeps_the_vectors_of_its_tokens(tmp_path):
    tokenizer = tiny_tokenizer(["fever cough 糖 尿 rash"])
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=8, **sizes)
    model = BertModel(config, add_pooling_layer=False)
    model.save_pretrained(tmp_path / "whole")
    tokenizer.save_pretrained(tmp_path / "whole")
    n = chinese_base.cut_vocabulary(tmp_path / "whole", ["fever", "fever"], tmp_path / "cut", 2)
    cut, small = load_parts(tmp_path / "cut")
    vocabulary, before = small.get_vocab(), tokenizer.get_vocab()
    assert len(vocabulary) == n == cut.config.vocab_size < len(before)
    assert "fever" in vocabulary
    assert "rash" not in vocabulary
    ours, theirs = (m.get_input_embeddings().weight for m in (cut, model))
    for token, row in vocabulary.items():
        assert torch.equal(ours[row], theirs[before[token]])
    assert small.tokenize("fever 糖") == ["fever", "糖"]


def test_a_pair_of_the_graph_is_in_one_split_in_both_directions(tmp_path):
    """Otherwise the answers of the test split could be read off the training split."""
    source = tmp_path / "zh" / "medical_kg" / "triples_derived.tsv.gz"
    source.parent.mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = [f"e{a}\thas\te{b}\tD\tD\tx" for a, b in rng.integers(0, 30, (600, 2)).tolist()]
    rows += [f"e{n}\talias\tname {n}\tD\tD\tx" for n in range(30)]
    header = "head\trelation\ttail\thead_type\ttail_type\tsource"
    source.write_bytes(gzip.compress("\n".join([header, *rows]).encode()))
    counts = chinese_base.split_graph(tmp_path, tmp_path / "graph")
    split = {
        name: (tmp_path / "graph" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        for name in ("train", "test")
    }
    assert {name: len(lines) - 1 for name, lines in split.items()} == counts
    assert {lines[0] for lines in split.values()} == {header}
    assert sorted(split["train"][1:] + split["test"][1:]) == sorted(rows)
    pairs = {
        name: {frozenset(line.split("\t")[:3:2]) for line in lines[1:]}
        for name, lines in split.items()
    }
    assert not pairs["train"] & pairs["test"]
    assert 0.03 < counts["test"] / len(rows) < 0.2
    assert not any("alias" in line for line in split["test"])
