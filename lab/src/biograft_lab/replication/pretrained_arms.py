"""Encoders that another experiment pre-trained, several seeds each, as arms of an experiment.

A variant names its encoder as ``INPUT/PATH``, where INPUT is an input of the experiment. ``{seed}``
in the path stands for the seed of pre-training: ``runs/seed-{seed}/pretrained/EMBERT/encoder``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError, InputError
from biograft.training.run_folder import RUN
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.runner import ExperimentJob, check_names

_SEED = "{seed}"


def check_arms(experiment: Experiment, encoders: Iterable[str]) -> None:
    """Refuse encoders of inputs that the experiment does not have."""
    check_names("variants", [name.partition("/")[0] for name in encoders], [*experiment.inputs])


def has_seeds(encoder: str) -> bool:
    """Whether there is one encoder for each seed of pre-training."""
    return _SEED in encoder


def find_arm(job: ExperimentJob, encoder: str, seed: int) -> Path:
    """Return the folder of an encoder, for a seed of pre-training."""
    name, _, path = encoder.replace(_SEED, str(seed)).partition("/")
    folder = job.input(name) / path
    if not folder.exists():
        raise InputError(
            "the encoder is missing",
            path=folder,
            remedy=f"the input {name!r} is {job.experiment.inputs[name]}",
        )
    return folder


def each_arm(job: ExperimentJob, encoders: Mapping[str, str]) -> Iterator[tuple[str, int | None]]:
    """Yield each arm with each seed of pre-training, all arms of a seed first.

    An arm that has no seeds, or no encoder, comes once, with None.
    """
    for number, seed in enumerate(job.experiment.seeds):
        for label, encoder in encoders.items():
            if has_seeds(encoder):
                yield label, seed
            elif number == 0:
                yield label, None


def check_same_start(job: ExperimentJob, encoders: Mapping[str, str]) -> None:
    """Refuse encoders whose runs say that they started from different encoders."""
    starts: dict[str, str] = {}
    for label, encoder in encoders.items():
        for seed in job.experiment.seeds if has_seeds(encoder) else ():
            run = find_arm(job, encoder, seed).parent
            if RUN.is_at(run):
                described: Mapping[str, Any] = RUN.read(run)["config"]["encoder"] or {}
                starts.setdefault(str(described.get("name")), label)
    if len(starts) > 1:
        found = ", ".join(f"{label!r} from {start}" for start, label in starts.items())
        raise ConfigError(
            f"{job.experiment.name}: the runs of the encoders started from several: {found}; "
            "pre-train all from one (--encoder)"
        )
