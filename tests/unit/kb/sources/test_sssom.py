"""Mapping sets as sources: cross-references of whatever side the knowledge base has."""

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

HEADER = "# curie_map:\n#   mesh: http://id.nlm.nih.gov/mesh/\n"
COLUMNS = "subject_id\tpredicate_id\tpredicate_modifier\tobject_id\n"
ROWS = (
    "MONDO:1\tskos:exactMatch\t\tmesh:D000001\n"
    "mesh:D000002\towl:sameAs\t\tdoid:2\n"
    "MONDO:3\tskos:exactMatch\tNot\tmesh:D000003\n"
    "MONDO:4\tskos:broadMatch\t\tmesh:D000003\n"
    "MONDO:9\tskos:exactMatch\t\tmesh:D000009\n"
)


def build(tmp_path, *tables, merge="none"):
    mapped = tmp_path / "set.sssom.tsv"
    mapped.write_text(HEADER + COLUMNS + ROWS)
    sources = [SourceConfig(path=mapped)]
    for n, table in enumerate(tables):
        path = tmp_path / f"{n}.csv"
        path.write_text(f"id,name\n{table}")
        sources.append(SourceConfig(path=path))
    config = BuildConfig(sources=tuple(sources), merge=merge)
    report = build_store(config, tmp_path / "KB")
    return KnowledgeBase.open(tmp_path / "KB"), report


MESH = "MESH:D000001,asthma\nMESH:D000002,gout\nMESH:D000003,flu\n"


@pytest.mark.parametrize(("other", "concept"), [("MONDO:1", "asthma"), ("DOID:2", "gout")])
def test_both_directions_are_cross_references(tmp_path, other, concept):
    kb, report = build(tmp_path, MESH)
    assert [each.name for each in kb.by_xref(other)] == [concept]
    assert not kb.by_xref("MONDO:3")
    assert not kb.by_xref("MONDO:4")
    assert not any(source.n_rejected for source in report.sources)


def test_concepts_of_both_sides_are_merged(tmp_path):
    kb, _ = build(tmp_path, MESH, "MONDO:1,asthma\nMONDO:2,rash\n", merge="xrefs")
    assert len(kb) == 4
    assert kb["MONDO:1"].id == kb["MESH:D000001"].id
