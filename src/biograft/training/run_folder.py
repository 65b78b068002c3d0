"""The folder of a training run: its configuration (``run.json``) and ``metrics.jsonl``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind, new_file, sole_writer
from biograft.errors import BiograftError, ConfigError, OutputError
from biograft.recipe import MAY_CHANGE

RUN = ArtifactKind(
    format="biograft-run",
    version=1,
    called="run",
    remedy="start a new run",
    absent="start it without --resume",
    file="run.json",
)


_RANKS = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""The environment variables in which launchers set the rank of a process."""


@contextlib.contextmanager
def sole_run(folder: Path) -> Iterator[None]:
    """Lock a folder for one run; of processes that train together the first takes the lock.

    Of a new or empty folder in which nothing but its configuration was written nothing is left by
    an error, so that the run can be started again with other settings.
    """
    if not is_first_process():
        yield
        return
    with sole_writer(folder):
        is_new = RUN.is_free(folder)
        try:
            yield
        except BiograftError:
            files = [path for path in folder.rglob("*") if not path.is_dir()]
            if is_new and files == [folder / RUN.file]:
                shutil.rmtree(folder, ignore_errors=True)
            raise


def is_first_process() -> bool:
    """Whether this is the first of the processes that train together, or the only one."""
    return next((os.environ[name] for name in _RANKS if name in os.environ), "0") == "0"


def remove_run(folder: Path) -> None:
    """Remove the folder of a finished run, if there is one.

    Args:
        folder: The folder of the run.

    Raises:
        OutputError: The folder holds something else.
    """
    if not is_first_process() or RUN.is_free(folder):
        return
    if not RUN.is_at(folder):
        raise OutputError(f"{folder}: is no run of biograft, so it is not replaced by one")
    with sole_run(folder):
        shutil.rmtree(folder)


def start_run(folder: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Start a run in a new or empty folder.

    Args:
        folder: Folder of the run.
        config: Configuration of the run.
        provenance: Data and versions that its result depends on.
    """
    if not RUN.is_free(folder):
        raise OutputError(
            f"{folder}: exists already; resume it (--resume) or choose another folder"
        )
    RUN.write(folder, {"config": config, "provenance": provenance})


def check_run(folder: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Refuse to resume a run with another configuration or other data.

    Args:
        folder: Folder of the run.
        config: Configuration of the run.
        provenance: Data and versions that its result depends on.
    """
    described = RUN.read(folder)
    for part, now in (("config", config), ("provenance", provenance)):
        _refuse_difference(folder, described.get(part), now)


def check_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse to resume a run with another configuration.

    Args:
        folder: Folder of the run.
        config: Configuration of the run.
    """
    _refuse_difference(folder, RUN.read(folder).get("config"), config)


def _refuse_difference(folder: Path, then: Any, now: Any) -> None:
    before, after = flatten(then), flatten(json.loads(json.dumps(now)))
    for key in sorted({*before, *after}):
        if key.rpartition(".")[2] in MAY_CHANGE:
            continue
        if before.get(key) != after.get(key):
            raise ConfigError(
                f"{folder}: was started with {key} = {before.get(key)!r}, found "
                f"{after.get(key)!r}; resume with the same, or start a new run in another folder"
            )


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return the values in tables of tables, by their dotted keys.

    Args:
        value: A table, or a value.
        prefix: Key of the table.
    """
    if not isinstance(value, Mapping):
        return {prefix: value}
    return {
        full: inner
        for key, item in value.items()
        for full, inner in flatten(item, f"{prefix}.{key}".lstrip(".")).items()
    }


class MetricsLog:
    """Appends one JSON object a line; a resumed run first drops the lines after its checkpoint.

    Args:
        folder: Folder of the run.
        step: Step of its last checkpoint; later lines are dropped.
        enabled: Whether this process writes.
    """

    def __init__(self, folder: Path, step: int, *, enabled: bool = True) -> None:
        self.path, self.enabled = folder / "metrics.jsonl", enabled
        if not enabled:  # one of several processes writes
            return
        earlier = [line for line in self._lines() if line["step"] <= step]
        with new_file(self.path, overwrite=True) as file:
            file.writelines(f"{json.dumps(line)}\n".encode() for line in earlier)

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append a line and close the file."""
        if not self.enabled:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(entry)}\n")

    def at(self, step: int) -> dict[str, Any]:
        """Return what was logged of a step, such as its loss and its evaluation."""
        lines = [line for line in self._lines() if line["step"] == step]
        return {key: value for line in lines for key, value in line.items()}

    def _lines(self) -> list[dict[str, Any]]:
        """Read the lines; one that was cut by a kill is skipped."""
        if not self.path.exists():
            return []
        lines = []
        for text in self.path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except (ValueError, RecursionError):
                continue
        return lines
