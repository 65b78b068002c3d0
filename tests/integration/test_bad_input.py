"""Bad input through the real command line: one clear line, or a report that names each place.

Nothing is ever left behind: no store, no half-written folder, hidden or not.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import NamedTuple

import pytest

ROW = '{"id": "D1", "name": "flu"}\n'
OBO = "format-version: 1.2\n\n[Term]\nid: X:1\nname: a\n"


class Run(NamedTuple):
    """How one run of the command line went."""

    code: int
    out: str
    err: str
    left: list[str]
    """What lies in the working folder afterwards, the input left aside."""


@pytest.fixture
def build(tmp_path, monkeypatch, run_main):
    """Run ``biograft kb build`` in an empty folder: ``build("name", b"content", "--quiet")``."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, content: bytes | None, *options: str) -> Run:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        before = set(tmp_path.iterdir())
        done = run_main("kb", "build", name, "-o", "KB", *options)
        left = sorted(path.name for path in set(tmp_path.iterdir()) - before)
        return Run(*done, left)

    return run


def zipped(name: str, content: str) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr(name, content)
    return memory.getvalue()


# name of the file, its content, options, what the one line must say
STOPPED = {
    "truncated gzip": (
        "a.obo.gz",
        gzip.compress(OBO.encode() * 100)[:-20],
        (),
        ["a.obo.gz: its gzip data is damaged or cut short", "; fetch the file again"],
    ),
    "truncated gzip, found late": (
        "a.jsonl.gz",
        gzip.compress(ROW.encode() * 50_000)[:-20],
        (),
        ["a.jsonl.gz: its gzip data is damaged", "; fetch the file again"],
    ),
    "wrong encoding": (
        "a.csv",
        "id,name\nD1,flu\nD2,Ménière's disease, too\n".encode("latin-1"),
        (),
        ["a.csv:3: byte 0xe9 is not utf-8", "; name the encoding (encoding latin-1?)"],
    ),
    "encoding that does not exist": (
        "a.csv",
        b"id,name\nD1,flu\n",
        ("--encoding", "klingon"),
        ["no encoding is called 'klingon'"],
    ),
    "missing column": (
        "a.csv",
        b"id,name\nD1,flu\n",
        ("--columns", "id=id,name=label"),
        ["a.csv:1: column 'label' is missing (found: 'id,name')", "; known: id, name"],
    ),
    "missing columns of RF2": (
        "a.txt",
        b"id\teffectiveTime\tactive\n1\t2\t3\n",
        ("--format", "snomed"),
        ["a.txt:1: the header is none of RF2", "; expected id, effectiveTime"],
    ),
    "line of 10 MB": (
        "a.jsonl",
        ROW.encode() + b'{"id": "D2", "name": "' + b"x" * 10_000_000 + b'"}\n',
        (),
        ["a.jsonl:2: a line of over 8 MiB", "; line ends are missing, or the format is another"],
    ),
    "nothing but a line of 10 MB": (
        "a.txt",
        b"x" * 10_000_000,
        (),
        ["a.txt:1: no reader knows this content", "; name the format"],
    ),
    "NUL bytes": (
        "a.obo",
        OBO.encode() + b"def: \x00\x00\n",
        (),
        ["a.obo:6: holds a NUL byte", "; the file is damaged or not text; fetch it again"],
    ),
    "empty": ("a.obo", b"", (), ["a.obo: is empty; check that the download is complete"]),
    "zip": ("a.zip", zipped("a.obo", OBO), (), ["a.zip: is a zip archive; unpack it first"]),
    "another format": (
        "a.obo",
        OBO.encode(),
        ("--format", "biosyn"),
        ["a.obo: contains no concept (4 rows were read", "); check the format and the filters"],
    ),
    "everything filtered": (
        "a.jsonl",
        ROW.encode(),
        ("--types", "T047"),
        ["types: no concept has the type 'T047'; the sources give no types"],
    ),
    "unclosed quote": (
        "a.csv",
        b'id,name\nD1,"flu\nD2,x\n',
        (),
        ["a.csv:2: is not valid CSV", "quotes"],
    ),
}


