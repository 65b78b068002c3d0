"""OWL and SKOS: the same facts from RDF/XML, Turtle and N-Triples."""

import gzip
from functools import partial

import pytest

from biograft.kb.records import (
    ConceptRecord,
    DefinitionRecord,
    IdKind,
    IdRecord,
    NameKind,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources import owl, sniff

pytest.importorskip("pyoxigraph")

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "obo": "http://purl.obolibrary.org/obo/",
    "oio": "http://www.geneontology.org/formats/oboInOwl#",
    "dct": "http://purl.org/dc/terms/",
    "ex": "http://example.org/x#",
}

CLASS = """
obo:X_1 a owl:Class ; rdfs:label "heart"@en , "Herz"@de-AT , "Herzl"@de , "cor" ;
  oio:hasExactSynonym "hrt" , "cardia" ; oio:hasBroadSynonym "organ" ;
  oio:hasNarrowSynonym "left heart" ; oio:hasRelatedSynonym "chest" ; skos:altLabel "Pumpe"@de ;
  obo:IAO_0000115 "It pumps\\n  blood." ; skos:scopeNote "not told" , "Note."@de ;
  oio:hasDbXref "FMA:7088" ; skos:exactMatch obo:Y_2 , "FMA:7088" ; skos:broadMatch obo:Y_3 ;
  oio:hasAlternativeId "X:9" ; oio:hasOBONamespace "anatomy" ;
  rdfs:subClassOf obo:X_0 , owl:Thing ,
    [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ; owl:someValuesFrom obo:X_2 ] ;
  owl:equivalentClass [ owl:intersectionOf ( obo:X_0 obo:X_2 ) ] .
[] a owl:Axiom ; owl:annotatedSource obo:X_1 ; owl:annotatedProperty oio:hasExactSynonym ;
  owl:annotatedTarget "hrt" ; oio:hasSynonymType obo:OMO_0003012 .
"""


@pytest.fixture
def reading(reading):
    return partial(reading, format="owl")


def turtle(body: str) -> str:
    return "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items()) + body


def converted(text: str, form: str) -> bytes:
    """The same triples in another syntax, written by the library."""
    import pyoxigraph as ox

    formats = {
        "turtle": ox.RdfFormat.TURTLE,
        "ntriples": ox.RdfFormat.N_TRIPLES,
        "xml": ox.RdfFormat.RDF_XML,
    }
    triples = [quad.triple for quad in ox.parse(input=text, format=ox.RdfFormat.TURTLE)]
    return ox.serialize(triples, format=formats[form], prefixes=PREFIXES)


@pytest.mark.parametrize("form", ["turtle", "ntriples", "xml"])
def test_a_class_gives_all_its_facts_in_every_syntax(write, reading, form):
    path = write("a.gz", gzip.compress(converted(turtle(CLASS), form)))
    assert sniff(path) == "owl"
    result = reading(path)
    name = partial(NameRecord, "X:1")
    assert result.records == [
        ConceptRecord("X:1"),
        name("heart", "en", NameKind.PREFERRED),
        name("Herz", "de", NameKind.PREFERRED),
        name("Herzl", "de", NameKind.SYNONYM),
        name("cor", "en", NameKind.SYNONYM),
        name("hrt", "en", NameKind.ABBREVIATION),
        name("cardia", "en", NameKind.SYNONYM),
        name("organ", "en", NameKind.BROAD),
        name("left heart", "en", NameKind.NARROW),
        name("chest", "en", NameKind.RELATED),
        name("Pumpe", "de", NameKind.SYNONYM),
        DefinitionRecord("X:1", "It pumps blood.", "en"),
        DefinitionRecord("X:1", "Note.", "de"),
        IdRecord("X:1", "FMA:7088", IdKind.XREF),
        IdRecord("X:1", "Y:2", IdKind.XREF),
        IdRecord("X:1", "X:9", IdKind.ALTERNATE),
        RelationRecord("X:1", "is-a", "X:0"),
        TypeRecord("X:1", "anatomy"),
        RelationRecord("X:1", "BFO:0000050", "X:2"),
    ]
    assert not result.log.rejected.counts
    assert result.log.filtered == {
        "mapping to something close, broader, narrower or related": 1,
        "logical axiom": 1,
    }
    assert result.log.n_read == 1


