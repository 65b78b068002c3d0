"""``biograft graph``: embed and evaluate."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import BiograftError
from biograft.graph import Embeddings
from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

SMALL = ["--set", "model.dim=8", "--set", "training.epochs=5", "--set", "training.batch=16"]


@pytest.fixture
def call():
    def run(*arguments):
        result = CliRunner().invoke(app, ["graph", *map(str, arguments)])
        if isinstance(result.exception, BiograftError):
            raise result.exception
        return result

    return run


@pytest.fixture
def kb(tmp_path, write):
    lines = [f"e{k}\tnext\te{(k + 1) % 20}\n" for k in range(20)]
    for name, split in (("train", lines[:14]), ("valid", lines[14:17]), ("test", lines[17:])):
        write(f"graph/{name}.txt", "".join(split) + "e1\tby\te2\n" * (name == "train") * 3)
    build_store(BuildConfig(sources=(SourceConfig(path=tmp_path / "graph"),)), tmp_path / "kb")
    return tmp_path / "kb"


def test_transr_starts_from_transe(call, kb, tmp_path):
    bounds = ["--set", "model.entity_bound=ball", "--set", "model.relation_bound=ball"]
    call("embed", kb, "-o", tmp_path / "transe", *SMALL, *bounds)
    options = ["--model", "transr", "--start-from", tmp_path / "transe", *SMALL]
    assert call("embed", kb, "-o", tmp_path / "transr", *options).exit_code == 0
    assert "start_from" in Embeddings.open(tmp_path / "transr").manifest


def test_a_store_that_moved_or_changed_is_refused(call, kb, tmp_path):
    call("embed", kb, "-o", tmp_path / "out", *SMALL)
    moved = shutil.move(kb, tmp_path / "moved")
    with pytest.raises(BiograftError, match=r"does not exist; .*--kb"):
        call("evaluate", tmp_path / "out")
    assert call("evaluate", tmp_path / "out", "--kb", moved).exit_code == 0
    path = tmp_path / "graph" / "test.txt"
    path.write_text("e1\tnext\te5\ne1\tnext\te6\ne2\tnext\te6\n")
    source = SourceConfig(path=tmp_path / "graph")
    build_store(BuildConfig(sources=(source,)), tmp_path / "other")
    with pytest.raises(BiograftError, match="made from another knowledge base"):
        call("evaluate", tmp_path / "out", "--kb", tmp_path / "other")


def test_an_existing_text_is_refused_before_the_work(call, kb, tmp_path, write):
    text = write("out.txt", "mine")
    with pytest.raises(BiograftError, match="exists already"):
        call("embed", kb, "-o", tmp_path / "out", "--text", text, *SMALL)
    assert not (tmp_path / "out").exists()
    assert text.read_text() == "mine"


def test_a_store_without_splits_cannot_be_evaluated(call, tmp_path, write):
    path = write("a.tsv", "head\trelation\ttail\na\tr\tb\nb\tr\tc\n")
    build_store(BuildConfig(sources=(SourceConfig(path=path),)), tmp_path / "kb")
    call("embed", tmp_path / "kb", "-o", tmp_path / "out", *SMALL)
    with pytest.raises(BiograftError, match="holds no test triples"):
        call("evaluate", tmp_path / "out")


LONG = [
    "--set",
    "model.dim=16",
    "--set",
    "training.epochs=400",
    "--set",
    "training.batch=2",
    "--set",
    "training.save_every=30",
    "--set",
    "optimiser.kind=adam",
]


def start_command(*arguments):
    code = "from biograft.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def test_a_killed_process_resumes_bit_for_bit(call, kb, tmp_path):
    out, state = tmp_path / "killed", tmp_path / "killed" / "state" / "state.json"
    process = start_command("graph", "embed", kb, "-o", out, *LONG, "--quiet")
    with process:
        while not state.exists() and process.poll() is None:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, process.stderr
    epoch = json.loads(state.read_text())["epoch"]
    assert 30 <= epoch < 400
    with pytest.raises(BiograftError, match="--resume"):
        call("embed", kb, "-o", out, *LONG)
    resumed = json.loads(call("embed", kb, "-o", out, *LONG, "--resume", "--json").stdout)
    assert resumed["epochs"] == 400
    whole = json.loads(call("embed", kb, "-o", tmp_path / "whole", *LONG, "--json").stdout)
    assert resumed["loss"] == whole["loss"]
    opened = [Embeddings.open(folder) for folder in (out, tmp_path / "whole")]
    for one, other in zip(*(each.tables for each in opened), strict=True):
        np.testing.assert_array_equal(one, other)
    losses = [each.manifest["training"]["losses"] for each in opened]
    assert losses[0] == losses[1]
    assert [path.name for path in out.glob(".*")] == []
    assert not state.exists()
