"""The folder of a run: what it is (``run.json``) and how it went (``metrics.jsonl``)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind, new_file, sole_writer
from biograft.errors import ConfigError, OutputError
from biograft.training.config import MAY_CHANGE

RUN = ArtifactKind(
    format="biograft-run",
    version=1,
    called="run",
    remedy="start the run anew",
    absent="start it without --resume",
    file="run.json",
)


_RANKS = ("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")
"""Where those that start several processes tell each which it is."""


@contextlib.contextmanager
def sole_run(folder: Path) -> Iterator[None]:
    """Let one run at a time write to a folder; of processes that train together the first does."""
    with sole_writer(folder) if is_first_process() else contextlib.nullcontext():
        yield


def is_first_process() -> bool:
    """Whether this is the first of the processes that train together, or the only one."""
    return next((os.environ[name] for name in _RANKS if name in os.environ), "0") == "0"


def start_run(folder: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Begin a run in a folder that is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            f"{folder}: exists already; go on with it (--resume) or choose another place"
        )
    RUN.write(folder, {"config": config, "provenance": provenance})


def check_run(folder: Path, config: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
    """Refuse to go on with a run whose configuration or data was another."""
    described = RUN.read(folder)
    for part, now in (("config", config), ("provenance", provenance)):
        _refuse_difference(folder, described.get(part), now)


def check_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse a run whose configuration was another."""
    _refuse_difference(folder, RUN.read(folder).get("config"), config)


def _refuse_difference(folder: Path, then: Any, now: Any) -> None:
    before, after = _flatten(then), _flatten(json.loads(json.dumps(now)))
    for key in sorted({*before, *after}):
        if key.rpartition(".")[2] in MAY_CHANGE:
            continue
        if before.get(key) != after.get(key):
            raise ConfigError(
                f"{folder}: was begun with {key} = {before.get(key)!r}, now it is "
                f"{after.get(key)!r}; go on with the same, or start anew elsewhere"
            )


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    return {
        full: inner
        for key, item in value.items()
        for full, inner in _flatten(item, f"{prefix}.{key}".lstrip(".")).items()
    }


class MetricsLog:
    """Appends one JSON object a line; a resumed run first drops what came after its state."""

    def __init__(self, folder: Path, step: int, *, enabled: bool = True) -> None:
        self.path, self.enabled = folder / "metrics.jsonl", enabled
        if not enabled:  # of several processes one writes
            return
        kept = [line for line in self._lines() if line["step"] <= step]
        with new_file(self.path, overwrite=True) as file:
            file.writelines(f"{json.dumps(line)}\n".encode() for line in kept)

    def write(self, entry: Mapping[str, Any]) -> None:
        """Append a line, at once."""
        if not self.enabled:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(entry)}\n")

    def _lines(self) -> list[dict[str, Any]]:
        """Read the lines there are; one that a kill cut short is none."""
        if not self.path.exists():
            return []
        lines = []
        for text in self.path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except ValueError:
                continue
        return lines
