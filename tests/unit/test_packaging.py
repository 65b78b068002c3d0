"""What is installed: the core works without the packages of extras, and says which one it lacks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from biograft.errors import EXTRAS

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
ABSENT = ("polars", "pyarrow", "torch", "transformers", "scipy", "pandas")
CORE = f"""
import sys
for name in {ABSENT!r}:
    sys.modules[name] = None  # as if it were not installed
from biograft.cli import main
main()
"""


def run_core(*arguments):
    """Run a command where only the core is installed."""
    return subprocess.run(
        [sys.executable, "-c", CORE, *arguments], capture_output=True, text=True, check=False
    )


def test_the_core_links_a_text_without_an_index(starter):
    done = run_core("link", "No heart attack.", "--kb", str(starter))
    assert done.returncode == 0, done.stderr
    assert "heart attack [absent]  D009203" in done.stdout


def test_what_links_maps_evaluates_and_serves_needs_the_core_alone():
    code = CORE.partition("from biograft.cli")[0]
    code += "from biograft.linking import Linker\nfrom biograft.mapping import map_terms\n"
    code += (
        "from biograft.evaluation import evaluate_linking\nfrom biograft.serve import create_app\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_core_names_the_extra_that_a_command_needs(starter, tmp_path):
    for arguments in (
        ["kb", "build", "starter", "-o", str(tmp_path / "kb")],
        ["kb", "search", str(starter), "a"],
    ):
        done = run_core(*arguments)
        assert done.returncode == 2
        assert done.stderr.endswith("run: pip install 'biograft[build]'\n")
        assert done.stderr.count("\n") == 1


def test_packages_of_extras_are_in_no_other_place():
    """A package of an extra is not among the dependencies of the core, and the extra has it."""
    extras = PROJECT["optional-dependencies"]
    core = {re.split(r"[^\w.-]", each)[0] for each in PROJECT["dependencies"]}
    assert core == {"numba", "numpy", "opencc", "pyyaml", "typer"}
    for package, extra in EXTRAS.items():
        assert any(each.startswith(package) for each in extras[extra])


def test_the_wheel_has_no_experiments_claims_probes_or_results():
    """It is made of one folder, by the table of the wheel in pyproject.toml."""
    assert PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/biograft"]}
    folder = ROOT / "src" / "biograft"
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*.*")]
    names = ("lab", "replication", "experiments", "probing", "probe", "claims")
    assert [file for file in files if any(part in names for part in re.split(r"[/.]", file))] == []


def test_no_module_needs_what_windows_has_not():
    """Such imports stand in functions, or in a try, so that biograft can be imported there."""
    absent = {"fcntl", "resource", "termios", "pwd", "grp", "readline"}
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [each.name for each in node.names] + [getattr(node, "module", "") or ""]
                found += [f"{path.name}: {name}" for name in names if name in absent]
    assert not found
