"""The command line: help and docs of every command, what each prints, exit codes."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import biograft
from biograft.cli import app, main
from biograft.sources import FORMATS

ROOT = Path(__file__).parents[3]

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


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line in this process: ``run("kb", "info", store)``."""
    handler = signal.getsignal(signal.SIGTERM)

    def of(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["biograft", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return Ran(int(str(code or 0)), out, err)

    yield of
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def source(write) -> Path:
    return write("a.jsonl", "".join(json.dumps(concept) + "\n" for concept in SOURCE))


@pytest.fixture
def store(run, source, tmp_path) -> Path:
    assert run("kb", "build", source, "-o", tmp_path / "KB").code == 0
    return tmp_path / "KB"


# ---- help, docs, version


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


TREE = dict(walk(typer.main.get_command(app)))
COMMANDS = [path for path, command in TREE.items() if not hasattr(command, "commands")]


def test_the_commands_are_those_promised():
    nouns = {
        "kb": ("build", "formats", "info", "show", "search", "export"),
        "graph": ("embed", "evaluate", "neighbours"),
        "corpus": ("convert", "formats", "annotate", "segment", "tasks"),
        "evaluate": ("link", "task", "text"),
        "checkpoint": ("import", "export"),
        "probe": ("cloze", "attention", "similarity"),
    }
    others = ("demo", "index", "link", "pretrain", "finetune")
    expected = {(noun, verb) for noun, verbs in nouns.items() for verb in verbs}
    assert set(COMMANDS) == expected | {(name,) for name in others}


@pytest.mark.parametrize("path", TREE, ids=" ".join)
def test_every_command_argument_and_option_has_help(run, path):
    command = TREE[path]
    assert command.help
    for parameter in command.params:
        assert parameter.help, f"{' '.join(path)}: {parameter.name}"
    ran = run(*path, "--help")
    assert (ran.code, ran.err) == (0, "")
    for parameter in command.params:
        assert parameter.param_type_name == "argument" or parameter.opts[-1] in ran.out


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_readme_or_the_docs_mention_every_command(path):
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    if "biograft kb build" not in text:
        pytest.skip("the README is still a stub")
    assert f"biograft {' '.join(path)}" in text


def test_the_docs_tell_every_format():
    page = (ROOT / "docs" / "knowledge-base.md").read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in page] == []


def test_no_page_tells_an_option_that_does_not_exist():
    parameters = [p for command in TREE.values() for p in command.params]
    known = {opt for p in parameters for opt in (*p.opts, *p.secondary_opts)}
    names = ("knowledge-base", "graph", "corpus", "annotation", "segmentation", "task-files")
    names += ("linking", "training", "evaluation")
    for page in (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in names)):
        text = re.sub(r"python benchmarks/[^`\n]*", "", page.read_text(encoding="utf-8"))
        told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        assert told <= known | {"--help"}


def test_all_commands_but_export_and_demo_print_json():
    """So the docs say."""
    without = [p for p in COMMANDS if "--json" not in {o for q in TREE[p].params for o in q.opts}]
    assert without == [("demo",), ("kb", "export")]


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "biograft", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"biograft {biograft.__version__}\n"


def test_version(run):
    assert run("--version") == (0, f"biograft {biograft.__version__}\n", "")


