"""Every source format: counts of `kb build` and rows of `kb export`, of snippets and real files."""

from __future__ import annotations

import pytest
from golden_files import scrub
from snippets import SNIPPETS

from biograft.kb.sources import FORMATS

COUNTS = (
    *("n_concepts", "n_names", "n_definitions", "n_types", "n_ids", "n_relations"),
    *("merged", "dropped", "warnings"),
)
FOLDERS = ("umls", "snomed", "rxnorm", "athena", "loinc")
"""Formats of several files, read together."""
WITHOUT_CONCEPTS = ("sssom",)
"""Formats that are built together with the concepts that they are about."""
PER_SOURCE = ("format", "n_read", "n_rejected", "filtered", "rejected", "doubtful", "notes")
REAL = {
    "obo": "ontologies/obo/DO_cancer_slim.obo",
    "obo-gz": "ontologies/obo/go_import.obo.gz",
    "obograph": "ontologies/obograph_json/DO_cancer_slim.json.gz",
    "owl": "ontologies/owl/DO_infectious_disease_slim.owl.gz",
    "skos": "ontologies/skos/yso-archaeology.ttl",
    "skos-rdf": "ontologies/skos/yso-archaeology.rdf",
    "medic": "entity_linking/medic/medic_06Jul2012.txt.gz",
    "scispacy": "entity_linking/scispacy_fixtures/umls_test_fixture.json",
    "triples": "kg/ras_machine/ras_machine_triples.tsv",
    "babelon": "ontologies/translations/hp-es.babelon.tsv.gz",
}
"""Small published files, below the folder of the data."""


def counts(report):
    """Return the counts of a build without paths and times; examples of rejected rows stay."""
    sources = [{key: source[key] for key in PER_SOURCE} for source in report["sources"]]
    return {**{key: report[key] for key in COUNTS}, "sources": sources}


def test_every_format_has_a_snippet():
    assert set(SNIPPETS) == set(FORMATS)


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets(name, run, tmp_path, golden):
    folder = tmp_path / name
    folder.mkdir()
    for file, content in SNIPPETS[name].items():
        (folder / file).write_text(content, "utf-8")
    others = []
    if name in WITHOUT_CONCEPTS:
        others.append(tmp_path / "others.obo")
        others[0].write_text(SNIPPETS["obo"]["a.obo"], "utf-8")
    paths = [folder] if name in FOLDERS else sorted(folder.iterdir())
    for path in paths:
        recognised = run("kb build", path, *others, "-o", f"{path.name}.try").status == 0
        form = () if recognised else ("--format", name)
        built = run("kb build --json", path, *others, "-o", f"{path.name}.kb", *form)
        assert built.status == 0, built
        value = {
            "recognised": recognised,
            "build": counts(built.json),
            "concepts": run("kb export", f"{path.name}.kb").json,
        }
        golden("source_formats", f"{name}: {path.name}", value)


@pytest.mark.parametrize("name", REAL)
def test_real_files(name, run, shared_data, golden):
    path = shared_data(REAL[name])
    ran = run("kb build --json", path, "-o", "KB")
    assert ran.status == 0, ran
    value = scrub(counts(ran.json), {str(path): REAL[name]})
    golden("source_formats", f"real: {REAL[name]}", value)
