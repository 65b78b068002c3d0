"""Tables of probes: each store and each text has its figures."""

from __future__ import annotations

import json
from argparse import Namespace

import pytest

from biograft.errors import ConfigError


def test_similar_names_are_told_for_each_store(script):
    def found(label, right):
        parts = {"D1": {"acc@1": right, "n": 1200, "interval": [right - 2, right + 2]}}
        return {"label": label, **parts, "D2": {"n": 0, "why": "none"}, "D3": parts["D1"]}

    stores = {
        "diseases": {
            "chance": 5.0,
            "command": "it",
            "encoders": [found("letters", 40.0), found("ours", 50.25)],
        },
        "findings": {"chance": 5.0, "encoders": [found("letters", 30.0)]},
    }
    text = script("probing_tables").similar_names({"asked": stores})
    assert "Queries of diseases: D1 1,200, D2 0, D3 1,200; of findings" in text
    assert "| ours | 50.2 (48.2 to 52.2) |  | 50.2 |  |  |  |" in text
    assert "| letters | 40.0 (38.0 to 42.0) |  | 40.0 | 30.0 (28.0 to 32.0) |  | 30.0 |" in text


def test_attention_that_moves_less_for_a_synonym_is_told(script):
    model = {"encoder": "all", "synonym": {"mean": 0.123}, "random": {"mean": 0.456}}
    texts = {
        "Chinese": {
            "n_sentences": 40,
            "command": "it",
            "models": [{**model, "n_synonym_nearer": 30}],
        }
    }
    text = script("probing_tables").attention_change({"asked": texts})
    assert "| Chinese (40) | all | 0.12 | 0.46 | 75% |" in text


def test_answers_of_a_probe_stand_side_by_side_without_texts(script, tmp_path, monkeypatch):
    probes = script("probes")
    out = tmp_path / "found.json"
    answer = '{"n_sentences": 2, "sentences": ["She had a fever."]}'
    done = Namespace(returncode=0, stdout=answer)
    monkeypatch.setattr(probes.subprocess, "run", lambda *_, **__: done)
    for name in ("first", "second"):
        probes.run(Namespace(out=out, name=name, probe=["attention", "--file", "/a/b/corpus"]))
    found = json.loads(out.read_text())["asked"]
    assert list(found) == ["first", "second"]
    assert found["first"]["n_sentences"] == 2
    assert "sentences" not in found["first"]
    assert found["second"]["command"].endswith("--name second -- attention --file corpus")
    done.returncode = 2
    with pytest.raises(ConfigError, match="the probe failed with 2: attention"):
        probes.run(Namespace(out=out, name="third", probe=["attention"]))
    assert list(json.loads(out.read_text())["asked"]) == ["first", "second"]
