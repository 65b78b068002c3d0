"""How large biograft is when installed, by package, and whether the built wheel works.

Builds the wheel, installs it into an empty environment for each Python and each set of extras, and
measures the size of every package (without compiled bytecode), the time of ``import biograft``, and
that a text is linked there. With the extra ``build`` the store is built there, too; the core links
with the store of the first environment that has it. Needs ``uv`` and a package registry.

    python benchmarks/installed_size.py --python 3.11 --python 3.12 --extras '' --extras build
"""

from __future__ import annotations

import argparse
import json
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
RESULT = Path(__file__).parent / "results" / "installed_size.json"
EXTRAS = ("build", "serve", "")
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


def measure(uv: str, wheel: Path, python: str, extras: str, work: Path) -> dict[str, Any]:
    """Install the wheel with some extras into an empty environment, and use it."""
    environment = Path(tempfile.mkdtemp(dir=work)) / "environment"
    run([uv, "venv", "--python", python, environment])
    own = environment / "bin" / "python"
    run([uv, "pip", "install", "--python", own, f"{wheel}[{extras}]" if extras else wheel])
    sizes = json.loads(run([own, "-c", _SIZES]))
    seconds = [float(run([own, "-c", _IMPORT])) for _ in range(N_IMPORTS)]
    program, store = environment / "bin" / "biograft", work / "KB"
    if not store.exists() and "build" in extras.split(","):
        run([program, "kb", "build", "starter", "-o", store, "--quiet"])
    if not store.exists():
        raise InputError("nothing builds a store", path="--extras", remedy="give build first")
    linked = EXPECTED in run([program, "link", TEXT, "--kb", store])
    megabytes = {name: round(size / 1e6, 1) for name, size in sizes.items()}
    return {
        "python": run([own, "--version"]).split()[1],
        "extras": extras,
        "links": linked,
        "total_mb": round(sum(sizes.values()) / 1e6),
        "import_ms": round(statistics.median(seconds) * 1e3, 1),
        "packages_mb": dict(sorted(megabytes.items(), key=lambda entry: -entry[1])),
    }


def benchmark(options: argparse.Namespace) -> None:
    """Measure all pairs of a Python and a set of extras."""
    uv = find_uv()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run([uv, "build", "--wheel", "--out-dir", work / "dist", ROOT])
        (wheel,) = (work / "dist").glob("*.whl")
        rows = []
        extras = sorted(options.extras or EXTRAS, key=lambda each: "build" not in each)
        for python in options.python or ["3.11"]:
            for each in extras:
                rows.append(measure(uv, wheel, python, each, work))
                row = rows[-1]
                print(f"{row['python']:9} {each or 'core':12} {row['total_mb']:5} MB", end="  ")
                print(f"import {row['import_ms']} ms  links: {row['links']}", flush=True)
        result = {
            "commit": describe_commit(),
            "wheel_mb": round(wheel.stat().st_size / 1e6, 1),
            "rows": rows,
        }
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(result))


def main() -> None:
    """Read the options and measure."""
    parser = start_parser(__doc__)
    parser.add_argument("--python", action="append", help="version of Python; repeatable")
    parser.add_argument("--extras", action="append", help="extras, joined by commas; repeatable")
    parser.add_argument("--out", type=Path, nargs="?", const=RESULT, help="result file to write")
    parser.add_argument("--json", action="store_true", help="print the result as the last line")
    run_with(benchmark, parser.parse_args())


if __name__ == "__main__":
    main()
