from __future__ import annotations

import pytest

from biograft.kb.records import (
    ConceptRecord,
    DefinitionRecord,
    IdRecord,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources import short_id

OBO = "http://purl.obolibrary.org/obo/"
HEADER = "format-version: 1.4\ndata-version: 2024-01-01\nontology: x\n\n"


@pytest.fixture
def read(reading, write):
    """Read tags as one term ``X:1`` (its id on line 6), in its envelope."""

    def of(tags, header=HEADER, **options):
        path = write("x.obo", f"{header}[Term]\nid: X:1\n{tags}\n")
        return reading(path, format="obo", **options)

    return of


def facts(result):
    """All records but the concept itself."""
    return [record for record in result.records if not isinstance(record, ConceptRecord)]


def test_a_term_gives_its_facts_with_their_lines(read):
    result = read(
        'name: angiosarcoma\nnamespace: disease\nalt_id: X:2\ndef: "A cancer." [url:http\\://a]\n'
        'synonym: "hemangiosarcoma" EXACT []\nxref: MESH:D006394\nis_a: X:3 ! cancer\n'
        "relationship: part_of X:4 ! tissue\nsubset: slim\ncomment: nothing\ncreated_by: me"
    )
    assert result.records == [
        ConceptRecord("X:1", line=6),
        NameRecord("X:1", "angiosarcoma", "en", "preferred", line=7),
        TypeRecord("X:1", "disease", line=8),
        IdRecord("X:1", "X:2", "alternate", line=9),
        DefinitionRecord("X:1", "A cancer.", line=10),
        NameRecord("X:1", "hemangiosarcoma", "en", "synonym", line=11),
        IdRecord("X:1", "MESH:D006394", "xref", line=12),
        RelationRecord("X:1", "is-a", "X:3", line=13),
        RelationRecord("X:1", "part_of", "X:4", line=14),
    ]
    assert (result.log.n_read, result.log.rejected.counts, result.log.filtered) == (1, {}, {})


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('synonym: "n" EXACT []', "synonym"),
        ('synonym: "n" BROAD [a, b]', "broad"),
        ('synonym: "n" NARROW [] {x="y"}', "narrow"),
        ('synonym: "n"', "related"),
        ('synonym: "n" EXACT ABBREVIATION []', "abbreviation"),
        ('synonym: "n" RELATED OMO:0003012 []', "abbreviation"),
        ('synonym: "n" BROAD ACRO []', "abbreviation"),
        ('synonym: "n" SHORT []', "abbreviation"),
        ('exact_synonym: "n" []', "synonym"),
    ],
)
def test_synonyms_keep_their_scope(read, line, kind):
    header = (
        'synonymtypedef: ACRO "an Acronym" EXACT\nsynonymtypedef: SHORT "abbreviation"\n'
        'synonymtypedef: IUPAC_NAME "IUPAC name"\n\n'
    )
    assert facts(read(line, header)) == [NameRecord("X:1", "n", "en", kind, line=7)]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"a\, b\: c\Wd\te\nf", "a, b: c d\te\nf"),
        ("4-{[(2R)]}", "4-{[(2R)]}"),
        ("chemical {R=H}", "chemical"),
        ('name {source="a ! b", x="{}"}', "name"),
        ("Yahoo! group", "Yahoo! group"),
        (r"Yahoo \! group \{x\}", "Yahoo ! group {x}"),
        ("one \\\n  two\\\nthree", "one   twothree"),
    ],
)
def test_names_lose_escapes_modifiers_and_comments(read, written, text):
    assert [record.text for record in read(f"name: {written}").of(NameRecord)] == [text]


def test_quoted_texts_are_resolved(read):
    definition = 'def: "say \\"no\\" [x] {y} ! z\\n end" [A:1 "q", B:2] {c="d"} ! e'
    assert facts(read(f'{definition}\nsynonym: "a \\\\" EXACT []')) == [
        DefinitionRecord("X:1", 'say "no" [x] {y} ! z\n end', line=7),
        NameRecord("X:1", "a \\", "en", "synonym", line=8),
    ]


@pytest.mark.parametrize(
    ("written", "xref"),
    [
        ('UMLS:C01 "Acute abdomen"', "UMLS:C01"),
        ('PMID:21 {source="Europe PMC"}', "PMID:21"),
        (r"url:http\://a.org/b!c", "url:http://a.org/b!c"),
    ],
)
def test_xrefs_lose_their_description(read, written, xref):
    assert facts(read(f"xref: {written}")) == [IdRecord("X:1", xref, "xref", line=7)]