@pytest.mark.parametrize("path", [(), ("kb",)])
def test_a_group_alone_shows_its_help(run, path):
    ran = run(*path)
    assert "Commands:" in ran.out + ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("nope",),
        ("kb", "nope"),
        ("kb", "build"),
        ("kb", "build", "x"),
        ("kb", "info"),
        ("kb", "info", "KB", "--nope"),
        ("kb", "search", "KB", "x", "-k", "0"),
        ("kb", "show", "KB", "x", "-k", "-1"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_hint(run, arguments):
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "Usage: biograft" in ran.err
    assert "Traceback" not in ran.err


# ---- kb build


def test_build_prints_its_report_on_stdout(run, source, tmp_path):
    ran = run("kb", "build", source, "-o", tmp_path / "KB")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[:-1] == [
        f"read        3 rows of {source} (jsonl)",
        "  rejected  1  relations: tail is no concept",
        f"            {source}:3: gone",
        "kept        3 concepts, 8 names, 1 definitions, 1 types, 2 ids, 2 relations",
    ]
    assert ran.out.splitlines()[-1].startswith(f"store       {tmp_path / 'KB'}  (")


def test_build_prints_one_json_object(run, source, tmp_path):
    (report,) = run("kb", "build", source, "-o", tmp_path / "KB", "--json").json
    counts = {key: value for key, value in report.items() if key.startswith("n_")}
    assert counts == {
        "n_concepts": 3, "n_names": 8, "n_definitions": 1, "n_types": 1, "n_ids": 2,
        "n_relations": 2,
    }  # fmt: skip
    assert set(report) == {"store", "merged", "dropped", "warnings", "sources", "seconds", *counts}
    (read,) = report["sources"]
    assert set(read) == {
        "path", "format", "n_read", "n_rejected", "filtered", "rejected", "doubtful",
        "notes", "files",
    }  # fmt: skip
    assert (read["path"], read["format"], read["n_rejected"]) == (str(source), "jsonl", 1)
    assert read["rejected"]["relations: tail is no concept"]["examples"] == [
        {"file": str(source), "line": 3, "text": "gone"}
    ]
    assert set(read["files"][0]) == {"path", "bytes", "sha256"}


def test_quiet_and_json_leave_stderr_empty(run, source, tmp_path):
    for k, options in enumerate([("--quiet",), ("-q", "--json")]):
        ran = run("kb", "build", source, "-o", tmp_path / f"KB{k}", *options)
        assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (("--lang", "zh"), {"流感", "流行性感冒"}),
        (("--types", "T047"), {"Influenza", "flu", "grippe", "流感", "流行性感冒"}),
        (("--types", "B2", "--lang", "en,"), {"Influenza", "flu", "grippe"}),
        (("--types", "T047", "--lang", "en", "--lowercase"), {"influenza", "flu", "grippe"}),
    ],
)
def test_build_filters(run, source, tmp_path, options, texts):
    assert run("kb", "build", source, "-o", tmp_path / "KB", *options).code == 0
    base = biograft.KnowledgeBase.open(tmp_path / "KB")
    assert {name.text for concept in base for name in concept.names} == texts


def test_build_keeps_the_relations_asked_for(run, source, tmp_path):
    run("kb", "build", source, "-o", tmp_path / "KB", "--relations", "causes")
    assert biograft.KnowledgeBase.open(tmp_path / "KB").relation_names == ["causes"]


def test_build_reads_a_table_by_its_columns(run, write, tmp_path):
    table = write("a.csv", "code;label;aka\nX1;Flu;grippe/influenza\n")
    options = ("--columns", "id=code, name=label,synonyms=aka", "--separator", "/")
    ran = run("kb", "build", table, "-o", tmp_path / "KB", *options, "--type", "T", "--language",
              "fr")  # fmt: skip
    assert ran.code == 0
    concept = biograft.KnowledgeBase.open(tmp_path / "KB")["X1"]
    assert [name.text for name in concept.names] == ["Flu", "grippe", "influenza"]
    assert ({name.language for name in concept.names}, concept.types[0].code) == ({"fr"}, "T")


@pytest.mark.parametrize("columns", ["id", "id=", "=x", "id=code,name"])
def test_build_refuses_a_mapping_that_is_none(run, source, tmp_path, columns):
    ran = run("kb", "build", source, "-o", tmp_path / "KB", "--columns", columns)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "biograft: " in ran.err
    assert not (tmp_path / "KB").exists()


def test_build_overwrites_only_when_told(run, source, store):
    ran = run("kb", "build", source, "-o", store)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"biograft: {store}: exists already; " + ran.err.split("; ", 1)[1]
    assert run("kb", "build", source, "-o", store, "--overwrite").code == 0


