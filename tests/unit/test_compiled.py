"""Loops that are compiled when needed, where numba keeps them, and what a start loads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from biograft import compute
from biograft.compute import MAX_NEVER_COMPILED, MAX_UNCOMPILED, Budget, njit


@njit(inline="always")
def double(value):
    return 2 * value


@njit(work=len)
def total(values):
    result = 0
    for value in values:
        result += double(value)
    return result


def test_a_function_gives_the_same_compiled_or_not():
    values = np.arange(10)
    assert total.uncompiled(values) == total.dispatcher(values) == total(values) == 90


def test_little_work_runs_uncompiled_until_it_is_much(monkeypatch, tmp_path):
    def never_compiled(values):
        return values

    total(np.arange(MAX_UNCOMPILED))  # compiled now, and kept
    kept = total._function
    budget = Budget()
    assert budget.allows(kept, MAX_UNCOMPILED - 1)
    assert budget.allows(kept, 1)
    assert not budget.allows(kept, 1)
    monkeypatch.setattr(compute, "cache_folder", lambda: tmp_path)
    compute._may_wait.cache_clear()
    assert budget.allows(never_compiled, MAX_NEVER_COMPILED - MAX_UNCOMPILED - 1)
    assert not budget.allows(never_compiled, 1)
    for n_before in range(1, 12):  # processes
        compute._may_wait.cache_clear()
        assert compute._may_wait() == (n_before < 10)
    compute._may_wait.cache_clear()
    budget = Budget()
    budget.end()
    assert not budget.allows(never_compiled, 1)


RUN = """
import sys
from biograft.compute import announce, njit
import numpy as np

@njit()
def add(values):
    return values.sum()

announce(sys.stderr)
print(add(np.arange(5)))
from biograft.compute import cache_folder
print(cache_folder())
"""


def run(code, **variables):
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | variables
    command = [sys.executable, "-X", "utf8", "-c", code]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, env=environment
    )


def write_script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(RUN)
    return f"import runpy; runpy.run_path({str(path)!r})"


def test_compiled_loops_are_kept_in_the_first_folder_that_can_be_written(tmp_path):
    """numba raised a traceback where neither the package nor the home could be written."""
    script, file = write_script(tmp_path), tmp_path / "file"
    file.write_text("")
    caches, temporary = tmp_path / "caches", tmp_path / "temporary"
    temporary.mkdir()
    nowhere = {"HOME": str(file), "XDG_CACHE_HOME": str(file), "TMPDIR": str(temporary)}

    done = run(script, XDG_CACHE_HOME=str(caches))
    assert done.stdout.splitlines()[1].startswith(str(caches / "biograft"))
    assert list(caches.rglob("*.nbi"))

    chosen = tmp_path / "chosen"
    assert run(script, NUMBA_CACHE_DIR=str(chosen)).stdout.splitlines() == ["10", str(chosen)]
    assert list(chosen.rglob("*.nbi"))

    done = run(script, **nowhere, NUMBA_CACHE_DIR=str(file))
    assert done.stdout.splitlines()[1].startswith(str(temporary / "biograft-"))
    assert list(temporary.rglob("*.nbi"))

    (temporary / f"biograft-{os.getuid()}").chmod(0o777)  # somebody else may have written to it
    done = run(script, **nowhere)
    assert done.stdout.splitlines() == ["10", "None"]
    assert "Traceback" not in done.stderr


def test_without_home_and_temporary_files_nothing_is_kept(monkeypatch):
    """As for a numbered user of a container: both look-ups raise."""

    def fail(*_):
        raise RuntimeError

    def fail_too():
        raise FileNotFoundError

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(compute, "_user_caches", fail)
    monkeypatch.setattr(compute.tempfile, "gettempdir", fail_too)
    assert compute.cache_folder.__wrapped__() is None


LINK = """
import sys
from biograft.cli import main
sys.argv = ["biograft", "link", {text!r}, "--kb", {kb!r}, "--index", {index!r}]
try:
    main()
except SystemExit:
    pass
print(sorted(name for name in sys.modules if "." not in name))
"""
SLOW = ("numba", "opencc", "polars", "pyarrow", "rich", "scipy", "tokenizers", "torch")


@pytest.mark.parametrize("encoder", ["none", "static-english"])
def test_linking_a_sentence_imports_nothing_slow(tmp_path, encoder):
    from typer.testing import CliRunner

    from biograft.cli import app
    from biograft.kb import build_starter

    build_starter(tmp_path / "kb")
    index = str(tmp_path / "index")
    arguments = ["index", str(tmp_path / "kb"), "-o", index, "--encoder", encoder, "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    text = "No fever, but a heart attack (MI) and fevr; diabetes mellitus."
    done = run(LINK.format(text=text, kb=str(tmp_path / "kb"), index=index))
    assert "[absent]" in done.stdout
    loaded = done.stdout.splitlines()[-1]
    assert [name for name in SLOW if f"'{name}'" in loaded] == []


def test_importing_the_package_is_quick():
    code = """
import sys, time
before = set(sys.modules)
start = time.process_time()
import biograft
print(time.process_time() - start, len(set(sys.modules) - before))
"""
    runs = [run(code).stdout.split() for _ in range(3)]
    assert min(float(seconds) for seconds, _ in runs) < 0.05
    assert int(runs[0][1]) < 60
