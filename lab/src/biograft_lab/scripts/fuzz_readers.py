"""Fuzzing of readers: damaged and hostile input must give records, or an error of one line.

Every reader of sources, documents, tasks, gold standards, tables, decisions, rules, recipes,
requests and artefacts gets small valid inputs that are mutated by chance, in a process of its own.
A finding is an exception that is none of ours, a message of several lines or of over 2,000
characters, a record that cannot be written or whose offsets do not fit its text, more than 5
seconds, more than 4 GiB, or a crash.

    python -m biograft_lab.scripts.fuzz_readers --quick --json
    python -m biograft_lab.scripts.fuzz_readers --seconds 25 --add fuzz.json

Counts add up in the file that ``--add`` names. What is found is kept, made small, as
``lab/tests/fuzz/READER/FINDING``, which ``lab/tests/test_readers_fuzz.py`` replays: it fails
until the reader is fixed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random
from typing import Any

from script_options import some_of, start_parser

from biograft_lab.places import REPOSITORY
from biograft_lab.scripts import facts

_MAX_HANGING = 120
"""Seconds of the processor beside those of the fuzzing; a reader that takes them hangs."""
_MAX_SHRINKING = 400
"""Inputs that are tried to make a finding smaller."""
_SECONDS, _QUICK_SECONDS = 25.0, 0.3
Key = tuple[str, str]


def load_targets() -> tuple[Any, Any]:
    """Import the readers, which the tests own."""
    warnings.simplefilter("ignore")  # of what is read, for a person who calls a reader
    targets = importlib.import_module("reader_targets")
    return targets, importlib.import_module("artefact_targets")


def fuzz_reader(name: str, options: argparse.Namespace, work: Path, count: Any) -> None:
    """Give inputs to a reader until its time is over; keep the smallest of each kind of finding.

    Args:
        name: The reader.
        options: Seconds, seed, and where findings are kept.
        work: Folder of this process; it holds the current input.
        count: Number of inputs, which the parent reads after a crash, too.
    """
    targets, artefacts = load_targets()
    targets.prepare(4)
    # of the processor: a machine that does much else is slow, and no reader hangs for that
    most = int(options.seconds) + _MAX_HANGING
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    tempfile.tempdir = str(work)
    reader, found = targets.readers()[name], dict[Key, bytes]()
    seeds = artefacts.seeds_of(reader, work)

    def examine(data: bytes) -> Any:
        return targets.examine(reader, work, data)

    for seed in seeds:  # uncounted: what is imported on first use would be called slow
        examine(seed)
    mutation = importlib.import_module("mutation")
    sample = mutation.Mutator(seeds, Random(f"{name} {options.seed}")).sample
    end = time.process_time() + options.seconds
    while time.process_time() < end:
        data = sample()
        count.value += 1
        (work / "current").write_bytes(data)
        if (finding := examine(data)) is not None:
            key = (finding.kind, finding.place)
            if key not in found or len(data) < len(found[key]):
                found[key] = _shrunk(key, data, examine)
                print(f"{name}: {' '.join(key)}: {finding.text[:200]}", file=sys.stderr)
                _keep(options, name, "-".join(key), found[key])


def _shrunk(key: Key, data: bytes, examine: Any) -> bytes:
    """Remove parts of an input as long as what is found stays the same."""
    size, left = len(data) // 2, _MAX_SHRINKING
    while size and key[0] != "slow":
        start = 0
        while start < len(data) and left:
            left -= 1
            shorter = data[:start] + data[start + size :]
            finding = examine(shorter)
            if finding is not None and (finding.kind, finding.place) == key:
                data = shorter
            else:
                start += size
        size //= 2
    return data


def _keep(options: argparse.Namespace, name: str, what: str, data: bytes) -> None:
    file = options.found / name / re.sub(r"[^\w]+", "-", what).strip("-").lower()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def fuzz(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fuzz a reader in a process of its own; return inputs, processor seconds and findings.

    Args:
        name: The reader.
        options: Seconds, seed, folders.
    """
    context = multiprocessing.get_context("spawn")
    before = set((options.found / name).glob("*"))
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        count, work = context.Value("Q"), Path(place)
        process = context.Process(target=fuzz_reader, args=(name, options, work, count))
        process.start()
        process.join()
        if process.exitcode:
            if not (work / "current").exists():
                raise SystemExit(f"error: {name} cannot be fuzzed")
            _keep(options, name, "crash", (work / "current").read_bytes())
        n_found = len(set((options.found / name).glob("*")) - before)
        return {"inputs": count.value, "seconds": options.seconds, "findings": n_found}


def add(content: dict[str, Any], name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file of results with those of a reader added.

    Args:
        content: The content so far.
        name: The reader.
        result: Its counts.
    """
    readers = content.get("readers", {})
    before = readers.get(name, {})
    readers[name] = {key: round(before.get(key, 0) + result[key], 1) for key in result}
    return {
        "readers": dict(sorted(readers.items())),
        "inputs": sum(each["inputs"] for each in readers.values()),
        "findings": sum(each["findings"] for each in readers.values()),
        **facts(),
    }


def main() -> None:
    """Fuzz the chosen readers; print the result."""
    names = list(load_targets()[0].readers())
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of a second each")
    parser.add_argument("--seconds", type=float, help=f"of each reader; default: {_SECONDS:g}")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31, help="default: any")
    parser.add_argument("--readers", type=some_of(names), default=names, help="some of the readers")
    parser.add_argument("--add", type=Path, help="file to which the counts are added")
    parser.add_argument("--found", type=Path, default=REPOSITORY / "lab" / "tests" / "fuzz")
    parser.add_argument("--folder", type=Path, help="where to work")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    options = parser.parse_args()
    options.seconds = options.seconds or (_QUICK_SECONDS if options.quick else _SECONDS)
    whole: dict[str, Any] = {}
    for name in options.readers:
        result = fuzz(name, options)
        whole = add(whole, name, result)
        if not options.json:
            print(name, json.dumps(result), flush=True)
        if options.add:
            known = json.loads(options.add.read_text("utf-8")) if options.add.exists() else {}
            content = json.dumps(add(known, name, result), ensure_ascii=False, indent=1)
            options.add.write_text(f"{content}\n", encoding="utf-8")
    print(json.dumps(whole))


if __name__ == "__main__":
    main()
