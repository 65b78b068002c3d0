"""Whatever an input holds, a reader gives sound records or one of our errors, nothing else.

The inputs are the same in every run, so that a failure can be repeated; those in lab/tests/fuzz
were findings once. To look for new ones: with ``BIOGRAFT_FUZZ=20`` twenty times as many are tried,
other ones each time; ``biograft_lab.scripts.fuzz_readers`` takes as long as it is given.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from artefact_targets import seeds_of
from mutation import Mutator
from reader_targets import Finding, Reader, UnsoundError, check_document, examine, readers

from biograft.errors import BiograftError, InputError
from biograft.kb.sources import FORMATS, SourceConfig, read_source
from biograft.text.documents import Document, Mention

FACTOR = int(os.environ.get("BIOGRAFT_FUZZ", "0"))
N_INPUTS, N_OF_SLOW = 100, 6
SLOW = {
    *("source-umls", "source-snomed", "review-import", "table-xlsx-sheet", "artefact-index"),
    *("input-docx", "artefact-store", "artefact-neighbours", "gold-documents"),
}
"""Readers that take a millisecond and more for an input."""
FOUND = sorted(Path(__file__).with_name("fuzz").glob("*/*"))

pytestmark = pytest.mark.filterwarnings("ignore")  # of what is read, for whoever calls a reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_once(path, folder):
    """Guards: what fuzzing found; the name says what it was, and where."""
    reader = readers()[path.parent.name]
    for seed in seeds_of(reader, folder):
        reader.read(folder, seed)  # what is imported on first use would be called slow
    assert examine(reader, folder, path.read_bytes()) is None


@pytest.mark.parametrize("name", list(readers()))
def test_mutated_input(name, folder):
    reader = readers()[name]
    seeds = seeds_of(reader, folder)
    for seed in seeds:
        reader.read(folder, seed)
    sample = Mutator(seeds, Random(None if FACTOR else name)).sample
    for _ in range((N_OF_SLOW if name in SLOW else N_INPUTS) * (FACTOR or 1)):
        data = sample()
        assert examine(reader, folder, data) is None, data


def test_the_same_seed_gives_the_same_inputs():
    mutators = [Mutator([b"a,b", b"c"], Random(5)) for _ in range(2)]
    samples = [[mutator.sample() for _ in range(50)] for mutator in mutators]
    assert samples[0] == samples[1]
    assert len(set(samples[0])) > 30


def _raising(error):
    def read(folder, data):
        raise error

    return Reader(read, ())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("is no table", path="x"), None),
        (ValueError("x"), "ValueError"),
        (RecursionError("x"), "RecursionError"),
        (MemoryError(), "MemoryError"),
        (UnsoundError("x"), "UnsoundError"),
    ],
)
def test_what_is_a_finding(error, kind, tmp_path):
    found = examine(_raising(error), tmp_path, b"")
    assert (found and found.kind) == kind


def test_a_message_of_ours_is_one_line_of_bounded_length(tmp_path):
    """Guards: a header of a megabyte, or one with control characters, was the message as it was."""
    error = BiograftError("a\nb\x1b[31m" + "c" * 100_000 + "; mend it")
    assert str(error).startswith("a b\\x1b[31mccc")
    assert str(error).endswith("ccc; mend it")
    assert examine(_raising(error), tmp_path, b"") is None


@pytest.mark.parametrize(
    "document",
    [
        Document("1", "flu", (Mention(0, 2, "flu"),)),
        Document("1", "flu", (Mention(0, 9, "flu"),)),
        Document("\ud800", "flu"),
    ],
)
def test_an_unsound_document_is_a_finding(document, tmp_path):
    found = examine(Reader(lambda *_: check_document(document), ()), tmp_path, b"")
    assert isinstance(found, Finding)


@pytest.mark.parametrize("form", list(FORMATS))
def test_no_reader_takes_a_folder_or_nothing_for_a_file(tmp_path, form):
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(BiograftError, match=str(path)):
            list(read_source(SourceConfig(path=path, format=form)))
