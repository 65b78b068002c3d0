import json
import os
import signal
import subprocess
import sys
import time

import pytest
from one_writer import held_elsewhere, leave_working_file

from biograft.errors import BiograftError, ConfigError, OutputError, StoreError
from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking.annotation import (
    ENGINES,
    AnnotationConfig,
    ExecutionConfig,
    annotate,
    read_frequencies,
)
from biograft.text import CleaningConfig, Shards, write_documents
from biograft.text.documents import Document, Mention

CHUNK = 2000


def shard_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def run(kb_folder, corpus, out, config=None, **options):
    execution = ExecutionConfig(**{"workers": 1, "chunk_bytes": CHUNK, **options})
    return annotate(kb_folder, [corpus], out, config, execution)


class TestOutput:
    def test_spans_refer_to_the_cleaned_text(self, kb_folder, corpus, tmp_path):
        manifest = run(kb_folder, corpus, tmp_path / "out")
        shards = Shards.open(tmp_path / "out")
        assert len(shards) == manifest["n_documents"] == 297
        for document in shards:
            number = document.id.split(":")[1]
            start = f"Case {int(number) - 1}: breast cancer and a cold & type-2 diabetes"
            assert document.text.startswith(start)
            texts = [document.text[span.start : span.end] for span in document.spans]
            assert texts == ["breast cancer", "cold", "type-2 diabetes", "cancers"]

    def test_the_manifest_counts_everything(self, kb_folder, corpus, tmp_path):
        manifest = run(kb_folder, corpus, tmp_path / "out")
        report = manifest["report"]
        assert report["counts"]["records"] == 299
        assert {reason: entry["n"] for reason, entry in report["rejected"].items()} == {
            "is not UTF-8": 1,
            "holds a NUL byte": 1,
        }
        assert report["rejected"]["holds a NUL byte"]["examples"][0]["line"] == 212
        assert report["cleaned"] == {"tags": 594, "entities": 297}
        assert manifest["n_spans"] == 4 * 297 == sum(read_frequencies(tmp_path / "out").values())
        assert manifest["n_shards"] > 5

    def test_frequencies_count_spans(self, kb_folder, corpus, tmp_path):
        run(kb_folder, corpus, tmp_path / "out")
        counted = {}
        for document in Shards.open(tmp_path / "out"):
            for span in document.spans:
                counted[span.concept] = counted.get(span.concept, 0) + 1
        frequencies = read_frequencies(tmp_path / "out")
        assert frequencies == counted
        assert list(frequencies.values()) == sorted(counted.values(), reverse=True)

    def test_cleaning_can_be_disabled(self, kb_folder, corpus, tmp_path):
        run(kb_folder, corpus, tmp_path / "out", AnnotationConfig(cleaning=None))
        assert next(iter(Shards.open(tmp_path / "out"))).text.startswith("Case 0: <b>breast")

    def test_long_documents_are_split(self, kb_folder, corpus, tmp_path):
        config = AnnotationConfig(cleaning=CleaningConfig(max_length=40))
        run(kb_folder, corpus, tmp_path / "out", config)
        documents = list(Shards.open(tmp_path / "out"))
        assert documents[1].id == "corpus.txt:1#2"
        assert max(len(document.text) for document in documents) <= 40

    def test_empty_input(self, kb_folder, write, tmp_path):
        manifest = run(kb_folder, write("empty.txt", ""), tmp_path / "out")
        assert (manifest["n_shards"], manifest["n_documents"]) == (0, 0)
        assert list(Shards.open(tmp_path / "out")) == []


@pytest.mark.parametrize("form", ["pubtator", "bioc-xml", "bioc-json", "conll", "brat"])
def test_no_annotation_gets_into_a_shard(kb_folder, tmp_path, form):
    """Files of these formats were read as plain lines, their annotations included."""
    text = "Has breast cancer. A cold is treated."
    mention = Mention(4, 17, "breast cancer", ("GOLD7",), "GoldType", id="T1")
    write_documents([Document("7", text, (mention,))], tmp_path / "in", form)
    run(kb_folder, tmp_path / "in", tmp_path / "out")
    (document,) = Shards.open(tmp_path / "out")
    assert document.text.replace(" ", "") == text.replace(" ", "")
    assert {span.concept for span in document.spans} <= {"D2", "D4", "D5"}
    assert b"Gold" not in (tmp_path / "out" / "part-00000.parquet").read_bytes()


