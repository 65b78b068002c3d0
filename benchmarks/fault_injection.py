"""What is left on disk when a call to the system fails, or the process is killed, at any step.

Each command runs again and again; the n-th call that changes the disk (write, rename, sync, mkdir,
open for writing, reservation of space, shared mapping) fails with "no space" or "input/output
error", or the process is killed there, for n = 1, 2, 3 ... until the command ends well. After each:

- an error is one line, without a traceback, and the exit status says that it failed;
- whatever stands under the name of the result is complete (`biograft check`) and right;
- the same command, given again, ends well with the same bytes;
- no working file is left over.

    python benchmarks/fault_injection.py --quick --json      every 7th step
    python benchmarks/fault_injection.py --json >benchmarks/results/fault_injection.json

Needs Linux and a C compiler (`cc`), for the library that makes calls fail (faults.c).
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from command_line import some_of, start_parser
from machine import describe_command

from biograft.replication.results import describe_commit, describe_machine

FAULTS = {"no space": errno.ENOSPC, "input/output error": errno.EIO, "killed": 0}
_LIBRARY = "BIOGRAFT_FAULTS_LIBRARY"
_TIMEOUT = 120
_MAX_STEPS = 5000
_FILES = {
    "terms.csv": "id,name,parent\n1,heart disease,\n2,heart attack,1\n2,infarction,1\n3,stroke,1\n",
    "more.csv": "id,name,parent\n1,heart disease,\n2,heart attack,1\n4,fever,1\n3,stroke,1\n",
    "local.csv": "term\nhart attack\nstroke\nflu\n",
    "notes/a.txt": "A heart attack, no stroke.\n",
    "notes/b.txt": "Heart disease.\n",
    "notes.txt": "A heart attack, no stroke.\n",
}


@dataclass(frozen=True)
class Operation:
    """A command, what comes before it, and what it makes."""

    command: str
    makes: str
    before: tuple[str, ...] = ()
    again: str = ""
    """The command after a failure, if it is not the same."""
    replaces: bool = False
    """Whether the result is there before, and stays as it was until the command ends well."""


_STORE = "kb build terms.csv -o KB"
_INDEX = "index KB -o I --encoder static-english"
OPERATIONS = {
    "kb build": Operation(_STORE, "KB"),
    "kb build, in place of another": Operation(
        "kb build more.csv -o KB --overwrite", "KB", (_STORE,), replaces=True
    ),
    "index": Operation(_INDEX, "I", (_STORE,)),
    "index, in place of another": Operation(
        f"{_INDEX} --overwrite", "I", (_STORE, "index KB -o I --encoder none"), replaces=True
    ),
    "corpus annotate": Operation(
        "corpus annotate KB notes -o A", "A", (_STORE,), "corpus annotate KB notes -o A --resume"
    ),
    "link": Operation("link notes.txt --kb KB -o L.csv", "L.csv", (_STORE,)),
    "map": Operation("map local.csv --column term --kb KB -o M.csv", "M.csv", (_STORE,)),
    "kb export": Operation("kb export KB -o E.tsv --format biosyn", "E.tsv", (_STORE,)),
}


@dataclass
class Outcome:
    """What came of one command."""

    steps: int = 0
    """Calls that change the disk, of an undisturbed run."""
    trials: int = 0
    refused: int = 0
    """Trials that ended with an error of one line."""
    killed: int = 0
    without_effect: int = 0
    """Trials that ended well all the same, such as when what is compiled cannot be kept."""
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the counts and problems as plain values."""
        return dict(vars(self))


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

    def start(self, place: str) -> Path:
        """Make a folder with the input files."""
        folder = self.folder / place
        for name, content in _FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return folder

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

    def _run_child(
        self, folder: Path, command: str, fault: tuple[int, int], out: tuple[Path, Path]
    ) -> NoReturn:
        from biograft import cli

        os.chdir(folder)
        errors = os.open(out[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
        sys.argv = ["biograft", *command.split()]
        code = 0
        self._faults.faults_arm(*fault)
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException as error:  # what would be a traceback
            code = 99
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        steps, name = self._faults.faults_count(), self._faults.faults_name().decode()
        self._faults.faults_arm(0, 0)
        out[0].write_text(json.dumps({"steps": steps, "name": name}))
        os._exit(code)


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


def examine(laboratory: Laboratory, name: str, every: int, faults: dict[str, int]) -> Outcome:
    """Try one command with all faults at all steps, or every few."""
    operation, outcome = OPERATIONS[name], Outcome()
    start = laboratory.start("start")
    for command in operation.before:
        ended = laboratory.run(start, command)
        if ended.code:
            raise SystemExit(f"error: {command}: {ended.error}")
    former = read_result(start / operation.makes)
    ended, right = _run_undisturbed(laboratory, start, operation)
    outcome.steps = ended.steps
    for fault, error in faults.items():
        for n in _steps(ended.steps, every):
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
    folder = laboratory.folder / "trial"
    for _ in range(2):  # the second time, what is compiled has been kept
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(start, folder)
        ended = laboratory.run(folder, operation.command)
        if ended.code:
            raise SystemExit(f"error: {operation.command}: {ended.error}")
    right = read_result(folder / operation.makes)
    shutil.rmtree(folder)
    return ended, right


def _steps(n: int, every: int) -> Iterator[int]:
    yield from range(1, min(n, _MAX_STEPS) + 1, every)


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
    allowed = (right,) if ended.code == 0 else (former, right)
    if made not in allowed:
        return f"{operation.makes} is neither as before nor complete ({ended.failed_call})"
    if not made or operation.replaces:
        command = operation.again if operation.again and not made else operation.command
        ended = laboratory.run(trial, command)
        if ended.code:
            return f"given again: exit status {ended.code}: {ended.error.strip()[-200:]}"
        if read_result(trial / operation.makes) != right:
            return "given again: another result"
    left = [str(path.relative_to(trial)) for path in trial.rglob(".*")]
    return f"left over: {', '.join(left)}" if left else ""


def _judge_end(ended: _Ended, *, killed: bool, outcome: Outcome) -> str:
    if ended.code == 1000:
        return "does not end"
    if killed and ended.code == -signal.SIGKILL:
        outcome.killed += 1
        return ""
    if ended.code == 0:
        outcome.without_effect += 1
        return ""
    lines = [line for line in ended.error.splitlines() if line.startswith("biograft:")]
    if ended.code not in (1, 2) or len(lines) != 1 or "Traceback" in ended.error:
        text = " / ".join(ended.error.strip().splitlines()[-3:])
        return f"{ended.failed_call}: exit status {ended.code}: {text[-300:]}"
    outcome.refused += 1
    return ""


def read_result(path: Path) -> dict[str, Any]:
    """Return the hashes of what a command made; empty if there is nothing.

    Of a manifest the time is left out; damage that `biograft check` would find is in the result.
    """
    from biograft.artifacts import CHECKSUM, check_artifacts, hash_file, peek

    if not path.exists():
        return {}
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    found: dict[str, Any] = {}
    for file in sorted(files):
        name = file.name if file == path else file.relative_to(path).as_posix()
        manifest = peek(file) if file.suffix == ".json" else {}
        timeless = {
            key: manifest[key] for key in manifest.keys() - {"made_at", "seconds", CHECKSUM}
        }
        found[name] = timeless or hash_file(file)
    problems = [problem for each in check_artifacts(path) for problem in each.problems]
    return {**found, "problems": problems}


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
    import biograft.cli.map  # noqa: F401  what the forked processes share

    outcomes = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        laboratory = Laboratory(Path(folder).resolve())
        for name in options.operations:
            start = time.monotonic()
            outcome = examine(laboratory, name, options.every, options.faults)
            outcomes[name] = outcome.to_json()
            if not options.json:
                print(name, json.dumps(outcomes[name]), f"{time.monotonic() - start:.0f} s")
    return {
        "trials": sum(each["trials"] for each in outcomes.values()),
        "problems": sum(len(each["problems"]) for each in outcomes.values()),
        "operations": outcomes,
        "faults": list(options.faults),
        "every": options.every,
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("fault_injection.py", sys.argv[1:]),
    }


def main() -> None:
    """Parse the command line; run with the library preloaded."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="every 7th step only")
    parser.add_argument("--every", type=int, default=1, help="only every so many steps")
    parser.add_argument("--operations", type=some_of(OPERATIONS), help="some of the commands")
    parser.add_argument("--faults", type=some_of(FAULTS), help="some of the faults")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--folder", help="where to work")
    options = parser.parse_args()
    if _LIBRARY not in os.environ:
        with tempfile.TemporaryDirectory() as folder:
            library = str(compile_library(Path(folder)))
            environment = {**os.environ, "LD_PRELOAD": library, _LIBRARY: library}
            environment["POLARS_MAX_THREADS"] = environment["OMP_NUM_THREADS"] = "1"
            command = [sys.executable, __file__, *sys.argv[1:]]
            raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)
    options.every = 7 if options.quick else options.every
    options.operations = options.operations or list(OPERATIONS)
    options.faults = {name: FAULTS[name] for name in options.faults or FAULTS}
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
