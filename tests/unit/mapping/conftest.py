"""A small store whose ids are retired, merged, renamed and referred to, and its linker."""

import json

import pytest
from athena_bundle import write_athena

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker


@pytest.fixture(scope="session")
def store_of(tmp_path_factory):
    def build(concepts):
        folder = tmp_path_factory.mktemp("mapping")
        (folder / "kb.jsonl").write_text("\n".join(map(json.dumps, concepts)), "utf-8")
        config = BuildConfig(sources=(SourceConfig(path=folder / "kb.jsonl", format="jsonl"),))
        build_store(config, folder / "KB")
        return KnowledgeBase.open(folder / "KB")

    return build


@pytest.fixture(scope="session")
def kb(store_of):
    return store_of(
        [
            {
                "id": "HP:1",
                "name": "Fever",
                "names": ["chill"],
                "ids": [
                    {"id": "HP:9", "kind": "alternate"},
                    {"id": "OMOP:437663", "kind": "xref"},
                    {"id": "HP:7", "kind": "replaced"},
                    {"id": "HP:6", "kind": "replaced"},
                ],
            },
            {
                "id": "HP:2",
                "name": "Cold Temperature",
                "names": ["chill", "weather cold"],
                "ids": [{"id": "HP:6", "kind": "replaced"}, {"id": "HP:5", "kind": "consider"}],
            },
            {"id": "HP:3", "name": "Sodium in urine"},
            {"id": "HP:4", "name": "Sodium in blood"},
            {"id": "HP:8", "name": "Heart attack", "ids": [{"id": "OMOP:4329847", "kind": "xref"}]},
        ]
    )


@pytest.fixture(scope="session")
def linker(kb):
    return Linker.open(kb)


@pytest.fixture(scope="session")
def athena(tmp_path_factory):
    """A knowledge base of OMOP vocabularies."""
    folder = tmp_path_factory.mktemp("athena")
    config = SourceConfig(path=write_athena(folder / "ATHENA"))
    build_store(BuildConfig(sources=(config,)), folder / "KB")
    return KnowledgeBase.open(folder / "KB")