@pytest.mark.parametrize("form", ["pubtator", "bioc-xml", "jsonl"])
def test_given_mentions_are_taken_by_their_ids(kb_folder, tmp_path, form):
    text = "Has breast cancer. A cold is treated. The thing."
    given = (
        Mention(4, 10, "breast", ("D1",)),
        Mention(38, 47, "The thing", ("D7",)),
        Mention(19, 25, "A cold", ("X9",)),
    )
    write_documents([Document("7", text, given)], tmp_path / "in", form)
    found = {}
    for how in ("find", "given", "both"):
        config = AnnotationConfig(cleaning=None, mentions=how)
        manifest = run(kb_folder, tmp_path / "in", tmp_path / how, config)
        (document,) = Shards.open(tmp_path / how)
        found[how] = [(text[s.start : s.end], s.concept) for s in document.spans]
        assert manifest["n_spans"] == len(document.spans)
    assert found == {
        "find": [("breast cancer", "D2"), ("cold", found["find"][1][1])],
        "given": [("breast", "D1"), ("The thing", "D7")],
        "both": [("breast", "D1"), found["find"][1], ("The thing", "D7")],
    }
    assert manifest["report"]["counts"]["given without a concept of the store"] == 1
    with pytest.raises(ConfigError, match="--no-clean"):
        AnnotationConfig(mentions="given")


def test_given_mentions_that_touch_are_all_kept(kb_folder, tmp_path):
    given = (Mention(4, 10, "breast", ("D1",)), Mention(10, 16, "cancer", ("D7",)))
    write_documents([Document("7", "Has breastcancer.", given)], tmp_path / "in", "jsonl")
    config = AnnotationConfig(cleaning=None, mentions="given")
    run(kb_folder, tmp_path / "in", tmp_path / "out", config)
    (document,) = Shards.open(tmp_path / "out")
    assert [(s.start, s.end, s.concept) for s in document.spans] == [(4, 10, "D1"), (10, 16, "D7")]


class TestEngine:
    def test_the_number_of_workers_does_not_change_the_bytes(self, kb_folder, corpus, tmp_path):
        one = run(kb_folder, corpus, tmp_path / "one")
        two = run(kb_folder, corpus, tmp_path / "two", workers=2)
        assert shard_bytes(tmp_path / "one") == shard_bytes(tmp_path / "two")
        changing = ("made_at", "seconds")
        assert {k: v for k, v in one.items() if k not in changing} == {
            k: v for k, v in two.items() if k not in changing
        }

    def test_an_unknown_engine_is_refused(self, kb_folder, corpus, tmp_path):
        with pytest.raises(ConfigError, match="engine: expected one of local, ray"):
            run(kb_folder, corpus, tmp_path / "out", engine="lokal")
        assert not (tmp_path / "out").exists()
        assert list(ENGINES) == ["local", "ray"]


def wait_for_end(group: int) -> None:
    """Wait until no process of a killed group is left, so that its files count as abandoned."""
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)


