"""Our own format of concepts reads back what was written, whatever the texts are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from biograft.kb import BuildConfig, KnowledgeBase, build_store, export_store
from biograft.kb.names import is_invisible
from biograft.kb.records import IdKind, NameKind
from biograft.kb.sources import SourceConfig


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("round-trip")


def words(*excluded: str) -> st.SearchStrategy[str]:
    """Texts without blanks at their ends, and without some categories of characters."""
    characters = st.characters(exclude_categories=["Cs", "Cc", "Cf", *excluded])
    texts = st.text(characters, min_size=1, max_size=12).map(str.strip)
    return texts.filter(lambda text: not is_invisible(text))


WORDS = words()
LINES = words("Zl", "Zp")
"""Names with line ends are folded, and such ids rejected; hidden characters go everywhere."""
LANGUAGES = st.sampled_from(["en", "zh", "de"])
SOURCES = st.sampled_from(["", "MSH", "a|b"])
TYPES = [
    {"type": "T047", "label": "Disease or Syndrome", "tree": "B2.2.1.2.1"},
    {"type": "T121", "label": "", "tree": ""},
    {"type": "病", "label": "疾病", "tree": ""},
]


def facts(**fields: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, str]]]:
    distinct = [name for name in fields if name not in ("kind", "source")]
    return st.lists(
        st.fixed_dictionaries(fields),
        max_size=4,
        unique_by=lambda fact: tuple(fact[name] for name in distinct),
    )


@st.composite
def knowledge(draw: st.DrawFn) -> list[dict[str, object]]:
    """Concepts that say everything our format can say, and relations among them."""
    ids = draw(
        st.lists(
            st.from_regex(r"[A-Z]{1,3}:?[0-9]{1,4}", fullmatch=True),
            min_size=1,
            max_size=6,
            unique_by=lambda i: i.replace(":", ""),
        )
    )
    kinds = st.sampled_from(list(map(str, NameKind)))
    id_kinds = st.sampled_from([str(IdKind.ALTERNATE), str(IdKind.XREF)])
    concepts = []
    for own in ids:
        tails = st.sampled_from([other for other in ids if other != own] or [own])
        relation = facts(relation=LINES, tail=tails, source=SOURCES)
        value = {
            "id": own,
            "names": draw(facts(text=LINES, language=LANGUAGES, kind=kinds, source=SOURCES)),
            "definitions": draw(facts(text=WORDS, language=LANGUAGES, source=SOURCES)),
            "types": draw(st.lists(st.sampled_from(TYPES), unique_by=lambda t: t["type"])),
            "ids": draw(facts(id=LINES.map(lambda word: f"~{word}"), kind=id_kinds)),
            "relations": draw(relation) if len(ids) > 1 else [],
        }
        concepts.append(value)
    return concepts


def canonical(concepts: list[dict[str, object]], source: str) -> dict[object, object]:
    """Concepts without the order of their facts, an empty source being the file's name."""

    def facts_of(value: object) -> object:
        named = [f | {"source": source} if f.get("source") == "" else f for f in value]
        return sorted(named, key=lambda fact: sorted(fact.items()))

    return {
        concept["id"]: {
            key: value if key == "id" else facts_of(value)
            for key, value in concept.items()
            if value
        }
        for concept in concepts
    }


def build_and_export(source: Path, folder: Path, name: str) -> Path:
    config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
    report = build_store(config, folder / "KB", overwrite=True)
    assert report.sources[0].rejected == {}
    out = folder / name
    export_store(KnowledgeBase.open(folder / "KB"), out, "jsonl", overwrite=True)
    return out


@settings(
    max_examples=60, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(knowledge())
def test_jsonl_round_trip(folder, concepts):
    lines = (json.dumps(concept, ensure_ascii=False) + "\n" for concept in concepts)
    (folder / "x.jsonl").write_text("".join(lines), "utf-8", newline="")
    out = build_and_export(folder / "x.jsonl", folder, "y.jsonl")
    text = out.read_text("utf-8")
    written = [json.loads(line) for line in text.split("\n") if line]
    assert canonical(written, "x.jsonl") == canonical(concepts, "x.jsonl")
    again = build_and_export(out, folder, "z.jsonl")
    assert again.read_bytes() == out.read_bytes()
