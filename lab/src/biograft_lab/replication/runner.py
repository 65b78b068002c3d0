"""Run an experiment: what exists is not measured again, so a stopped run continues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from biograft.config import from_mapping
from biograft.errors import ConfigError, InputError, nearest
from biograft.registry import Registry
from biograft_lab.replication.experiment import Experiment, part_of_design
from biograft_lab.replication.results import ResultFile, Row, describe_commit

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentJob:
    """An experiment to run: where its data, inputs and runs are, and where results go.

    ``inputs`` are folders by name, for those that are not at ``work/NAME``; ``say`` receives each
    row as it is written, ``warn`` what is left out.
    """

    experiment: Experiment
    work: Path
    data: Path
    out: Path
    inputs: Mapping[str, Path] = field(default_factory=dict)
    say: Callable[[Mapping[str, Any]], None] = lambda row: None
    warn: Callable[[str], None] = lambda line: None

    def input(self, name: str) -> Path:
        """Return the folder of an input."""
        path = self.inputs.get(name, self.work / name)
        if not path.exists():
            made = self.experiment.inputs[name]
            raise InputError(
                f"input {name!r} is missing",
                path=path,
                remedy=f"it is {made}; make it there or give --input {name}=PATH",
            )
        return path

    def results(self) -> ResultFile:
        """Open the result file."""
        return ResultFile(self.out)

    def runs(self) -> Iterator[tuple[str, int]]:
        """Return each set with each seed, all sets of a seed first."""
        seeds = {name: self.experiment.seeds_of(name) for name in self.experiment.sets}
        for seed in sorted({seed for some in seeds.values() for seed in some}):
            yield from ((name, seed) for name, some in seeds.items() if seed in some)

    def add(self, results: ResultFile, key: Mapping[str, Any], row: Row) -> None:
        """Write a row with the command, the commit and the design, and report it."""
        about = {
            "command": f"biograft replicate run {self.experiment.name}",
            "commit": describe_commit(),
            "design": self.experiment.design(*part_of_design(key)),
        }
        self.say(results.add(key, {**row, **about}))


class Kind(Protocol):
    """A kind of experiment, as its module offers it."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, sets and variants that this kind does not know."""

    def run(self, job: ExperimentJob) -> None:
        """Measure every row that has no result yet."""


KINDS: Registry[Callable[[], Kind]] = Registry(
    "kind of experiment",
    {
        "linking": (
            "linking:Linking",
            "linking accuracy without training",
        ),
        "joint_linking": (
            "joint:JointLinking",
            "linking by one encoder trained on the mentions of several sets",
        ),
        "generative_linking": (
            "generative:GenerativeLinking",
            "linking by generating names",
        ),
        "objectives": (
            "objectives:Objectives",
            "accuracy of pre-training objectives on held-out text",
        ),
    },
    home="biograft_lab.replication",
)


def load_kind(job: ExperimentJob) -> Kind:
    """Return the kind of a job's experiment, which fits it."""
    for name in job.inputs:
        if name not in job.experiment.inputs:
            raise ConfigError(f"--input {name}: {nearest(name, job.experiment.inputs)}")
    kind = KINDS.load(job.experiment.kind)()
    kind.check(job.experiment)
    return kind


def run_experiment(job: ExperimentJob) -> Path:
    """Run an experiment and return the result file."""
    kind = load_kind(job)
    job.work.mkdir(parents=True, exist_ok=True)
    kind.run(job)
    return job.out


def missing_data(path: Path) -> InputError:
    """Return the error of a file of the real data that is not there."""
    return InputError("not found", path=path, remedy="set BIOGRAFT_DATA or give --data")


def parse_variants(experiment: Experiment, variant: type[T]) -> dict[str, T]:
    """Check the variants of an experiment and return them by label."""
    return {
        label: from_mapping(variant, values, f"variants.{label}.")
        for label, values in experiment.variants.items()
    }


def parse_settings(experiment: Experiment, settings: type[T], name: str = "") -> T:
    """Check the settings of an experiment, with those of one of its sets."""
    values = experiment.settings_of(name) if name else experiment.settings
    return from_mapping(settings, values, f"{experiment.name}: settings.")


def check_names(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names that are not known."""
    for name in names:
        if name not in known:
            raise ConfigError(f"{what}: no {name!r}; {nearest(name, known)}")
