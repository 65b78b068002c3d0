"""The loop: what it does when, and that stopping anywhere changes nothing."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from one_writer import held_elsewhere

from biograft.errors import BiograftError, ConfigError, OutputError, StoreError
from biograft.training import TrainingConfig, find_checkpoints, sole_run, train


def config(**options):
    """Configure 10 steps; the source has batches of 8, ``passes`` of them an update."""
    passes = options.pop("passes", 1)
    values = {"steps": 10, "learning_rate": 0.01, "precision": "fp32", **options}
    return TrainingConfig(batch_size=8 * passes, device_batch_size=8, **values)


def weights(task):
    return {name: value.clone() for name, value in task.model.state_dict().items()}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def metrics(run: Path):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def timeless(entries):
    timed = ("seconds", "rows_per_second", "data_seconds", "peak_memory_mb")
    return [{k: v for k, v in entry.items() if k not in timed} for entry in entries]


class StopAt:
    """A loss that asks the process to stop at its nth call, as a user would."""

    def __init__(self, compute, call):
        self.compute, self.left = compute, call

    def __call__(self, model, batch):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return self.compute(model, batch)


# ---- heads first


def test_the_first_steps_change_only_heads(make_task, tmp_path):
    """A new head must not spoil a trained encoder: its weights stay as they were."""
    task = make_task()
    body = [p for name, p in task.model.named_parameters() if not name.startswith("head")]
    before = [p.clone() for p in body]
    short = config(head_steps=3, steps=3)
    train(replace(task, body=tuple(body[:1])), short, tmp_path / "a")
    assert torch.equal(before[0], body[0])
    assert not torch.equal(before[1], body[1])
    train(replace(task, body=tuple(body[:1])), config(head_steps=3, steps=4), tmp_path / "b")
    assert not torch.equal(before[0], body[0])
    with pytest.raises(ConfigError, match="head_steps"):
        train(task, short, tmp_path / "c")


# ---- exact resume


@pytest.mark.parametrize(
    ("schedule", "passes", "precision", "stop_at"),
    [
        ("constant", 1, "fp32", 5),
        ("linear", 3, "fp32", 1),
        ("cosine", 1, "bf16", 7),
        ("constant", 2, "bf16", 5),
    ],
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(
    make_task, tmp_path, schedule, passes, precision, stop_at
):
    options = config(
        schedule=schedule, passes=passes, warmup_ratio=0.2, clip=1.0, precision=precision
    )
    whole = make_task()
    train(whole, options, tmp_path / "whole")
    stopped = make_task()
    stopped_loss = StopAt(stopped.compute_loss, stop_at * passes)
    with pytest.raises(KeyboardInterrupt, match=f"step {stop_at} is saved"):
        train(make_task(compute_loss=stopped_loss), options, tmp_path / "parts")
    torch.manual_seed(99)
    torch.rand(5)
    resumed = make_task()
    result = train(resumed, options, tmp_path / "parts", resume=True)
    assert result.finished
    assert same(weights(whole), weights(resumed))
    assert timeless(metrics(tmp_path / "whole")) == timeless(metrics(tmp_path / "parts"))


def test_a_run_killed_between_checkpoints_repeats_the_lost_steps(make_task, tmp_path):
    whole = make_task()
    train(whole, config(save_every=4), tmp_path / "whole")

    def die(model, batch):
        nonlocal calls
        calls += 1
        if calls == 7:
            raise MemoryError
        return plain(model, batch)

    calls, plain = 0, make_task().compute_loss
    with pytest.raises(MemoryError):
        train(make_task(compute_loss=die), config(save_every=4), tmp_path / "parts")
    assert [entry["step"] for entry in metrics(tmp_path / "parts")] == [1, 2, 3, 4, 5, 6]
    with (tmp_path / "parts" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "lo')  # a line that the kill cut short
    resumed = make_task()
    train(resumed, config(save_every=4), tmp_path / "parts", resume=True)
    assert same(weights(whole), weights(resumed))
    assert timeless(metrics(tmp_path / "parts")) == timeless(metrics(tmp_path / "whole"))


def test_every_step_has_random_numbers_of_its_own(make_task, tmp_path):
    """With the same masks of dropout at every step, resumed runs would be exact all the same."""
    plain, numbers = make_task().compute_loss, []

    def note(model, batch):
        numbers.append(torch.rand(()).item())
        return plain(model, batch)

    train(make_task(compute_loss=note), config(), tmp_path / "one")
    train(make_task(compute_loss=note), config(), tmp_path / "again")
    train(make_task(compute_loss=note), config(seed=1), tmp_path / "other")
    assert numbers[:10] == numbers[10:20]
    assert len(set(numbers)) == 20


def test_a_run_without_a_checkpoint_starts_again(make_task, tmp_path):
    def die(model, batch):
        raise MemoryError

    with pytest.raises(MemoryError):
        train(make_task(compute_loss=die), config(), tmp_path / "run")
    whole, resumed = make_task(), make_task()
    train(whole, config(), tmp_path / "whole")
    train(resumed, config(), tmp_path / "run", resume=True)
    assert same(weights(whole), weights(resumed))


def test_resuming_a_finished_run_changes_nothing(make_task, tmp_path):
    first, again = make_task(), make_task()
    train(first, config(), tmp_path / "run")
    before = metrics(tmp_path / "run")
    result = train(again, config(), tmp_path / "run", resume=True)
    assert result.finished
    assert result.loss == before[-1]["loss"]
    assert same(weights(first), weights(again))
    assert metrics(tmp_path / "run") == before


KILLED_WHILE_SAVING = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from conftest import make_task
from biograft.training import TrainingConfig, checkpoint, train

save_file = checkpoint.save_file
def save_and_die(tensors, path):
    save_file(tensors, path)
    if "step-00000006" in str(path):
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.save_file = save_and_die
task = make_task.__wrapped__()()
train(task, TrainingConfig(steps=10, learning_rate=0.01, precision="fp32", save_every=3),
      Path(sys.argv[2]))
"""


