"""A random Qwen3, made here: aligned, indexed, linked and served."""

from __future__ import annotations

import httpx
import pytest
from generative_store import CONCEPTS, store_in
from served_app import served
from tiny_causal import tiny_causal_folder

from biograft.linking import Linker, build_index
from biograft.linking.dense.encoders import load_encoder
from biograft.serve import ServiceConfig, create_app
from biograft.training.pretraining import pretrain

pytest.importorskip("uvicorn")


def test_a_decoder_is_aligned_indexed_linked_and_served(tmp_path):
    kb = store_in(tmp_path, CONCEPTS)
    texts = [name.lower() for name in kb.table("names").column("text").to_pylist()]
    qwen = tiny_causal_folder(tmp_path / "qwen", [*texts, "find"], scale=1)
    recipe = {
        "base": "sapbert-cpu",
        "encoder": {"name": str(qwen), "pooling": "lasttoken", "query_prompt": "find: "},
        "training": {"steps": 60, "batch_size": 8, "learning_rate": 3e-3, "precision": "fp32"},
    }
    result = pretrain(recipe, kb, tmp_path / "run")
    log = (result.run / "metrics.jsonl").read_text()
    assert result.training.finished
    assert log
    encoder = load_encoder(result.encoder)
    assert (encoder.pooling, encoder.settings.query_prompt) == ("lasttoken", "find: ")
    assert type(encoder.model).__name__ == "Qwen3Model"
    build_index(kb, tmp_path / "index", encoder)
    linker = Linker.open(kb, tmp_path / "index")
    (candidates,) = linker.link_mentions(["myocardial infarction"])
    assert candidates[0].concept == "D4"
    assert {e.generator for c in candidates for e in c.evidence} >= {"dense"}
    patient = ServiceConfig(timeout=300, max_wait=300)  # on a busy machine
    app = create_app(tmp_path / "kb", tmp_path / "index", config=patient)
    with served(app) as address:
        answer = httpx.post(f"{address}/v1/link", json={"text": "No heart attack."}, timeout=300)
    assert answer.status_code == 200, answer.text
    (mention,) = answer.json()["mentions"]
    assert mention["concept"] == "D4"