@pytest.mark.parametrize("case", STOPPED)
def test_a_failed_build_prints_one_line_and_leaves_no_files(build, case):
    name, content, options, expected = STOPPED[case]
    run = build(name, content, *options)
    assert (run.code, run.out, run.left) == (2, "", [])
    assert run.err.startswith("biograft: ")
    assert run.err.count("\n") == 1
    for part in expected:
        assert part in run.err


@pytest.mark.parametrize("options", [(), ("--format", "obo")], ids=["any", "obo"])
def test_a_folder_given_for_a_file_is_reported(build, tmp_path, options):
    (tmp_path / "folder").mkdir()
    run = build("folder", None, *options)
    assert (run.code, run.left, run.err.count("\n")) == (2, [], 1)
    assert run.err.startswith("biograft: folder: ")
    assert ("name a file in it" if options else "name the format") in run.err


# content of a JSON-lines source, the report's lines, the warnings
FINISHED = {
    "duplicate ids": (
        [{"id": "a", "name": "x"}, {"id": "b", "name": "y"}, {"id": "a", "name": "z"}],
        ["doubtful  1  id defined twice", "a.jsonl:3: a"],
    ),
    "dangling relations": (
        [{"id": "a", "name": "x"}, {"id": "b", "name": "y", "relations": {"is-a": ["a", "gone"]}}],
        ["rejected  1  relations: tail is no concept", "a.jsonl:2: gone"],
    ),
    "cyclic is-a": (
        [
            {"id": "a", "name": "x", "relations": {"is-a": ["b"]}},
            {"id": "b", "name": "y", "relations": {"is-a": ["c"]}},
            {"id": "c", "name": "z", "relations": {"is-a": ["a"]}},
        ],
        ["is-a has cycles: 3 concepts lie on or between them, such as a -> b -> c -> a"],
    ),
    "faulty rows": (
        [{"id": "a", "name": "x"}, {"name": "y"}, {"id": "b", "nam": "z"}, [1]],
        [
            "rejected  1  no id",
            "a.jsonl:2: {",
            "rejected  1  unknown key 'nam'",
            "a.jsonl:3: {",
            "rejected  1  not a JSON object",
            "a.jsonl:4: [1]",
        ],
    ),
}


@pytest.mark.parametrize("case", FINISHED)
def test_a_build_continues_and_reports_the_lines(build, case):
    values, expected = FINISHED[case]
    content = "".join(json.dumps(value) + "\n" for value in values).encode()
    run = build("a.jsonl", content, "--format", "jsonl")
    assert (run.code, run.err, run.left) == (0, "", ["KB"])
    for part in expected:
        assert part in run.out


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("KB", "KB: exists already; remove it, choose another place"),
        ("a.jsonl", "a.jsonl: exists already"),
        ("a.jsonl/KB", "a.jsonl/KB: cannot be written (File exists); choose another place"),
        ("x" * 300, "cannot be written (File name too long); choose another place"),
    ],
)
def test_a_store_that_cannot_be_written_is_reported(build, tmp_path, out, message):
    """The last two were tracebacks once."""
    (tmp_path / "KB").mkdir()
    (tmp_path / "KB" / "mine").write_text("mine")
    run = build("a.jsonl", ROW.encode(), "-o", out)
    assert (run.code, run.left, run.err.count("\n")) == (2, [], 1)
    assert message in run.err
    assert (tmp_path / "KB" / "mine").read_text() == "mine"
    assert (tmp_path / "a.jsonl").read_text() == ROW


def test_a_failed_build_leaves_the_earlier_store_as_it_was(build, tmp_path):
    assert build("a.jsonl", ROW.encode()).code == 0
    kept = {path.name: path.read_bytes() for path in (tmp_path / "KB").iterdir()}
    run = build("b.jsonl", b"\x00", "--overwrite")
    assert (run.code, run.left) == (2, [])
    assert {path.name: path.read_bytes() for path in (tmp_path / "KB").iterdir()} == kept


def test_one_bad_source_among_good_ones_stops_the_build(build, tmp_path):
    (tmp_path / "good.jsonl").write_text(ROW)
    content = b'[[sources]]\npath = "good.jsonl"\n[[sources]]\npath = "gone.obo"\n'
    run = build("b.toml", content)
    assert (run.code, run.out, run.left) == (2, "", [])
    assert run.err == "biograft: gone.obo: does not exist; check the path\n"
