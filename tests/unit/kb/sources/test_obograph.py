import json

import pytest

from biograft.kb.records import (
    ConceptRecord,
    DefinitionRecord,
    IdRecord,
    NameRecord,
    RelationRecord,
    TypeRecord,
)

OBO = "http://purl.obolibrary.org/obo/"
IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"


def node(number, label="a", kind="CLASS", **meta):
    return {"id": f"{OBO}X_{number}", "lbl": label, "type": kind, "meta": meta}


def edge(head, predicate, tail):
    return {"sub": f"{OBO}X_{head}", "pred": predicate, "obj": f"{OBO}X_{tail}"}


@pytest.fixture
def read(reading, write):
    """Read nodes and edges as one graph, in its envelope."""

    def of(nodes=(), edges=(), first="nodes", rest=None, **options):
        parts = {"nodes": list(nodes), "edges": list(edges)}
        graph = {"id": "g", first: parts.pop(first), **parts, **(rest or {})}
        path = write("x.json", json.dumps({"graphs": [graph]}))
        return reading(path, format="obograph", **options)

    return of


def facts(result):
    return [record for record in result.records if not isinstance(record, ConceptRecord)]


def test_a_node_gives_its_facts_with_its_line(reading, write):
    values = {"hasAlternativeId": "X:2", "hasOBONamespace": "disease", "creation_date": "today"}
    one = node(
        1,
        "angiosarcoma",
        definition={"val": "A cancer.", "xrefs": ["url:a"]},
        synonyms=[{"pred": "hasExactSynonym", "val": "hemangiosarcoma"}],
        xrefs=[{"val": "MESH:D006394"}],
        basicPropertyValues=[{"pred": IN_OWL + k, "val": value} for k, value in values.items()],
        subsets=["slim"],
        comments=["nothing"],
    )
    text = json.dumps({"graphs": [{"nodes": [one], "edges": [edge(1, "is_a", 4)]}]}, indent=1)
    edge_line = text[: text.index('"sub"')].count("\n")  # its brace stands a line above
    result = reading(write("x.json", text), format="obograph")
    assert result.records == [
        ConceptRecord("X:1", line=5),
        NameRecord("X:1", "angiosarcoma", "en", "preferred", line=5),
        DefinitionRecord("X:1", "A cancer.", line=5),
        NameRecord("X:1", "hemangiosarcoma", "en", "synonym", line=5),
        IdRecord("X:1", "MESH:D006394", "xref", line=5),
        IdRecord("X:1", "X:2", "alternate", line=5),
        TypeRecord("X:1", "disease", line=5),
        RelationRecord("X:1", "is-a", "X:4", line=edge_line),
    ]
    assert (result.log.n_read, result.log.rejected.counts, result.log.filtered) == (1, {}, {})


@pytest.mark.parametrize(
    ("synonym", "kind"),
    [
        ({"pred": "hasExactSynonym"}, "synonym"),
        ({"pred": f"{IN_OWL}hasBroadSynonym"}, "broad"),
        ({}, "related"),
        ({"pred": "hasExactSynonym", "synonymType": f"{OBO}OMO_0003012"}, "abbreviation"),
        ({"pred": "hasExactSynonym", "synonymType": f"{OBO}hp#Abbreviation"}, "abbreviation"),
    ],
)
def test_synonyms_keep_their_scope(read, synonym, kind):
    result = read([node(1, synonyms=[{**synonym, "val": "n"}])])
    assert facts(result)[1:] == [NameRecord("X:1", "n", "en", kind, line=1)]


def test_relations_are_called_as_in_obo(read):
    part_of = {"pred": f"{IN_OWL}shorthand", "val": "part_of"}
    properties = [
        {"id": f"{OBO}BFO_0000050", "type": "PROPERTY", "meta": {"basicPropertyValues": [part_of]}},
        {"id": f"{OBO}RO_0002202", "lbl": "develops from", "type": "PROPERTY"},
    ]
    edges = [
        edge(1, f"{OBO}BFO_0000050", 2),
        edge(1, f"{OBO}RO_0002202", 2),
        edge(1, f"{OBO}chebi#has_role", 2),
        edge(1, "http://www.w3.org/2000/01/rdf-schema#subClassOf", 2),
    ]
    for first in ("nodes", "edges"):
        result = read([node(1), node(2), *properties], edges, first)
        names = [record.relation for record in result.of(RelationRecord)]
        assert names == ["part_of", "RO:0002202", "has_role", "is-a"]
        assert (result.concepts, result.log.n_read) == ({"X:1", "X:2"}, 2)


def test_other_edges_are_filtered(read):
    edges = [edge(1, kind, 2) for kind in ("subPropertyOf", "inverseOf", "type")]
    edges += [edge(3, "is_a", 1), edge(4, "is_a", 1)]
    nodes = [node(1), node(3, kind="INDIVIDUAL"), node(4, deprecated=True), {"id": f"{OBO}X_5"}]
    for first in ("nodes", "edges"):
        axioms = [{"definedClassId": f"{OBO}X_{n}"} for n in (4, 5)]
        result = read(nodes, edges, first, {"logicalDefinitionAxioms": axioms})
        assert result.concepts == {"X:1"}
        assert result.of(RelationRecord) == []
        assert result.log.filtered == {
            **{f"edge {kind}": 1 for kind in ("subPropertyOf", "inverseOf", "type")},
            "instance": 2,
            "obsolete": 2,
            "node without type and label": 1,
            "logical axiom": 2,
        }
        assert [list(ids) for ids in result.log.left_out] == [["X:4"]]


def test_subjects_without_a_node_are_concepts_and_exact_matches_cross_references(read):
    matches = {"pred": "http://www.w3.org/2004/02/skos/core#exactMatch", "val": f"{OBO}Y_1"}
    edges = [edge(2, "is_a", 1), {**edge(3, "is_a", 1), "meta": {"gci_filler": "x"}}]
    axioms = {
        "equivalentNodesSets": [{"representativeNodeId": f"{OBO}X_4"}],
        "logicalDefinitionAxioms": [{"definedClassId": f"{OBO}X_5"}],
    }
    result = read([node(1, basicPropertyValues=[matches])], edges, "nodes", axioms)
    assert result.concepts == {f"X:{n}" for n in range(1, 6)}
    assert [(r.head, r.tail) for r in result.of(RelationRecord)] == [("X:2", "X:1")]
    assert [(r.concept, r.id, r.kind) for r in result.of(IdRecord)] == [("X:1", "Y:1", "xref")]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"lbl": "no id"}, "no id"),
        ({"id": "X:2", "type": "CLASS", "lbl": 3}, "no lbl"),
        ({"id": "X:2", "type": "CLASS", "meta": [1]}, "meta is no object"),
        (
            {"id": "X:2", "type": "CLASS", "meta": {"xrefs": ["A:1"]}},
            "xrefs holds what is no object",
        ),
        ({"id": "X:2", "type": "CLASS", "meta": {"xrefs": [{}]}}, "no val"),
        (
            {"id": "X:2", "type": "CLASS", "meta": {"synonyms": [{"pred": "x", "val": "y"}]}},
            "synonym with an unknown scope",
        ),
        (
            {"id": "X:2", "type": "CLASS", "lbl": "\ud83d"},
            "text with half a character (lone surrogate)",
        ),
    ],
)
def test_invalid_nodes_are_rejected(read, bad, reason):
    result = read([node(1), bad])
    assert result.of(NameRecord) == [NameRecord("X:1", "a", "en", "preferred", line=1)]
    assert result.log.rejected.counts == ({reason: 1} if reason else {})
