"""Accuracy of pre-training objectives on held-out text, beside that of the most frequent answer.

Variants are pre-trained and evaluated on the text that the recipe's ``stream.held_out`` names. An
objective is learned if its accuracy is above chance by five standard errors.

    python -m biograft_lab.replication.objectives TEXT --characters 150 -o split
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from biograft.artifacts import new_folder
from biograft.cli.fields import CommandGroup
from biograft.cli.options import Folder
from biograft.config import remove_value, set_value
from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.text.near_duplicates import NearDuplicates
from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain
from biograft.training.run_folder import check_config
from biograft_lab.places import run_commands
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.runner import (
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

_BLOCK = 50
"""Consecutive lines of a text that are in one split: those of a page stay together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingSettings:
    """Settings of pre-training: the recipe, its changes, and its inputs.

    ``paths`` maps keys of the recipe to inputs. Every variant is pre-trained with each of
    ``pretraining_seeds``.
    """

    recipe: str
    changes: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    pretraining_seeds: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingVariant:
    """What a variant changes: ``without`` removes tables and keys of the recipe."""

    changes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Objectives:
    """Runs experiments of kind ``objectives``; its one set is the input at ``stream.held_out``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings and variants that are not known."""
        check_names("sets", experiment.sets, [*experiment.inputs])
        parse_variants(experiment, PretrainingVariant)
        paths = _paths(parse_settings(experiment, PretrainingSettings))
        check_names("settings.paths", [*paths.values(), "kb"], [*experiment.inputs])

    def run(self, job: ExperimentJob) -> None:
        """Pre-train every variant with every seed that has no row yet."""
        results = job.results()
        settings = parse_settings(job.experiment, PretrainingSettings)
        for seed in settings.pretraining_seeds:
            for label, variant in parse_variants(job.experiment, PretrainingVariant).items():
                key = {"set": job.experiment.sets[0], "config": label, "pretraining_seed": seed}
                if not results.has(key):
                    held_out = pretrain_variant(job, label, variant, seed)
                    job.add(results, key, {"held_out": held_out})


def _paths(settings: PretrainingSettings) -> dict[str, str]:
    return {"encoder.name": "encoder", "stream.shards": "corpus", **settings.paths}


def pretrain_variant(
    job: ExperimentJob, label: str, variant: PretrainingVariant, seed: int
) -> dict[str, Any]:
    """Pre-train one variant if needed; return its metrics on held-out text at the end.

    Args:
        job: The experiment, its inputs and its folder of work.
        label: The name of the variant.
        variant: What it changes.
        seed: Seed of the training.
    """
    settings = parse_settings(job.experiment, PretrainingSettings)
    variant = replace(variant, changes=(*variant.changes, f"training.seed={seed}"))
    recipe = variant_recipe(variant, settings, job.input)
    out = job.work / f"seed-{seed}" / "pretrained" / label.replace(" ", "-").replace(",", "")
    if (out / "done").exists():
        check_config(out, recipe.to_json())
    else:
        kb = KnowledgeBase.open(job.input("kb"))
        pretrain(recipe, kb, out, resume=(out / "run.json").exists(), progress=Progress())
        (out / "done").touch()
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    evaluations = [row["evaluation"] for row in map(json.loads, lines) if "evaluation" in row]
    return dict(evaluations[-1])


def variant_recipe(
    variant: PretrainingVariant, settings: PretrainingSettings, place: Callable[[str], Path]
) -> PretrainingRecipe:
    """Return the pre-training recipe of a variant.

    Args:
        variant: What the variant changes.
        settings: The recipe, its changes and inputs.
        place: Returns the folder of an input.
    """
    name, values = PretrainingRecipe.resolve(settings.recipe)
    values.pop("new", None)
    for key, chosen in _paths(settings).items():
        set_value(values, f"{key}={json.dumps(str(place(chosen)))}")
    for change in (*variant.changes, *settings.changes):
        set_value(values, change)
    for key in variant.without:
        remove_value(values, key)
    return PretrainingRecipe.from_values(name, values)


app = CommandGroup("Split a text for experiments on objectives.")


@app.command()
def split_text(
    text: Annotated[Path, typer.Argument()],
    out: Folder,
    characters: Annotated[int, "N"] = 150,
    train: Annotated[int, "N"] = 5000,
    held_out: Annotated[int, "N"] = 500,
) -> None:
    """Write train.txt, dev.txt and test.txt, without near-duplicates between them.

    Args:
        text: A document a line, compressed or not.
        out: Folder to write.
        characters: Characters of a document, at least.
        train: Documents to train on.
        held_out: Documents of dev, and of test.
    """
    content = gzip.decompress(text.read_bytes()) if text.suffix == ".gz" else text.read_bytes()
    given = (line.strip() for line in content.decode().split("\n"))
    lines = list(dict.fromkeys(line for line in given if len(line) >= characters))
    starts = np.random.default_rng(0).permutation(range(0, len(lines), _BLOCK)).tolist()
    shuffled = [line for start in starts for line in lines[start : start + _BLOCK]]
    test, dev = shuffled[:held_out], shuffled[held_out : 2 * held_out]
    rest = shuffled[2 * held_out :]
    of_test, of_both = NearDuplicates(test), NearDuplicates([*test, *dev])
    others = (line for line in rest if not of_both.matches(line))
    parts = {
        "test": test,
        "dev": [line for line in dev if not of_test.matches(line)],
        "train": [line for _, line in zip(range(train), others, strict=False)],
    }
    with new_folder(out) as work:
        for name, part in parts.items():
            (work / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), "utf-8")


if __name__ == "__main__":
    run_commands(app)
