"""Fixtures for the tests of probes: a tiny masked language model."""

from __future__ import annotations

import json

import pytest

TEXTS = ("aspirin treats pain", "fever is a symptom of flu", "流感 头痛")


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory):
    """A tiny model of few tokens, in 64 bits, so that nothing is decided by rounding."""
    from tiny_masked_lm import tiny_masked_lm_folder

    from biograft.models.masked_lm import MaskedLanguageModel

    folder = tiny_masked_lm_folder(tmp_path_factory.mktemp("lm") / "lm", TEXTS)
    model = MaskedLanguageModel.from_pretrained(folder, device="cpu")
    model.model.double()
    return model


CONCEPTS = [
    {
        "id": "D1",
        "names": {"en": ["Fever (symptom)", "high temperature"], "zh": ["发热", "发烧"]},
    },
    {"id": "D2", "names": {"en": ["Headache"], "zh": ["头痛"]}, "relations": {"is-a": ["D5"]}},
    {
        "id": "D3",
        "names": {"en": ["Aspirin", "ASA"], "zh": ["阿司匹林"]},
        "relations": {"treats": ["D1", "D2", "D7"], "same_as": ["D4"]},
    },
    {"id": "D4", "names": {"en": ["aspirin"]}, "relations": {"treats": ["D5", "D1"]}},
    {"id": "D5", "names": {"en": ["Pain", "ache"]}},
    {"id": "D6", "names": {"zh": ["布洛芬"]}, "relations": {"treats": ["D1", "D2"]}},
    {"id": "D7", "names": {"en": ["Migraine"]}, "relations": {"is-a": ["D2"]}},
]


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """A small store in two languages; two of its concepts have one name."""
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.sources import SourceConfig

    folder = tmp_path_factory.mktemp("store")
    path = folder / "concepts.jsonl"
    path.write_text("".join(json.dumps(c, ensure_ascii=False) + "\n" for c in CONCEPTS), "utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=path),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")
