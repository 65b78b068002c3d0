import json

import pytest

from biograft.errors import FormatError
from biograft.records import (
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
    document = {
        "graphs": [
            {
                "nodes": [
                    node(
                        1,
                        "angiosarcoma",
                        definition={"val": "A cancer.", "xrefs": ["url:a"]},
                        synonyms=[{"pred": "hasExactSynonym", "val": "hemangiosarcoma"}],
                        xrefs=[{"val": "MESH:D006394"}],
                        basicPropertyValues=[
                            {"pred": f"{IN_OWL}hasAlternativeId", "val": "X:2"},
                            {"pred": f"{IN_OWL}hasAlternativeId", "val": f"{OBO}X_3"},
                            {"pred": f"{IN_OWL}hasOBONamespace", "val": "disease"},
                            {"pred": f"{IN_OWL}creation_date", "val": "today"},
                        ],
                        subsets=["slim"],
                        comments=["nothing"],
                    )
                ],
                "edges": [edge(1, "is_a", 4)],
            }
        ]
    }
    text = json.dumps(document, indent=1)
    edge_line = text[: text.index('"sub"')].count("\n")  # its brace stands a line above
    result = reading(write("x.json", text), format="obograph")
    assert result.records == [
        ConceptRecord("X:1", line=5),
        NameRecord("X:1", "angiosarcoma", "en", "preferred", line=5),
        DefinitionRecord("X:1", "A cancer.", line=5),
        NameRecord("X:1", "hemangiosarcoma", "en", "synonym", line=5),
        IdRecord("X:1", "MESH:D006394", "xref", line=5),
        IdRecord("X:1", "X:2", "alternate", line=5),
        IdRecord("X:1", "X:3", "alternate", line=5),
        TypeRecord("X:1", "disease", line=5),
        RelationRecord("X:1", "is-a", "X:4", line=edge_line),
    ]
    assert (result.log.n_read, result.log.rejected.counts, result.log.filtered) == (1, {}, {})


@pytest.mark.parametrize(
    ("synonym", "kind"),
    [
        ({"pred": "hasExactSynonym"}, "synonym"),
        ({"pred": f"{IN_OWL}hasBroadSynonym"}, "broad"),
        ({"pred": "hasNarrowSynonym"}, "narrow"),
        ({"pred": "hasRelatedSynonym"}, "related"),
        ({}, "related"),
        ({"pred": "hasExactSynonym", "synonymType": f"{OBO}OMO_0003012"}, "abbreviation"),
        ({"pred": "hasExactSynonym", "synonymType": "OMO:0003000"}, "abbreviation"),
        ({"pred": "hasExactSynonym", "synonymType": f"{OBO}hp#Abbreviation"}, "abbreviation"),
        ({"pred": "hasExactSynonym", "synonymType": f"{OBO}hp#layperson"}, "synonym"),
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
        result = read(nodes, edges, first, {"logicalDefinitionAxioms": [{"definedClassId": "x"}]})
        assert result.concepts == {"X:1"}
        assert result.of(RelationRecord) == []
        assert result.log.filtered == {
            "edge subPropertyOf": 1,
            "edge inverseOf": 1,
            "edge type": 1,
            "instance": 2,
            "obsolete": 2,
            "node without type and label": 1,
            "logical axiom": 1,
        }
        assert [list(ids) for ids in result.log.left_out] == [["X:4"]]


def test_obsolete_nodes_are_kept_on_request(read):
    nodes, edges = [node(1, deprecated=True)], [edge(1, "is_a", 2)]
    assert read(nodes, edges).log.filtered == {"obsolete": 2}
    kept = read(nodes, edges, keep_suppressed=True)
    assert kept.counts == {"concepts": 1, "names": 1, "relations": 1}


def test_notes_have_version_and_licence(read):
    terms = {"pred": "http://purl.org/dc/terms/license", "val": "https://creativecommons.org/x"}
    meta = {"version": "v1", "basicPropertyValues": [terms]}
    assert read(rest={"meta": meta}).log.notes == [
        "data version: v1",
        "licence: https://creativecommons.org/x",
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"lbl": "no id"}, "no id"),
        ({"id": 3}, "no id"),
        ("text", "no id"),
        (None, "no id"),
        ({"id": "X:2", "type": "CLASS", "lbl": 3}, "no lbl"),
        ({"id": "X:2", "type": "CLASS", "lbl": " "}, "no lbl"),
        ({"id": "X:2", "type": "CLASS", "meta": []}, None),
        ({"id": "X:2", "type": "CLASS", "meta": [1]}, "meta is no object"),
        (
            {"id": "X:2", "type": "CLASS", "meta": {"xrefs": ["A:1"]}},
            "xrefs holds what is no object",
        ),
        ({"id": "X:2", "type": "CLASS", "meta": {"xrefs": [{}]}}, "no val"),
        ({"id": "X:2", "type": "CLASS", "meta": {"definition": {"val": ""}}}, "no val"),
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


@pytest.mark.parametrize("bad", [{}, [], None, {"sub": "X:1", "pred": "is_a"}])
def test_an_edge_without_its_ends_is_rejected(read, bad):
    result = read([node(1)], [bad, edge(1, "is_a", 2)])
    assert len(result.of(RelationRecord)) == 1
    assert set(result.log.rejected.counts) <= {"no sub", "no pred", "no obj"}
    assert result.log.rejected.counts["no obj"] == 1


def test_several_graphs_are_read(reading, write):
    graphs = [{"nodes": [node(1)]}, {"edges": [edge(2, "is_a", 1)], "nodes": [node(2)]}, {}]
    text = json.dumps({"@context": {"a": []}, "graphs": graphs, "more": [1, [2]]})
    assert reading(write("x.json", text), format="obograph").concepts == {"X:1", "X:2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"graphs": [\n{"nodes": [{"id": "a"', r":3: is not valid JSON \(Expecting ',' delim"),
        ('{\n"graphs": [\n{"nodes": []}', r":3: expected , or \] \(found: 'the end of the file'"),
        ('{"graphs": [{"nodes": [{"id": "a}', r":1: is not valid JSON \(Unterminated string"),
        ('{"graphs": {}}', r":1: expected \["),
        ('{"graphs": []} x', r":1: there is text after the end of the document \(found: 'x'"),
        ('{"graph": [[1], {}], "x": 1}', ':1: holds no "graphs"'),
        ("[1]", ":1: expected {"),
        ("{3: 4}", ":1: expected a key in quotes"),
        ("   \n", ":2: expected {"),
        ('{"x": ' + "[" * 200_000, "nested too deeply"),
        ('{"x": ' + "9" * 5000 + "}", "is not valid JSON"),
        ('{"x": "\0"}', "is not valid JSON"),
        ('{"x": nul}', r"is not valid JSON \(Expecting value\)"),
    ],
)
def test_damage_is_reported_with_its_line(reading, write, text, message):
    with pytest.raises(FormatError, match=message):
        reading(write("x.json", text), format="obograph")


@pytest.mark.parametrize("deprecated", [True, "true", "TRUE"])
def test_retired_nodes_in_the_spellings_of_other_programs(read, deprecated):
    """A text in place of JSON's own value counted as live."""
    assert read([node(1, deprecated=deprecated)]).log.filtered == {"obsolete": 1}


@pytest.mark.parametrize("deprecated", [True, False])
def test_what_takes_the_place_of_a_node_is_read(read, deprecated):
    values = [
        {"pred": f"{OBO}IAO_0100001", "val": f"{OBO}X_3"},
        {"pred": f"{IN_OWL}consider", "val": "X:4"},
        {"pred": f"{IN_OWL}creation_date", "val": "2020"},
    ]
    result = read([node(1, deprecated=deprecated, basicPropertyValues=values)])
    assert [record for record in facts(result) if isinstance(record, IdRecord)] == [
        IdRecord("X:3", "X:1", "replaced", line=1),
        IdRecord("X:4", "X:1", "consider", line=1),
    ]
