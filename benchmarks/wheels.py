"""Whether the built wheel and source distribution work on every Python, and how large they are.

Builds the source distribution, and the wheel from it; installs the wheel into an empty environment
for each Python and each set of extras, with the newest versions and with the lowest that
pyproject.toml allows, and measures the size of every package (without compiled bytecode) and the
time of ``import biograft``. There a text is linked, ids are verified and a column is mapped; with
the extra ``build`` the store is built there, too, and the core uses the store of the first
environment that has it. A Python that is not installed is named. Needs ``uv`` and a registry of
packages.

    make wheels
    python benchmarks/wheels.py --python 3.12 --extras '' --extras build --no-lowest
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machine import describe_commit
from script_options import run_with, start_parser

from biograft.errors import InputError

ROOT = Path(__file__).parents[1]
RESULT = Path(__file__).parent / "results" / "wheels.json"
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = ("build", "build,serve,tables,zh", "")
LOWEST = "build,serve,tables,zh"
"""Extras that are also installed in their lowest versions, on the oldest Python."""
TEXT = "No heart attack."
EXPECTED = "D009203"
N_IMPORTS = 7
_SIZES = """
import json
from importlib import metadata
sizes = {}
for package in metadata.distributions():
    files = [package.locate_file(file) for file in package.files or ()]
    sizes[package.metadata["Name"]] = sum(f.stat().st_size for f in files if f.is_file())
print(json.dumps(sizes))
"""
_IMPORT = "import time; a = time.process_time(); import biograft; print(time.process_time() - a)"


def run(command: Sequence[str | Path]) -> str:
    """Run a command and return what it prints; its last line of errors is the error."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise InputError(f"fails ({last})", path=" ".join(map(str, command[:4])))
    return done.stdout


def find_uv() -> str:
    """Return the program uv, of this environment or of the system."""
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if not found:
        raise InputError("is not installed", path="uv", remedy="run: pip install uv")
    return found


def find_python(version: str) -> str | None:
    """Return the program of a version of Python, of pyenv or as uv finds it, or None."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted(root.glob(f"versions/{version}.*/bin/python"))
    if of_pyenv:
        return str(of_pyenv[-1])
    command = [find_uv(), "python", "find", "--no-project", "--no-python-downloads", version]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def measure(
    wheel: Path, python: str, extras: str, work: Path, *, lowest: bool = False
) -> dict[str, Any]:
    """Install the wheel with some extras into an empty environment, and use it."""
    environment = Path(tempfile.mkdtemp(dir=work)) / "environment"
    uv = find_uv()
    run([uv, "venv", "--python", python, environment])
    own = environment / "bin" / "python"
    versions = ["--resolution", "lowest-direct"] if lowest else []
    wanted = f"{wheel}[{extras}]" if extras else wheel
    run([uv, "pip", "install", "--python", own, *versions, wanted])
    sizes = json.loads(run([own, "-c", _SIZES]))
    seconds = [float(run([own, "-c", _IMPORT])) for _ in range(N_IMPORTS)]
    program, store = environment / "bin" / "biograft", work / "KB"
    if "build" in extras.split(","):
        own_store = environment / "KB"
        run([program, "kb", "build", "starter", "-o", own_store])
        store = store if store.exists() else own_store.rename(store)
    if not store.exists():
        raise InputError("nothing builds a store", path="--extras", remedy="give build first")
    megabytes = {name: round(size / 1e6, 1) for name, size in sizes.items()}
    return {
        "python": run([own, "--version"]).split()[1],
        "extras": extras,
        "versions": "lowest" if lowest else "newest",
        **use(program, store, environment),
        "total_mb": round(sum(sizes.values()) / 1e6),
        "import_ms": round(statistics.median(seconds) * 1e3, 1),
        "packages_mb": dict(sorted(megabytes.items(), key=lambda entry: -entry[1])),
    }


def use(program: Path, store: Path, folder: Path) -> dict[str, bool]:
    """Say of each thing that is tried whether it gives what it should."""
    table, mapped = folder / "terms.csv", folder / "mapped.csv"
    table.write_text(f"id,label\n{EXPECTED},heart attack\n{EXPECTED},Asthma\n", "utf-8")
    run([program, "map", table, "--column", "label", "--kb", store, "-o", mapped])
    verify = [str(program), "verify", str(table), "--kb", str(store), "--json"]
    found = subprocess.run(verify, capture_output=True, text=True, check=False)
    return {
        "links": EXPECTED in run([program, "link", TEXT, "--kb", store]),
        "maps": EXPECTED in mapped.read_text("utf-8"),
        "verifies": found.returncode == 1 and "label_of_another" in found.stdout,
    }


def benchmark(options: argparse.Namespace) -> None:
    """Build, install and use; stop at the first that fails."""
    asked = options.python or PYTHONS
    found = {version: find_python(version) for version in asked}
    missing = [version for version, python in found.items() if python is None]
    for version in missing:
        print(f"Python {version} is not installed, so it is not tried", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run([find_uv(), "build", "--out-dir", work / "dist", ROOT])
        (wheel,), (sdist,) = (sorted((work / "dist").glob(kind)) for kind in ("*.whl", "*.tar.gz"))
        extras = sorted(options.extras or EXTRAS, key=lambda each: "build" not in each)
        plan = [(python, each, False) for python in found.values() if python for each in extras]
        if options.lowest and plan:
            plan.append((plan[0][0], LOWEST, True))
        rows = []
        for python, each, lowest in plan:
            row = measure(wheel, python, each, work, lowest=lowest)
            rows.append(row)
            works = all(row[what] for what in ("links", "maps", "verifies"))
            print(f"{row['python']:9} {each or 'core':24} {row['versions']}", end="  ")
            print(f"{row['total_mb']:5} MB  import {row['import_ms']} ms", end="  ")
            print("works" if works else "DOES NOT WORK", flush=True)
            if not works:
                raise InputError("does not work when it is installed", path=wheel.name)
        result = {
            "commit": describe_commit(),
            "command": "make wheels",
            "platform": f"{platform.system()} {platform.machine()}",
            "wheel_mb": round(wheel.stat().st_size / 1e6, 1),
            "sdist_mb": round(sdist.stat().st_size / 1e6, 1),
            "not_installed": missing,
            "rows": rows,
        }
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(result))


def main() -> None:
    """Read the options and try."""
    parser = start_parser(__doc__)
    parser.add_argument("--python", action="append", help="version of Python; repeatable")
    parser.add_argument("--extras", action="append", help="extras, joined by commas; repeatable")
    parser.add_argument("--no-lowest", dest="lowest", action="store_false", help="newest alone")
    parser.add_argument("--out", type=Path, nargs="?", const=RESULT, help="result file to write")
    parser.add_argument("--json", action="store_true", help="print the result as the last line")
    run_with(benchmark, parser.parse_args())


if __name__ == "__main__":
    main()
