"""Tables and figures of documents: values, folds, p values, what was not measured."""

from __future__ import annotations

import pytest

from biograft.errors import InputError
from biograft_lab.replication import figures, protocol_tables
from biograft_lab.replication.declared import DeclaredTable, declared_tables
from biograft_lab.replication.report import documents, render, result_path, tables, write_tables
from biograft_lab.replication.results import read_result


def test_documents_hold_the_tables_of_the_result_files():
    assert write_tables(check=True) == []


def test_every_table_is_in_a_document():
    text = "\n".join(path.read_text(encoding="utf-8") for path in documents())
    assert [name for name in tables() if f"<!-- begin: {name} -->" not in text] == []


@pytest.mark.parametrize("name", tables())
def test_every_table_has_results(name):
    assert result_path(name).exists()


def test_unknown_tables_are_refused(tmp_path):
    with pytest.raises(InputError, match="pepr"):
        render("<!-- begin: peppr -->\n<!-- end: peppr -->", tmp_path / "a.md", tables())


def protocol_row(name, config, value, difference=None, **more):
    row = {"set": name, "protocol": "published", "dictionary": "published", "split": "test"}
    row |= {"config": config, "n": 100, "acc@1": value, "causes": {}}
    row["intervals"] = {"acc@1": [value - 3, value + 3]}
    if difference is not None:
        bounds = [difference - 2, difference + 2]
        test = {"difference": difference, "interval": bounds, "randomisation_p": 0.02}
        row["against_lexical"] = {"acc@1": test}
    return {**row, **more}


def test_protocols_show_all_systems_beside_lexical_search():
    rows = [
        protocol_row("ncbi-disease", "lexical", 90.0),
        protocol_row("ncbi-disease", "lexical", 80.0, protocol="ontology", dictionary="ontology"),
        protocol_row("ncbi-disease", "lexical", 91.0, 1.0, dictionary="published+names"),
        protocol_row("ncbi-disease", "ours", 93.0, 3.0, seed=0),
        protocol_row("ncbi-disease", "ours", 94.0, 4.0, seed=1),
        protocol_row("askapatient-0", "ours", 70.0, 1.0),
        protocol_row("askapatient-1", "ours", 74.0, 3.0),
    ]
    text = protocol_tables.side_by_side({"rows": rows})
    lexical = "| ncbi-disease | lexical | 80.0 (77.0–83.0) | 90.0 (87.0–93.0) |  |  |"
    assert lexical in text
    assert "| ncbi-disease | ours |  | 93.5 (90.5–96.5) |  |  |" in text
    detail = protocol_tables.one_protocol("published", {"rows": rows})
    assert "| lexical | 100 |  | 90.0 (87.0–93.0) |  |  |" in detail
    assert (
        "| lexical, more names | 100 |  | 91.0 (88.0–94.0) | +1.0 (-1.0 to +3.0) | 0.020 |"
        in detail
    )
    assert "| ours | 100 |  | 93.5 (90.5–96.5) | +3.5 (+1.5 to +5.5) | 0.020 |" in detail
    # two folds: 3 / sqrt(2) = 2.1 around the mean, and p of 2 with an error of 1.41 / 1.96
    folds = "| askapatient | ours | 200 |  | 72.0 (69.9–74.1) | +2.0 (+0.6 to +3.4) | 0.006 |"
    assert folds in detail


def test_the_best_system_is_chosen_on_dev_not_on_test():
    rows = [
        protocol_row("ncbi-disease", config, value, split=split)
        for config, dev, test in (("lexical", 80.0, 85.0), ("a", 90.0, 86.0), ("b", 89.0, 95.0))
        for split, value in (("dev", dev), ("test", test))
    ]
    rows.append(protocol_row("ncbi-disease", "dev only", 99.0, split="dev"))
    text = protocol_tables.best_on_dev({"rows": rows})
    assert "| ncbi-disease | lexical |  | 85.0 (82.0–88.0) |  |  |" in text
    assert "| ncbi-disease | best on dev |  | 86.0 (83.0–89.0) a |  |  |" in text


def test_a_declared_table_has_the_values_of_its_places():
    table = DeclaredTable(
        head=("", "rate"),
        of={"parts.*": "all", "other": "another", "absent": "nothing"},
        needs="n",
        cells=("{title} {key}", ("{n / seconds.0:,.0f} a second", "{n}")),
        missing="-",
    )
    parts = {"a": {"n": 9000, "seconds": [3]}, "b": {"n": 1, "seconds": [0]}, "c": {"m": 1}}
    lines = table.write({"parts": parts, "other": {"n": "7", "key": "own"}}).splitlines()
    assert lines[2:] == ["| all a | 3,000 a second |", "| all b | 1 |", "| another own | 7 |"]
    rows = (("k * 2", "{key * 2:.1f}"), ("absent", "{x.y}"))
    columns = DeclaredTable(head=("",), columns="sizes.*", rows=rows, missing="-")
    lines = columns.write({"sizes": {"10": {}, "20": {}}}).splitlines()
    assert lines == [
        "|  | 10 | 20 |",
        "|---|---|---|",
        "| k * 2 | 20.0 | 40.0 |",
        "| absent | - | - |",
    ]


@pytest.mark.parametrize("name", declared_tables())
def test_declared_tables_lack_no_value_that_their_results_have(name):
    """A misspelt place would be an empty cell, or a row that is left out."""
    table = declared_tables()[name]
    text = table.write(read_result(result_path(name)))
    assert len(text.splitlines()) > 2
    assert "{" not in text


def test_the_start_of_a_linker_is_drawn_by_number_of_names(tmp_path):
    pytest.importorskip("matplotlib")
    sizes = dict.fromkeys(("resident_mib", "unique_mib", "unique_mib_of_eight"), 90.0)
    part = {"cold_start_seconds": 0.7, "cold_start_processor_seconds": 0.6, **sizes}
    parts = {"search": {}, "a": {"n_names": 1_000_000, **part}, "b": {"n_names": 73_000, **part}}
    figures.draw_start({"parts": parts}, tmp_path / "cold-start.svg")
    assert b"<svg" in (tmp_path / "cold-start.svg").read_bytes()
