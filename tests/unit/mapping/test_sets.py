"""Mapping sets: their files, and what is made of them, counted by hand."""

from __future__ import annotations

import gzip

import pytest

from biograft.errors import ConfigError, FormatError
from biograft.mapping import (
    Decision,
    MappingRow,
    MappingSet,
    chain_sets,
    diff_sets,
    find_conflicts,
    invert_set,
    merge_sets,
    read_decisions,
    without_foreign,
)
from biograft.mapping.sssom import concept_of, prefixes_in, split_iri, subject_of

MONDO = "http://purl.obolibrary.org/obo/MONDO_"
MESH = {"mesh": "http://identifiers.org/mesh/"}


def row(subject, target, relation="exact", **slots):
    return MappingRow(
        subject_id=subject, object_id=target, predicate_id=f"skos:{relation}Match", **slots
    )


def pairs(mappings):
    return [(each.subject_id, each.relation, each.object_id) for each in mappings.rows]


@pytest.mark.parametrize(
    "name", ["mondo_exactmatch_mesh.sssom.tsv", "mondo_exactmatch_umls.sssom.tsv.gz"]
)
def test_a_set_of_others_is_written_as_it_was(tmp_path, shared_data, name):
    given = shared_data(f"ontologies/sssom/{name}")
    path = tmp_path / name.removesuffix(".gz")
    MappingSet.read(given).write(path)
    opened = gzip.open if name.endswith(".gz") else open
    with opened(given, "rt", encoding="utf-8") as file:
        rows = [line for line in file if not line.startswith("#")]
    written = path.read_text("utf-8").splitlines(keepends=True)
    assert [line for line in written if line[0] != "#"] == rows
    assert MappingSet.read(path) == MappingSet.read(given)


def test_slots_and_columns_that_we_do_not_know_are_kept(tmp_path):
    text = (
        "#curie_map:\n#  X: http://x.org/\n#  FOO: http://foo.org/\n#mapping_set_id: http://x.org/s\n"
        "#license: http://x.org/l\n#creator_id:\n#- orcid:1\n#mapping_date: '2020-05-30'\n"
        "#extension_definitions:\n#- slot_name: ours\n#  property: FOO:ours\n"
        "subject_id\tsubject_label\tpredicate_id\tobject_id\tmapping_justification\tother\tours\n"
        "X:1\ta\tskos:exactMatch\tFOO:1\tsemapv:LexicalMatching\tsee\tmine\n"
        "X:2\tb\trdfs:seeAlso\tFOO:2\tsemapv:LexicalMatching\t\t\n"
    )
    (tmp_path / "a.sssom.tsv").write_text(text, "utf-8")
    given = MappingSet.read(tmp_path / "a.sssom.tsv")
    given.write(tmp_path / "b.sssom.tsv")
    assert MappingSet.read(tmp_path / "b.sssom.tsv") == given
    assert [each.mapping_date for each in given.rows] == ["2020-05-30"] * 2
    assert given.rows[0].slots == {"other": "see", "ours": "mine"}
    written = (tmp_path / "b.sssom.tsv").read_text("utf-8")
    assert written.splitlines()[-3:] == text.splitlines()[-3:]
    assert "FOO: http://foo.org/" in written
    assert "property: FOO:ours" in written


def test_a_code_of_a_known_vocabulary_comes_back_as_its_curie(tmp_path):
    (tmp_path / "m.sssom.tsv").write_text(
        "subject_id\tpredicate_id\tobject_id\tmapping_justification\n"
        "MONDO:1\tskos:exactMatch\tMESH:D004194\tsemapv:ManualMappingCuration\n"
    )
    decisions = read_decisions(tmp_path / "m.sssom.tsv")
    made = MappingSet.of_decisions([*decisions, Decision(term="x", code="A:1", verdict="nil")])
    assert [each.subject_id for each in made.rows] == ["MONDO:1", "code:A%3A1"]
    made.write(tmp_path / "again.sssom.tsv")
    assert MappingSet.read(tmp_path / "again.sssom.tsv").prefixes["MONDO"] == MONDO


def test_the_iri_of_a_set_is_that_of_its_content():
    """It is a URI that other tools take, the same for the same content."""
    decision = Decision(term="flu", concept="D007251", verdict="approved")
    made = [MappingSet.of_decisions([decision], source=name) for name in ("lab", "lab", "ward")]
    first, second, other = (each.iri for each in made)
    assert first == second != other
    assert first.startswith("https://example.org/sets/")