def test_a_kill_while_saving_leaves_the_previous_checkpoint(make_task, tmp_path):
    run = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_SAVING, str(Path(__file__).parent), str(run)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert [path.name for path in find_checkpoints(run)] == ["step-00000003"]
    assert list((run / "checkpoints").glob(".step-*"))
    whole, resumed = make_task(), make_task()
    train(whole, config(save_every=3), tmp_path / "whole")
    train(resumed, config(save_every=3), run, resume=True)
    assert same(weights(whole), weights(resumed))
    assert not list((run / "checkpoints").glob(".step-*"))


def test_fp16_scales_the_loss_and_resumes_exactly(make_task, tmp_path):
    options = config(precision="fp16", clip=1.0)
    whole, resumed = make_task(), make_task()
    train(whole, options, tmp_path / "whole")
    train(make_task(), config(precision="fp16", clip=1.0, max_minutes=1e-9), tmp_path / "parts")
    train(resumed, options, tmp_path / "parts", resume=True)
    assert same(weights(whole), weights(resumed))
    assert timeless(metrics(tmp_path / "whole")) == timeless(metrics(tmp_path / "parts"))
    plain = make_task()
    train(plain, config(clip=1.0), tmp_path / "plain")
    for entry, exact in zip(metrics(tmp_path / "whole"), metrics(tmp_path / "plain"), strict=True):
        assert entry["loss"] == pytest.approx(exact["loss"], abs=0.01)
        assert entry["gradient_norm"] == pytest.approx(exact["gradient_norm"], rel=0.05)
        assert entry["loss_scale"] == 65536


def test_fp16_leaves_out_an_update_that_overflows(make_task, tmp_path):
    def overflow(model, batch):
        nonlocal calls
        calls += 1
        loss, stats = plain(model, batch)
        if calls == 2:
            before.append(weights(task))
        if calls == 3:
            before.append(weights(task))
        return loss * (1e38 if calls == 2 else 1), stats

    calls, before, plain = 0, [], make_task().compute_loss
    task = make_task(compute_loss=overflow)
    train(task, config(steps=4, precision="fp16"), tmp_path / "run")
    assert same(*before)  # the second update is left out
    scales = [entry["loss_scale"] for entry in metrics(tmp_path / "run")]
    assert scales == [65536, 32768, 32768, 32768]


# ---- batches


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_prepare_the_same_batches(make_task, tmp_path, workers):
    alone, source = make_task(), Striped(make_task().source)
    train(alone, config(steps=13), tmp_path / "alone")
    options = config(steps=13, workers=workers, max_minutes=1e-9)
    train(make_task(source=source), options, tmp_path / "half")
    prepared = make_task(source=source)
    train(prepared, config(steps=13, workers=workers), tmp_path / "half", resume=True)
    assert same(weights(alone), weights(prepared))
    assert all(entry["data_seconds"] >= 0 for entry in metrics(tmp_path / "half"))


class Striped:
    """A source whose batches can be made in any order."""

    def __init__(self, source):
        self.source, self.batches = source, source.batches

    def __len__(self):
        return len(self.source)

    def every(self, step, epoch, position):
        yield from list(self.batches(epoch))[position::step]


