"""Property: a written document reads back as the format adapter predicts, in every format."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from random_documents import documents

from biograft.kb.sources import ReadLog
from biograft.text import DOCUMENT_FORMATS, FormatAdapter, read_documents, write_documents

WRITABLE = [name for name in DOCUMENT_FORMATS if DOCUMENT_FORMATS.load(name).write]


def round_trip(written, form):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        losses = write_documents(written, path, form)
        log = ReadLog(path)
        read = list(read_documents(path, form, log))
    assert not log.rejected.counts
    assert not log.doubtful.counts
    return read, losses


@pytest.mark.parametrize("form", WRITABLE)
@settings(max_examples=25, deadline=None)
@given(written=st.lists(documents(), min_size=1, max_size=3))
def test_a_written_document_reads_back_as_adapted(form, written):
    adapter = FormatAdapter(DOCUMENT_FORMATS.load(form))
    adapted = [adapter.adapt(document) for document in written]
    read, losses = round_trip(written, form)
    if DOCUMENT_FORMATS.load(form).unique_ids:  # files are sorted by name
        read, adapted = sorted(read, key=str), sorted(adapted, key=str)
    assert read == adapted
    assert losses == adapter.losses
    for document in read:
        for mention in document.mentions:
            assert " ".join(document.text[a:b] for a, b in mention.spans) == mention.text
            assert (mention.start, mention.end) == (mention.spans[0][0], mention.spans[-1][1])


@settings(max_examples=40, deadline=None)
@given(written=st.lists(documents(), max_size=3))
def test_jsonl_holds_everything(written):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        assert not write_documents(written, path, "jsonl")
        if written:
            assert list(read_documents(path, "jsonl")) == written


@pytest.mark.parametrize("form", ["bioc-json", "bioc-xml"])
@settings(max_examples=25, deadline=None)
@given(written=documents())
def test_bioc_loses_only_overlapping_passages_and_control_characters(form, written):
    _, losses = round_trip([written], form)
    assert losses.keys() <= {"passages", "control characters"}
