"""An index of many synthetic names: build, search, annotation, look-ups, a cold start, memory."""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import annotation_speed
import kb_build
from lexical_speed import WARM_UP, K, build_biosyn_store, synthetic_names
from timing import interleave

from biograft.linking import Linker, open_index

_SENTENCE = "Patients with {name} were treated for {other}, without any sign of {third}."
_WORKERS, _COLD_RUNS = 8, 5
_LINK = """
import json, sys
from biograft.linking import Linker

linker = Linker.open(sys.argv[1], sys.argv[2])
found = len(linker(sys.argv[3]).mentions)
print(found, flush=True)
sys.stdin.readline()  # until all workers have linked
fields = dict(line.split(":") for line in open("/proc/self/smaps_rollup").readlines()[1:])
private = sum(int(fields[f"Private_{kind}"].split()[0]) for kind in ("Clean", "Dirty"))
(peak,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps([private / 1024, int(peak) / 1024]), flush=True)
sys.stdin.read()  # until all are measured
"""
"""Links one sentence; then gives the memory, in MiB, that this process shares with no other, and
the most that it has had."""


def measure_size(options: dict[str, Any]) -> dict[str, Any]:
    """Build the index by `biograft index`, search it, and link a sentence in fresh processes."""
    with tempfile.TemporaryDirectory(dir=options["folder"]) as name:
        folder = Path(name)
        vocabulary = synthetic_names(folder, options)
        kb = build_biosyn_store(vocabulary.source, folder)
        paths = [str(folder / "kb"), str(folder / "index")]
        start = time.perf_counter()
        _run(["index", paths[0], "-o", paths[1], "--quiet"])
        build_seconds = time.perf_counter() - start
        build_peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        texts = dict(zip(("name", "other", "third"), vocabulary.origins, strict=False))
        sentence = _SENTENCE.format(**texts)
        linking = ["link", sentence, "--kb", paths[0], "--index", paths[1]]
        _run(linking)  # compiles the modules, and reads the index into the file cache
        cold = [_cold(linking) for _ in range(max(options["runs"], _COLD_RUNS))]
        search = open_index(kb, paths[1]).search.generators[0]
        search.search(vocabulary.mentions[:WARM_UP], K)
        linkers = [Linker.open(kb, paths[1], search="lexical") for _ in range(options["runs"])]
        linked = iter(linkers)  # each has a cache
        timed, whole = interleave(
            options["runs"],
            lambda: search.search(vocabulary.mentions, K),
            lambda: next(linked).link_mentions(vocabulary.mentions),
        )
        alone = _memory(1, *paths, sentence)
        lookups = kb_build.measure_lookups(folder / "kb")
        return {
            "n_names": kb.n_names,
            "n_mentions": len(vocabulary.mentions),
            "build_seconds": build_seconds,
            "build_peak_gib": build_peak,
            "index_bytes": sum(f.stat().st_size for f in (folder / "index").rglob("*.npy")),
            "mentions_per_second": len(vocabulary.mentions) / timed.seconds,
            "linked_mentions_per_second": len(vocabulary.mentions) / whole.seconds,
            "cold_start_seconds": statistics.median(each.seconds for each in cold),
            "cold_start_processor_seconds": statistics.median(each.processor for each in cold),
            "annotated_mb_per_second": annotation_speed.annotation_rate(
                kb, folder / "index", folder, options["runs"]
            ),
            "id_microseconds": lookups["id_us"],
            "name_microseconds": lookups["name_us"],
            "resident_mib": alone[1],
            "unique_mib": alone[0],
            "unique_mib_of_eight": _memory(_WORKERS, *paths, sentence)[0],
        }


def measure_annotation(options: dict[str, Any]) -> dict[str, Any]:
    """Annotate a megabyte of text with 73,000 names; times are of the processor."""
    settings = argparse.Namespace(runs=options["runs"], quickumls_python="")
    text = annotation_speed.make_text(None, 1_000_000)
    return annotation_speed.measure(min(options["names"], 73_000), text, settings)


def _run(arguments: list[str]) -> None:
    command = _command(arguments)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_environment())


def _command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "biograft", *arguments]


def _environment() -> dict[str, str]:
    """Return the environment of a user, whose Python keeps the modules that it has compiled."""
    unusual = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME")
    return {name: value for name, value in os.environ.items() if name not in unusual}


class _Cold(NamedTuple):
    """What a fresh process took."""

    seconds: float
    processor: float


def _cold(arguments: list[str]) -> _Cold:
    start = time.perf_counter()
    process = subprocess.Popen(_command(arguments), stdout=subprocess.DEVNULL, env=_environment())
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{arguments[0]}: failed with status {status}")
    return _Cold(seconds, usage.ru_utime + usage.ru_stime)


def _memory(n_workers: int, *arguments: str) -> tuple[float | None, float | None]:
    """Return the medians of unique and resident memory of workers that have linked the sentence."""
    if not Path("/proc/self/smaps_rollup").exists():
        return None, None
    command = [sys.executable, "-c", _LINK, *arguments]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(n_workers)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    sizes: list[tuple[float, float]] = []
    for worker in workers:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
        sizes.append(json.loads(worker.stdout.readline()))
    for worker in workers:
        worker.communicate()
    unique, resident = (statistics.median(each) for each in zip(*sizes, strict=True))
    return unique, resident
