"""Encoders that another experiment pre-trained, several seeds each, as arms of an experiment.

A variant names its encoder as ``INPUT/PATH``, where INPUT is an input of the experiment. ``{seed}``
in the path stands for the seed of pre-training: ``runs/seed-{seed}/pretrained/EMBERT/encoder``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biograft.errors import ConfigError, InputError
from biograft.replication.experiment import Experiment
from biograft.replication.runner import ExperimentJob, check_names
from biograft.training.run_folder import RUN

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


def with_toy_encoders(
    job: ExperimentJob,
    encoders: Mapping[str, str],
    names: Sequence[str],
    settings: Mapping[str, Any],
    inputs: Mapping[str, Path],
) -> ExperimentJob:
    """Return a job on toy data whose arms are tiny encoders with random weights, two seeds each.

    ``names`` are texts that have every character of the data; ``inputs`` are the other inputs.
    """
    from biograft.nn.pretrained import save_tokenizer
    from biograft.nn.scratch import create_bert
    from biograft.nn.scratch_configs import NewBert

    size = NewBert(layers=1, width=16, heads=2, feed_forward=32, max_length=128)
    work, found = job.work / "smoke", dict(inputs)
    experiment = replace(job.experiment, seeds=(1, 2), settings=settings)
    toy = replace(job, experiment=experiment, work=work, inputs={}, out=work / job.out.name)
    for number, (encoder, seed) in enumerate((e, s) for e in encoders.values() for s in (1, 2)):
        name, _, path = encoder.replace(_SEED, str(seed)).partition("/")
        found[name] = work / name
        folder = work / name / path
        if not folder.exists():
            made = create_bert(size, [*names, *names], number)  # a token is twice in the texts
            folder.mkdir(parents=True)
            made.model.save_pretrained(folder)
            save_tokenizer(made.tokenizer, folder)
    return replace(toy, inputs=found)