class TestResume:
    def test_finished_shards_are_not_made_again(self, kb_folder, corpus, tmp_path):
        run(kb_folder, corpus, tmp_path / "out")
        made = shard_bytes(tmp_path / "out")
        kept = tmp_path / "out" / "part-00001.parquet"
        before = kept.stat().st_mtime_ns
        (tmp_path / "out" / "part-00003.parquet").unlink()
        (tmp_path / "out" / "part-00004.parquet").write_bytes(b"damaged")
        (tmp_path / "out" / "manifest.json").unlink()
        run(kb_folder, corpus, tmp_path / "out", resume=True)
        assert shard_bytes(tmp_path / "out") == made
        assert kept.stat().st_mtime_ns == before

    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_killed_run_can_be_resumed(self, kb_folder, corpus, tmp_path, workers):
        """The whole group of processes is killed while shards are being written."""
        corpus.write_bytes(corpus.read_bytes() * 6)
        run(kb_folder, corpus, tmp_path / "whole")
        out = tmp_path / "out"
        script = (
            "import sys; from biograft.linking.annotation import annotate\n"
            "from biograft.linking.annotation.runner import ExecutionConfig\n"
            f"execution = ExecutionConfig(workers={workers}, chunk_bytes={CHUNK}, resume=True)\n"
            "annotate(*sys.argv[1:2], sys.argv[2:3], sys.argv[3], None, execution)\n"
        )
        command = [sys.executable, "-c", script, str(kb_folder), str(corpus), str(out)]
        process = subprocess.Popen(command, start_new_session=True)
        while len(list(out.glob("part-*"))) < 3 and process.poll() is None:
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        wait_for_end(process.pid)
        assert len(list(out.glob("part-*"))) < len(list((tmp_path / "whole").glob("part-*")))
        with pytest.raises(StoreError, match="--resume"):
            Shards.open(out)
        run(kb_folder, corpus, out, resume=True)
        assert shard_bytes(out) == shard_bytes(tmp_path / "whole")
        assert not list(out.glob(".*"))

    def test_other_settings_or_inputs_are_refused(self, kb_folder, corpus, tmp_path):
        run(kb_folder, corpus, tmp_path / "out")
        with pytest.raises(OutputError, match="--resume"):
            run(kb_folder, corpus, tmp_path / "out")
        with pytest.raises(ConfigError, match="begun with another settings"):
            run(kb_folder, corpus, tmp_path / "out", AnnotationConfig(threshold=0.5), resume=True)
        with pytest.raises(ConfigError, match="begun with another chunk_bytes"):
            run(kb_folder, corpus, tmp_path / "out", resume=True, chunk_bytes=7)
        corpus.write_bytes(b"something else")
        with pytest.raises(ConfigError, match="begun with another inputs"):
            run(kb_folder, corpus, tmp_path / "out", resume=True)

    def test_another_store_is_refused(self, kb_folder, corpus, write, tmp_path):
        run(kb_folder, corpus, tmp_path / "out")
        source = write("other.csv", "id,name\n1,breast cancer\n")
        build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "other")
        with pytest.raises(ConfigError, match="begun with another store"):
            run(tmp_path / "other", corpus, tmp_path / "out", resume=True)

    def test_a_run_that_was_killed_before_it_began_is_started_again(
        self, kb_folder, corpus, tmp_path
    ):
        """Only the working file of its plan was there, and ``--resume`` asked for the plan."""
        run(kb_folder, corpus, tmp_path / "whole")
        out = tmp_path / "out"
        leave_working_file(out / "annotation.json")
        run(kb_folder, corpus, out, resume=True)
        assert shard_bytes(out) == shard_bytes(tmp_path / "whole")
        assert not list(out.glob(".*"))

    def test_a_folder_with_other_files_is_refused(self, kb_folder, corpus, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine.txt").write_text("x")
        for resume in (False, True):
            with pytest.raises(BiograftError, match="out"):
                run(kb_folder, corpus, tmp_path / "out", resume=resume)
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_exit_status_of_the_command(kb_folder, corpus, write, tmp_path):
    from typer.testing import CliRunner

    from biograft.cli import app

    arguments = ["corpus", "annotate", str(kb_folder), "-q", "--workers", "1", "--json", "-o"]
    result = CliRunner().invoke(app, [*arguments, str(tmp_path / "a"), str(corpus)])
    assert result.exit_code == 1
    assert f"{corpus}:18: broken" in result.stderr
    summary = json.loads(result.stdout)
    assert (summary["n_documents"], summary["n_rejected"]) == (297, 2)
    good = write("good.txt", "cancer\n")
    result = CliRunner().invoke(app, [*arguments, str(tmp_path / "b"), str(good)])
    assert result.exit_code == 0
    result = CliRunner().invoke(app, [*arguments[:-2], "-o", str(tmp_path / "c"), str(good)])
    assert "spans       1 (1.00 per document)" in result.stdout


def test_a_folder_has_one_writer(kb_folder, corpus, tmp_path):
    """Two processes with --resume wrote the same shards."""
    run(kb_folder, corpus, tmp_path / "out")
    before = shard_bytes(tmp_path / "out")
    with held_elsewhere(tmp_path / "out"), pytest.raises(OutputError):
        run(kb_folder, corpus, tmp_path / "out", resume=True)
    assert shard_bytes(tmp_path / "out") == before
