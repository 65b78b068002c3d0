"""biograft's own JSON lines: every short and long form, and every way to be wrong."""

import gzip
import json
from functools import partial

import pytest

from biograft.records import (
    ConceptRecord,
    DefinitionRecord,
    IdRecord,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.sources import FORMATS, look_at

recognise = FORMATS.load("jsonl").recognise


@pytest.fixture
def read(reading, write):
    """Read values as lines; a text stays as it is."""

    def of(*values, **options):
        lines = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return partial(reading, format="jsonl")(write("a.jsonl", "\n".join(lines)), **options)

    return of


def test_the_example_of_the_docstring(read):
    result = read(
        {
            "id": "D003924",
            "name": "Diabetes Mellitus, Type 2",
            "type": "disease",
            "names": {"en": ["type 2 diabetes"], "zh": ["2型糖尿病", "二型糖尿病"]},
            "definition": "A long-lasting disorder.",
            "ids": [{"id": "OMIM:125853", "kind": "xref"}, "old"],
            "relations": {"is-a": ["D003920"], "treated-by": ["a", "b"]},
        }
    )
    one = "D003924"
    assert result.records == [
        ConceptRecord(one, 1),
        NameRecord(one, "Diabetes Mellitus, Type 2", "en", "preferred", line=1),
        NameRecord(one, "type 2 diabetes", "en", "synonym", line=1),
        NameRecord(one, "2型糖尿病", "zh", "preferred", line=1),
        NameRecord(one, "二型糖尿病", "zh", "synonym", line=1),
        DefinitionRecord(one, "A long-lasting disorder.", line=1),
        TypeRecord(one, "disease", line=1),
        IdRecord(one, "OMIM:125853", "xref", 1),
        IdRecord(one, "old", "alternate", 1),
        RelationRecord(one, "is-a", "D003920", line=1),
        RelationRecord(one, "treated-by", "a", line=1),
        RelationRecord(one, "treated-by", "b", line=1),
    ]
    assert (result.log.n_read, result.log.rejected.counts) == (1, {})


def test_the_long_forms_keep_everything(read):
    result = read(
        "",
        {
            "id": "a",
            "names": [
                "plain",
                {"text": "n", "language": "CHI", "kind": "abbreviation", "source": "MSH"},
            ],
            "definitions": ["plain", {"text": "d", "language": "zh-CN", "source": "NCI"}],
            "types": ["T1", {"type": "T2", "label": "Two", "tree": "A1"}],
            "ids": [{"id": "b"}],
            "relations": [{"relation": "r", "tail": "t", "source": "S"}],
        },
    )
    assert result.records == [
        ConceptRecord("a", 2),
        NameRecord("a", "plain", "en", "synonym", line=2),
        NameRecord("a", "n", "zh", "abbreviation", "MSH", 2),
        DefinitionRecord("a", "plain", line=2),
        DefinitionRecord("a", "d", "zh", "NCI", 2),
        TypeRecord("a", "T1", line=2),
        TypeRecord("a", "T2", "Two", "A1", 2),
        IdRecord("a", "b", "alternate", 2),
        RelationRecord("a", "r", "t", "S", 2),
    ]


def test_texts_and_ids_are_stripped(read):
    """Formerly an id kept them, so that no relation could lead to it."""
    result = read({"id": " a ", "name": " x ", "ids": [" b "], "relations": {" r ": [" a "]}})
    assert result.records == [
        ConceptRecord("a", 1),
        NameRecord("a", "x", "en", "preferred", line=1),
        IdRecord("a", "b", line=1),
        RelationRecord("a", "r", "a", line=1),
    ]


def test_without_a_name_the_first_of_each_language_is_preferred(read):
    """Formerly not in the main language, so that the name of another stood for the concept."""
    result = read({"id": "a", "names": {"en": ["x", "y"], "zh": ["甲", "乙"]}})
    assert [r.text for r in result.of(NameRecord) if r.kind == "preferred"] == ["x", "甲"]


@pytest.mark.parametrize("end", ["", ".gz"])
def test_a_folder_is_one_source(write, reading, tmp_path, end):
    pack = gzip.compress if end else bytes
    write(f"f/b.jsonl{end}", pack(b'{"id": "b", "name": "x"}\n'))
    write(f"f/a.jsonl{end}", pack(b'{"id": "a", "name": "x"}\n'))
    write("f/readme.md", "nothing")
    result = reading(tmp_path / "f", format="jsonl")
    assert [r.concept for r in result.of(ConceptRecord)] == ["a", "b"]
    assert [path.name for path in result.log.files] == [f"a.jsonl{end}", f"b.jsonl{end}"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("prose", "not JSON"),
        ('{"id": "b"', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"id": "b", "name": "\\ud800"}', "holds half a surrogate pair"),
        ([], "not a JSON object"),
        ({}, "no id"),
        ({"name": "x"}, "no id"),
        ({"id": 5, "name": "x"}, "no id"),
        ({"id": "", "name": "x"}, "no id"),
        ({"id": " ", "name": "x"}, "no id"),
        ({"id": "b", "nmae": "x"}, "unknown key 'nmae'"),
        ({"id": "b", "name": ""}, "a text is empty or missing"),
        ({"id": "b", "name": ["x"]}, "a text is empty or missing"),
        ({"id": "b", "names": "x"}, 'expected a list, found "x"'),
        ({"id": "b", "names": {"en": "x"}}, 'expected a list, found "x"'),
        ({"id": "b", "names": [5]}, "expected text or an object with text, language, kind, source"),
        ({"id": "b", "names": [{"text": "x", "lang": "en"}]}, "unknown key 'lang'"),
        ({"id": "b", "names": [{"text": "x", "kind": "odd"}]}, "unknown kind 'odd'"),
        ({"id": "b", "names": [{"language": "en"}]}, "a text is empty or missing"),
        ({"id": "b", "types": "T"}, 'expected a list, found "T"'),
        ({"id": "b", "type": None}, "expected text or an object with type, label, tree"),
        ({"id": "b", "ids": [{"id": "x", "kind": "odd"}]}, "unknown kind 'odd'"),
        ({"id": "b", "ids": [{"kind": "xref"}]}, "a text is empty or missing"),
        ({"id": "b", "relations": {"is-a": "c"}}, 'expected a list, found "c"'),
        ({"id": "b", "relations": [["is-a", "c"]]}, "expected text or an object with relation"),
        ({"id": "b", "relations": [{"relation": "r"}]}, "a text is empty or missing"),
        ({"id": "b", "definition": [1]}, "expected text or an object"),
    ],
)
def test_an_invalid_line_is_rejected_with_its_number(read, value, reason):
    result = read({"id": "a", "name": "x"}, value, {"id": "c", "name": "y"})
    assert (result.concepts, result.log.n_read) == ({"a", "c"}, 3)
    (found,) = result.log.rejected.counts
    assert found.startswith(reason)
    assert result.log.rejected.examples[found][0].line == 2


@pytest.mark.parametrize(
    ("name", "line", "answer"),
    [
        ("a.jsonl", {"id": "D1", "name": "Flu"}, True),
        ("a.jsonl.gz", {"id": "D1", "names": ["Flu"]}, True),
        ("a.jsonl", {"id": "1", "text": "No fever."}, False),
        ("a.json", {"id": "D1", "name": "Flu"}, False),
    ],
)
def test_a_folder_is_recognised_by_what_its_files_hold(tmp_path, name, line, answer):
    """Formerly any folder with a .jsonl file was taken for one of concepts."""
    data = json.dumps(line).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (tmp_path / "README").write_text("x")
    assert recognise(look_at(tmp_path)) is answer