RESTRICTED = """
obo:X_1 a owl:Class ; rdfs:subClassOf
  [ a owl:Restriction ; owl:onProperty {property} ; owl:someValuesFrom obo:X_2 ] .
"""


@pytest.mark.parametrize(
    ("name", "declared", "relation"),
    [
        ("obo:BFO_1", 'obo:BFO_1 a owl:ObjectProperty ; oio:shorthand "part_of" .', "part_of"),
        ("obo:BFO_1", 'obo:BFO_1 a owl:ObjectProperty ; rdfs:label "part of" .', "BFO:1"),
        ("<http://purl.obolibrary.org/obo/cl#lacks_part>", "", "lacks_part"),
        ("ex:R108", 'ex:R108 a owl:ObjectProperty ; rdfs:label "Has  Finding" .', "Has_Finding"),
        ("ex:R108", "", "http://example.org/x#R108"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_property_is_called_as_in_obo(write, reading, name, declared, relation, first):
    restricted = RESTRICTED.format(property=name)
    body = declared + restricted if first else restricted + declared
    result = reading(write("a", turtle(body)))
    assert result.of(RelationRecord) == [RelationRecord("X:1", relation, "X:2")]


def test_a_restriction_may_stand_anywhere(write, reading):
    apart = "_:r owl:onProperty ex:p .\n" + "_:r owl:someValuesFrom obo:X_2 .\n"
    users = "obo:X_1 a owl:Class ; rdfs:subClassOf _:r .\n"
    expected = [RelationRecord("X:1", "http://example.org/x#p", "X:2")]
    assert reading(write("a", turtle(apart + users))).of(RelationRecord) == expected
    others = "".join(f"obo:X_{i} a owl:Class .\n" for i in range(10, 999))
    result = reading(write("b", turtle(users + others + apart)))
    assert result.of(RelationRecord) == expected


def test_restrictions_that_no_class_uses_are_forgotten(write, reading, monkeypatch):
    monkeypatch.setattr(owl, "KEPT_RESTRICTIONS", 2)
    nodes = "".join(
        f"_:r{i} owl:onProperty ex:p ; owl:someValuesFrom obo:X_2 .\n" for i in range(4)
    )
    users = "obo:X_1 a owl:Class ; rdfs:subClassOf _:r0 , _:r3 .\n"
    result = reading(write("a", turtle(nodes + users)))
    assert len(result.of(RelationRecord)) == 1
    assert result.log.filtered == {"logical axiom": 1}


def test_deprecation_that_comes_too_late_is_doubtful(write, reading):
    others = "".join(f"\nobo:X_{i} a owl:Class ." for i in range(10, 999))
    body = f'obo:X_1 a owl:Class ; rdfs:label "a" .{others}\nobo:X_1 owl:deprecated true .'
    result = reading(write("a", turtle(body)))
    assert (result.concepts >= {"X:1"}, result.log.rejected.counts) == (True, {})
    assert result.log.doubtful.counts == {"marked as deprecated apart from its other triples": 1}


def test_a_type_far_behind_its_labels_is_enough(write, reading):
    others = "".join(f"\nobo:X_{i} a owl:Class ." for i in range(10, 999))
    body = f'obo:X_1 rdfs:label "a" ; a ex:Kind .{others}\nobo:X_1 a owl:Class ; rdfs:label "b" .'
    result = reading(write("a", turtle(body)))
    assert {(r.text, r.kind) for r in result.of(NameRecord)} == {
        ("a", "synonym"),
        ("b", "preferred"),
    }
    assert result.log.filtered == {"class that is only declared": 989}


def test_a_declaration_far_before_or_behind_is_part_of_the_class(write, reading):
    others = "".join(f"\nobo:X_{i} a owl:Class ." for i in range(10, 999))
    facts = 'rdfs:label "a" ; rdfs:subClassOf obo:X_10 .'
    for body in (
        f"a owl:Class .{others} obo:X_1 {facts}",
        f"{facts}{others} obo:X_1 a owl:Class .",
    ):
        result = reading(write("a", turtle(f"obo:X_1 {body}")))
        assert (result.concepts, result.log.n_read) == ({"X:1"}, 1)


def test_other_subjects_are_counted(write, reading):
    body = """
    ex:i a owl:NamedIndividual ; rdfs:label "i" . ex:j a owl:NamedIndividual .
    ex:k a ex:Kind ; rdfs:label "k" . ex:l a ex:Kind . ex:m rdfs:label "m" . ex:n ex:o ex:p .
    obo:X_1 a owl:Class ; rdfs:comment "c" . obo:X_2 a owl:Class ."""
    result = reading(write("a", turtle(body)))
    assert result.concepts == {"X:1"}
    assert result.log.filtered == {
        "instance": 2,
        "neither class nor concept": 2,
        "subject without a type": 2,
        "class that is only declared": 1,
    }


SKOS = """
ex:a a skos:Concept ; rdfs:label "label"@en ; skos:prefLabel "tomb"@en , "hauta"@fi ;
  skos:altLabel "grave"@en ; skos:hiddenLabel "tombe"@en ; skos:definition "D."@en ;
  skos:scopeNote "S."@en , "S."@fi ; skos:broader ex:b ; skos:narrower ex:c ; skos:related ex:d ;
  skos:exactMatch ex:e ; skos:closeMatch ex:g ; skos:narrowMatch ex:f ; skos:inScheme ex:s .
ex:s a skos:ConceptScheme .
"""


def test_objects_that_are_no_text_are_rejected(write, reading):
    body = 'obo:X_1 a owl:Class ; rdfs:label ex:a , " " ; oio:hasExactSynonym [] .'
    result = reading(write("a", turtle(body)))
    assert result.log.rejected.counts == {
        "label that is no text": 2,
        "hasExactSynonym that is no text": 1,
    }


@pytest.mark.parametrize("form", ["turtle", "xml"])
def test_a_skos_concept_gives_all_its_facts(write, reading, form):
    path = write("a", converted(turtle(SKOS), form))
    assert sniff(path) == "owl"
    result = reading(path)
    iri = "ex:"
    name = partial(NameRecord, f"{iri}a")
    assert result.records == [
        ConceptRecord(f"{iri}a"),
        name("tomb", "en", NameKind.PREFERRED),
        name("hauta", "fi", NameKind.PREFERRED),
        name("label", "en", NameKind.SYNONYM),
        name("grave", "en", NameKind.SYNONYM),
        name("tombe", "en", NameKind.SYNONYM),
        DefinitionRecord(f"{iri}a", "D.", "en"),
        DefinitionRecord(f"{iri}a", "S.", "fi"),
        IdRecord(f"{iri}a", f"{iri}e", IdKind.XREF),
        RelationRecord(f"{iri}a", "is-a", f"{iri}b"),
        RelationRecord(f"{iri}c", "is-a", f"{iri}a"),
        RelationRecord(f"{iri}a", "related", f"{iri}d"),
    ]


def test_concepts_described_within_each_other_are_whole(write, reading):
    """Guards a bug: facts behind a nested description were lost with the first half's type."""
    text = f"""<rdf:RDF xmlns:rdf="{PREFIXES["rdf"]}" xmlns:skos="{PREFIXES["skos"]}">
<rdf:Description rdf:about="http://e/a"><rdf:type rdf:resource="http://e/Kind"/>
  <skos:broader><rdf:Description rdf:about="http://e/b"><skos:prefLabel xml:lang="en">b
  </skos:prefLabel><rdf:type rdf:resource="{PREFIXES["skos"]}Concept"/></rdf:Description>
  </skos:broader><skos:prefLabel xml:lang="en">a</skos:prefLabel>
  <rdf:type rdf:resource="{PREFIXES["skos"]}Concept"/></rdf:Description></rdf:RDF>"""
    result = reading(write("a", text))
    assert {(r.concept, r.text, r.kind) for r in result.of(NameRecord)} == {
        ("http://e/a", "a", "preferred"),
        ("http://e/b", "b", "preferred"),
    }
    assert result.of(RelationRecord) == [RelationRecord("http://e/a", "is-a", "http://e/b")]


XML = converted(turtle(CLASS + SKOS), "xml") if owl else b""