# ---- when things happen


def test_only_pretraining_is_sharded(make_task, tmp_path):
    """One process has the whole model to itself, and the setting changes nothing."""
    with pytest.raises(ConfigError, match=r"training\.shard: expected false"):
        train(make_task(), config(shard=True), tmp_path / "run")
    whole, alone = make_task(), replace(make_task(), may_shard=True)
    train(whole, config(), tmp_path / "whole")
    train(alone, config(shard=True), tmp_path / "alone")
    assert same(weights(whole), weights(alone))


def test_steps_of_saving_logging_and_evaluation(make_task, tmp_path):
    modes = []
    task = make_task()

    def evaluate():
        modes.append((task.model.training, torch.is_grad_enabled()))
        return {"score": 1.0}

    task = make_task(evaluate=evaluate)
    options = config(steps=7, save_every=2, eval_every=3, log_every=2, keep=3)
    result = train(task, options, tmp_path / "run")
    entries = metrics(tmp_path / "run")
    assert [e["step"] for e in entries if "loss" in e] == [2, 4, 6, 7]
    assert [e["step"] for e in entries if "evaluation" in e] == [0, 3, 6, 7]
    assert modes == [(False, False)] * 4
    names = [path.name for path in find_checkpoints(tmp_path / "run")]
    assert names == ["step-00000004", "step-00000006", "step-00000007"]
    assert result.checkpoint.name == names[-1]
    assert result.evaluation == {"score": 1.0}
    assert {
        "loss",
        "learning_rate",
        "gradient_norm",
        "accuracy",
        "rows",
        "rows_per_second",
        "seconds",
        "peak_memory_mb",
        "epoch",
    } <= set(entries[-2]) | set(entries[1])


@pytest.mark.parametrize(("passes", "n_steps"), [(1, 10), (2, 5), (3, 4)])
def test_epochs_count_batches(make_task, tmp_path, passes, n_steps):
    result = train(make_task(), config(steps=0, epochs=2, passes=passes), tmp_path / "run")
    assert result.step == result.n_steps == n_steps
    rows = sum(entry["rows"] for entry in metrics(tmp_path / "run"))
    assert rows == {1: 74, 2: 74, 3: 90}[passes]


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (1, [(5, 1), (10, 2), (15, 3)]),
        (2, [(3, 1), (5, 2), (8, 3)]),
        (7, [(1, 1), (2, 2), (3, 4)]),  # 7, 14 and 21 of 5 batches an epoch
    ],
)
def test_ends_of_epochs_are_reported_with_accumulation(make_task, tmp_path, passes, expected):
    evaluated, modes = [], []
    task = make_task()

    def after_epoch(epoch):
        modes.append((task.model.training, torch.is_grad_enabled()))
        evaluated.append(epoch)
        return {"epoch": epoch}, False

    task = make_task(after_epoch=after_epoch)
    options = config(steps=0, epochs=3, passes=passes)
    result = train(task, options, tmp_path / "run")
    logged = [e for e in metrics(tmp_path / "run") if "evaluation" in e]
    assert [(e["step"], e["evaluation"]["epoch"]) for e in logged] == expected
    assert evaluated == [epoch for _, epoch in expected]
    assert set(modes) == {(False, False)}
    assert result.evaluation == {"epoch": evaluated[-1]}


def test_the_end_of_an_epoch_is_reported_once_across_a_resume(make_task, tmp_path):
    evaluated = []

    def after_epoch(epoch):
        evaluated.append(epoch)
        return {}, epoch == 1

    train(make_task(after_epoch=after_epoch), config(), tmp_path / "run")
    train(make_task(after_epoch=after_epoch), config(), tmp_path / "run", resume=True)
    assert evaluated == [1, 2]


def test_accumulated_gradients_are_the_mean_of_the_batches(make_task, tmp_path):
    task, by_hand = make_task(), make_task()
    for each in (task, by_hand):
        each.model[2].p = 0.0
    train(task, config(steps=1, passes=2, weight_decay=0.0), tmp_path / "run")
    optimiser = torch.optim.AdamW(by_hand.model.parameters(), lr=0.01, weight_decay=0.0)
    batches = by_hand.source.batches(0)
    losses = [by_hand.compute_loss(by_hand.model, next(batches))[0] for _ in range(2)]
    (sum(losses) / 2).backward()
    optimiser.step()
    for name, value in weights(task).items():
        torch.testing.assert_close(value, by_hand.model.state_dict()[name])


# ---- what is refused