@pytest.mark.parametrize("value", ["nothing", "id", ""])
def test_build_refuses_an_unknown_merge(run, source, tmp_path, value):
    ran = run("kb", "build", source, "-o", tmp_path / "KB", "--merge", value)
    assert (ran.code, ran.err) == (
        2, f"biograft: merge: expected one of none, ids, xrefs, found {value!r}\n",
    )  # fmt: skip


# ---- build files


@pytest.fixture
def build_file(run, write, source, tmp_path):
    """Build by a file that lies in a folder of its own, run from elsewhere."""

    def of(text: str, *options: str) -> Ran:
        path = write("builds/b.toml", text)
        return run("kb", "build", path, "-o", tmp_path / "KB", *options)

    return of


def test_a_build_file_has_paths_relative_to_itself(build_file, tmp_path, source, monkeypatch):
    monkeypatch.chdir("/")
    ran = build_file(
        'languages = ["zh"]\nmerge = "ids"\n[names]\nlowercase = true\n'
        '[[sources]]\npath = "../a.jsonl"\nrelations = ["causes"]\n'
        f'[[sources]]\npath = "{source}"\nformat = "jsonl"\n[[sources]]\npath = "starter"\n'
    )
    assert (ran.code, ran.err) == (0, "")
    base = biograft.KnowledgeBase.open(tmp_path / "KB")
    assert base["D1"].name == "流感"
    assert "influenza" in {name.text for name in base["D1"].names}
    assert len(base) > 800


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('mereg = "ids"', "b.toml: unknown key 'mereg'; did you mean 'merge'?"),
        ('[[sources]]\npath = "x"\nlang = "en"', "unknown key 'lang'; did you mean 'lang"),
        ("[names]\nlower = true", "unknown key 'lower'; did you mean 'lowercase'?"),
        ("merge = 1", "b.toml: merge: expected str, found 1"),
        ("sources = 5", "b.toml: sources: expected a list, found 5"),
        ('sources = ["a.obo"]', "expected a table, found 'a.obo'"),
        ('[[sources]]\nformat = "obo"', "missing key 'path'"),
        ("[[sources]]\npath = 5", "expected Path, found 5"),
        ('[[sources]]\npath = "x"\nlanguages = "en"', "expected a list, found 'en'"),
        ("", "b.toml: missing key 'sources'"),
        ("sources = []", "sources: expected at least one file or folder"),
        ("[[sources]", "b.toml: not valid TOML"),
        ('[[sources]]\npath = "gone"', "builds/gone: does not exist; check the path"),
    ],
)
def test_a_wrong_build_file_is_refused_by_name(build_file, tmp_path, text, message):
    ran = build_file(text)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert message in ran.err
    assert not (tmp_path / "KB").exists()


def test_a_build_file_goes_with_no_other_options(build_file, tmp_path):
    """Formerly they were ignored without a word."""
    text = '[[sources]]\npath = "../a.jsonl"\n'
    for options in (("--merge", "ids"), ("--lang", "en"), ("--encoding", "latin-1")):
        ran = build_file(text, *options)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "b.toml: a build file stands alone" in ran.err
    assert build_file(text, "--quiet", "--json", "--overwrite").code == 0


def test_a_build_file_that_is_missing_is_told(run, tmp_path):
    ran = run("kb", "build", tmp_path / "gone.toml", "-o", tmp_path / "KB")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "gone.toml: cannot be read (No such file or directory)" in ran.err


# ---- kb formats, info, show, search


def test_formats(run):
    ran = run("kb", "formats")
    assert [line.split()[0] for line in ran.out.splitlines()] == list(FORMATS)
    values = run("kb", "formats", "--json").json
    assert values == [{"format": name, "help": text} for name, text in FORMATS.help().items()]


