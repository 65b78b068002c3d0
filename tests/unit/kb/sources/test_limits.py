"""Files that are small and would become large: each reader stops in time, and says where."""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from biograft.errors import ConfigError, InputError
from biograft.kb.sources import (
    ReadLog,
    SourceConfig,
    max_expansion,
    max_value,
    open_bytes,
    raise_limit,
    read_lines,
    read_source,
    read_text,
)

EXPANSION, VALUE = "BIOGRAFT_MAX_EXPANSION", "BIOGRAFT_MAX_VALUE"
MIB, LONG = 1 << 20, "x" * 1000
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{}]>\n'
OWL = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xmlns:owl="http://www.w3.org/2002/07/owl#">
<owl:Class rdf:about="http://x/A_1"><rdfs:label>{}</rdfs:label></owl:Class>
</rdf:RDF>
"""
TURTLE = """@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://x/A_1> a owl:Class ; rdfs:label "x" .
"""
READ_WITHIN = """
import resource, sys
from pathlib import Path
from biograft.errors import InputError
from biograft.kb.sources import ReadLog, SourceConfig, read_source
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
try:
    for _ in read_source(SourceConfig(path=Path(sys.argv[1])), ReadLog(sys.argv[1])):
        pass
except InputError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def small(monkeypatch):
    """Let little be allowed, so that bombs can be small."""
    monkeypatch.setenv(EXPANSION, "1")
    monkeypatch.setenv(VALUE, "1")


def obo(filling):
    return f"format-version: 1.2\n\n[Term]\nid: X:1\nname: x\n{filling}"


