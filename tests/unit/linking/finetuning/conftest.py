"""A small store of complaints, what lay people call them, and a tiny encoder of all the words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tiny_models import tiny_encoder_folder

from biograft.config import from_mapping
from biograft.kb import KnowledgeBase
from biograft.linking import LabelledMention, LexicalIndex
from biograft.models import TextEncoder
from biograft.training.linkers import CandidateFinder, FinetuneConfig, make_examples

COMPLAINTS = [
    {"id": "C0", "name": "abdominal pain", "names": ["pain of abdomen", "Abdominal Pain"]},
    {"id": "C1", "name": "insomnia", "names": ["sleeplessness"]},
    {"id": "C2", "name": "myalgia", "names": ["pain of muscles"]},
    {"id": "C3", "name": "fatigue", "names": ["lassitude"]},
    {"id": "C4", "name": "cephalgia", "names": ["headache"]},
    {"id": "C5", "name": "dyspnea", "names": ["short of breath"]},
    {"id": "C6", "name": "belly button", "names": ["navel"]},
    {"id": "C7", "name": "toothache", "names": ["dental pain"]},
]
LAY = [
    ("belly ache", "C0"),
    ("my belly hurts", "C0"),
    ("cannot sleep", "C1"),
    ("awake all night", "C1"),
    ("sore muscles", "C2"),
    ("tired all day", "C3"),
    ("my head hurts", "C4"),
    ("no air", "C5"),
]


class Clinic(NamedTuple):
    """Everything that fine-tuning needs."""

    kb: KnowledgeBase
    load: Callable[[], TextEncoder]
    mentions: list[LabelledMention]
    finder: Callable[..., CandidateFinder]


def configure(**options: Any) -> FinetuneConfig:
    """Configure small quick runs: ``configure(k=6, training={"steps": 3})``."""
    training = {"batch_size": 4, "epochs": 2, "precision": "fp32", "learning_rate": 1e-3}
    options = {"k": 6, "reach": 4, **options}
    return from_mapping(
        FinetuneConfig, {**options, "training": {**training, **options.get("training", {})}}
    )


@pytest.fixture
def config_of() -> Callable[..., FinetuneConfig]:
    return configure


@pytest.fixture
def clinic(store_of, tmp_path) -> Clinic:
    kb = store_of(COMPLAINTS)
    mentions = [LabelledMention(text, frozenset({concept})) for text, concept in LAY]
    words = [*kb.table("names").column("text").to_pylist(), *(text for text, _ in LAY)]
    folder = tiny_encoder_folder(tmp_path / "tiny", words)

    def load() -> TextEncoder:
        return TextEncoder.from_pretrained(folder, pooling="mean", max_length=16)

    def finder(mentions=mentions, encoder=None, kb=kb, **options: Any) -> CandidateFinder:
        config, encoder = configure(**options), encoder or load()
        data = make_examples(kb, encoder, mentions, config)
        return CandidateFinder(data, LexicalIndex.build(kb, config.lexical), encoder, config)

    return Clinic(kb, load, mentions, finder)
