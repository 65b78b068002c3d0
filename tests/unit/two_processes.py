"""Scripts that train on two processes together.

``torchrun`` starts two empty interpreters, whose imports take most of a minute. Here a server
imports once and forks both, with the environment that ``torchrun`` would set. One test runs the
real ``torchrun`` (``training/test_loop.py``).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from biograft.kb import KnowledgeBase
from biograft.training.pretraining import PretrainingRecipe

NEEDED = [
    "accelerate",
    "biograft.models",
    "biograft.training.pretraining.language_modelling",
    "biograft.training.tasks.runs",
]
PRETRAINING = """
import json, sys
from biograft.kb import KnowledgeBase
from biograft.training.pretraining import PretrainingRecipe, pretrain

values, kb, out = sys.argv[1:]
recipe = PretrainingRecipe.from_values("tiny", json.loads(values))
pretrain(recipe, KnowledgeBase.open(kb) if kb else None, out)
"""


def run_on_two(script: str, *arguments: object, log: Path) -> None:
    """Run a script on both processes; the traceback of a failure goes to ``log``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(NEEDED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    texts = [str(argument) for argument in arguments]
    both = [
        context.Process(target=_enter, args=(script, texts, rank, port, str(log)), daemon=True)
        for rank in range(2)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join(timeout=240)
    codes = [process.exitcode for process in both]
    for process in both:
        process.kill()
    assert codes == [0, 0], log.read_text(encoding="utf-8") if log.exists() else codes


def _enter(script: str, arguments: list[str], rank: int, port: int, log: str) -> None:
    variables = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": 2,
        "LOCAL_WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": 1,
    }
    os.environ.update({name: str(value) for name, value in variables.items()})
    sys.argv = ["script", *arguments]
    try:
        exec(compile(script, "script", "exec"), {"__name__": "__main__"})
        import torch

        torch.distributed.destroy_process_group()
    except BaseException:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"process {rank}:\n{traceback.format_exc()}\n")
        os._exit(1)


def pretrain_on_two(recipe: PretrainingRecipe, kb: KnowledgeBase | None, out: Path) -> None:
    """Run a recipe on two processes in parallel."""
    values = json.dumps(as_values(recipe))
    run_on_two(PRETRAINING, values, kb.folder if kb else "", out, log=out.with_suffix(".log"))


def losses(run: Path) -> list[float]:
    """Return the losses of all updates of a run."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def as_one(one: Path, two: Path) -> None:
    """Check that a run of two processes has the losses, statistics and gradients of one."""
    logs = [
        [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (one, two)
    ]
    measured = {"rows_per_second", "data_seconds", "peak_memory_mb", "seconds"}
    for ours, theirs in zip(*logs, strict=True):
        assert ours.keys() == theirs.keys()
        for key in ours.keys() - measured - {"evaluation"}:
            assert theirs[key] == pytest.approx(ours[key], rel=1e-5, abs=1e-5), key


def without_dropout(encoder: Path, folder: Path) -> Path:
    """Copy a transformers folder; processes sample dropout differently."""
    shutil.copytree(encoder, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


class _LoadedError(Exception):
    """A model was put on a device."""


@contextmanager
def loads_after_joining(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that processes are joined before a model is put on a device, and stop there.

    Before that, a process does not know which device is its own.
    """
    import torch

    from biograft.training import processes

    joined, join = [], processes.PartialState

    def record(**options: Any) -> Any:
        joined.append(True)
        return join(**options)

    def stop(*_: Any, **__: Any) -> None:
        raise _LoadedError

    monkeypatch.setattr(processes, "PartialState", record)
    monkeypatch.setattr(torch.nn.Module, "to", stop)
    with pytest.raises(_LoadedError):
        yield
    monkeypatch.undo()
    assert joined


def as_values(recipe: PretrainingRecipe) -> dict[str, Any]:
    """Return the content of a recipe file."""
    values = without_none(recipe.to_json())
    values.pop("name")
    if "new" in values:
        del values["encoder"]
    return values


def without_none(values: Any) -> Any:
    """Remove keys without a value."""
    if not isinstance(values, dict):
        return values
    return {key: without_none(value) for key, value in values.items() if value is not None}
