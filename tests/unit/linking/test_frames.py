"""Data frames: one row a finding, that joins back; cells that are no text are refused."""

from __future__ import annotations

import json

import pandas as pd
import polars as pl
import pytest

from biograft import Linker, link_frame
from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig

CONCEPTS = [
    {"id": "C1234567", "name": "Fever", "type": "T184", "ids": [{"id": "MSH:D5", "kind": "xref"}]},
    {"id": "C7654321", "name": "Asthma", "type": "T047"},
]
TEXTS = ["No fever.", None, "Mother had asthma, fever \ud83d fever", "nothing"]


@pytest.fixture(scope="module")
def linker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, CONCEPTS)))
    build_store(BuildConfig(sources=(SourceConfig(path=folder / "a.jsonl"),)), folder / "KB")
    return Linker.open(KnowledgeBase.open(folder / "KB"))


def expected(linker):
    return [
        (row, mention.start, mention.concept, mention.status)
        for row, text in enumerate(TEXTS)
        if text
        for mention in linker(text).mentions
    ]


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_without_findings_has_the_same_types(linker, library):
    some = link_frame(library.DataFrame({"note": ["fever"]}), "note", linker)
    none = link_frame(library.DataFrame({"note": ["nothing"]}), "note", linker)
    assert len(none) == 0
    assert list(none.columns) == list(some.columns)
    assert list(none.dtypes) == list(some.dtypes)


def test_a_knowledge_base_and_options(linker):
    frame = pl.DataFrame({"note": ["No fever, asthma."]})
    found = link_frame(frame, "note", linker.kb.folder, assertions=False, prefer=["MSH"])
    assert found["concept"].to_list() == ["D5", "C7654321"]
    assert found["negated"].to_list() == [None, None]
    assert link_frame(frame, "note", linker.kb, all_ids=True)["ids"].to_list()[0] == [
        "C1234567",
        "D5",
    ]


@pytest.mark.parametrize(
    ("frame", "column", "settings", "message"),
    [
        (pl.DataFrame({"note": ["a"]}), "notes", {}, "no column 'notes'; did you mean 'note'?"),
        (pl.DataFrame({"note": [1, None]}), "note", {}, "column 'note', row 0: expected a text, f"),
        (pd.DataFrame({"n": ["a", ["b"]]}), "n", {}, "column 'n', row 1: .* found list"),
        (pl.LazyFrame({"n": ["a"]}), "n", {}, "found a polars LazyFrame; call collect"),
        (pl.DataFrame({"n": ["a"]}), "n", {"k": 2}, "k: the linker is open already"),
        (pl.DataFrame({"n": ["a"]}), "n", {"prefer": "MSH"}, "prefer: expected a list"),
    ],
)
def test_refused_in_one_line(linker, frame, column, settings, message):
    with pytest.raises(ConfigError, match=message) as caught:
        link_frame(frame, column, linker, **settings)
    assert "\n" not in str(caught.value)
