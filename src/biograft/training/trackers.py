"""Trackers of experiments: what a run tells TensorBoard, W&B, MLflow and others of `accelerate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
from accelerate.utils import LoggerType

from biograft.errors import BiograftError, ConfigError, nearest
from biograft.language import READER
from biograft.recipe import TrainingConfig
from biograft.training.run_folder import flatten
from biograft.training.tasks.results import numbers_of

_RECEIVERS = {
    "clearml": ("CLEARML_API_HOST", "https://api.clear.ml"),
    "comet_ml": ("COMET_URL_OVERRIDE", "https://www.comet.com"),
    "dvclive": ("DVC_STUDIO_URL", "https://studio.datachain.ai"),
    "mlflow": ("MLFLOW_TRACKING_URI", ""),
    "swanlab": ("SWANLAB_API_HOST", "https://api.swanlab.cn"),
    "trackio": ("TRACKIO_SPACE_ID", ""),
    "wandb": ("WANDB_BASE_URL", "https://api.wandb.ai"),
}
"""Destination of a tracker: the value of an environment variable, or a host. Without either, and
for trackers that are not named here, the data stay on this machine."""


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that are unknown or not installed, and name the hosts of the others.

    Args:
        names: Names of trackers, as ``accelerate`` knows them.
    """
    for name in names:
        if name not in LOGGER_TYPE_TO_CLASS:
            raise ConfigError(
                f"training.trackers: no tracker is called {name!r}; "
                f"{nearest(name, LOGGER_TYPE_TO_CLASS)}"
            )
        if name in LoggerType.list() and name not in map(str, get_available_trackers()):
            raise BiograftError(
                f"training.trackers: {name} needs an optional package; run: pip install {name}"
            )
        variable, host = _RECEIVERS.get(name, ("", ""))
        if receiver := os.environ.get(variable) or host:
            said = f"biograft: {name} sends the configuration, losses and dev scores to {receiver}"
            sys.stderr.write(f"{READER.translate(said)}\n")


@contextmanager
def tracking(
    accelerator: Accelerator, config: TrainingConfig, described: Mapping[str, Any]
) -> Iterator[None]:
    """Start the trackers of an accelerator with the configuration of a run, and end them.

    Args:
        accelerator: Knows the trackers.
        config: Settings of the training, with the name of the project.
        described: The whole configuration, as far as the task describes it.
    """
    if accelerator.log_with:
        values = flatten({**described, "training": asdict(config)})
        simple = (bool, int, float, str)
        accelerator.init_trackers(
            config.project,
            {
                key: value if isinstance(value, simple) else str(value)
                for key, value in values.items()
            },
        )
    try:
        yield
    finally:
        for tracker in accelerator.trackers:
            tracker.finish()


def track(accelerator: Accelerator, entry: Mapping[str, Any]) -> None:
    """Send the numbers of an entry of the log to the trackers.

    Args:
        accelerator: Knows the trackers.
        entry: Step, and losses, or an ``evaluation``, whose names begin with ``dev``.
    """
    named = {"dev" if key == "evaluation" else key: value for key, value in entry.items()}
    accelerator.log(dict(numbers_of(named)), step=entry["step"])
