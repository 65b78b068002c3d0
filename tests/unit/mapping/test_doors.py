"""Whatever texts files hold: what is built, mapped and decided can be exported and read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

pytest.importorskip("sqlalchemy", reason="the extra `review` is not installed")

from biograft.kb import BuildConfig, KnowledgeBase, build_store, export_store
from biograft.kb.names import clean_name, is_invisible, name_fault
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.linking.outputs import ConceptIds
from biograft.mapping import (
    EarlierDecisions,
    MappingRun,
    ReviewFilter,
    ReviewStore,
    SourceTerm,
    distinct_terms,
    export_review,
    import_review,
    map_terms,
    read_earlier,
)
from biograft.mapping.formats import write_mapping

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore")
NASTY = {
    "lf": "a\nb",
    "cr": "a\rb",
    "crlf": "a\r\nb",
    "tab": "a\tb",
    "next line": "a\x85b",
    "nul": "a\0b",
    "line": "a\u2028b",
    "paragraph": "a\u2029b",
    "escape": "a\x1b[31mb",
    "soft": "a\u00adb",
    "zero": "\u200b",
    "inner zero": "a\u200bb",
    "bom": "\ufeffa",
    "only bom": "\ufeff",
    "order": "\u202eab\u202c",
    "mark": "a\u200fb",
    "tags": TAGS,
    "inner tags": f"a{TAGS}",
    "joined": "\U0001f469\u200d\U0001f469",
    "filler": "\u3164",
    "variation": "\ufe0f",
    "accent": "e\u0301",
    "quote": 'a"b',
    "hash": "#a",
    "sum": "=1+1",
    "bars": "a||b",
    "backslash": "a\\b",
    "long": "x" * 3000,
    "blanks": "\u00a0",
    "inner blank": "a\u00a0b",
}
LINES = {"csv": ".csv", "tsv": ".tsv", "sssom": ".sssom.tsv"}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A knowledge base with each text as name, id, definition and type, and how it was made."""
    path = tmp_path_factory.mktemp("nasty") / "kb.jsonl"
    concepts = []
    for key, text in NASTY.items():
        named = [text, f"plain {key}"] if text.strip() else [f"plain {key}"]
        known = {"id": f"N:{key}", "names": [{"text": each} for each in named]}
        concepts.append({**known, "definitions": [{"text": text}] if text.strip() else []})
        concepts.append({"id": text, "name": f"id {key}"})
    path.write_text("\n".join(map(json.dumps, concepts)), "utf-8")
    report = build_store(BuildConfig(sources=(SourceConfig(path=path),)), path.parent / "kb")
    return KnowledgeBase.open(path.parent / "kb"), report.sources[0]


def test_what_is_built_is_clean_and_the_rest_is_reported(base):
    kb, source = base
    names = [name.text for concept in kb for name in concept.names]
    assert {f"plain {key}" for key in NASTY} <= set(names)
    for text in (*names, *(concept.id for concept in kb)):
        assert text
        assert not name_fault(text)
        assert clean_name(text) == text
    assert kb["N:lf"].names[0].text == "a b"
    assert kb["N:inner tags"].names[0].text == kb["N:bom"].names[0].text == "a"
    assert kb["N:joined"].names[0].text == NASTY["joined"]
    assert {"name: has no visible character", "concept: holds a control character"} <= set(
        source.rejected
    )
    assert source.doubtful["name: held line ends, control or hidden characters"]["n"] == 15
    assert all("\r" not in each.text for concept in kb for each in concept.definitions)


def test_what_is_built_is_exported_and_read_again(base, tmp_path):
    kb, _ = base
    assert export_store(kb, tmp_path / "out.jsonl", "jsonl") == len(kb)
    again = BuildConfig(sources=(SourceConfig(path=tmp_path / "out.jsonl"),))
    report = build_store(again, tmp_path / "again")
    assert (report.sources[0].rejected, report.sources[0].doubtful) == ({}, {})
    assert list(KnowledgeBase.open(tmp_path / "again")) == list(kb)
    left_out: list[tuple[str, str]] = []
    assert export_store(kb, tmp_path / "out.txt", "biosyn", left_out=left_out)
    assert [what for what, _ in left_out] == ["id 'a||b'"]


@pytest.mark.parametrize("to", LINES)
def test_what_is_mapped_is_decided_exported_and_read_again(base, tmp_path, to):
    """One name with a line end blocked the export of all decisions."""
    kb, _ = base
    linker = Linker.open(kb)
    terms = distinct_terms(
        SourceTerm(*each)
        for key, text in NASTY.items()
        for each in (
            (text, key),
            (f"plain {key}", text[:50]),
            (f"id {key}", key, 1, (("c", text[:9]),)),
        )
    )
    run = MappingRun(kb=kb, ids=ConceptIds(kb), has_context=True)
    mapped = tmp_path / f"m{LINES[to]}"
    left_out: list[tuple[str, str]] = []
    mappings = list(map_terms(linker, terms))
    write_mapping(mappings, mapped, run, to=to, left_out=left_out)
    write_mapping(mappings, tmp_path / "m.json", run, to="fhir", left_out=left_out)
    assert not left_out
    out, place = tmp_path / "d.sssom.tsv", tmp_path / "r.db"
    with ReviewStore.open(place, create=True) as review:
        done = import_review(review, mapped, reviewer="ann")
        assert [why for _, why in done.problems] == [
            "term: expected a text of 1 to 2,000 characters"
        ]
        assert done.n_added == len(terms) - 1
        made = review.decide_many("approve", reviewer="ann", where=ReviewFilter(), comment="a\n\tb")
        assert made.n_changed == done.n_added - len(made.skipped)
        assert {why.partition(": ")[2] for _, why in made.skipped} <= {
            "has no suggestion; name a concept"
        }
        assert export_review(review, out) == made.n_changed
        sheet = tmp_path / "sheet.csv"
        export_review(review, sheet)
        unchanged = import_review(review, sheet, reviewer="bob")
        assert (unchanged.n_unchanged, unchanged.problems) == (done.n_added, ())
    with ReviewStore.open(tmp_path / "other.db", create=True) as other:
        assert import_review(other, out, reviewer="eve").n_decided == made.n_changed
        export_review(other, tmp_path / "again.sssom.tsv")
    assert (tmp_path / "again.sssom.tsv").read_bytes() == out.read_bytes()
    earlier = EarlierDecisions(read_earlier(out), kb)
    flags = [each.flag for each in map_terms(linker, terms, earlier)]
    assert flags.count("seen") == made.n_changed


@given(st.text(st.sampled_from([*"ab \n\t\0", *"".join(NASTY.values())[:200]]), max_size=9))
def test_a_clean_name_keeps_all_that_is_visible(text):
    name = clean_name(text)
    assert not name_fault(name)
    assert clean_name(name) == name
    assert bool(name) != is_invisible(text)
    seen = [char for char in text if not is_invisible(char)]
    assert [char for char in name if not is_invisible(char)] == (seen if name else [])
