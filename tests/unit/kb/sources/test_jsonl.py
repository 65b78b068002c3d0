"""biograft's own JSON lines: every short and long form, and every way to be wrong."""

import gzip
import json
from functools import partial

import pytest

from biograft.kb.records import (
    ConceptRecord,
    DefinitionRecord,
    IdRecord,
    NameRecord,
    RelationRecord,
    TypeRecord,
)
from biograft.kb.sources import FORMATS, look_at

recognise = FORMATS.load("jsonl").recognise


@pytest.fixture
def read(reading, write):
    """Read values as lines; a text stays as it is."""

    def of(*values, **options):
        lines = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
        return partial(reading, format="jsonl")(write("a.jsonl", "\n".join(lines)), **options)

    return of


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