@pytest.mark.parametrize(
    ("iri", "parts"),
    [
        ("https://lab.example/tests", ("https://lab.example/", "tests")),
        ("https://lab.example/a/b#c", ("https://lab.example/a/b#", "c")),
        ("urn:oid:1.2.3", ("urn:oid:", "1.2.3")),
        ("https://lab.example/tests/", ("https://lab.example/", "tests")),
        ("lab tests", ("https://example.org/", "lab%20tests")),
    ],
)
def test_an_iri_is_a_namespace_and_a_name(iri, parts):
    assert split_iri(iri) == parts


def test_the_prefixes_of_all_curies_of_a_row_are_declared():
    """Also of several in a cell, and of those with another colon in them; an address has none."""
    cells = {
        "subject_id": "HP:1:2",
        "object_id": "http://x.org/1",
        "author_id": "orcid:0000|wikidata:Q1",
        "subject_label": "no:prefix",
    }
    assert prefixes_in([cells, {"predicate_id": "skos:exactMatch"}]) == {
        *("HP", "orcid", "wikidata", "skos")
    }


@pytest.mark.parametrize(
    ("curie", "concept"),
    [
        ("concept:E11%209", "E11 9"),
        ("concept:a:b:c", "a:b:c"),
        ("MESH:D003924", "D003924"),
        ("HP:0001250", "HP:0001250"),
        ("sssom:NoTermFound", ""),
    ],
)
def test_the_concept_of_a_curie(curie, concept):
    assert concept_of(curie) == concept


@pytest.mark.parametrize(
    ("curie", "term"),
    [
        ("term:hart%20atack", ("hart atack", "")),
        ("term:a:b", ("a:b", "")),
        ("code:I21%3A9", ("", "I21:9")),
        ("code:a:b", ("", "a:b")),
        ("HP:1:2", ("", "HP:1:2")),
    ],
)
def test_the_term_or_code_of_a_curie(curie, term):
    assert subject_of(curie) == term


@pytest.mark.parametrize(
    ("author", "slot"),
    [
        ("orcid:0000-0001-2345-6789", "author_id"),
        ("orcid:0000-0001-2345-678X|ORCID:0000-0001-2345-6789", "author_id"),
        ("Ada", "author_label"),
        ("orcid:0000-0001-2345-6789|Ada", "author_label"),
        ("orcid:0000-0001-2345-67890", "author_label"),
        ("see orcid:0000-0001-2345-6789", "author_label"),
    ],
)
def test_who_decided_is_an_id_if_all_are(author, slot):
    decision = Decision(term="MI", concept="HP:8", verdict="approved", author=author)
    cells = MappingRow.of_decision(decision, "LexicalMatching").to_cells()
    assert {key for key, value in cells.items() if value and key.startswith("author")} == {slot}
    assert cells[slot] == author


def test_rows_that_say_the_same_become_one_and_a_person_is_believed():
    program = row(
        "MONDO:1", "mesh:D1", mapping_justification="semapv:LexicalMatching", confidence=0.7
    )
    person = row("mondo:1", "MESH:D1", author_label="Ada", mapping_date="2020-01-01")
    later = row("MONDO:1", "MESH:D1", author_label="Bo", mapping_date="2021-01-01")
    report = merge_sets(
        [MappingSet(rows=[program]), MappingSet(rows=[person, later], prefixes=MESH)]
    )
    (kept,) = report.result.rows
    assert report.to_json() == {"n_rows": 1, "n_read": 3, "n_same": 2}
    assert (kept.author_label, kept.mapping_date, kept.confidence) == ("Bo|Ada", "2021-01-01", 0.7)
    assert kept.is_decided


def test_terms_of_two_sources_stay_apart(tmp_path):
    """The same prefix of terms stands for another namespace in each set."""
    flu = Decision(term="flu", concept="D007251", verdict="approved")
    sets = [MappingSet.of_decisions([flu], source=name) for name in ("lab", "ward")]
    merged = merge_sets(sets).result
    merged.write(tmp_path / "m.sssom.tsv")
    again = MappingSet.read(tmp_path / "m.sssom.tsv")
    assert len({again.key_of(each.subject_id) for each in again.rows}) == 2
    assert [(each.term, each.code) for each in read_decisions(tmp_path / "m.sssom.tsv")] == [
        ("flu", "")
    ] * 2


