"""Ten sentences with entities, relation examples, and a tiny encoder for their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from biograft.models import TextEncoder
from biograft.models.tasks import TaskTraining
from biograft.text import RelationExample
from biograft.text.documents import Document, Mention

SENTENCES = (
    "aspirin helps with heart attack today",
    "no fever after heart attack",
    "lung cancer and fever",
    "he took aspirin",
    "a cancer of the lung",
    "fever and heart pain",
    "lung pain is no heart attack",
    "aspirin and fever",
    "a cold fever",
    "nothing was found",
)
NAMES = {"heart attack": "Disease", "fever": "Disease", "lung cancer": "Disease", "aspirin": "Drug"}
VERBS = {"stops": "effect", "meets": "false"}


def document(number: int, text: str) -> Document:
    """Mark the names in a sentence."""
    mentions = [
        Mention(text.index(name), text.index(name) + len(name), name, type=kind)
        for name, kind in NAMES.items()
        if name in text
    ]
    return Document(f"d{number}", text, tuple(sorted(mentions, key=lambda m: m.start)))


def relation(text: str, label: str, name: str = "") -> RelationExample:
    """Make an example of which the first and the last word are the mentions."""
    words = text.split()
    first = Mention(0, len(words[0]), words[0], type="drug")
    start = len(text) - len(words[-1])
    return RelationExample(
        text, first, Mention(start, len(text), words[-1], type="gene"), label, "", name
    )


@pytest.fixture(scope="session")
def documents() -> list[Document]:
    return [document(number, text) for number, text in enumerate(SENTENCES)]


@pytest.fixture(scope="session")
def relations() -> list[RelationExample]:
    drugs, genes = ("aspirin", "cold", "fever"), ("lung", "heart", "cancer")
    return [
        relation(f"{drug} {verb} the {gene}", label, f"{drug}-{verb}-{gene}")
        for drug in drugs
        for gene in genes
        for verb, label in VERBS.items()
    ]


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_models import tiny_encoder_folder

    folder = tmp_path_factory.mktemp("tasks") / "encoder"
    return tiny_encoder_folder(folder, [*SENTENCES, *VERBS])


@pytest.fixture
def load(encoder_folder: Path) -> Callable[..., TextEncoder]:
    """Load the encoder: ``load(max_length=12)``."""

    def encoder(max_length: int = 32) -> TextEncoder:
        return TextEncoder.from_pretrained(encoder_folder, max_length=max_length)

    return encoder


@pytest.fixture(scope="session")
def training() -> Callable[..., TaskTraining]:
    """Describe a short training: ``training(epochs=3)``."""
    usual = TaskTraining(epochs=20, batch_size=4, learning_rate=5e-3, precision="fp32")
    return lambda **values: replace(usual, **values)
