"""scispaCy's knowledge bases: a JSON list and JSON lines give the same facts."""

import json
from dataclasses import replace
from functools import partial

import pytest

from biograft.kb.records import DefinitionRecord, NameRecord, TypeRecord

FLU = {
    "concept_id": "C1",
    "canonical_name": "Flu",
    "aliases": ["grippe", "流感", " ", 7],
    "types": ["T047", "T046"],
    "definition": "A viral infection.",
}
FACTS = [
    NameRecord("C1", "Flu", "en", "preferred"),
    NameRecord("C1", "grippe"),
    NameRecord("C1", "流感"),
    TypeRecord("C1", "T047"),
    TypeRecord("C1", "T046"),
    DefinitionRecord("C1", "A viral infection."),
]
SHORT = {"concept_id": "C2", "canonical_name": "Fever"}


@pytest.fixture
def read(reading, write):
    def of(text, **options):
        return partial(reading, format="scispacy")(write("a", text), **options)

    return of


def as_list(*values, indent=None):
    return json.dumps(values, indent=indent, ensure_ascii=False)


def as_lines(*values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


@pytest.mark.parametrize("indent", [None, 4])
def test_a_list_gives_all_facts(read, indent):
    result = read(as_list(FLU, SHORT, indent=indent))
    found = [replace(record, line=0) for record in result.records]
    assert found == [*FACTS, NameRecord("C2", "Fever", "en", "preferred")]
    first = 1 if indent is None else 2
    assert [record.line for record in result.records[:6]] == [first] * 6
    assert (result.log.n_read, result.log.rejected.counts) == (2, {})


def test_lines_give_the_same_with_their_numbers(read):
    lines = as_lines(SHORT, FLU).replace("}\n{", "}\n\n{")
    result = read(lines)
    assert [(type(r), r.line) for r in result.records[1:]] == [(type(r), 3) for r in FACTS]
    assert [r.concept for r in result.records] == ["C2", *["C1"] * 6]
