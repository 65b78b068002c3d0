"""Standard concepts of OMOP: what is followed to them, what is refused, and what is said of it."""

import csv
import json

import pytest
from athena_bundle import CONCEPTS, write_athena

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import ConceptIds, Linker
from biograft.mapping import (
    Decision,
    EarlierDecisions,
    MappingRun,
    StandardConcepts,
    map_terms,
    read_decisions,
    write_mapping,
)

TERMS = {
    "type 2 diabetes mellitus": ["OMOP:201826"],
    "Non-insulin-dependent diabetes": ["OMOP:201826"],
    "essential hypertension": ["OMOP:320128"],
    "diabetes with cataract": ["OMOP:201826", "OMOP:443767"],
    "cough variant asthm": ["OMOP:317009"],
    "family history of breast cancer": ["OMOP:4167217", "OMOP:4112853"],
    "metformin": ["OMOP:1503297"],
    "metformin; oral": ["OMOP:1503297"],
    "place of occurrence": [None],
}
"""Terms with the standard concepts that each means."""


def bundle(folder, **settings):
    config = SourceConfig(path=write_athena(folder / "ATHENA"), **settings)
    build_store(BuildConfig(sources=(config,)), folder / "KB")
    return KnowledgeBase.open(folder / "KB")


def mapped(kb, terms, domains=(), decisions=()):
    standard = StandardConcepts(kb, domains)
    linker = Linker.open(kb).with_settings(concepts=standard.leading, k=10)
    earlier = EarlierDecisions(decisions, kb) if decisions else None
    return list(standard.follow(map_terms(linker, terms, earlier)))


def concepts_of(mappings):
    found = {}
    for each in mappings:
        found.setdefault(each.term.text, []).append(each.concept)
    return found


def test_terms_are_mapped_to_standard_concepts_alone(athena):
    rows = mapped(athena, TERMS)
    found = concepts_of(rows)
    assert found == TERMS
    standard = {f"OMOP:{each[0]}" for each in CONCEPTS if each[5] == "S"}
    shown = {c.concept for row in rows for c in row.others} | {row.concept for row in rows}
    assert shown - {None} <= standard
    flags = {row.term.text: row.flag for row in rows}
    assert flags["essential hypertension"] == "exact"  # also the name of a code of ICD-10-CM
    assert flags["diabetes with cataract"] == "mapped"
    assert flags["place of occurrence"] == "nil"


def test_the_way_to_a_standard_concept_is_said(athena):
    rows = mapped(athena, ["family history of breast cancer", "type 2 diabetes mellitus"])
    event, value, itself = rows
    code = "OMOP:45542411 Family history of breast cancer (ICD10CM)"
    assert (event.mapping_type, event.through) == ("Maps to", f"{code}: Maps to")
    assert (value.mapping_type, value.through) == ("Maps to value", f"{code}: Maps to value")
    assert (itself.mapping_type, itself.through) == ("Maps to", "")


def test_domains_limit_what_is_proposed(athena):
    drugs = concepts_of(mapped(athena, TERMS, ["drug"]))
    assert {each for ids in drugs.values() for each in ids} == {None, "OMOP:1503297"}
    conditions = concepts_of(mapped(athena, TERMS, ["Condition"]))
    assert conditions["diabetes with cataract"] == TERMS["diabetes with cataract"]
    # its value is a condition, but what it completes is none
    assert conditions["family history of breast cancer"] == [None]
    both = concepts_of(mapped(athena, TERMS, ["Observation"]))
    assert both["family history of breast cancer"] == TERMS["family history of breast cancer"]
    with pytest.raises(ConfigError, match=r"--domain: .* no 'Drugs'; did you mean 'Drug'"):
        StandardConcepts(athena, ["Drugs"])


def test_names_of_invalid_concepts_lead_to_what_replaces_them(tmp_path):
    kb = bundle(tmp_path, keep_suppressed=True)
    (one,), (two,) = (mapped(kb, [term]) for term in ("adult-onset diabetes", "sugar sickness"))
    assert one.concept == two.concept == "OMOP:201826"
    assert one.through == "OMOP:4000001 Adult-onset diabetes (SNOMED): Concept replaced by"
    assert two.through == (
        "OMOP:4000002 Sugar sickness (SNOMED): Concept replaced by; "
        "OMOP:1567956 Non-insulin-dependent diabetes (ICD10CM): Maps to"
    )


