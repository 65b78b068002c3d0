"""``biograft pretrain``: what it prints, resumes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_models import tiny_encoder_folder
from typer.testing import CliRunner

from biograft.cli import app
from biograft.errors import ConfigError, OutputError
from biograft.kb import KnowledgeBase


@pytest.fixture(scope="module")
def inputs(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "kb").symlink_to(starter)
    texts = KnowledgeBase.open(starter).table("names").column("text").to_pylist()
    tiny_encoder_folder(folder / "encoder", texts)
    return folder


@pytest.fixture
def run(inputs):
    """Run the command on the starter: ``run("--json", out=folder, steps=3)``."""

    def of(*arguments: str, out: Path, steps: int = 3, **changes: object):
        given = ["sapbert-cpu", "--kb", str(inputs / "kb"), "--encoder", str(inputs / "encoder")]
        values = {"batch_size": 16, "steps": steps, "eval_every": 0, **changes}
        for key, value in values.items():
            given += ["--set", f"training.{key}={value}"]
        result = CliRunner().invoke(app, ["pretrain", *given, "-o", str(out), *arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return of


def test_a_session_that_ran_out_of_time_goes_on(run, tmp_path):
    early = run(out=tmp_path / "run", max_minutes=1e-9)
    assert "step 1 of 3" in early.stdout
    assert "--resume" in early.stdout
    with pytest.raises(OutputError, match="--resume"):
        run(out=tmp_path / "run")
    assert "step 3 of 3" in run("--resume", out=tmp_path / "run").stdout
    with pytest.raises(ConfigError, match=r"training\.steps = 3, found 9"):
        run("--resume", out=tmp_path / "run", steps=9)


def test_a_model_that_writes_names_is_made_from_scratch(inputs, tmp_path):
    small = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16, "n_tokens": 400}
    given = ["genbioel-pretrain-cpu", "--kb", str(inputs / "kb"), "--json"]
    for key, value in small.items():
        given += ["--set", f"new.{key}={value}"]
    changes = ["--set", "training.batch_size=4", "--set", "training.steps=2"]
    changes += ["--set", "stream.bucket_batches=2", "--set", "training.eval_every=0"]
    done = CliRunner().invoke(app, ["pretrain", *given, "-o", str(tmp_path / "run"), *changes])
    assert done.exception is None, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["finished"], printed["step"]) == (True, 2)
    assert printed["names"]["n_names"] > 1000
    assert (tmp_path / "run/encoder/tokenizer.json").exists()
    assert (tmp_path / "run/encoder/model.safetensors").exists()


def test_a_sweep_of_an_alignment_chooses_by_its_dev_set(inputs, run, tmp_path):
    kb = KnowledgeBase.open(inputs / "kb")
    gold = tmp_path / "dev.txt"
    names = [kb.concept_at(row) for row in range(0, 40, 2)]
    gold.write_text("".join(f"d||0|1||x||{each.names[-1].text}||{each.id}\n" for each in names))
    grid = ["--sweep", "training.learning_rate=1e-9,1e-3", "--json"]
    given = [*grid, "--set", f"stream.dev={gold}", "--set", "stream.dev_format=biosyn"]
    said = json.loads(run(*given, out=tmp_path / "sweep").stdout.splitlines()[-1])
    assert [row["run"] for row in said["rows"]] == ["run-1", "run-2"]
    assert all(0 <= row["dev acc@1"] <= 100 for row in said["rows"])
    assert said["test"] is None
    with pytest.raises(ConfigError, match=r"stream\.dev: a sweep of pre-training"):
        run(*grid, out=tmp_path / "other")
