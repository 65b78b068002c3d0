"""``biograft kb``: build, formats, info, show, search, export, diff."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import biograft

SOURCE = [
    {
        "id": "D1",
        "names": {"en": ["Influenza", "flu", "grippe"], "zh": ["流感", "流行性感冒"]},
        "definition": "A viral infection.",
        "type": {"type": "T047", "label": "Disease or Syndrome", "tree": "B2"},
        "ids": ["old:1", {"id": "OMIM:1", "kind": "xref"}],
        "relations": {"is-a": ["D2"], "causes": ["D3"]},
    },
    {"id": "D2", "name": "Infection", "names": ["infectious disease"]},
    {"id": "D3", "name": "Fever", "relations": {"is-a": ["gone"]}},
]


@pytest.fixture
def source(write) -> Path:
    return write("a.jsonl", "".join(json.dumps(concept) + "\n" for concept in SOURCE))


@pytest.fixture
def store(run_main, source, tmp_path) -> Path:
    assert run_main("kb", "build", source, "-o", tmp_path / "KB").code == 0
    return tmp_path / "KB"


# ---- kb build


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (("--lang", "zh"), {"流感", "流行性感冒"}),
        (("--types", "T047"), {"Influenza", "flu", "grippe", "流感", "流行性感冒"}),
        (("--types", "B2", "--lang", "en,"), {"Influenza", "flu", "grippe"}),
        (("--types", "T047", "--lang", "en", "--lowercase"), {"influenza", "flu", "grippe"}),
    ],
)
def test_build_filters(run_main, source, tmp_path, options, texts):
    assert run_main("kb", "build", source, "-o", tmp_path / "KB", *options).code == 0
    base = biograft.KnowledgeBase.open(tmp_path / "KB")
    assert {name.text for concept in base for name in concept.names} == texts


def test_build_keeps_the_chosen_relations(run_main, source, tmp_path):
    run_main("kb", "build", source, "-o", tmp_path / "KB", "--relations", "causes")
    assert biograft.KnowledgeBase.open(tmp_path / "KB").relation_names == ["causes"]


def test_build_reads_a_table_by_its_columns(run_main, write, tmp_path):
    table = write("a.csv", "code;label;aka\nX1;Flu;grippe/influenza\n")
    options = ("--columns", "id=code, name=label,synonyms=aka", "--separator", "/")
    done = run_main(
        "kb", "build", table, "-o", tmp_path / "KB", *options, "--type", "T", "--language", "fr"
    )
    assert done.code == 0
    concept = biograft.KnowledgeBase.open(tmp_path / "KB")["X1"]
    assert [name.text for name in concept.names] == ["Flu", "grippe", "influenza"]
    assert ({name.language for name in concept.names}, concept.types[0].code) == ({"fr"}, "T")


# ---- build files


@pytest.fixture
def build_file(run_main, write, source, tmp_path):
    """Build by a file that lies in a folder of its own, run from elsewhere."""

    def build(text: str, *options: str):
        path = write("builds/b.toml", text)
        return run_main("kb", "build", path, "-o", tmp_path / "KB", *options)

    return build


def test_a_build_file_has_paths_relative_to_itself(build_file, tmp_path, source, monkeypatch):
    monkeypatch.chdir("/")
    done = build_file(
        'languages = ["zh"]\nmerge = "ids"\n[names]\nlowercase = true\n'
        '[[sources]]\npath = "../a.jsonl"\nrelations = ["causes"]\n'
        f'[[sources]]\npath = "{source}"\nformat = "jsonl"\n[[sources]]\npath = "starter"\n'
    )
    assert (done.code, done.err) == (0, "")
    base = biograft.KnowledgeBase.open(tmp_path / "KB")
    assert base["D1"].name == "流感"
    assert "influenza" in {name.text for name in base["D1"].names}
    assert len(base) > 800


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('mereg = "ids"', "b.toml: unknown key 'mereg'; did you mean 'merge'?"),
        ("sources = 5", "b.toml: sources: expected a list, found 5"),
        ('[[sources]]\nformat = "obo"', "missing key 'path'"),
        ("", "b.toml: missing key 'sources'"),
        ("[[sources]", "b.toml: not valid TOML"),
        ('[[sources]]\npath = "gone"', "builds/gone: does not exist; check the path"),
    ],
)
def test_an_invalid_build_file_is_refused(build_file, tmp_path, text, message):
    done = build_file(text)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert not (tmp_path / "KB").exists()


def test_a_build_file_goes_with_no_other_options(build_file, tmp_path):
    """Guards: they were silently ignored."""
    text = '[[sources]]\npath = "../a.jsonl"\n'
    for options in (("--merge", "ids"), ("--lang", "en"), ("--encoding", "latin-1")):
        done = build_file(text, *options)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "b.toml: a build file stands alone" in done.err
    assert build_file(text, "--quiet", "--json", "--overwrite").code == 0


# ---- kb formats, info, show, search


def test_show_ends_where_there_are_kinds_of_relations_without_end(run_main, write, tmp_path):
    """All 60,000 kinds of a concept were printed."""
    relations = {f"kind-{k}": ["B"] for k in range(150)}
    concepts = [{"id": "A", "name": "a", "relations": relations}, {"id": "B", "name": "b"}]
    source = write("a.jsonl", "\n".join(map(json.dumps, concepts)))
    assert run_main("kb", "build", source, "-o", tmp_path / "K").code == 0
    *shown, last = run_main("kb", "show", tmp_path / "K", "A").out.splitlines()
    assert sum("kind-" in line for line in shown) == 100
    assert last == "  and 50 more kinds of relations (--limit 0: all)"
    assert run_main("kb", "show", tmp_path / "K", "A", "-k", "0").out.count("kind-") == 150


# ---- kb export


def test_export_reads_back_as_the_same_store(run_main, store, tmp_path):
    out = tmp_path / "out.jsonl"
    assert run_main("kb", "export", store, "-o", out) == (0, "", f"3 lines written to {out}\n")
    run_main("kb", "build", out, "-o", tmp_path / "again")
    again = biograft.KnowledgeBase.open(tmp_path / "again")
    assert list(again) == list(biograft.KnowledgeBase.open(store))


@pytest.mark.parametrize("form", ["jsonl", "biosyn", "triples"])
def test_export_to_stdout_equals_export_to_a_file(run_main, store, tmp_path, form):
    done = run_main("kb", "export", store, "-o", "-", "--format", form)
    assert (done.code, done.err) == (0, "")
    run_main("kb", "export", store, "-o", tmp_path / "x.gz", "--format", form)
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()).decode() == done.out


# ---- what goes wrong with a store


def test_a_closed_pipe_is_no_error(store):
    """Guards: ``biograft kb export KB -o - | head`` exited with 1."""
    code = "from biograft.cli import main; main()"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", code, "kb", "export", store, "-o", "-"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=600,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_show_finds_what_takes_the_place_of_a_retired_concept(run_main, write, tmp_path):
    ids = [{"id": "X:1", "kind": "replaced"}, {"id": "X:2", "kind": "consider"}]
    source = write("a.jsonl", json.dumps({"id": "A", "name": "a", "ids": ids}))
    store = tmp_path / "K"
    assert run_main("kb", "build", source, "-o", store).code == 0
    assert run_main("kb", "show", store, "X:1").out.splitlines() == [
        "X:1 is retired: replaced by A",
        "A  a",
        "  en   a",
        "  retired ids  X:1 (replaced), X:2 (consider)",
    ]
    (shown,) = run_main("kb", "show", store, "X:2", "--json").json
    assert shown["replacement"] == {"id": "X:2", "replaced_by": [], "consider": ["A"]}
    assert "replacement" not in run_main("kb", "show", store, "A", "--json").json[0]


# ---- kb diff


def test_names_and_rejected_lines_cannot_command_the_terminal(run_main, write, tmp_path):
    evil = "flu\x1b[2J\x9b31m\u202e\x07"
    lines = [
        {
            "id": "D1",
            "name": evil,
            "definition": evil,
            "ids": [{"id": f"X:{evil}", "kind": "xref"}],
        },
        {"id": "D2", "name": "cold", "relations": [{"relation": "is-a", "tail": evil}]},
    ]
    source = write("evil.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    store = tmp_path / "EVIL"
    calls = {  # and whether it quotes what was given
        ("kb", "build", source, "-o", store): True,
        ("kb", "show", store, "D1"): False,
        ("kb", "search", store, "flu"): False,
        ("kb", "show", store, evil): True,
        ("link", evil, "--kb", store): False,
        ("link", f"{evil}.txt", "--kb", store): True,
    }
    for call, is_quoted in calls.items():
        done = run_main(*call)
        shown = done.out + done.err
        assert ("\\u202e" in shown) == is_quoted
        assert set("\x1b\x9b\u202e\x07").isdisjoint(shown)