GZIPPED = {
    "obo": obo(f"comment: {LONG}\n" * 8000),
    "owl": OWL.format("x") + " " * 8 * MIB,
    "obograph": '{"graphs": [{"nodes": [], "edges": []' + " " * 8 * MIB + "}]}",
    "turtle": TURTLE + f"# {LONG}\n" * 8000,
    "scispacy": '[{"concept_id": "C1", "canonical_name": "x"}' + " " * 8 * MIB + "]",
    "mesh": "<DescriptorRecordSet>" + "<x/>" * 2 * MIB + "</DescriptorRecordSet>",
    "table": "id,name\n" + f"1,{LONG}\n" * 8000,
    "jsonl": f'{{"id": "1", "names": ["{LONG}"]}}\n' * 8000,
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", GZIPPED)
def test_a_gzip_bomb_is_refused_by_every_reader(reading, write, name):
    """A gzipped file of 3 MB became more than 3 GB in memory before an error."""
    path = write("bomb.gz", gzip.compress(GZIPPED[name].encode()))
    with pytest.raises(InputError) as error:
        reading(path, format="owl" if name == "turtle" else name)
    assert error.value.path == path
    assert EXPANSION in error.value.remedy or VALUE in error.value.remedy
    assert "\n" not in str(error.value)


VALUES = {
    "obograph": '{"graphs": [{"nodes": [{"id": "%s"}]}]}' % ("x" * 3 * MIB),
    "scispacy": json.dumps([{"concept_id": "C1", "canonical_name": "x", "aliases": ["y"] * MIB}]),
    "mesh": "<DescriptorRecordSet><DescriptorRecord>%s</DescriptorRecord></DescriptorRecordSet>"
    % ("<x/>" * MIB),
    "owl": OWL.format("x" * 3 * MIB),
    "owl comment": OWL.format("x<!-- " + "<x/>" * MIB + "-->"),
    "owl entity": HEAD.format('<!ENTITY a "%s">' % ("x" * 1000)) + OWL.format("&a;" * 9000),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", VALUES)
def test_the_size_of_a_value_is_bounded(reading, write, name):
    """Values of any length were held whole, at ten times their size and more."""
    path = write("large", VALUES[name])
    with pytest.raises(InputError, match="BIOGRAFT_MAX_") as error:
        reading(path, format=name.partition(" ")[0])
    assert error.value.path == path


def test_laughs_of_owl_are_refused_in_little_memory(write):
    """729 bytes of entities that stand for others took 4.8 GB, and Python was aborted."""
    text = HEAD.format('<!ENTITY l0 "laughs">' + LAUGHS) + OWL.format(
        "<!-- x -->" * 10_000 + "&l9;"
    )
    path = write("laughs.owl", text)
    done = subprocess.run(
        [sys.executable, "-c", READ_WITHIN, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"FormatError {path}: ")
    assert done.stdout.count("\n") == 1


def test_a_long_text_in_turtle_is_refused(reading, write):
    """The parser ended with a MemoryError, which was taken for a fault of ours."""
    path = write("a.ttl", TURTLE.replace('"x"', '"%s"' % ("x" * 17 * MIB)))
    with pytest.raises(InputError, match="too large") as error:
        reading(path, format="owl")
    assert error.value.path == path


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["obo", "owl"])
def test_the_memory_of_a_record_is_bounded(reading, write, name):
    labels = ", ".join(f'"{k}"' for k in range(50_000))
    text = obo("comment: x\n" * 50_000) if name == "obo" else TURTLE.replace('"x"', labels)
    with pytest.raises(InputError, match="more than 4 MiB of memory"):
        reading(write("a", text), format=name)


@pytest.mark.usefixtures("small")
def test_large_valid_files_are_read(reading, write, monkeypatch):
    path = write("x.obo.gz", gzip.compress(GZIPPED["obo"].encode()))
    monkeypatch.setenv(EXPANSION, "100")
    assert reading(path, format="obo").concepts == {"X:1"}
    varied = "".join(f"{k * k}\n" for k in range(400_000)).encode()  # packs to a third
    monkeypatch.setenv(EXPANSION, "1")
    assert len(varied) > 2 * MIB
    assert read_text(write("y.gz", gzip.compress(varied, 1))).encode() == varied


def test_a_large_unused_object_is_skipped(reading, write, monkeypatch):
    monkeypatch.setenv(VALUE, "1")
    skipped = json.dumps({f"k{n}": "x" * 100 for n in range(30_000)})
    graphs = '"graphs": [{"nodes": [{"id": "A:1", "lbl": "a"}]}]'
    found = reading(write("a", f'{{"other": {skipped}, {graphs}}}'), format="obograph")
    assert found.concepts == {"A:1"}


def test_the_default_expansion_is_64_mib(write):
    path = write("x.gz", gzip.compress(b"x" * 99 + b"\n"))
    assert len(list(read_lines(path))) == 1
    path.write_bytes(gzip.compress((b"x" * 63 + b"\n") * (2 * MIB // 64), 6) * 33)
    with open_bytes(path) as file:
        assert sum(len(file.read(MIB)) for _ in range(64)) == 64 * MIB
        with pytest.raises(InputError, match="64 MiB and 200 times"):
            file.read(MIB)


@pytest.mark.parametrize("name", ["jsonl", "obo"])
def test_a_size_that_is_stated_is_refused_before_it_is_read(write, name):
    """Guards: 64 MiB of rows were read, and rejected one by one, in 10 s."""
    bomb = gzip.compress(b"\n" * 65 * MIB, 6)
    path = write("x.gz", bomb)
    began = time.process_time()
    with pytest.raises(InputError, match="64 MiB and 200 times") as error:
        list(read_source(SourceConfig(path=path, format=name), ReadLog(path)))
    assert time.process_time() - began < 1
    assert error.value.path == path


@pytest.mark.parametrize("setting", ["x", "0", "١", "9" * 30])
@pytest.mark.parametrize(("name", "limit"), [(EXPANSION, max_expansion), (VALUE, max_value)])
def test_an_invalid_limit_is_refused(monkeypatch, setting, name, limit):
    monkeypatch.setenv(name, setting)
    with pytest.raises(ConfigError, match=name):
        limit()


@pytest.mark.parametrize("name", [EXPANSION, VALUE])
def test_an_error_and_the_page_say_how_a_limit_is_raised(monkeypatch, name):
    """The error said "raise" and a name, not that it is an environment variable."""
    monkeypatch.setenv(name, "7")
    assert f"set the environment variable {name} to more than 7 (MiB)" in raise_limit(name)
    page = Path(__file__).parents[4] / "docs" / "knowledge-base.md"
    assert f"| `{name}` |" in page.read_text(encoding="utf-8")
