"""One process of ``fuzz_readers.py``: gives inputs to readers until their time is over.

Guided by coverage, of one reader, where atheris can be imported (``--engine atheris``); else seeded
mutation of valid inputs, of one reader after the other. What is counted and found is written at
once, so that it is known after a crash.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import os
import re
import resource
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from biograft_lab.places import REPOSITORY

COUNTS, CURRENT, FOUND = "counts", "current", "found"
_MAX_BYTES = 1 << 13
"""Largest input in bytes."""
_MAX_HANGING = 120
"""Seconds of the processor beside those of the fuzzing; a reader that takes them hangs."""
_MAX_SHRINKING = 400
"""Inputs that are tried to make a finding smaller."""


@dataclass
class Count:
    """A number in a file, which is there after a crash."""

    path: Path
    _map: Any = field(init=False)

    def __post_init__(self) -> None:
        self.path.write_bytes(bytes(8))
        with self.path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8)
        self._n = 0

    def add(self) -> None:
        """Count one more."""
        self._n += 1
        self._map[:8] = self._n.to_bytes(8, "little")


class Examiner:
    """Gives inputs to one reader, counts them, and keeps the smallest of each kind of finding."""

    def __init__(self, name: str, work: Path, targets: Any, artefacts: Any) -> None:
        self.name, self._targets = name, targets
        self._reader = targets.readers()[name]
        self._place = work / "files"
        self._place.mkdir(parents=True, exist_ok=True)
        self.seeds: tuple[bytes, ...] = artefacts.seeds_of(self._reader, self._place)
        self._found = work / FOUND / name
        self._smallest: dict[tuple[str, str], bytes] = {}
        (work / COUNTS).mkdir(exist_ok=True)
        self._count = Count(work / COUNTS / name)
        self._current = work / CURRENT

    def warm(self) -> None:
        """Read valid inputs, uncounted: what is imported on first use would be called slow."""
        for seed in self.seeds:
            self._targets.examine(self._reader, self._place, seed)

    def __call__(self, data: bytes) -> None:
        """Examine one input."""
        self._count.add()
        self._current.write_bytes(data)
        finding = self._targets.examine(self._reader, self._place, data)
        if finding is not None:
            key = (finding.kind, finding.place)
            if key not in self._smallest or len(data) < len(self._smallest[key]):
                self._keep(key, self._shrunk(key, data), finding)

    def _keep(self, key: tuple[str, str], data: bytes, finding: Any) -> None:
        self._smallest[key] = data
        self._found.mkdir(parents=True, exist_ok=True)
        file = self._found / re.sub(r"[^\w]+", "-", "-".join(key)).strip("-").lower()
        file.write_bytes(data)
        file.with_suffix(".json").write_text(json.dumps(vars(finding)), encoding="utf-8")

    def _shrunk(self, key: tuple[str, str], data: bytes) -> bytes:
        """Remove parts of an input as long as what is found stays the same."""
        size, left = len(data) // 2, _MAX_SHRINKING
        while size and key[0] != "slow":
            start = 0
            while start < len(data) and left:
                left -= 1
                shorter = data[:start] + data[start + size :]
                finding = self._targets.examine(self._reader, self._place, shorter)
                if finding is not None and (finding.kind, finding.place) == key:
                    data = shorter
                else:
                    start += size
            size //= 2
        return data


def compiled_modules() -> list[str]:
    """Return the modules with compiled loops, which cannot be instrumented."""
    source = REPOSITORY / "src"
    return [
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for path in source.rglob("*.py")
        if "njit" in path.read_text(encoding="utf-8")
    ]


def load_targets() -> tuple[Any, Any]:
    """Import the readers, which the tests own."""
    warnings.simplefilter("ignore")  # of what is read, for a person who calls a reader
    targets = importlib.import_module("reader_targets")
    return targets, importlib.import_module("artefact_targets")


def mutate(options: argparse.Namespace) -> None:
    """Fuzz readers one after the other by seeded mutation."""
    targets, artefacts = load_targets()
    mutation = importlib.import_module("mutation")
    targets.prepare(options.gib)
    for name in options.readers:
        (options.work / "reader").write_text(name)
        examiner = Examiner(name, options.work, targets, artefacts)
        examiner.warm()
        sample = mutation.Mutator(examiner.seeds, Random(f"{name} {options.seed}")).sample
        end = time.process_time() + options.seconds
        while time.process_time() < end:
            examiner(sample())


def guide(options: argparse.Namespace) -> None:
    """Fuzz one reader, guided by the coverage of our code; libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")
    (name,) = options.readers
    (options.work / "reader").write_text(name)
    with atheris.instrument_imports(include=["biograft"], exclude=compiled_modules()):
        targets, artefacts = load_targets()
        examiner = Examiner(name, options.work, targets, artefacts)
        examiner.warm()
    mutator = importlib.import_module("mutation").Mutator(examiner.seeds, Random())
    targets.prepare(options.gib)
    corpus = options.corpus / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in examiner.seeds:
        (corpus / f"seed-{zlib.crc32(seed):08x}").write_bytes(seed)
    end = time.process_time() + options.seconds

    def examine(data: bytes) -> None:
        examiner(data)
        if time.process_time() > end:
            os._exit(0)  # libFuzzer knows only of the time on the wall

    atheris.Setup(
        [
            sys.argv[0],
            f"-max_len={_MAX_BYTES}",
            f"-artifact_prefix={options.work}/crash-",
            "-timeout=1000000",
            f"-seed={options.seed}",
            "-rss_limit_mb=4096",
            "-verbosity=0",
            str(corpus),
        ],
        examine,
        custom_mutator=_mixed(mutator, atheris),
    )
    atheris.Fuzz()


def _mixed(mutator: Any, atheris: Any) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator for libFuzzer that is ours half of the time."""

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        mutator.rng.seed(seed)
        if seed & 1:
            return bytes(mutator.mutate(data)[:max_size])
        # found anew each time: it is another function once libFuzzer runs
        return bytes(atheris.Mutate(data, max_size))

    return mutate


def main() -> None:
    """Parse the command line; run until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("readers", nargs="+")
    parser.add_argument("--engine", choices=("atheris", "mutation"), required=True)
    parser.add_argument("--seconds", type=float, required=True, help="of each reader")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--gib", type=float, default=4, help="most memory of the process")
    options = parser.parse_args()
    tempfile.tempdir = str(options.work)
    # of the processor: a machine that does much else is slow, and no reader hangs for that
    most = int(options.seconds * len(options.readers)) + _MAX_HANGING
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    if options.engine == "mutation":
        mutate(options)
    else:
        guide(options)


if __name__ == "__main__":
    main()
