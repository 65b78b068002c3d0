"""What is written reads back as the fitter said it would, whatever the document and the format."""

import tempfile
from pathlib import Path

import pytest
from drawn import documents
from hypothesis import given, settings, strategies as st

from biograft.corpus.formats import DOCUMENT_FORMATS, Fitter, read_documents, write_documents
from biograft.sources import ReadLog

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
@settings(max_examples=25)
@given(written=st.lists(documents(), min_size=1, max_size=3))
def test_a_document_reads_back_as_it_was_fitted(form, written):
    fitter = Fitter(DOCUMENT_FORMATS.load(form))
    fitted = [fitter.fit(document) for document in written]
    read, losses = round_trip(written, form)
    if DOCUMENT_FORMATS.load(form).unique_ids:  # files come in the order of their names
        read, fitted = sorted(read, key=str), sorted(fitted, key=str)
    assert read == fitted
    assert losses == fitter.losses
    for document in read:
        for mention in document.mentions:
            assert " ".join(document.text[a:b] for a, b in mention.spans) == mention.text
            assert (mention.start, mention.end) == (mention.spans[0][0], mention.spans[-1][1])


@pytest.mark.parametrize("form", WRITABLE)
@settings(max_examples=10)
@given(written=st.lists(documents(), min_size=1, max_size=2))
def test_what_was_fitted_once_loses_nothing_more(form, written):
    fitter = Fitter(DOCUMENT_FORMATS.load(form))
    fitted = [fitter.fit(document) for document in written]
    again = Fitter(DOCUMENT_FORMATS.load(form))
    assert [again.fit(document) for document in fitted] == fitted
    assert not again.losses


@settings(max_examples=40)
@given(written=st.lists(documents(), max_size=3))
def test_the_own_lines_hold_everything(written):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        assert not write_documents(written, path, "jsonl")
        if written:
            assert list(read_documents(path, "jsonl")) == written


@pytest.mark.parametrize("form", ["bioc-json", "bioc-xml"])
@settings(max_examples=25)
@given(written=documents())
def test_bioc_holds_all_but_passages_that_overlap_and_control_characters(form, written):
    _, losses = round_trip([written], form)
    assert losses.keys() <= {"passages", "control characters"}
