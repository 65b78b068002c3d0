"""Formats of a mapping: SSSOM, source_to_concept_map and ConceptMap."""

import json
from datetime import UTC, datetime

import pytest

from biograft.errors import ConfigError, EncodingError, FormatError
from biograft.linking import ConceptIds
from biograft.mapping import (
    Decision,
    EarlierDecisions,
    MappingRun,
    MappingSet,
    SourceTerm,
    map_terms,
    read_decisions,
    read_earlier,
    write_mapping,
)

EARLIER = [
    Decision(
        term="MI",
        concept="HP:8",
        name="Heart attack",
        relation="narrow",
        verdict="approved",
        author="Ada",
        time="2026-01-02T03:04:05Z",
    ),
    Decision(term="pyrexia", concept="HP:7", name="Pyrexia", verdict="approved"),
]
TERMS = [
    SourceTerm(t, c, 2) for t, c in (("MI", "1"), ("fever", "2"), ("zzqx", "3"), ("pyrexia", "4"))
]


@pytest.fixture
def run(kb):
    time = datetime(2026, 11, 24, tzinfo=UTC)
    return MappingRun(kb=kb, ids=ConceptIds(kb), source="lab", time=time)


@pytest.fixture
def mappings(kb, linker):
    return list(map_terms(linker, TERMS, EarlierDecisions(EARLIER, kb)))


def test_a_table_has_columns_of_context_only_where_terms_have_a_context(kb, linker, tmp_path):
    time, ids = datetime(2026, 11, 24, tzinfo=UTC), ConceptIds(kb)
    term = SourceTerm("fever", "1", context=(("unit", "C"),))
    for run, expected in (
        (MappingRun(kb=kb, ids=ids, time=time), False),
        (MappingRun(kb=kb, ids=ids, time=time, has_context=True), True),
    ):
        path = tmp_path / f"{expected}.csv"
        write_mapping(map_terms(linker, [term]), path, run, to="csv")
        header, row = path.read_text("utf-8").splitlines()
        assert ("context" in header.split(",")) == expected
        assert ("unit" in row) == expected


def test_sssom_has_decisions_proposals_and_what_changed(mappings, run, tmp_path):
    path = tmp_path / "o.sssom.tsv"
    counts = write_mapping(mappings, path, run, to="sssom")
    assert counts == {"seen": 1, "exact": 1, "nil": 1, "replaced": 1}
    mi, fever, unknown, pyrexia = read_decisions(path)
    assert (mi.verdict, mi.author, mi.time) == ("approved", "Ada", EARLIER[0].time)
    assert (mi.frequency, mi.relation) == (2, "narrow")
    assert (fever.verdict, fever.concept, fever.relation) == ("proposed", "HP:1", "exact")
    assert (unknown.verdict, unknown.concept) == ("proposed", "")
    assert (pyrexia.verdict, pyrexia.concept) == ("proposed", "HP:1")
    assert pyrexia.comment == "replaced since it was decided: HP:7 Pyrexia"
    assert fever.store == run.store
    assert MappingSet.read(path).source == "lab"


def test_omop_refuses_what_its_columns_cannot_hold(kb, linker, run, tmp_path):
    from dataclasses import replace

    def write(*terms, **changes):
        mapped = map_terms(linker, terms)
        write_mapping(mapped, tmp_path / "o.csv", replace(run, **changes), to="omop")

    with pytest.raises(ConfigError, match=r"HP:3 .* has no OMOP id"):
        write("sodium in urine")
    with pytest.raises(ConfigError, match=r"up to 20 characters"):
        write("fever", source="a vocabulary of a long name")
    with pytest.raises(ConfigError, match=r"up to 50 characters, .*--code-column"):
        write("fever " * 10)
    assert not (tmp_path / "o.csv").exists()


def test_a_concept_map_is_valid_fhir(mappings, run, tmp_path):
    path = tmp_path / "o.json"
    write_mapping(mappings, path, run, to="fhir")
    value = json.loads(path.read_text())
    groups = {group.get("target", ""): group["element"] for group in value["group"]}
    mi, fever = groups["http://human-phenotype-ontology.org"]
    (target,) = mi["target"]
    assert (mi["code"], mi["display"]) == ("1", "MI")
    assert (target["code"], target["equivalence"]) == ("HP:8", "narrower")
    assert fever["target"][0]["equivalence"] == "equivalent"
    assert fever["target"][0]["comment"] == "proposed, not decided"
    unknown, pyrexia = groups[""]
    assert unknown["target"][0]["equivalence"] == "unmatched"
    assert "code" not in pyrexia["target"][0]
    assert "replaced" in pyrexia["target"][0]["comment"]
    assert all(
        each["target"][0]["comment"] for group in value["group"] for each in group["element"]
    )
    model = pytest.importorskip("fhir.resources.R4B.conceptmap").ConceptMap
    model.model_validate(value)


def test_a_table_that_a_spreadsheet_saved_in_another_encoding(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes("source_term,concept,verdict\nFièvre,HP:1,approved\n".encode("cp1252"))
    with pytest.raises(EncodingError, match="save it as UTF-8"):
        read_earlier(path)
    path.write_text("source_term,concept,verdict\nflu,HP:1,\n")
    with pytest.raises(FormatError, match="no row has a verdict"):
        read_earlier(path)
    path.write_text("\ufeffsource_term;concept;verdict\n发热;HP:1;Approved\n", "utf-8")
    (decision,) = read_earlier(path)
    assert (decision.term, decision.concept, decision.verdict) == ("发热", "HP:1", "approved")
