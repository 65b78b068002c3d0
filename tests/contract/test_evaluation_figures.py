"""Figures of evaluations with lexical search, by protocol, on the smallest real sets."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biograft import BuildConfig, KnowledgeBase, Linker, SourceConfig, build_store
from biograft.evaluation import (
    EvaluationConfig,
    GoldConfig,
    drop_queries,
    evaluate_assertions,
    evaluate_linking,
    evaluate_text,
    read_assertions,
    read_gold,
    read_gold_texts,
)

FEW = EvaluationConfig(n_resamples=20)
MEDIC = "entity_linking/medic/medic_06Jul2012.txt.gz"
NCBI = "entity_linking/ncbi_disease/original/NCBIdevelopset_corpus.txt"
CODES = "zh/term_normalisation/procedure_codes.tsv"
PROCEDURES = "zh/term_normalisation/procedures_dev.tsv"
PROTOCOLS: dict[str, dict[str, Any]] = {
    "lenient": {},
    "strict": {"scorer": "strict"},
    "without composites": {"gold": GoldConfig(drop_composites=True)},
    "distinct": {"gold": GoldConfig(drop_duplicates=True)},
    "composites whole": {"gold": GoldConfig(split_composites=False)},
    "composites split by the linker": {"config": replace(FEW, split_mentions=True)},
    "without context": {"config": replace(FEW, context=False)},
    "with NIL": {"config": replace(FEW, nil_below=0.6), "gold": GoldConfig(keep_nil=True)},
}


def build(folder: Path, *sources: SourceConfig) -> KnowledgeBase:
    build_store(BuildConfig(sources=sources), folder)
    return KnowledgeBase.open(folder)


@pytest.fixture(scope="module")
def medic(shared_data: Any, tmp_path_factory: pytest.TempPathFactory) -> Linker:
    source = SourceConfig(path=shared_data(MEDIC))
    return Linker.open(build(tmp_path_factory.mktemp("medic") / "KB", source))


def figures(linker: Linker, path: Path, form: str, protocol: dict[str, Any]) -> dict[str, Any]:
    gold = drop_queries(read_gold(path, form, protocol.get("gold")), linker.kb, ())
    result = evaluate_linking(
        linker,
        linker.kb,
        gold.queries,
        protocol.get("scorer", "lenient"),
        protocol.get("config", FEW),
    )
    return result.to_json()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_diseases(protocol, medic, shared_data, golden):
    found = figures(medic, shared_data(NCBI), "pubtator", PROTOCOLS[protocol])
    golden("evaluation", f"ncbi-disease dev {protocol}", found)


def test_chinese_procedures(shared_data, tmp_path, golden):
    with shared_data(CODES).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t") if len(row) == 2]
    lines = [f"{code}\t{name}\tzh" for code, name in rows]
    (tmp_path / "codes.tsv").write_text("\n".join(["id\tname\tlanguage", *lines]) + "\n")
    columns = {"id": "id", "name": "name", "language": "language"}
    source = SourceConfig(path=tmp_path / "codes.tsv", format="table", columns=columns)
    linker = Linker.open(build(tmp_path / "KB", source))
    for protocol in ("lenient", "strict", "distinct"):
        found = figures(linker, shared_data(PROCEDURES), "procedures", PROTOCOLS[protocol])
        golden("evaluation", f"procedures dev {protocol}", found)


def test_the_sample_of_the_starter(kb, golden):
    linker = Linker.open(kb)
    for protocol in ("lenient", "strict"):
        found = figures(linker, Path("starter"), "sample", PROTOCOLS[protocol])
        golden("evaluation", f"starter {protocol}", found)


def test_running_text(medic, shared_data, golden):
    """Found spans, mentions and concepts of documents, as evaluate text judges them."""
    documents = read_gold_texts(shared_data(NCBI)).documents[:40]
    result = evaluate_text(medic, documents, n_resamples=20)
    golden("evaluation", "ncbi-disease dev text", result.to_json())


@pytest.mark.parametrize("half", ["en-dev", "en-test", "zh-dev", "zh-test"])
def test_assertions(half, golden):
    result = evaluate_assertions(read_assertions(f"notes-{half}"))
    golden("evaluation", f"assertion notes-{half}", result.to_json())
