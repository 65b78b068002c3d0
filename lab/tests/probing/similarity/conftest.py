"""Fixtures for the similarity probe: a store with equivalent concepts and similar names."""

from __future__ import annotations

import json

import pytest

DISEASES = [
    "acute fever",
    "acute fevers",
    "acute fevre",
    "chronic fever",
    "chronic fevers",
    "aching fever",
    "acute fibre",
    "acute favor",
    "active fever",
    "acutest fever",
    "accurate fever",
]


def concepts():
    rows = [
        {
            "id": f"D{k}",
            "names": {"en": [name]},
            "types": ["Disease"] if k % 3 else ["Disease", "Sign"],
            "relations": {"has": [f"S{n}" for n in range(k % 5)]},
        }
        for k, name in enumerate(DISEASES)
    ]
    rows[0]["names"] = {"en": ["acute fever", "Acute-Fever", "acute febris"], "zh": ["急性发热"]}
    rows[0]["relations"] = {"has": ["S0", "S1", "S2", "S3"], "same_as": ["D1", "D2"]}
    rows[1]["relations"] = {"has": ["S0", "S1", "S2"], "same_as": ["D0"]}
    rows[2]["relations"] = {"has": ["S0", "S1"], "same_as": ["D2"]}
    rows[4]["names"] = {"en": ["chronic fevers", "long fever"], "zh": ["慢性发热", "久热"]}
    rows[5]["names"]["en"].append("acute fibre")  # also the name of another
    rows += [
        {"id": f"S{n}", "names": {"en": [f"acute pain {n}"]}, "types": ["Sign"]} for n in "0123"
    ]
    rows += [{"id": "N0", "names": {"en": ["acute feverish", "feverish"]}}]
    rows += [{"id": "N1", "names": {"en": ["feverish fit"]}}]
    return rows


@pytest.fixture(scope="session")
def similar_store(tmp_path_factory):
    """Build a store of diseases with similar names, some of them equivalent."""
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.sources import SourceConfig

    folder = tmp_path_factory.mktemp("alike")
    path = folder / "concepts.jsonl"
    path.write_text("".join(json.dumps(c, ensure_ascii=False) + "\n" for c in concepts()), "utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=path),)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")
