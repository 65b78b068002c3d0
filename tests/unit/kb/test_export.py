import gzip

import pytest

from biograft.errors import OutputError
from biograft.kb import EXPORTS, BuildConfig, KnowledgeBase, build_store, export_store
from biograft.kb.sources import SourceConfig

CONCEPTS = [
    {
        "id": "A:1",
        "names": [
            {"text": 'Crohn\'s "disease"', "language": "en", "kind": "preferred", "source": "MSH"},
            {"text": "克罗恩病", "language": "zh", "kind": "abbreviation", "source": "ICD"},
            {"text": "tab\tand\u2028break", "language": "en", "kind": "narrow", "source": "MSH"},
        ],
        "definitions": [{"text": "x", "language": "de", "source": "DEF"}],
        "types": [{"type": "T1", "label": "one", "tree": "A1"}, "T2"],
        "ids": [{"id": "B:9", "kind": "alternate"}, {"id": "OMIM:1", "kind": "xref"}],
        "relations": [
            {"relation": "is-a", "tail": "C", "source": "MSH"},
            {"relation": "treats", "tail": "B", "source": "ICD"},
        ],
    },
    {"id": "B", "names": []},
    {"id": "C", "name": "c", "relations": {"is-a": ["A:1"]}},
]


@pytest.fixture
def rebuild(tmp_path):
    """Export a store and build one of what was written."""

    def of(base, form, name):
        export_store(base, tmp_path / name, form)
        # three triples are too few to be recognised by their content
        reader = form if form == "triples" else ""
        config = BuildConfig(sources=(SourceConfig(path=tmp_path / name, format=reader),))
        build_store(config, tmp_path / f"{name}.kb")
        return KnowledgeBase.open(tmp_path / f"{name}.kb")

    return of


def test_a_biosyn_dictionary_reads_back_with_ids_and_names(build, rebuild, tmp_path):
    base = build(CONCEPTS).base
    again = rebuild(base, "biosyn", "out.txt")
    assert [c.id for c in again] == ["A:1|B:9", "C"]
    assert [i.id for i in again["A:1"].ids] == ["A:1", "B:9"]
    assert again["B:9"] == again["A:1"]
    assert export_store(again, tmp_path / "twice.txt", "biosyn") == 4
    assert (tmp_path / "twice.txt").read_text() == (tmp_path / "out.txt").read_text()
    assert [n.text for n in again["A:1"].names] == [
        'Crohn\'s "disease"',
        "tab and break",
        "克罗恩病",
    ]


def test_gzipped_exports_are_equal_to_the_byte(build, tmp_path):
    base = build(CONCEPTS).base
    for name in ("a.gz", "b.gz"):
        export_store(base, tmp_path / name, "biosyn")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).startswith(b"A:1|B:9||Crohn")


@pytest.mark.parametrize("form", EXPORTS)
def test_a_file_is_not_overwritten_unasked(build, tmp_path, form):
    (tmp_path / "out").write_text("old")
    base = build(CONCEPTS).base
    with pytest.raises(OutputError, match="exists already"):
        export_store(base, tmp_path / "out", form)
    assert (tmp_path / "out").read_text() == "old"
    export_store(base, tmp_path / "out", form, overwrite=True)
    assert (tmp_path / "out").read_text() != "old"


def test_an_id_that_ends_where_the_names_begin_is_refused(build, tmp_path):
    """Guards: ``E||F`` gave a row of the concept E with the name F."""
    base = build([{"id": "E||F", "name": "flu"}]).base
    with pytest.raises(OutputError, match=r"id 'E\|\|F': holds '\|\|'.*export as jsonl"):
        export_store(base, tmp_path / "x.txt", "biosyn")
    assert not list(tmp_path.glob("*x.txt*"))
    assert export_store(base, tmp_path / "x.jsonl", "jsonl") == 1