def test_info(run, store, source):
    ran = run("kb", "info", store)
    assert (ran.code, ran.err) == (0, "")
    first, *rest = ran.out.splitlines()
    assert first.startswith(f"{store}: 3 concepts, made 20")
    assert "  languages    en 6, zh 2" in rest
    assert f"  from         {source} (jsonl): 3 rows" in rest
    assert any(line.startswith("               rejected 1  ") for line in rest)


def test_info_prints_one_json_object(run, store):
    (info,) = run("kb", "info", store, "--json").json
    assert (info["n_concepts"], info["n_names"], info["n_relations"]) == (3, 8, 2)
    assert info["store"] == str(store)
    assert info["n_names_by_language"] == {"en": 6, "zh": 2}
    assert set(info["relations"]) == {"is-a", "causes"}
    assert info["types"] == ["T047"]
    assert {"made_by", "made_at", "config", "sources", "version", "warnings"} <= set(info)


def test_info_verifies_on_request(run, store):
    assert run("kb", "info", store, "--verify").code == 0
    path = store / "names.arrow"
    path.write_bytes(path.read_bytes().replace(b"grippe", b"grappe"))
    assert run("kb", "info", store).code == 0
    ran = run("kb", "info", store, "--verify")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"biograft: {path}: damaged; build the store again\n"


def test_show(run, store):
    assert run("kb", "show", store, "old:1").out.splitlines() == [
        "D1  Influenza  [T047 Disease or Syndrome]",
        "  en   Influenza; flu; grippe",
        "  zh   流感; 流行性感冒",
        "  def  A viral infection.",
        "  ids  old:1 (alternate), OMIM:1 (xref)",
        "  is-a -> Infection (D2)",
        "  causes -> Fever (D3)",
    ]
    assert run("kb", "show", store, "D2").out.splitlines()[-1] == "  <- is-a Influenza (D1)"


def test_show_says_how_much_it_does_not_show(run, store):
    assert "  en   Influenza; and 2 more" in run("kb", "show", store, "D1", "-k", "1").out
    assert "  en   Influenza; flu; grippe" in run("kb", "show", store, "D1", "-k", "0").out


def test_show_prints_one_json_object(run, store):
    (concept,) = run("kb", "show", store, "D1", "--json").json
    assert set(concept) == {"id", "name", "names", "definitions", "types", "ids", "relations"}
    name = {"text": "Influenza", "language": "en", "kind": "preferred", "source": "a.jsonl"}
    assert concept["names"][0] == name
    assert concept["relations"][0] == {
        "head": "D1", "relation": "is-a", "tail": "D2", "source": "a.jsonl",
        "head_name": "Influenza", "tail_name": "Infection",
    }  # fmt: skip


def test_search(run, store):
    assert run("kb", "search", store, "FLU").out == "D1  flu  = Influenza  (normalised, en)\n"
    assert run("kb", "search", store, "inf").out.splitlines() == [
        "D1  Influenza  (prefix, en)",
        "D2  Infection  (prefix, en)",
    ]
    assert run("kb", "search", store, "inf", "-k", "1").out.count("\n") == 1
    assert run("kb", "search", store, "流", "--lang", "CHI").out.startswith("D1  流感")
    assert run("kb", "search", store, "流", "--lang", "en").out == ""


def test_search_prints_an_object_a_match(run, store):
    assert run("kb", "search", store, "infec", "--json").json == [
        {
            "concept": "D2", "concept_name": "Infection", "name": "Infection", "language": "en",
            "how": "prefix",
        }
    ]  # fmt: skip


def test_search_that_finds_nothing_is_no_error(run, store):
    assert run("kb", "search", store, "zebra") == (0, "", "no name holds 'zebra'\n")
    assert run("kb", "search", store, "zebra", "--json") == (0, "", "")


# ---- kb export


