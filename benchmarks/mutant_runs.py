"""Runs of tests on a changed copy of the source, each in a forked process.

The parent has imported pytest, torch and the other heavy packages, but nothing of biograft, which
every child imports anew from the copy. So a run takes a second or two instead of ten.

A first run of the tests of a package notes which test reaches which line. A mutant is then tried
with the tests that reach its line, the fastest first, until one fails.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

_HEAVY = (
    "hypothesis",
    "numba",
    "numpy",
    "opencc",
    "polars",
    "pyarrow",
    "pyoxigraph",
    "safetensors.torch",
    "scipy.stats",
    "sklearn.linear_model",
    "torch",
    "transformers",
    "transformers.models.bert.modeling_bert",
    "typer",
    "yaml",
)
_MAX_DATA = 8 << 30
"""Bytes that a child may allocate: a changed loop may not end."""
_MAX_SECONDS = 60.0
"""Of tests, as long as they take on the unchanged source; slower ones are left out then."""
_ALL = "all tests"
_IMPORT = ""


@dataclass
class Reach:
    """Which tests pass, how long they take, and which lines they reach."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def tests(self, file: str, lines: Sequence[int], *, is_definition: bool) -> list[str]:
        """Return the tests that reach a line, by their time; of a definition, those of its file."""
        of_lines = self.lines.get(file, {})
        chosen = of_lines if is_definition else [line for line in lines if line in of_lines]
        contexts = {context for line in chosen for context in of_lines[line]}
        if contexts == {_IMPORT} and not is_definition:
            return self.tests(file, lines, is_definition=True)
        found = {test for context in contexts for test in self._tests_of(context)}
        kept, seconds = [], 0.0
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            seconds += self.seconds[test]
            if kept and seconds > _MAX_SECONDS:
                break
            kept.append(test)
        return kept

    def save(self, path: Path) -> None:
        """Write it to a file."""
        path.write_text(json.dumps([self.seconds, self.lines]), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Reach:
        """Read it from a file."""
        seconds, lines = json.loads(path.read_text(encoding="utf-8"))
        numbered = {
            file: {int(line): tests for line, tests in of_file.items()}
            for file, of_file in lines.items()
        }
        return cls(seconds, numbered)

    def _tests_of(self, context: str) -> list[str]:
        """Return the tests of a context: one test, or a fixture shared by a file or by all."""
        if context in self.seconds:
            return [context]
        if context == _ALL:
            return list(self.seconds)
        return [test for test in self.seconds if test.startswith(f"{context}::")]


class Recorder:
    """A plug-in of pytest that notes the lines each test reaches."""

    def __init__(self, source: Path, files: Sequence[str]) -> None:
        import coverage

        self._source, self._files = source, files
        self._coverage = coverage.Coverage(
            data_file=None,
            include=[str(source / file) for file in files],
            config_file=False,
            messages=False,
        )
        self.reach = Reach()
        self._test = _IMPORT
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note what follows under this test."""
        self._test = nodeid
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep tests that pass."""
        if report.when == "call" and report.passed:
            self.reach.seconds[report.nodeid] = report.duration

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """Note what a shared fixture reaches under all tests that may share it."""
        if fixturedef.scope in ("session", "package"):
            self._coverage.switch_context(_ALL)
        elif fixturedef.scope in ("module", "class"):
            self._coverage.switch_context(request.node.nodeid)

    def pytest_runtest_call(self) -> None:
        """Go on under the test, whose shared fixtures stand."""
        self._coverage.switch_context(self._test)

    def end(self) -> Reach:
        """Return what was noted."""
        self._coverage.stop()
        data = self._coverage.get_data()
        for file in self._files:
            contexts = data.contexts_by_lineno(str(self._source / file))
            self.reach.lines[file] = dict(contexts)
        return self.reach


class _Chosen:
    """A plug-in of pytest that runs some tests, in a given order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: number for number, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)  # after that of tests/conftest.py, which sorts them too
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the other tests."""
        items[:] = [item for item in items if item.nodeid in self._order]
        items.sort(key=lambda item: self._order[item.nodeid])


class Laboratory:
    """A copy of the source that mutants are written to, and the processes that test it."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.source = folder / "src"
        shutil.copytree(root / "src", self.source, dirs_exist_ok=True)
        for name in _HEAVY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def reach(self, tests: Sequence[str], files: Sequence[str]) -> Reach:
        """Run all tests on the unchanged source."""
        found = self.folder / "reach.json"
        found.unlink(missing_ok=True)

        def run() -> int:
            recorder = Recorder(self.source, files)
            code = _pytest([*tests], [recorder])
            recorder.end().save(found)
            return code

        code = self._fork(run, 1800)
        if not found.exists():
            raise SystemExit(f"error: the tests end with {code}; see {self.folder / 'output.txt'}")
        return Reach.load(found)

    def outcome(self, file: str, text: str, tests: Sequence[str], seconds: float) -> str:
        """Return whether tests notice a changed file: "killed" or "survived".

        ``tests`` are names of tests, or files of them, which take ``seconds`` on the unchanged
        source.
        """
        chosen = [_Chosen(tests)] if all("::" in test for test in tests) else []
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        if "njit(" in text:  # what is compiled is kept by the file it is in, not by those it calls
            shutil.rmtree(self.folder / "compiled", ignore_errors=True)
        with self._changed(file, text):
            code = self._fork(lambda: _pytest([*files, "-x"], chosen), 60 + 20 * seconds)
        if code == 5:
            raise SystemExit(f"error: no test was found in {', '.join(files)}")
        return "survived" if code == 0 else "killed"

    @contextlib.contextmanager
    def _changed(self, file: str, text: str) -> Iterator[None]:
        path = self.source / file
        before, times = path.read_bytes(), path.stat()
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _fork(self, run: Callable[[], int], seconds: float) -> int:
        """Return the exit status of a function in a forked process, negative if it was killed."""
        child = os.fork()
        if child == 0:
            self._run_child(run)
        end = time.monotonic() + seconds
        done = status = 0
        while not done and time.monotonic() < end:
            time.sleep(0.02)
            done, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(ProcessLookupError):  # also what it left running
            os.killpg(child, signal.SIGKILL)
        if not done:
            _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    def _run_child(self, run: Callable[[], int]) -> NoReturn:
        code = 99
        try:
            os.setpgid(
                0, 0
            )  # no session of its own, which would have its own share of the processors
            os.chdir(self.root)
            output = os.open(self.folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_DATA, (_MAX_DATA, _MAX_DATA))
            scratch = self.folder / "scratch"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            os.environ["TMPDIR"] = str(scratch)
            os.environ["NUMBA_CACHE_DIR"] = str(self.folder / "compiled")
            os.environ["PYTHONPATH"] = str(self.source)
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            sys.dont_write_bytecode = True
            sys.path.insert(0, str(self.source))
            for name in [each for each in sys.modules if each.partition(".")[0] == "biograft"]:
                del sys.modules[name]
            code = run()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _pytest(arguments: list[str], plugins: list[Any]) -> int:
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # some plug-ins are imported
    return int(pytest.main([*arguments, *options], plugins=plugins))
