"""Fuzzing of readers: damaged and hostile input must give records, or an error of one line.

Every reader of sources, documents, tasks, gold standards, tables, decisions, rules, recipes,
requests and artefacts gets small valid inputs that are mutated, guided by the coverage of our code
where atheris is installed (``pip install atheris``), else by chance. A finding is an exception that
is none of ours, a message of several lines or of over 2,000 characters, a record that cannot be
written or whose offsets do not fit its text, more than 5 seconds, more than 4 GiB, or a crash.

    python -m biograft_lab.scripts.fuzz_readers --quick --json
    python -m biograft_lab.scripts.fuzz_readers --seconds 25 --add fuzz.json

Counts add up in the file that ``--add`` names. What is found is kept, made small, as
``lab/tests/fuzz/READER/FINDING``, which ``lab/tests/test_readers_fuzz.py`` replays: it fails
until the reader is fixed. ``--corpus`` keeps the inputs that reach new code for the next run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import some_of, start_parser

from biograft.compute import describe_machine
from biograft_lab.places import REPOSITORY
from biograft_lab.scripts.fuzz_one_reader import COUNTS, CURRENT, FOUND, load_targets

_FOUND = REPOSITORY / "lab" / "tests" / "fuzz"
_WORKER = "biograft_lab.scripts.fuzz_one_reader"
_QUICK_SECONDS = 0.3
_BATCH = 8
"""Readers of a process; its counts are added when it ends."""
Results = dict[str, dict[str, Any]]


def fuzz(options: argparse.Namespace) -> Results:
    """Fuzz the readers; return inputs, processor seconds and findings of each."""
    results: Results = {}
    batches = [[name] for name in options.readers]
    if options.engine == "mutation":
        size = _BATCH if options.add else len(options.readers)
        batches = [options.readers[k : k + size] for k in range(0, len(options.readers), size)]
    for batch in batches:
        waiting = list(batch)
        while waiting:
            done = _run(waiting, options)
            results |= done
            waiting = [name for name in waiting if name not in done]
            for name, result in done.items():
                if not options.json:
                    print(name, json.dumps(result), flush=True)
            if options.add:
                _write(options.add, _added(options, done))
    return results


def _run(names: list[str], options: argparse.Namespace) -> Results:
    """Run one process; return the results of the readers that it got to."""
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        work, log = Path(place), Path(place, "log")
        command = [sys.executable, "-m", _WORKER, *names, "--engine", options.engine]
        command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
        command += ["--work", place, "--corpus", str(options.corpus or work / "corpus")]
        start = _used()
        with log.open("wb") as file:
            code = subprocess.run(
                command, stdout=file, stderr=subprocess.STDOUT, check=False
            ).returncode
        counts = work / COUNTS
        reached = [name for name in names if (counts / name).exists()]
        if not reached:
            raise SystemExit(f"error: {' '.join(names)}: {log.read_text(errors='replace')[-2000:]}")
        if code:
            _keep_crash(work, (work / "reader").read_text(), log)
        seconds = round((_used() - start) / len(reached), 1)
        return {name: _result(work, name, seconds, options) for name in reached}


def _used() -> float:
    """Return the processor seconds of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _result(work: Path, name: str, seconds: float, options: argparse.Namespace) -> dict[str, Any]:
    """Collect the results of a reader, and keep its findings."""
    inputs = int.from_bytes((work / COUNTS / name).read_bytes(), "little")
    found = sorted((work / FOUND / name).glob("*"))
    kept = [path for path in found if path.suffix != ".json"]
    for path in kept:
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        print(f"{name}: {about['kind']} {about['place']}: {about['text'][:200]}", file=sys.stderr)
        target = options.found / name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return {"inputs": inputs, "seconds": seconds, "findings": len(kept)}


def _keep_crash(work: Path, name: str, log: Path) -> None:
    """Keep the input that ended the process."""
    folder = work / FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(work / CURRENT, folder / "crash")
    text = " ".join(log.read_text(errors="replace").split())[-200:]
    about = {"kind": "crash", "place": "", "text": text}
    (folder / "crash.json").write_text(json.dumps(about), encoding="utf-8")


def _added(options: argparse.Namespace, results: Results) -> dict[str, Any]:
    """Add results to those of the file."""
    content: dict[str, Any] = {}
    if options.add and options.add.exists():
        content = json.loads(options.add.read_text(encoding="utf-8"))
    readers: Results = content.get("readers", {})
    for name, result in results.items():
        before = readers.get(name, {})
        readers[name] = {key: round(before.get(key, 0) + result[key], 1) for key in result}
    inputs = content.get("inputs_by_engine", {})
    added = sum(result["inputs"] for result in results.values())
    inputs[options.engine] = inputs.get(options.engine, 0) + added
    return {
        "readers": dict(sorted(readers.items())),
        "inputs": sum(result["inputs"] for result in readers.values()),
        "inputs_by_engine": inputs,
        "findings": sum(result["findings"] for result in readers.values()),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.fuzz_readers", sys.argv[1:]),
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line; print the result."""
    names = list(load_targets()[0].readers())
    has_atheris = importlib.util.find_spec("atheris") is not None
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of a second each, by chance")
    parser.add_argument("--seconds", type=float, default=25, help="of the processor, for each")
    parser.add_argument("--readers", type=some_of(names), default=names, help="some of them")
    parser.add_argument("--engine", choices=("atheris", "mutation"), help="default: what there is")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31, help="default: any")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--add", type=Path, help="the file of results that counts are added to")
    parser.add_argument("--corpus", type=Path, help="folder of inputs, kept for the next run")
    parser.add_argument("--found", type=Path, default=_FOUND, help="where findings are kept")
    parser.add_argument("--folder", help="where to work")
    options = parser.parse_args()
    options.engine = options.engine or ("atheris" if has_atheris else "mutation")
    if options.quick:
        options.engine, options.seconds = "mutation", _QUICK_SECONDS
    results = fuzz(options)
    options.add = None
    print(json.dumps(_added(options, results)))


if __name__ == "__main__":
    main()
