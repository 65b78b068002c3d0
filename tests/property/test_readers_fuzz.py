"""Whatever a file holds, a reader gives sound records or one of our errors, nothing else.

The examples are the same in every run, so that a failure can be repeated. To look for new
ones: ``BIOGRAFT_FUZZ=2000 pytest tests/property`` tries so many, other ones each time.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from snippets import SNIPPETS

from biograft.errors import BiograftError
from biograft.kb import BuildConfig, KnowledgeBase, build_store, export_store
from biograft.records import RECORD_TYPES, IdKind, NameKind
from biograft.sources import FORMATS, Block, ReadLog, SourceConfig, read_source, sniff

N_EXAMPLES = int(os.environ.get("BIOGRAFT_FUZZ", "0"))


def profile(n_examples: int) -> settings:
    return settings(
        max_examples=N_EXAMPLES or n_examples,
        derandomize=not N_EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def check_reading(path: Path, form: str) -> None:
    """Read a file whole: every record must be sound, every error ours."""
    log, message = ReadLog(path), ""
    try:
        for item in read_source(SourceConfig(path=path, format=form), log):
            check_item(item)
    except BiograftError as error:
        message = str(error)
    assert "\n" not in message
    for reason, entry in log.rejected.to_json().items():
        assert reason.isprintable()
        for found in entry["examples"]:
            assert found["line"] >= 0
            found["text"].encode()


def check_item(item: object) -> None:
    if isinstance(item, Block):
        columns = item.frame.drop("line")
        assert set(item.frame.columns) == set(item.record.__slots__)
        assert set(columns.dtypes) <= {pl.String()}
        assert sum(columns.null_count().row(0)) == 0
        assert (item.frame["line"] >= 0).all()
        return
    assert isinstance(item, RECORD_TYPES)
    for name in item.__slots__:
        value = getattr(item, name)
        if name == "line":
            assert type(value) is int
            assert value >= 0
        else:
            assert isinstance(value, str)
            value.encode()


def check_sniffing(path: Path) -> None:
    message = ""
    try:
        assert sniff(path) in FORMATS
    except BiograftError as error:
        message = str(error)
    assert "\n" not in message


# what stands in files of any format, so that arbitrary text comes near to one
SIGNS = st.sampled_from([*'\t\n|,;"{}[]<>:#\r \u2028\x00', "||", "\r\n", "id", "name", "é"])
TEXTS = st.one_of(st.text(max_size=200), st.lists(SIGNS, max_size=60).map("".join))


@pytest.mark.parametrize("form", list(FORMATS))
@profile(60)
@given(data=st.binary(max_size=400), packed=st.booleans())
@example(data=b"\xff", packed=False)
@example(data=b"\n", packed=True)
def test_arbitrary_bytes(folder, form, data, packed):
    path = folder / "bytes"
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    check_reading(path, form)


@pytest.mark.parametrize("form", list(FORMATS))
@profile(60)
@given(text=TEXTS)
@example(text="\ud83d\ude00")
@example(text="0" * 5000)
@example(text="[" * 5000)
@example(text="<a>" * 3000)
def test_arbitrary_text(folder, form, text):
    path = folder / "text"
    path.write_bytes(text.encode(errors="surrogatepass"))
    check_reading(path, form)


@st.composite
def damaged(draw: st.DrawFn, form: str) -> bytes:
    """A valid file of a format, several times damaged."""
    data = draw(st.sampled_from(list(SNIPPETS[form].values()))).encode()
    for kind in draw(st.lists(st.sampled_from("cut flip put line word".split()), max_size=4)):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 30)))
        if kind == "cut":
            data = data[:start] + data[end:]
        elif kind == "flip" and start < len(data):
            data = (
                data[:start] + bytes([data[start] ^ draw(st.integers(1, 255))]) + data[start + 1 :]
            )
        elif kind == "put":
            data = data[:start] + draw(st.binary(max_size=8)) + data[start:]
        elif kind == "word":
            data = data[:start] + draw(SIGNS).encode() + data[start:]
        elif kind == "line":
            lines = data.splitlines(keepends=True) or [b""]
            k = draw(st.integers(0, len(lines) - 1))
            data = b"".join(lines[: k + 1] + lines[k:] * draw(st.integers(1, 3)))
    return data


@pytest.mark.parametrize("form", list(FORMATS))
@profile(120)
@given(sampled=st.data())
def test_damaged_snippets(folder, form, sampled):
    path = folder / "damaged"
    data = sampled.draw(damaged(form))
    if sampled.draw(st.booleans()):
        packed = gzip.compress(data, mtime=0)
        data = packed[: sampled.draw(st.integers(1, len(packed)))]
    path.write_bytes(data)
    check_reading(path, form)


@profile(300)
@given(st.one_of(st.binary(max_size=300), TEXTS.map(str.encode)))
def test_sniffing_of_anything(folder, data):
    path = folder / "sniffed"
    path.write_bytes(data)
    check_sniffing(path)


@pytest.mark.parametrize("form", list(FORMATS))
@profile(60)
@given(sampled=st.data())
def test_sniffing_of_damaged_snippets(folder, form, sampled):
    path = folder / "sniffed"
    path.write_bytes(sampled.draw(damaged(form)))
    check_sniffing(path)


@pytest.mark.parametrize("form", list(FORMATS))
def test_no_reader_takes_a_folder_or_nothing_for_a_file(tmp_path, form):
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(BiograftError, match=str(path)):
            list(read_source(SourceConfig(path=path, format=form)))


# ---- our own format reads back what it wrote

WORDS = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    .map(str.strip)
    .filter(bool)
)
LANGUAGES = st.sampled_from(["en", "zh", "de"])
SOURCES = st.sampled_from(["", "MSH", "a|b"])
TYPES = [
    {"type": "T047", "label": "Disease or Syndrome", "tree": "B2.2.1.2.1"},
    {"type": "T121", "label": "", "tree": ""},
    {"type": "病", "label": "疾病", "tree": ""},
]


def facts(**fields: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, str]]]:
    distinct = [name for name in fields if name not in ("kind", "source")]
    return st.lists(
        st.fixed_dictionaries(fields),
        max_size=4,
        unique_by=lambda fact: tuple(fact[name] for name in distinct),
    )


@st.composite
def knowledge(draw: st.DrawFn) -> list[dict[str, object]]:
    """Concepts that say everything our format can say, and relations among them."""
    ids = draw(st.lists(st.from_regex(r"[A-Z]{1,3}:?[0-9]{1,4}", fullmatch=True), min_size=1,
                        max_size=6, unique_by=lambda i: i.replace(":", "")))  # fmt: skip
    kinds = st.sampled_from(list(map(str, NameKind)))
    id_kinds = st.sampled_from([str(IdKind.ALTERNATE), str(IdKind.XREF)])
    concepts = []
    for own in ids:
        tails = st.sampled_from([other for other in ids if other != own] or [own])
        relation = facts(relation=WORDS, tail=tails, source=SOURCES)
        value = {
            "id": own,
            "names": draw(facts(text=WORDS, language=LANGUAGES, kind=kinds, source=SOURCES)),
            "definitions": draw(facts(text=WORDS, language=LANGUAGES, source=SOURCES)),
            "types": draw(st.lists(st.sampled_from(TYPES), unique_by=lambda t: t["type"])),
            "ids": draw(facts(id=WORDS.map(lambda word: f"~{word}"), kind=id_kinds)),
            "relations": draw(relation) if len(ids) > 1 else [],
        }
        concepts.append(value)
    return concepts


def canonical(concepts: list[dict[str, object]], source: str) -> dict[object, object]:
    """Concepts without the order of their facts, an empty source being the file's name."""

    def facts_of(value: object) -> object:
        named = [f | {"source": source} if f.get("source") == "" else f for f in value]
        return sorted(named, key=lambda fact: sorted(fact.items()))

    return {
        concept["id"]: {
            key: value if key == "id" else facts_of(value)
            for key, value in concept.items()
            if value
        }
        for concept in concepts
    }


def build_and_export(source: Path, folder: Path, name: str) -> Path:
    config = BuildConfig(sources=(SourceConfig(path=source, format="jsonl"),))
    report = build_store(config, folder / "KB", overwrite=True)
    assert report.sources[0].rejected == {}
    out = folder / name
    export_store(KnowledgeBase.open(folder / "KB"), out, "jsonl", overwrite=True)
    return out


@profile(60)
@given(knowledge())
def test_jsonl_round_trip(folder, concepts):
    lines = (json.dumps(concept, ensure_ascii=False) + "\n" for concept in concepts)
    (folder / "x.jsonl").write_text("".join(lines), "utf-8", newline="")
    out = build_and_export(folder / "x.jsonl", folder, "y.jsonl")
    text = out.read_text("utf-8")
    written = [json.loads(line) for line in text.split("\n") if line]
    assert canonical(written, "x.jsonl") == canonical(concepts, "x.jsonl")
    again = build_and_export(out, folder, "z.jsonl")
    assert again.read_bytes() == out.read_bytes()