def test_a_chain_passes_relations_on_and_multiplies_confidence():
    first = MappingSet(
        rows=[
            row("A:1", "B:1", confidence=0.5),
            row("A:2", "B:2", "broad"),
            row("A:3", "B:3", "narrow"),
            row("A:4", "B:9"),
            row("A:5", "B:1", predicate_modifier="Not"),
            row("A:6", "B:2", "close"),
        ]
    )
    second = MappingSet(
        rows=[
            row("B:1", "C:1", confidence=0.5),
            row("B:2", "C:2", "broad"),
            row("B:3", "C:3", "broad"),
        ]
    )
    report = chain_sets(first, second)
    assert pairs(report.result) == [("A:1", "exact", "C:1"), ("A:2", "broad", "C:2")]
    assert report.result.rows[0].confidence == 0.25
    assert report.result.rows[0].comment == "via B:1"
    assert report.to_json() == {"n_rows": 2, "n_unmapped": 1, "n_nothing_follows": 3}


def test_an_inverted_set_exchanges_both_sides():
    given = row("A:1", "B:1", "broad", subject_label="a", object_label="b", object_source="x:B")
    report = invert_set(MappingSet(rows=[given, row("A:2", "sssom:NoTermFound")]))
    (found,) = report.result.rows
    assert pairs(report.result) == [("B:1", "narrow", "A:1")]
    assert (found.subject_label, found.object_label, found.subject_source) == ("b", "a", "x:B")
    assert report.counts["n_without_object"] == 1
    twice = invert_set(report.result).result
    assert pairs(twice) == [("A:1", "broad", "B:1")]


def test_a_difference_is_by_what_is_named_not_by_how_it_is_written():
    old = MappingSet(
        rows=[row("A:1", "mesh:D1"), row("A:2", "B:2"), row("A:3", "B:3")], prefixes=MESH
    )
    new = MappingSet(rows=[row("A:1", "MESH:D1"), row("A:2", "B:2", "broad"), row("A:4", "B:4")])
    found = diff_sets(old, new)
    assert [each.subject_id for each in found.added] == ["A:4"]
    assert [each.subject_id for each in found.removed] == ["A:3"]
    (changed,) = found.changed
    assert changed.slots == {"predicate_id": ("skos:exactMatch", "skos:broadMatch")}
    assert found.n_same == 1


def test_conflicts_are_found(kb):
    rows = [
        row("A:1", "HP:1"),
        row("A:1", "HP:1", predicate_modifier="Not"),
        row("A:2", "HP:2"),
        row("A:2", "sssom:NoTermFound"),
        row("A:3", "HP:8"),
        row("A:3", "HP:8", "broad"),
        row("A:4", "HP:1"),
        row("A:5", "HP:1", "close"),
        row("B:5", "HP:2"),
        row("B:5", "HP:8"),
        row("A:6", "HP:77", "narrow"),
        row("A:7", "HP:5", "narrow"),
        row("term:flu", "HP:2"),
        row("term:grippe", "HP:2"),
        row("A:8", "HP:1", "broad"),
        row("A:8", "HP:2", "broad"),
    ]
    found = find_conflicts(MappingSet(rows=rows), kb)
    assert [(each.kind, each.subject) for each in found] == [
        ("rejected", "A:1"),
        ("no concept", "A:2"),
        ("relations", "A:3"),
        ("objects", "B:5"),
        ("subjects", "HP:1"),
        ("unknown", "A:6"),
        ("retired", "A:7"),
    ]
    assert find_conflicts(MappingSet(rows=rows[-4:])) == []


def test_what_is_no_mapping_is_refused_with_its_line(tmp_path):
    header = "subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\n"
    path = tmp_path / "m.sssom.tsv"
    for cells, problem in (
        ("\tskos:exactMatch\tB:1\tx\t", ":2: subject_id"),
        ("A:1\tskos:exactMatch\t\tx\t", ":2: object_id"),
        ("A:1\tskos:exactMatch\tB:1\tx\thigh", ":2: .*high"),
    ):
        path.write_text(f"{header}{cells}\n")
        with pytest.raises(FormatError, match=problem):
            MappingSet.read(path)
    with pytest.raises(ConfigError, match="sets"):
        merge_sets([])


def test_mappings_to_vocabularies_of_others_are_left_out(kb):
    """A set of others has objects in several vocabularies: those of the store are applied."""
    decided = [
        Decision(term="fever", concept="HP:1", verdict="approved"),
        Decision(term="fever", concept="C0015967", verdict="approved"),
        Decision(term="rash", concept="C0015230", verdict="approved"),
        Decision(term="old", concept="HP:999", verdict="approved"),
        Decision(term="none", verdict="nil"),
    ]
    kept, foreign = without_foreign(decided, kb)
    assert kept == [decided[0], *decided[3:]]
    assert foreign == {"UMLS": 2}