def test_export_reads_back_as_the_same_store(run, store, tmp_path):
    out = tmp_path / "out.jsonl"
    assert run("kb", "export", store, "-o", out) == (0, "", f"3 lines written to {out}\n")
    run("kb", "build", out, "-o", tmp_path / "again")
    again = biograft.KnowledgeBase.open(tmp_path / "again")
    assert list(again) == list(biograft.KnowledgeBase.open(store))


@pytest.mark.parametrize("form", ["jsonl", "biosyn", "triples"])
def test_export_to_stdout_is_what_goes_to_a_file(run, store, tmp_path, form):
    ran = run("kb", "export", store, "-o", "-", "--format", form)
    assert (ran.code, ran.err) == (0, "")
    run("kb", "export", store, "-o", tmp_path / "x.gz", "--format", form)
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()).decode() == ran.out


def test_export_forms(run, store):
    lines = run("kb", "export", store, "-o", "-", "--format", "biosyn").out.splitlines()
    assert lines[:2] == ["D1|old:1||Influenza", "D1|old:1||流感"]
    triples = run("kb", "export", store, "-o", "-", "--format", "triples").out
    assert triples == "D1\tis-a\tD2\nD1\tcauses\tD3\n"


def test_export_refuses_what_it_does_not_know_and_what_exists(run, store, tmp_path):
    ran = run("kb", "export", store, "-o", tmp_path / "x", "--format", "owl")
    assert (ran.code, ran.err) == (
        2, "biograft: no export format is called 'owl'; known: biosyn, jsonl, triples\n",
    )  # fmt: skip
    assert not (tmp_path / "x").exists()
    (tmp_path / "x").write_text("mine")
    ran = run("kb", "export", store, "-o", tmp_path / "x")
    assert (ran.code, (tmp_path / "x").read_text()) == (2, "mine")
    assert run("kb", "export", store, "-o", tmp_path / "x", "--overwrite").code == 0


# ---- what goes wrong with a store


@pytest.mark.parametrize("command", ["info", "show", "search", "export"])
def test_every_command_names_a_store_that_is_none(run, tmp_path, command):
    more = {"show": ["D1"], "search": ["x"], "export": ["-o", tmp_path / "x"]}.get(command, [])
    ran = run("kb", command, tmp_path / "gone", *more)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"biograft: {tmp_path / 'gone'}: no such knowledge base; "
        "build one with `biograft kb build`\n"
    )
    ran = run("kb", command, tmp_path, *more)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "holds no manifest.json" in ran.err


def test_an_unknown_id_is_told(run, store):
    ran = run("kb", "show", store, "D9")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"biograft: {store}: no concept has the id 'D9'; look names up")


# ---- the whole, as a process


@pytest.mark.slow
def test_demo(tmp_path):
    """As a process of its own: it chooses how many threads compute before torch is loaded."""
    command = [Path(sys.executable).with_name("biograft"), "demo", "-o", tmp_path / "demo"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "D009203" in ran.stdout
    page = (tmp_path / "demo" / "demo.html").read_text(encoding="utf-8")
    assert "Myocardial Infarction" in page
    assert biograft.KnowledgeBase.open(tmp_path / "demo" / "starter")["D009203"]


def test_a_reader_of_our_output_may_go_away(store):
    """``biograft kb export KB -o - | head`` is no error; formerly its exit code was 1."""
    code = "from biograft.cli import main; main()"
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", code, "kb", "export", store, "-o", "-"],
        stdout=writing, stderr=subprocess.PIPE, text=True, check=False, timeout=600,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_show_finds_a_concept_by_a_cross_reference(run, tmp_path):
    concepts = [{"id": "A", "name": "a", "ids": [{"id": "X:1", "kind": "xref"}]}]
    source = tmp_path / "a.jsonl"
    source.write_text("\n".join(map(json.dumps, concepts)))
    assert run("kb", "build", source, "-o", tmp_path / "K").code == 0
    (shown,) = run("kb", "show", tmp_path / "K", "X:1", "--json").json
    assert shown["id"] == "A"
    assert run("kb", "show", tmp_path / "K", "X:2").code == 2
