"""Files left on disk when a system call fails, or the process is killed, at any step.

Each command runs again and again; the n-th call that changes the disk (write, rename, sync, mkdir,
open for writing, reservation of space, shared mapping) fails with "no space", "input/output error"
or "interrupted", or the process is killed there, for n = 1, 2, 3 ... until the command ends well,
or for steps spread evenly. After each:

- an error is one line, without a traceback, and the exit status says that it failed;
- whatever stands under the name of the result is complete (`biograft check`) and right;
- the same command, given again, ends well with the same bytes; a run is resumed;
- no working file is left over.

    python -m biograft_lab.scripts.fault_injection --quick --json      four steps of each command
    python -m biograft_lab.scripts.fault_injection --keep fault_injection.json

Needs Linux and a C compiler (`cc`), for the library that makes calls fail (faults.c).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from machine import keep_part
from script_options import some_of, start_parser
from small_artifacts import (
    ALIGNMENT,
    GENERATION,
    IMPORT,
    INDEX,
    MASKED_TEXT,
    NEIGHBOURS,
    OTHER_STORE,
    RANKER,
    SHARDS,
    STATIC_INDEX,
    STORE,
    TASK,
    VECTORS,
    find_damage,
    write_inputs,
)

from biograft_lab.scripts import facts

FAULTS = {
    "no space": errno.ENOSPC,
    "input/output error": errno.EIO,
    "interrupted": errno.EINTR,
    "killed": 0,
}
_LIBRARY = "BIOGRAFT_FAULTS_LIBRARY"
_TIMEOUT = 120
_MAX_STEPS = 5000
_QUICK = 4
_TIMES = re.compile(r"seconds|_per_second|memory|made_at|checksum|minutes|^path$")
"""Keys that differ from run to run."""


@dataclass(frozen=True)
class Operation:
    """A command, what comes before it, and what it makes."""

    command: str
    makes: str
    before: tuple[str, ...] = ()
    again: str = ""
    """The command after a failure, if it is not the same; its folder opens by a manifest, the last
    file that is written."""
    replaces: bool = False
    """Whether the result is there before, and stays as it was until the command ends well."""
    run: str = ""
    """The folder of a run, which is resumed if it was started."""
    trains: bool = False
    """Whether torch and a small encoder are needed."""
    forks: bool = True
    """Whether a forked process may use what this one has run: threads of polars it may not."""


_TEXT = (STORE, SHARDS)
OPERATIONS = {
    "kb build": Operation(STORE, "KB", forks=False),
    "kb build --overwrite": Operation(
        f"{OTHER_STORE} --overwrite", "KB", (STORE,), replaces=True, forks=False
    ),
    "index": Operation(STATIC_INDEX, "I", (STORE,)),
    "index --overwrite": Operation(
        f"{STATIC_INDEX} --overwrite", "I", (STORE, INDEX), replaces=True
    ),
    "index --update": Operation(
        "index KB -o I --update",
        "I",
        (STORE, STATIC_INDEX, f"{OTHER_STORE} --overwrite"),
        replaces=True,
    ),
    "learn": Operation(
        "learn labs.sssom.tsv --kb KB --index I", "I", (STORE, INDEX), replaces=True, forks=False
    ),
    "corpus annotate": Operation(SHARDS, "A", (STORE,), f"{SHARDS} --resume"),
    "link": Operation("link notes.txt --kb KB -o L.csv", "L.csv", (STORE,)),
    "map": Operation("map local.csv --column term --kb KB -o M.csv", "M.csv", (STORE,)),
    "kb export": Operation("kb export KB -o E.tsv --format biosyn", "E.tsv", (STORE,)),
    "graph embed": Operation(VECTORS, "V", (STORE,)),
    "graph neighbours": Operation(NEIGHBOURS, "N", (STORE,)),
    "review import": Operation(IMPORT, "R.db"),
    "review approve": Operation(
        "review approve --min-score 0.7 --yes --reviewer ann --review R.db",
        "R.db",
        (IMPORT,),
        replaces=True,
    ),
    "finetune linker-ranker": Operation(RANKER, "F/model", (STORE,), run="F", trains=True),
    "finetune genbioel": Operation(GENERATION, "F/model", (STORE,), run="F", trains=True),
    "finetune ner": Operation(TASK, "F/model", run="F", trains=True),
    "pretrain sapbert": Operation(ALIGNMENT, "P/encoder", (STORE,), run="P", trains=True),
    "pretrain mlm": Operation(MASKED_TEXT, "P/encoder", _TEXT, run="P", trains=True),
}


@dataclass
class Outcome:
    """Result of one command."""

    steps: int = 0
    """Calls that change the disk, of an undisturbed run."""
    trials: int = 0
    refused: int = 0
    """Trials that ended with an error of one line."""
    killed: int = 0
    without_effect: int = 0
    """Trials that ended well all the same, such as when what is compiled cannot be kept."""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Ended:
    code: int
    steps: int
    failed_call: str
    error: str


class Laboratory:
    """A folder in which commands run with faults, each in a forked process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._faults = ctypes.CDLL(os.environ[_LIBRARY])
        self._faults.faults_count.restype = ctypes.c_long
        self._faults.faults_name.restype = ctypes.c_char_p
        self._faults.faults_arm.argtypes = (ctypes.c_long, ctypes.c_int)

    def run(self, folder: Path, command: str, n: int = 0, error: int = 0) -> _Ended:
        """Run a command of biograft in a folder; the n-th call fails (0: none)."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        errors = self.folder / "errors.txt"
        child = os.fork()
        if child == 0:
            self._run_child(folder, command, (n, error), (report, errors))
        code = _wait(child)
        found = json.loads(report.read_text()) if report.exists() else {}
        text = errors.read_text(encoding="utf-8", errors="replace") if errors.exists() else ""
        return _Ended(code, found.get("steps", 0), found.get("name", ""), text)

    def warm(self, start: Path, command: str) -> None:
        """Run a command in this process, so that the forked ones share what it loads."""
        folder = self.folder / "warm"
        shutil.copytree(start, folder)
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            _call_biograft(command)
        shutil.rmtree(folder)

    def _run_child(
        self, folder: Path, command: str, fault: tuple[int, int], out: tuple[Path, Path]
    ) -> NoReturn:
        os.chdir(folder)
        errors = os.open(out[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        code = 0
        self._faults.faults_arm(*fault)
        try:
            code = _call_biograft(command)
        except BaseException as error:  # what would be a traceback
            code = 99
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        steps, name = self._faults.faults_count(), self._faults.faults_name().decode()
        self._faults.faults_arm(0, 0)
        out[0].write_text(json.dumps({"steps": steps, "name": name}))
        os._exit(code)


def _call_biograft(command: str) -> int:
    """Run a command of biograft in this process; return its exit status."""
    from biograft import cli

    sys.argv = ["biograft", *command.split()]
    try:
        cli.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    return 0


def _wait(child: int) -> int:
    """Wait for a process; kill it if it hangs."""
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 1000


def examine(laboratory: Laboratory, name: str, max_steps: int, faults: dict[str, int]) -> Outcome:
    """Try one command with all faults at all steps, or at some that are spread evenly."""
    operation, outcome = OPERATIONS[name], Outcome()
    start = laboratory.folder / "start"
    write_inputs(start, encoder=operation.trains)
    for command in operation.before:
        ended = laboratory.run(start, command)
        if ended.code:
            raise SystemExit(f"error: {command}: {ended.error}")
    former = read_result(start / operation.makes)
    if operation.forks and not operation.trains:
        laboratory.warm(start, operation.command)
    ended, right = _run_undisturbed(laboratory, start, operation)
    outcome.steps = ended.steps
    for fault, error in faults.items():
        for n in _spread(ended.steps, max_steps):
            trial = laboratory.folder / "trial"
            shutil.copytree(start, trial)
            try:
                problem = _try(laboratory, trial, operation, (n, error), (former, right), outcome)
            finally:
                shutil.rmtree(trial)
            if problem:
                outcome.problems.append(f"{fault} at step {n}: {problem}")
    shutil.rmtree(start)
    return outcome


def _run_undisturbed(
    laboratory: Laboratory, start: Path, operation: Operation
) -> tuple[_Ended, dict[str, Any]]:
    folder, results = laboratory.folder / "trial", []
    for _ in range(2):  # the second time, what is compiled has been kept
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(start, folder)
        ended = laboratory.run(folder, operation.command)
        if ended.code:
            raise SystemExit(f"error: {operation.command}: {ended.error}")
        results.append(read_result(folder / operation.makes))
    shutil.rmtree(folder)
    if results[0] != results[1]:
        raise SystemExit(f"error: {operation.command}: two runs differ")
    return ended, results[0]


def _spread(n: int, at_most: int) -> list[int]:
    """Return steps from 1 to n, at most as many as given, and evenly spread."""
    n = min(n, _MAX_STEPS)
    count = min(n, at_most)
    return [1 + i * (n - 1) // max(count - 1, 1) for i in range(count)]


def _try(
    laboratory: Laboratory,
    trial: Path,
    operation: Operation,
    fault: tuple[int, int],
    results: tuple[dict[str, Any], dict[str, Any]],
    outcome: Outcome,
) -> str:
    """Run a command with a fault, then without; say what is wrong, if anything."""
    former, right = results
    ended = laboratory.run(trial, operation.command, *fault)
    outcome.trials += 1
    if problem := _judge_end(ended, killed=fault[1] == 0, outcome=outcome):
        return problem
    made = read_result(trial / operation.makes)
    if operation.again and "manifest.json" not in made:
        made = {}
    allowed = (right,) if ended.code == 0 else (former, right)
    if made not in allowed:
        return f"{operation.makes} is neither as before nor complete ({ended.failed_call})"
    run = trial / operation.run if operation.run else None
    if run and run.exists() and (damage := find_damage(run)):
        return f"the run cannot be resumed ({ended.failed_call}): {damage[0]}"
    if not made or operation.replaces or (operation.run and ended.code):
        ended = laboratory.run(trial, _next_command(operation, trial, made))
        if ended.code:
            return f"given again: exit status {ended.code}: {ended.error.strip()[-200:]}"
        if (again := read_result(trial / operation.makes)) != right:
            changed = [name for name in right if again.get(name) != right[name]]
            return f"given again: another result: {', '.join(changed)}"
    left = [str(path.relative_to(trial)) for path in trial.rglob(".*")]
    left += [path.name for path in trial.glob("*.db?*")]  # of SQLite
    return f"left over: {', '.join(left)}" if left else ""


def _next_command(operation: Operation, trial: Path, made: dict[str, Any]) -> str:
    """Return the command that the message, or the manual, says is next."""
    if operation.run and (trial / operation.run / "run.json").exists():
        return f"{operation.command} --resume"
    return operation.again if operation.again and not made else operation.command


def _judge_end(ended: _Ended, *, killed: bool, outcome: Outcome) -> str:
    if ended.code == 1000:
        return "does not end"
    if killed and ended.code == -signal.SIGKILL:
        outcome.killed += 1
        return ""
    if ended.code == 0:
        outcome.without_effect += 1
        return ""
    said = [line for line in ended.error.splitlines() if line.startswith("biograft:")]
    lines = [line for line in said if not line.startswith("biograft: warning:")]
    if ended.code not in (1, 2) or len(lines) != 1 or "Traceback" in ended.error:
        text = " / ".join(ended.error.strip().splitlines()[-3:])
        return f"{ended.failed_call}: exit status {ended.code}: {text[-300:]}"
    outcome.refused += 1
    return ""


def read_result(path: Path) -> dict[str, Any]:
    """Return the hashes of what a command made; empty if there is nothing.

    Of JSON and of a review the times are left out; damage that `biograft check` would find is in
    the result. Working files, which the next command removes, are none of it.
    """
    from biograft.artifacts import hash_file

    if not path.exists():
        return {}
    if path.suffix == ".db":
        return read_review(path)
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    found: dict[str, Any] = {}
    for file in sorted(files):
        name = file.name if file == path else file.relative_to(path).as_posix()
        if any(part.startswith(".") for part in name.split("/")):
            continue
        found[name] = _read_json(file) if file.suffix == ".json" else hash_file(file)
    return {**found, "problems": find_damage(path)}


def _read_json(file: Path) -> Any:
    """Return the content without times and what depends on them, such as hashes of manifests."""
    try:
        return _without_times(json.loads(file.read_bytes()))
    except ValueError:
        return "damaged"


def _without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_times(each)
        for key, each in value.items()
        if not _TIMES.search(key) and not str(key).endswith(".json")
    }


def read_review(path: Path) -> dict[str, Any]:
    """Return the terms and events of a review database without times; empty if there are none."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        problems = [row[0] for row in database.execute("PRAGMA integrity_check")]
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
        rows = {
            "terms": "SELECT text, status, action, concept, version FROM review_terms",
            "events": "SELECT term, reviewer, action, before, after FROM review_events",
        }
        found = {
            name: database.execute(query).fetchall() if f"review_{name}" in tables else []
            for name, query in rows.items()
        }
    return {**found, "problems": problems} if found["terms"] or problems != ["ok"] else {}


