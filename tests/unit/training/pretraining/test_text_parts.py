"""Packing by parts: the same bytes with any number of processes, and after an interruption."""

from __future__ import annotations

import shutil

import pytest
from annotated_texts import TEXTS
from one_writer import leave_working_file

from biograft.errors import OutputError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.progress import Progress
from biograft.training.pretraining import (
    AnnotatedTextConfig,
    SubstitutionConfig,
    open_packed,
    packed_text,
)


def arrays(packed):
    return {path.name: path.read_bytes() for path in sorted(packed.folder.glob("*.npy"))}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """Every concept of the texts with two names."""
    folder = tmp_path_factory.mktemp("store")
    lines = [f"D{n}||{name} {n}\n" for n in range(1, 8) for name in ("disease", "disorder")]
    (folder / "names.txt").write_text("".join(lines), "utf-8")
    source = SourceConfig(path=folder / "names.txt", format="biosyn")
    build_store(BuildConfig(sources=(source,)), folder / "kb")
    return KnowledgeBase.open(folder / "kb")


@pytest.fixture
def pack(shards, tokenizer, tmp_path, kb):
    """Pack the same shards into a folder of this name."""
    folder = shards([*TEXTS, *reversed(TEXTS)] * 4)

    def make(name, workers=1, progress=None, **options):
        config = AnnotatedTextConfig(
            shards=folder, cache=tmp_path / name, workers=workers, max_length=64, **options
        )
        return open_packed(config, tokenizer, kb=kb, progress=progress)

    return make


OPTIONS = [
    {},
    {"pack": False, "two_segments": True},
    {"pack": False, "substitution": SubstitutionConfig(probability=1.0, copies=2)},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_two_processes_write_the_bytes_of_one(pack, options):
    one, two = pack("one", 1, **options), pack("two", 2, **options)
    assert arrays(one) == arrays(two)
    assert one.counts == two.counts
    assert one.counts["n_documents"] >= 40
    assert not list(one.folder.parent.glob("*.parts"))


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_packing_continues_with_the_next_part(pack, tmp_path, monkeypatch, workers):
    """Packing began anew after every interruption."""
    options = OPTIONS[2]
    expected = arrays(pack("whole", **options))
    write, done = packed_text.write_sequences, tmp_path / "stopped.parts"

    def stop_at_third(folder, sequences, labels):
        write(folder, sequences, labels)
        if "part-00003" in folder.name:
            raise KeyboardInterrupt if workers == 1 else OutputError("the disk is full")

    monkeypatch.setattr(packed_text, "write_sequences", stop_at_third)
    with pytest.raises((KeyboardInterrupt, OutputError)):
        pack("stopped", workers, **options)
    monkeypatch.undo()
    assert not (tmp_path / "stopped").exists()
    names = {path.name for path in done.iterdir() if path.is_dir()}
    assert {"part-00000", "part-00001", "part-00002"} <= names
    assert not [name for name in names if name.startswith(".")]
    before = {path: path.stat().st_mtime_ns for path in done.glob("part-0000[0-2]/*")}
    (done / ".part-00003.elsewhere.1-0a.building").mkdir()  # of a killed process
    packed = []

    class Recorder(Progress):
        def start(self, stage, fraction=0.0):
            packed.append({path: path.stat().st_mtime_ns for path in before} == before)

    assert arrays(pack("stopped", workers, Recorder(enabled=False), **options)) == expected
    assert packed == [True, True]
    assert not done.exists()


def test_a_damaged_part_is_packed_again(pack, tmp_path, monkeypatch):
    expected = arrays(pack("whole"))
    monkeypatch.setattr(
        "biograft.training.pretraining.packed_text.shutil.rmtree", lambda *a, **k: None
    )
    pack("again")
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "again")
    path = tmp_path / "again.parts" / "part-00001" / "tokens.npy"
    path.write_bytes(path.read_bytes()[:-4])
    assert arrays(pack("again")) == expected


def test_a_foreign_folder_of_the_name_of_the_parts_is_left_alone(pack, tmp_path):
    (tmp_path / "mine.parts").mkdir()
    (tmp_path / "mine.parts" / "thesis.txt").touch()
    with pytest.raises(OutputError, match="holds no parts of packed text"):
        pack("mine")
    assert (tmp_path / "mine.parts" / "thesis.txt").exists()


def test_parts_that_were_killed_before_they_began_are_begun_again(pack, tmp_path):
    """What was left of the plan was taken for somebody else's folder."""
    leave_working_file(tmp_path / "mine.parts" / packed_text.PLAN.file)
    assert arrays(pack("mine")) == arrays(pack("whole"))
    (tmp_path / "other.parts").mkdir()
    pack("other")