def test_exact_matches_are_cross_references_unless_the_prefix_is_another(read):
    tags = (
        'property_value: skos:exactMatch "MESH:D1" xsd:string {source="a"}\n'
        "relationship: skos:exactMatch MESH:D2\n"
        f"property_value: http://www.w3.org/2004/02/skos/core#exactMatch {OBO}Y_1\n"
        'property_value: seeAlso "x" xsd:string'
    )
    xrefs = [(record.id, record.kind) for record in facts(read(tags))]
    assert xrefs == [("MESH:D1", "xref"), ("MESH:D2", "xref"), (f"{OBO}Y_1", "xref")]
    others = facts(read(tags, "idspace: skos http://example.org/\n"))
    assert [type(record) for record in others] == [RelationRecord, IdRecord]


def test_axioms_and_conditional_relations_are_filtered(read):
    result = read(
        "intersection_of: X:2\nintersection_of: part_of X:3\nunion_of: X:4\ndisjoint_from: X:5\n"
        'equivalent_to: X:6\nis_a: X:7 {gci_filler="T:1", gci_relation="part_of"}'
    )
    assert facts(result) == []
    assert result.log.filtered == {"logical axiom": 5, "holds only under a condition (gci)": 1}


def test_namespaces_are_types(read):
    header = "default-namespace: all\n\n"
    assert read("namespace: own", header).of(TypeRecord) == [TypeRecord("X:1", "own", line=5)]
    assert read("name: a", header, default_type="D").of(TypeRecord) == [
        TypeRecord("X:1", "all", line=3)
    ]
    assert read("name: a", default_type="D").of(TypeRecord) == [TypeRecord("X:1", "D", line=5)]
    assert read("name: a").of(TypeRecord) == []


def test_typedefs_and_instances_are_no_terms(read):
    result = read(
        "name: a\n\n[Typedef]\nid: part_of\nname: part of\nis_a: overlaps\n\n"
        "[Instance]\nid: I:1\nname: i\n\n[Term] ! comment\nid: X:2\nname: b"
    )
    assert result.concepts == {"X:1", "X:2"}
    assert (result.log.n_read, result.log.filtered) == (2, {"instance": 1})
    assert result.log.rejected.counts == {}


@pytest.mark.parametrize(
    ("tags", "reason", "line", "text"),
    [
        ("name:", "empty name", 7, ""),
        ("synonym: x EXACT []", "synonym without a text in quotes", 7, "x EXACT []"),
        ("\n[Term\nid: X:2", "malformed stanza heading", 8, "[Term"),
        ("def: no quotes", "definition without a text in quotes", 7, "no quotes"),
        ('synonym: "x" EXACTLY A []', "synonym with an unknown scope", 7, '"x" EXACTLY A []'),
        ("is_a: X:2 cancer", "relation without exactly one target", 7, "X:2 cancer"),
        ("relationship: part_of", "relation without exactly one target", 7, "part_of"),
        ("alt_id: a b", "alt_id that is not one id", 7, "a b"),
        ("id: X:2", "second id in a term", 7, "X:2"),
        ("\n[Annotation]\nid: X:2", "unknown kind of stanza", 8, "[Annotation]"),
        ("\n[Term]\nname: b", "term without an id", 8, "[Term]"),
    ],
)
def test_invalid_facts_are_rejected_with_its_line(read, tags, reason, line, text):
    result = read(tags)
    assert result.concepts == {"X:1"}
    assert result.log.rejected.counts == {reason: 1}
    example = result.log.rejected.examples[reason][0]
    assert (example.line, example.text) == (line, text)


def test_very_many_continued_lines_take_linear_time(reading, write):
    path = write("x.obo", "[Term]\nid: X:1\nname: " + "aaaaaaaa\\\n" * 200_000 + "b\n")
    assert len(reading(path, format="obo").of(NameRecord)[0].text) == 1_600_001


@pytest.mark.parametrize(
    ("iri", "short"),
    [
        (f"{OBO}DOID_0001816", "DOID:0001816"),
        (f"{OBO}FB_bt_00000001", "FB_bt:00000001"),
        (f"{OBO}uberon/core#part_of", "part_of"),
        (f"{OBO}GO#_x1", "GO:x1"),
        (f"{OBO}chebi/charge", f"{OBO}chebi/charge"),
        ("http://www.ebi.ac.uk/efo/EFO_0000400", "EFO:0000400"),
        ("http://www.orpha.net/ORDO/Orphanet_558", "Orphanet:558"),
        ("http://identifiers.org/hgnc/1101", "http://identifiers.org/hgnc/1101"),
        ("DOID:162", "DOID:162"),
    ],
)
def test_short_ids_are_those_of_obo(iri, short):
    assert short_id(iri) == short