def test_a_loss_that_is_not_finite_stops_before_the_update(make_task, tmp_path):
    def poison(model, batch):
        nonlocal calls
        calls += 1
        loss, stats = plain(model, batch)
        return loss * (math.nan if calls == 5 else 1), stats

    calls, plain = 0, make_task().compute_loss
    task = make_task(compute_loss=poison)
    with pytest.raises(BiograftError, match=r"diverged at step 5: loss nan.*learning_rate"):
        train(task, config(save_every=2), tmp_path / "run")
    assert all(torch.isfinite(value).all() for value in weights(task).values())
    assert find_checkpoints(tmp_path / "run")[-1].name == "step-00000004"
    resumed, whole = make_task(), make_task()
    train(resumed, config(save_every=2), tmp_path / "run", resume=True)
    train(whole, config(), tmp_path / "whole")
    assert same(weights(whole), weights(resumed))


def test_another_configuration_is_refused(make_task, tmp_path):
    def described(rate, keep):
        return {"training": {"learning_rate": rate, "keep": keep}}

    first = make_task(described=described(0.01, 1), provenance={"kb": "abc"})
    train(first, config(), tmp_path / "run")
    with pytest.raises(
        ConfigError, match=r"started with training.learning_rate = 0.01, found 0.02"
    ):
        train(make_task(described=described(0.02, 1)), config(), tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match="started with kb = 'abc', found 'x'"):
        train(
            make_task(described=described(0.01, 1), provenance={"kb": "x"}),
            config(),
            tmp_path / "run",
            resume=True,
        )
    other_keep = make_task(described=described(0.01, 7), provenance={"kb": "abc"})
    assert train(other_keep, config(), tmp_path / "run", resume=True).finished


def test_an_existing_folder_is_refused(make_task, tmp_path):
    (tmp_path / "a file").write_text("x")
    with pytest.raises(OutputError, match=r"exists already.*--resume"):
        train(make_task(), config(), tmp_path)
    with pytest.raises(OutputError, match="exists already"):
        train(make_task(), config(), tmp_path / "a file")
    with pytest.raises(StoreError, match=r"no such run; start it without --resume"):
        train(make_task(), config(), tmp_path / "nothing", resume=True)


TWO_PROCESSES = """
import sys
from pathlib import Path
import torch
from torch import nn
from transformers import BertConfig, BertModel
sys.path.insert(0, sys.argv[1])
from conftest import make_task
from biograft.training import TrainingConfig, train

task = make_task.__wrapped__()()
options = {"steps": 4, "batch_size": 16, "learning_rate": 0.01, "precision": "fp32"}
train(task, TrainingConfig(save_every=2, **options),
      Path(sys.argv[2]))
rank = torch.distributed.get_rank()
torch.save(task.model.state_dict(), f"{sys.argv[2]}/rank{rank}.pt")
torch.distributed.destroy_process_group()
"""


@pytest.mark.long
def test_two_processes_have_the_same_weights(tmp_path):
    script = tmp_path / "two.py"
    script.write_text(TWO_PROCESSES)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, str(script), str(Path(__file__).parent), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    ranks = [torch.load(tmp_path / "run" / f"rank{k}.pt", weights_only=True) for k in (0, 1)]
    assert same(*ranks)
    entries = metrics(tmp_path / "run")
    assert [entry["step"] for entry in entries] == [1, 2, 3, 4]
    assert entries[0]["rows"] == 16
    assert find_checkpoints(tmp_path / "run")[-1].name == "step-00000004"


class TestOneAtATime:
    def test_a_run_is_resumed_by_one_process(self, make_task, tmp_path):
        """Two with --resume wrote every line of metrics.jsonl twice."""
        train(make_task(), config(steps=2), tmp_path / "run")
        with held_elsewhere(tmp_path / "run"), pytest.raises(OutputError):
            train(make_task(), config(steps=4), tmp_path / "run", resume=True)
        train(make_task(), config(steps=4), tmp_path / "run", resume=True)
        assert [entry["step"] for entry in metrics(tmp_path / "run")] == [1, 2, 3, 4]
        assert [path.name for path in tmp_path.iterdir()] == ["run"]

    @pytest.mark.parametrize("name", ["RANK", "OMPI_COMM_WORLD_RANK"])
    def test_processes_that_train_together_share_the_lock(self, tmp_path, monkeypatch, name):
        with held_elsewhere(tmp_path / "run"):
            for rank in (1, 3):
                monkeypatch.setenv(name, str(rank))
                with sole_run(tmp_path / "run"):
                    pass
            monkeypatch.setenv(name, "0")
            with pytest.raises(OutputError), sole_run(tmp_path / "run"):
                pass