def compile_library(folder: Path) -> Path:
    """Compile the library that makes calls fail."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {source.name} cannot be compiled: {done.stderr.strip()}")
    return library


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Try the chosen commands; return the counts."""
    import biograft.cli.index
    import biograft.cli.kb
    import biograft.cli.link
    import biograft.cli.map
    import biograft.cli.review

    if any(OPERATIONS[name].trains for name in options.operations):
        import biograft.cli.finetune
        import biograft.cli.pretrain
        import biograft.models  # noqa: F401

    about = {"faults": list(options.faults), **facts()}
    outcomes = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        laboratory = Laboratory(Path(folder).resolve())
        for name in options.operations:
            start = time.monotonic()
            outcome = examine(laboratory, name, options.max_steps, options.faults)
            outcomes[name] = asdict(outcome)
            keep_part(options.keep, "operations", {**about, "operations": {name: outcomes[name]}})
            if not options.json:
                seconds = f"{time.monotonic() - start:.0f} s"
                print(name, json.dumps(outcomes[name]), seconds, flush=True)
    return {**about, "operations": outcomes}


def main() -> None:
    """Parse the command line; run with the library preloaded."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} steps of each command")
    parser.add_argument("--max-steps", type=int, default=_MAX_STEPS, help="tried of each command")
    parser.add_argument("--operations", type=some_of(OPERATIONS), help="some of the commands")
    parser.add_argument("--faults", type=some_of(FAULTS), help="some of the faults")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--folder", help="where to work")
    parser.add_argument("--keep", type=Path, help="put the result of each command into this file")
    options = parser.parse_args()
    if _LIBRARY not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = str(compile_library(Path(folder)))
            environment = {**os.environ, "LD_PRELOAD": library, _LIBRARY: library}
            environment["POLARS_MAX_THREADS"] = environment["OMP_NUM_THREADS"] = "1"
            command = [sys.executable, "-m", "biograft_lab.scripts.fault_injection", *sys.argv[1:]]
            raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    options.max_steps = _QUICK if options.quick else options.max_steps
    options.operations = options.operations or list(OPERATIONS)
    options.faults = {name: FAULTS[name] for name in options.faults or FAULTS}
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
