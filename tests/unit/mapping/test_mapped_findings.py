"""Findings with the ids of a mapping set."""

import csv
import json

import pytest

from biograft.errors import ConfigError
from biograft.mapping import MappedFindings, MappingRow, MappingSet
from biograft.text.documents import Document

ROWS = (
    ("HP:1", "exact", "OMOP:437663", "Fever", "ManualMappingCuration"),
    ("HP:1", "exact", "OMOP:1", "not decided", "LexicalMatching"),
    ("HP:1", "broad", "OMOP:2", "broader", "ManualMappingCuration"),
    ("HP:3", "broad", "OMOP:3", "Sodium", "ManualMappingCuration"),
    ("HP:3", "broad", "OMOP:4", "Urine", "ManualMappingCuration"),
    ("HP:4", "narrow", "OMOP:5", "narrower", "ManualMappingCuration"),
)
TEXT = "Fever. No sodium in urine. Heart attack. Sodium in blood."


@pytest.fixture
def mappings():
    return MappingSet(
        rows=[
            MappingRow(
                subject_id=subject,
                predicate_id=f"skos:{relation}Match",
                object_id=target,
                object_label=name,
                mapping_justification=f"semapv:{kind}",
            )
            for subject, relation, target, name, kind in ROWS
        ]
    )


def test_findings_have_the_objects_of_the_set(mappings, kb, linker):
    mapped = MappedFindings(mappings, kb)
    (found,) = mapped.apply(linker.pipe([Document("1", TEXT)]))
    assert [(each.text, each.concept, each.name, each.status) for each in found.mentions] == [
        ("Fever", "OMOP:437663", "Fever", "present"),
        ("sodium in urine", "OMOP:3", "Sodium", "absent"),
        ("sodium in urine", "OMOP:4", "Urine", "absent"),
        ("Heart attack", "HP:8", "Heart attack", "present"),
        ("Sodium in blood", "HP:4", "Sodium in blood", "present"),
    ]
    assert found.mentions[0].candidates[0].ids == ("OMOP:437663", "HP:1")
    assert sum(mapped.losses.values()) == 2


def test_a_set_of_another_vocabulary_is_refused(kb):
    other = MappingSet(rows=[MappingRow(subject_id="MESH:D1", object_id="OMOP:1")])
    with pytest.raises(ConfigError, match="no subject of its exact and broad mappings"):
        MappedFindings(other, kb)


def test_the_command_writes_standard_ids(mappings, kb, tmp_path, run_main):
    mappings.write(tmp_path / "m.sssom.tsv")
    (tmp_path / "note.txt").write_text(TEXT)
    command = ("link", str(tmp_path / "note.txt"), "--kb", str(kb.folder), "-q")
    command += ("--mapping-set", str(tmp_path / "m.sssom.tsv"))
    done = run_main(*command, "--to", "omop")
    numbers = [row["note_nlp_concept_id"] for row in csv.DictReader(done.out.splitlines())]
    assert numbers == ["437663", "3", "4", "0", "0"]
    assert "2  findings whose concept the mapping set does not map" in done.err
    done = run_main(*command, "--json", "--all-ids")
    first = json.loads(done.out)["mentions"][0]
    assert first["candidates"][0]["ids"] == ["OMOP:437663", "HP:1", "HP:9", "HP:7", "HP:6"]
