"""``biograft corpus convert`` and ``formats``."""

import json

import pytest
import typer
from typer.testing import CliRunner

from biograft.cli.corpus import convert, formats
from biograft.errors import OutputError

app = typer.Typer()
app.command()(convert)
app.command()(formats)


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def source(write):
    return write("a.jsonl", '{"id": "1", "text": "a b", "language": "en"}\nx\n')


def test_a_conversion_says_what_it_read_rejected_and_lost(run, source, tmp_path):
    done = run("convert", source, "-o", tmp_path / "out", "--to", "pubtator")
    assert done.exit_code == 0
    assert "read        1 documents, 0 mentions, 0 relations of" in done.output
    assert "  rejected  1  not JSON" in done.output
    assert f"{source}:2: x" in done.output
    assert "  lost      1  language" in done.output
    assert (tmp_path / "out").read_text() == "1|t|a b\n1|a|\n\n"


def test_as_json_and_strictly(run, source, tmp_path):
    out = tmp_path / "out"
    done = run("convert", source, "--from", "jsonl", "-o", out, "--to", "pubtator", "--json")
    report = json.loads(done.output)
    assert (report["from"], report["to"], report["lost"]) == ("jsonl", "pubtator", {"language": 1})
    assert report["read"] == {"documents": 1, "mentions": 0, "relations": 0}
    done = run("convert", source, "-o", out, "--to", "pubtator", "--strict", "--overwrite")
    assert isinstance(done.exception, OutputError)


def test_the_formats_and_what_they_lose_are_listed(run):
    assert "conll-iobes" in run("formats").output
    entries = [json.loads(line) for line in run("formats", "--json").output.splitlines()]
    lacks = {entry["format"]: entry["lacks"] for entry in entries}
    assert lacks["jsonl"] == []
    assert "gaps" in lacks["pubtator"]
    assert not next(e for e in entries if e["format"] == "cmdd")["writes"]
