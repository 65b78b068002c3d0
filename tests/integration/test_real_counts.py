"""Stores built from real files hold exactly what the files hold."""

from __future__ import annotations

import pytest

from biograft.kb import BuildConfig, BuildReport, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig


@pytest.fixture
def built(tmp_path, shared_data):
    """Build a store from one real file: gives the report and the open store."""

    def build(name: str, **options: object) -> tuple[BuildReport, KnowledgeBase]:
        source = SourceConfig(path=shared_data(name), **options)
        report = build_store(BuildConfig(sources=(source,)), tmp_path / "KB", overwrite=True)
        return report, KnowledgeBase.open(tmp_path / "KB")

    return build


def counts(report: BuildReport, *tables: str) -> tuple[int, ...]:
    return tuple(report.counts[table] for table in tables)


def test_umls_135_as_one_store(tmp_path, shared_data):
    """The three parts have 6,529 different triples and no further entity."""
    parts = ("train", "valid", "test")
    sources = tuple(SourceConfig(path=shared_data(f"kg/umls135/{part}.txt")) for part in parts)
    report = build_store(BuildConfig(sources=sources), tmp_path / "KB")
    assert counts(report, "concepts", "names", "relations") == (135, 135, 6_529)
    assert [source.n_read for source in report.sources] == [5_216, 652, 661]


@pytest.mark.slow
def test_chinese_triples(built):
    """``data/README.md`` speaks of 14 relations; the file itself has 11."""
    report, base = built("zh/medical_kg/triples_derived.tsv.gz")
    assert counts(report, "relations", "concepts") == (363_546, 38_671)
    assert report.merged["relations"] == 0
    kinds = base.table("relations").column("relation").value_counts().to_pylist()
    by_name = {base.relation_names[entry["values"]]: entry["counts"] for entry in kinds}
    assert (len(by_name), by_name["alias"], by_name["has_symptom"]) == (11, 9_094, 75_862)


def test_ncbi_test_dictionary(built):
    """Every different key is a concept, as in the field's evaluation, though ids are shared."""
    report, base = built("entity_linking/ncbi_disease/biosyn/test_dictionary.txt.gz")
    assert report.sources[0].n_read == 73_024
    assert counts(report, "names", "concepts") == (73_024, 12_554)
    # C535800|137440|D016098 and 137440|D016098 are two concepts that share ids
    assert [c.id for c in base.by_id("D016098")] == ["C535800|137440|D016098", "137440|D016098"]


def test_scispacys_rrf_files(built):
    """Two concepts: C0000005 with two names, C0000039 with one, a definition and two types."""
    report, base = built("entity_linking/scispacy_fixtures/umls_META")
    assert counts(report, "concepts", "names", "definitions", "types") == (2, 3, 1, 3)
    assert base["C0000039"].definition.startswith("Synthetic phospholipid")
    assert [kind.code for kind in base["C0000039"].types] == ["T109", "T121"]


@pytest.mark.slow
def test_mesh_tree_numbers_become_ids_of_their_descriptors(tmp_path, shared_data):
    """Two of the 27,455 descriptors (Male and Female) stand in no tree."""
    folder = "entity_linking/mesh/"
    columns = {"id": "mesh_id", "name": "mesh_name"}
    sources = (
        SourceConfig(path=shared_data(folder + "mesh_descriptors_2015.tsv"), columns=columns),
        SourceConfig(
            path=shared_data(folder + "mesh_tree_numbers_2015.tsv.gz"),
            columns=columns | {"alternates": "mesh_tree_number"},
        ),
    )
    report = build_store(BuildConfig(sources=sources), tmp_path / "KB")
    assert [source.n_read for source in report.sources] == [27_455, 56_341]
    assert counts(report, "concepts", "names", "ids") == (27_455, 27_455, 56_341)
    base = KnowledgeBase.open(tmp_path / "KB")
    assert base["C14.907.585.500"].id == base["C14.280.647.500"].id == "D009203"
    assert [c.name for c in base if not c.ids] == ["Female", "Male"]


@pytest.mark.parametrize(
    ("name", "columns", "expected"),
    [
        (
            "entity_linking/mesh/mesh_chemical_names_derived.tsv.gz",
            {"id": "mesh_id", "name": "name"},
            {"concepts": 31_745, "names": 51_009},
        ),
        (
            "kg/hetionet/hetionet-v1.0-nodes.tsv.gz",
            {"id": "id", "name": "name", "type": "kind"},
            {"concepts": 47_031, "names": 47_031, "types": 47_031},
        ),
        # 49,536 lines, of which 269 repeat another
        ("kg/pharmkg8k/valid.tsv.gz", {}, {"relations": 49_267}),
    ],
)
def test_other_tables_and_triples(built, name, columns, expected):
    report, _ = built(name, columns=columns)
    assert {table: report.counts[table] for table in expected} == expected
    assert report.sources[0].rejected == {}


def test_translations_join_an_ontology(tmp_path, shared_data):
    """HPO's Chinese labels meet the OBO file by id."""
    names = ("obo/hp.obo.gz", "translations/hp-zh.babelon.tsv.gz")
    sources = tuple(SourceConfig(path=shared_data(f"ontologies/{name}")) for name in names)
    report = build_store(BuildConfig(sources=sources), tmp_path / "KB")
    assert report.sources[1].n_read == 18_988
    base = KnowledgeBase.open(tmp_path / "KB")
    assert base["HP:0000002"].name == "Abnormality of body height"
    assert [m.concept for m in base.find("身高异常")] == ["HP:0000002"]


def test_spanish_definitions_are_told_from_names(built):
    """The Disease Ontology's translations: 2,046 of the rows are definitions, some of many lines.

    Definitions of concepts without a translated name have no concept in this file alone.
    """
    report, _ = built("ontologies/translations/doid-es-translated.tsv.gz")
    assert report.sources[0].n_read == 5_981
    assert report.counts["definitions"] == 476
    rejected = {reason: entry["n"] for reason, entry in report.sources[0].rejected.items()}
    assert rejected == {"definitions: concept is no concept": 2_046 - 476}


def test_disease_ontology_and_medic_merge_by_xrefs_without_heaps(tmp_path, shared_data):
    names = ("ontologies/obo/HumanDO_2015.obo.gz", "entity_linking/medic/medic_06Jul2012.txt.gz")
    sources = tuple(SourceConfig(path=shared_data(name)) for name in names)
    report = build_store(BuildConfig(sources=sources, merge="xrefs"), tmp_path / "KB")
    assert report.merged["concepts"] > 1_900
    base = KnowledgeBase.open(tmp_path / "KB")
    assert base["D001249"].id == "DOID:2841"  # asthma
    assert base["D005776"].id == "D005776"  # one of two references of DOID:1926 to MeSH
    assert len(base) == 6_574 + 11_915 - report.merged["concepts"]
