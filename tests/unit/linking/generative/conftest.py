"""Two small stores, and a tiny model that knows how the names of the first are written."""

from __future__ import annotations

import pytest
from generative_store import CONCEPTS, OTHERS, store_in
from tiny_seq2seq import tiny_seq2seq

from biograft.kb import KnowledgeBase
from biograft.models import Seq2SeqModel


@pytest.fixture(scope="session")
def named(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    return store_in(tmp_path_factory.mktemp("named"), CONCEPTS)


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    return store_in(tmp_path_factory.mktemp("other"), OTHERS)


@pytest.fixture(scope="session")
def seq2seq(named: KnowledgeBase) -> Seq2SeqModel:
    """A tiny model that no test may change."""
    return tiny_seq2seq(named.table("names").column("text").to_pylist())
