"""Accuracy of pre-training objectives on held-out text, beside that of the most frequent answer.

Variants are pre-trained like those of ``encoder_tasks``, with the same settings, and evaluated on
the text that the recipe's ``stream.held_out`` names. An objective is learned if its accuracy is
above chance by five standard errors.

    python -m biograft_lab.replication.objectives TEXT --characters 150 -o split
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from biograft.artifacts import new_folder
from biograft.text.near_duplicates import NearDuplicates
from biograft_lab.replication.encoders import (
    EncoderTasks,
    EncoderTaskSettings,
    EncoderVariant,
    encoder_of,
    with_seed,
)
from biograft_lab.replication.experiment import Experiment
from biograft_lab.replication.runner import (
    TOY_PRETRAINING,
    ExperimentJob,
    check_names,
    parse_settings,
    parse_variants,
)

_BLOCK = 50
"""Consecutive lines of a text that are in one split: those of a page stay together."""


class Objectives(EncoderTasks):
    """Runs experiments of kind ``objectives``; its one set is the input at ``stream.held_out``."""

    def check(self, experiment: Experiment) -> None:
        """Refuse settings and variants that are not known."""
        check_names("sets", experiment.sets, [*experiment.inputs])
        super().check(replace(experiment, sets=()))

    def small(self, experiment: Experiment) -> Experiment:
        """Return the experiment at the size of toy data."""
        return experiment.smaller({}, {"changes": TOY_PRETRAINING})

    def run(self, job: ExperimentJob) -> None:
        """Pre-train every variant with every seed that has no row yet."""
        results = job.results()
        settings = parse_settings(job.experiment, EncoderTaskSettings)
        for seed in settings.pretraining_seeds:
            for label, variant in parse_variants(job.experiment, EncoderVariant).items():
                key = {"set": job.experiment.sets[0], "config": label, "pretraining_seed": seed}
                if not results.has(key):
                    held_out: dict[str, Any] = {}
                    encoder_of(label, variant, with_seed(job, seed), held_out, seed)
                    job.add(results, key, {"held_out": held_out[label]})


def split_text(text: Path, out: Path, *, characters: int, n_train: int, n_held: int) -> None:
    """Write ``train.txt``, ``dev.txt`` and ``test.txt``, without near-duplicates between them."""
    content = gzip.decompress(text.read_bytes()) if text.suffix == ".gz" else text.read_bytes()
    given = (line.strip() for line in content.decode().split("\n"))
    lines = list(dict.fromkeys(line for line in given if len(line) >= characters))
    starts = np.random.default_rng(0).permutation(range(0, len(lines), _BLOCK)).tolist()
    shuffled = [line for start in starts for line in lines[start : start + _BLOCK]]
    test, dev, rest = shuffled[:n_held], shuffled[n_held : 2 * n_held], shuffled[2 * n_held :]
    of_test, of_both = NearDuplicates(test), NearDuplicates([*test, *dev])
    train = (line for line in rest if not of_both.matches(line))
    parts = {
        "test": test,
        "dev": [line for line in dev if not of_test.matches(line)],
        "train": [line for _, line in zip(range(n_train), train, strict=False)],
    }
    with new_folder(out) as work:
        for name, part in parts.items():
            (work / f"{name}.txt").write_text("".join(f"{line}\n" for line in part), "utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Split a text."""
    parser = argparse.ArgumentParser(description=split_text.__doc__)
    parser.add_argument("text", type=Path, help="a document a line, compressed or not")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--characters", type=int, default=150, help="of a document, at least")
    parser.add_argument("--train", type=int, default=5000, help="documents to train on")
    parser.add_argument("--held-out", type=int, default=500, help="documents of dev, and of test")
    given = parser.parse_args(arguments)
    split_text(
        given.text,
        given.out,
        characters=given.characters,
        n_train=given.train,
        n_held=given.held_out,
    )


if __name__ == "__main__":
    main()
