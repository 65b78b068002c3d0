"""Identity: ids of IRIs by declared prefixes, and what else finds a concept."""

import json

import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.export import export_store
from biograft.kb.sources import SourceConfig
from biograft.kb.verify import Verifier
from biograft.mapping import Decision, MappingSet, read_decisions

OWL = "http://www.w3.org/2002/07/owl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"


@pytest.fixture
def build(tmp_path):
    """Return a function that writes Turtle or other text to files and builds them."""

    def build(*texts, **options):
        paths = []
        for number, text in enumerate(texts):
            paths.append(tmp_path / f"{number}.{'csv' if text.startswith('id,') else 'ttl'}")
            paths[-1].write_text(text)
        sources = tuple(SourceConfig(path=path, **options) for path in paths)
        report = build_store(BuildConfig(sources=sources), tmp_path / "kb", overwrite=True)
        return KnowledgeBase.open(tmp_path / "kb"), report

    return build


def turtle(*names, **prefixes):
    """Return classes, given by their IRIs and labels, with prefixes."""
    pytest.importorskip("pyoxigraph")
    lines = [f"@prefix {name}: <{iri}> ." for name, iri in {"rdfs": RDFS, **prefixes}.items()]
    lines += [f'<{iri}> a <{OWL}Class> ; rdfs:label "{label}" .' for iri, label in names]
    return "\n".join(lines)


LAB, VENDOR = "http://a.org/lab#LAB_0001", "http://b.com/codes/LAB_0001"


def test_a_declared_prefix_makes_the_id_and_every_spelling_finds_it(build):
    base, report = build(turtle((LAB, "Influenza"), lab="http://a.org/lab#"))
    assert not report.warnings
    assert (base[LAB].id, base[LAB].iri) == ("lab:LAB_0001", LAB)
    # as it is, as earlier versions called it, with an underscore, without the one prefix
    assert {base.row(i) for i in (LAB, "lab:LAB_0001", "LAB:0001", "LAB_0001")} == {0}
    assert "LAB:0002" not in base


def test_one_prefix_of_two_namespaces_stays_apart(build):
    first = turtle((LAB, "Influenza"), lab="http://a.org/lab#")
    second = turtle((VENDOR, "Broken leg"), lab="http://b.com/codes/")
    base, report = build(first, second)
    assert {each.id: each.name for each in base} == {
        "lab:LAB_0001": "Influenza",
        VENDOR: "Broken leg",
    }
    assert base[VENDOR].iri == VENDOR
    (warning,) = report.warnings
    assert warning.startswith(f"the concepts under {VENDOR} keep their IRIs as ids: the prefix lab")


def test_prefixes_that_the_caller_declares(build):
    base, _ = build(turtle((LAB, "Influenza")), prefixes={"L": "http://a.org/lab#LAB_"})
    assert (base["L:0001"].iri, base["0001"].id) == (LAB, "L:0001")


def test_prefixes_that_a_program_made_up_do_not_count(build):
    base, _ = build(turtle((LAB, "Influenza"), ns1="http://a.org/lab#"))
    assert base[LAB].id == LAB


@pytest.mark.parametrize(
    ("iri", "identifier"),
    [
        ("http://purl.obolibrary.org/obo/HP_0001250", "HP:0001250"),
        ("https://purl.obolibrary.org/obo/NEW_01", "NEW:01"),
        ("http://www.orpha.net/ORDO/Orphanet_558", "ORPHA:558"),
        ("http://snomed.info/id/22298006", "SNOMEDCT:22298006"),
        ("http://id.nlm.nih.gov/mesh/D003924", "D003924"),
        ("http://identifiers.org/hgnc/HGNC:1101", "HGNC:1101"),
        ("http://www.ebi.ac.uk/efo/EFO_0000400", "EFO:0000400"),
        ("http://eurovoc.europa.eu/100141", "eurovoc:100141"),
    ],
)
def test_known_namespaces(build, iri, identifier):
    odd = {"obo": "http://purl.obolibrary.org/obo/", "x": "http://www.ebi.ac.uk/efo/"}
    base, report = build(turtle((iri, "a"), **odd), f"id,name\n{iri},b\n")
    assert (base[identifier].id, base[iri].id) == (identifier, identifier)
    assert [name.text for name in base[iri].names] == ["a", "b"]
    assert not report.warnings


def test_the_namespace_outlives_an_export(build, tmp_path):
    base, _ = build(turtle((LAB, "Influenza"), lab="http://a.org/lab#"))
    export_store(base, tmp_path / "kb.jsonl", "jsonl")
    assert json.loads((tmp_path / "kb.jsonl").read_text())["iri"] == LAB
    config = BuildConfig(sources=(SourceConfig(path=tmp_path / "kb.jsonl"),))
    build_store(config, tmp_path / "again")
    assert KnowledgeBase.open(tmp_path / "again")[LAB].iri == LAB


def test_concepts_that_may_be_two_are_named(build):
    base, _ = build(
        "id,name,synonyms,language\n1,Influenza,flu,en\n2,Asthma,,en\n3,Gout,,en\nHP:1,All,,en\n",
        "id,name,synonyms,language\n1,Broken leg,,en\n2,asthma,,en\n3,痛风,,zh\nHP:1,Root,,en\n",
    )
    assert [each.id for each in base.mixed_concepts()] == ["1"]


def test_verify_knows_every_spelling_of_an_id(build):
    base, _ = build(turtle((LAB, "Influenza"), lab="http://a.org/lab#"))
    verifier = Verifier(base)
    for spelling in (LAB, "lab:LAB_0001", "LAB:0001", "LAB_0001"):
        assert verifier.judge(spelling, "influenza").status == "preferred"
        assert verifier.judge(spelling, "asthma").status == "unknown_label"
    assert verifier.judge("http://a.org/lab#LAB_0002", "asthma").status == "newer_id"
    assert verifier.judge(VENDOR, "asthma").status == "other_vocabulary"


def test_sssom_has_the_namespaces_of_the_knowledge_base(build, tmp_path):
    base, _ = build(turtle((LAB, "Influenza"), (VENDOR, "Gout"), lab="http://a.org/lab#"))
    decisions = [Decision(term=each.name, concept=each.id, name=each.name) for each in base]
    path = tmp_path / "x.sssom.tsv"
    MappingSet.of_decisions(decisions, prefixes=base.iris.prefixes).write(path)
    assert "#  lab: http://a.org/lab#\n" in path.read_text()
    assert [each.concept for each in read_decisions(path)] == [each.id for each in base]
