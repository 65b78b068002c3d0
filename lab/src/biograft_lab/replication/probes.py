"""Probes of encoders: each variant is one call of ``biograft probe --json``.

Words in braces are inputs: ``{kb}``. The answers of an experiment stand together in its result
file, by variant; the texts that were read are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from biograft.compute import describe_machine
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.results import (
    describe_commit,
    read_result,
    write_result,
)
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

_TEXTS = ("sentences", "queries")
"""Parts of an answer that repeat what was read."""
_TOY_LIMIT = "20"
"""Sentences or queries of a smoke run."""
_INPUT = re.compile(r"\{([\w-]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """There is nothing to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeVariant:
    """A call of ``biograft probe``: its arguments."""

    arguments: tuple[str, ...]


class Probes:
    """Runs experiments of kind ``probe``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings, inputs and variants that are not known."""
        parse_settings(experiment, ProbeSettings)
        for label, variant in parse_variants(experiment, ProbeVariant).items():
            names = _INPUT.findall(" ".join(variant.arguments))
            check_names(f"variants.{label}", names, [*experiment.inputs])
            experiment.check_one_base({name: name for name in encoder_inputs(experiment, names)})

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        variants = {
            label: {**given, "arguments": _limited(given["arguments"])}
            for label, given in experiment.variants.items()
        }
        return replace(experiment.smaller({}, {}), variants=variants)

    def run(self, job: ExperimentJob) -> None:
        """Run every probe that has no answer yet."""
        for label, variant in parse_variants(job.experiment, ProbeVariant).items():
            content = read_result(job.out) if job.out.exists() else {}
            answers: dict[str, Any] = content.get("answers", {})
            if label in answers:
                continue
            given = [_INPUT.sub(lambda m: str(job.input(m[1])), a) for a in variant.arguments]
            answer = json.loads(job.probe([*given, "--json", "--quiet"]))
            about = {
                "command": " ".join(["biograft probe", *variant.arguments]),
                "commit": describe_commit(),
            }
            kept = {key: of for key, of in answer.items() if key not in _TEXTS}
            answers = {**answers, label: {**kept, **about}}
            write_result(job.out, {"machine": describe_machine(), "answers": answers})
            job.say({"set": label, **about})


def encoder_inputs(experiment: Experiment, names: Iterable[str]) -> list[str]:
    """Return those of some inputs that are encoders: trained ones, and bases of others."""
    known = {name for pair in experiment.bases.items() for name in pair}
    return [name for name in names if name in known]


def _limited(arguments: Sequence[str]) -> list[str]:
    """Return arguments with the limit of toy data, where they have one."""
    before = ["", *arguments]
    return [
        _TOY_LIMIT if last == "--limit" else each
        for last, each in zip(before, arguments, strict=False)
    ]