def test_decisions_for_concepts_that_are_not_standard_are_not_applied_silently(athena):
    decided = {
        "a": ("OMOP:201826", "seen", "OMOP:201826"),
        "b": ("OMOP:1567956", "replaced", "OMOP:201826"),
        "c": ("OMOP:45552385", "split", None),
        "d": ("OMOP:45577000", "retired", None),
        "e": ("OMOP:4000001", "replaced", "OMOP:201826"),
        "f": ("OMOP:4000002", "replaced", "OMOP:201826"),
    }
    decisions = [
        Decision(term=term, concept=concept, verdict="approved")
        for term, (concept, _, _) in decided.items()
    ]
    rows = mapped(athena, decided, decisions=decisions)
    expected = [(term, flag, concept) for term, (_, flag, concept) in decided.items()]
    assert [(row.term.text, row.flag, row.concept) for row in rows] == expected
    split = rows[2]
    assert [each.concept for each in split.others[:2]] == ["OMOP:201826", "OMOP:443767"]


def test_a_circle_of_relations_ends(tmp_path):
    folder = write_athena(tmp_path / "ATHENA")
    path = folder / "CONCEPT_RELATIONSHIP.csv"
    circle = "45577000\t1567956\tMaps to\t19700101\t20991231\t\n"
    back = "1567956\t45577000\tMaps to\t19700101\t20991231\t\n"
    path.write_text(path.read_text("utf-8") + circle + back, "utf-8")
    build_store(BuildConfig(sources=(SourceConfig(path=folder),)), tmp_path / "KB")
    found = concepts_of(mapped(KnowledgeBase.open(tmp_path / "KB"), ["place of occurrence"]))
    assert found == {"place of occurrence": ["OMOP:201826"]}


def test_source_to_concept_map_has_standard_concepts_with_their_vocabularies(athena, tmp_path):
    run = MappingRun(kb=athena, ids=ConceptIds(athena), source="LOCAL")
    rows = mapped(athena, TERMS)
    left_out = []
    counts = write_mapping(rows, tmp_path / "o.csv", run, to="omop", left_out=left_out)
    assert [what for what, _ in left_out] == ["'family history of breast cancer'"]  # its value
    assert sum(counts.values()) == len(TERMS)  # terms, not rows
    found = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    targets = {(row["target_concept_id"], row["target_vocabulary_id"]) for row in found}
    assert ("1503297", "RxNorm") in targets
    assert ("201826", "SNOMED") in targets
    assert ("0", "None") in targets
    plain = list(map_terms(Linker.open(athena), ["metformin", "diabetes with cataract"]))
    left_out = []
    write_mapping(plain, tmp_path / "p.csv", run, to="omop", left_out=left_out)
    ((term, why),) = left_out
    assert (term, "is not a standard concept" in why) == ("'diabetes with cataract'", True)


def test_a_mapping_set_says_the_way(athena, tmp_path):
    run = MappingRun(kb=athena, ids=ConceptIds(athena), source="LOCAL", is_standard=True)
    path = tmp_path / "o.sssom.tsv"
    write_mapping(mapped(athena, ["family history of breast cancer"]), path, run, to="sssom")
    event, value = read_decisions(path)
    assert "through OMOP:45542411 " in event.comment
    assert value.comment.endswith("; Maps to value")
    assert (event.part, value.part) == ("", "value: Malignant tumor of breast")
    assert {event.relation, value.relation} == {"related"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--domain", "Drug"), "--domain: needs --standard"),
        (("--standard", "--domain", "Drgu"), "--domain: the knowledge base has no 'Drgu'"),
    ],
)
def test_wrong_options_are_one_line(athena, tmp_path, run_main, options, problem):
    (tmp_path / "t.csv").write_text("term\ncough\n")
    command = ("map", str(tmp_path / "t.csv"), "--column", "term", "--kb", str(athena.folder))
    done = run_main(*command, "-o", str(tmp_path / "o.csv"), "-q", *options)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert problem in done.err


def test_a_store_without_standard_concepts_is_refused(kb, tmp_path, run_main):
    (tmp_path / "t.csv").write_text("term\nfever\n")
    command = ("map", str(tmp_path / "t.csv"), "--column", "term", "--kb", str(kb.folder))
    done = run_main(*command, "-o", str(tmp_path / "o.csv"), "-q", "--standard")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "does not say which concepts are standard" in done.err


def test_the_command_counts_and_shows_the_way(athena, tmp_path, run_main):
    (tmp_path / "t.csv").write_text("\n".join(["term", *TERMS]))
    command = ("map", str(tmp_path / "t.csv"), "--column", "term", "--kb", str(athena.folder))
    done = run_main(*command, "-o", str(tmp_path / "o.csv"), "-q", "--standard", "--json")
    summary = json.loads(done.out)
    assert (summary["n_terms"], summary["n_nil"], summary["n_mapped"]) == (len(TERMS), 1, 3)
    assert summary["n_targets"] == sum(map(len, TERMS.values())) - 1
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    assert len(rows) == len(TERMS) + 2
    assert {row["vocabulary"] for row in rows} == {"SNOMED", "RxNorm", ""}
    values = [row["name"] for row in rows if row["mapping_type"] == "Maps to value"]
    assert values == ["Malignant tumor of breast"]
