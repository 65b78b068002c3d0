"""Obsolete concepts of ontologies: left out unless asked for, and what takes their place."""

from __future__ import annotations

import pytest

from biograft.kb.records import IdRecord

OBO = "http://purl.obolibrary.org/obo/"
IN_OWL = "http://www.geneontology.org/formats/oboInOwl#"
TERM = (
    "[Term]\nid: X:1\nname: a\nis_a: X:0\nis_obsolete: {}\nreplaced_by: X:3 ! new\nconsider: X:4\n"
)
NODE = (
    f'{{"graphs": [{{"nodes": [{{"id": "{OBO}X_1", "lbl": "a", "type": "CLASS", "meta":'
    ' {"deprecated": %s, "basicPropertyValues":'
    f' [{{"pred": "{OBO}IAO_0100001", "val": "{OBO}X_3"}},'
    f' {{"pred": "{IN_OWL}consider", "val": "X:4"}}]}}}}],'
    f' "edges": [{{"sub": "{OBO}X_1", "pred": "is_a", "obj": "{OBO}X_0"}}]}}]}}'
)
CLASS = (
    f"@prefix obo: <{OBO}> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    '@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . obo:X_1 a owl:Class ; rdfs:label "a" ;'
    " rdfs:subClassOf obo:X_0 ; owl:deprecated {} ;\n"
    f'obo:IAO_0100001 obo:X_3 ; <{IN_OWL}consider> "X:4" .'
)


def content(form: str, obsolete: str) -> str:
    return {
        "obo": TERM.format(obsolete),
        "obograph": NODE % obsolete,
        "owl": CLASS.format(obsolete),
    }[form]


@pytest.mark.parametrize("form", ["obo", "obograph", "owl"])
def test_an_obsolete_concept_is_left_out_and_its_successors_are_read(write, reading, form):
    path = write("a", content(form, "true"))
    left_out, kept = (reading(path, format=form, keep_suppressed=keep) for keep in (False, True))
    live = reading(write("b", content(form, "false")), format=form)
    assert (left_out.concepts, kept.concepts, live.concepts) == (set(), {"X:1"}, {"X:1"})
    assert left_out.log.filtered["obsolete"] >= 1
    assert [list(ids) for ids in left_out.log.left_out] == [["X:1"]]
    assert (kept.log.left_out, kept.log.filtered, kept.counts["relations"]) == ([], {}, 1)
    for result in (left_out, kept, live):
        assert [(r.concept, r.id, str(r.kind)) for r in result.of(IdRecord)] == [
            ("X:3", "X:1", "replaced"),
            ("X:4", "X:1", "consider"),
        ]


@pytest.mark.parametrize(("form", "value"), [("obo", "TRUE ! really"), ("obograph", '"TRUE"')])
def test_obsolete_concepts_in_the_spellings_of_other_programs(write, reading, form, value):
    """A text in place of JSON's own value counted as live."""
    result = reading(write("a", content(form, value)), format=form)
    assert (result.concepts, result.log.filtered["obsolete"] >= 1) == (set(), True)
