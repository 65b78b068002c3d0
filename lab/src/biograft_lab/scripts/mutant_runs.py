"""Runs of tests on changed code, each in a forked process.

A process collects the tests of a module once, and forks for every mutant. The child exchanges the
code of the changed function, wherever it is referred to, and runs the tests that reach the changed
line, the fastest first, until one fails: some milliseconds beside the tests themselves. What runs
when a module is imported (constants, defaults, classes) cannot be exchanged; such a mutant has a
process that imports everything anew. The changed file is also written to a copy of the source,
which is what new processes of tests import.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
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
    "torch",
    "transformers",
    "transformers.models.bert.modeling_bert",
    "typer",
    "yaml",
)
_MAX_DATA = 8 << 30
"""Bytes that a child may allocate: a changed loop may not end."""
_MAX_SECONDS = 60.0
"""Most processor time for the tests of a mutant on the unchanged source."""
_NOT_EXCHANGED = 97
KILLED, SURVIVED = "killed", "survived"


@dataclass
class Reach:
    """Passing tests, their processor time, and the lines that they reach."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)

    def tests(self, file: str, lines: Sequence[int] | None) -> list[str]:
        """Return the tests that reach some lines of a file (None: any), the fastest first."""
        of_lines = self.lines.get(file, {})
        contexts = {
            context
            for line in (of_lines if lines is None else lines)
            for context in of_lines.get(line, ())
        }
        found = {test for context in contexts for test in self._tests_of(context)}
        if lines is None:  # a definition may be tested without a call, beside tests that call
            files = {_file_of(test) for test in found or self.seconds}
            found = {test for test in self.seconds if _file_of(test) in files}
        kept: list[str] = []
        seconds = 0.0
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            seconds += self.seconds[test]
            if kept and seconds > _MAX_SECONDS:
                break
            kept.append(test)
        return kept

    def _tests_of(self, context: str) -> list[str]:
        """Return the tests of a context: one test, or a fixture shared by some of a file."""
        if context in self.seconds:
            return [context]
        return [test for test in self.seconds if test.startswith(f"{context}::")]

    def save(self, path: Path) -> None:
        """Write it to a file."""
        path.write_text(json.dumps([self.seconds, self.lines]), encoding="utf-8")

    @classmethod
    def load(cls, *paths: Path) -> Reach:
        """Read it from files, one for each file of tests."""
        whole = cls()
        for path in paths:
            seconds, lines = json.loads(path.read_text(encoding="utf-8"))
            whole.seconds |= seconds
            for file, of_file in lines.items():
                known = whole.lines.setdefault(file, {})
                for line, tests in of_file.items():
                    known.setdefault(int(line), []).extend(tests)
        return whole


def _file_of(test: str) -> str:
    return test.partition("::")[0]


class _Recorder:
    """A plug-in of pytest that notes the lines each test reaches."""

    def __init__(self, source: Path, files: Sequence[str], tested: str) -> None:
        import coverage

        self._source, self._files, self._tested = source, files, tested
        self._coverage = coverage.Coverage(
            data_file=None,
            include=[str(source / file) for file in files],
            config_file=False,
            messages=False,
        )
        self.reach = Reach()
        self._test, self._start = "", 0.0
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note what follows under this test."""
        self._test, self._start = nodeid, time.process_time()
        self._coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep tests that pass."""
        if report.when == "call" and report.passed:
            self.reach.seconds[report.nodeid] = time.process_time() - self._start

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """Note what a shared fixture reaches under all tests of the file that may share it."""
        if fixturedef.scope in ("session", "package"):
            self._coverage.switch_context(self._tested)
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
            self.reach.lines[file] = dict(data.contexts_by_lineno(str(self._source / file)))
        return self.reach


class Trials:
    """The collected tests of a module, in the process that forks for every mutant."""

    def __init__(self, laboratory: Laboratory, session: Any) -> None:
        self._laboratory, self._session = laboratory, session

    def reach(self, files: Sequence[str], path: Path, tested: str) -> None:
        """Run a file of tests on the unchanged source, and write which lines each reaches.

        Args:
            files: Files of the source.
            path: File to write.
            tested: The file of tests.
        """

        def run() -> int:
            recorder = _Recorder(self._laboratory.source, files, tested)
            self._session.config.pluginmanager.register(recorder)
            self._loop([each for each in self._session.items if _file_of(each.nodeid) == tested])
            recorder.end().save(path)
            return 0

        if code := self._laboratory.fork(run, 3600):
            raise SystemExit(f"error: the tests end with {code}; {self._laboratory.output}")

    def outcome(self, file: str, text: str, tests: Sequence[str], seconds: float) -> str:
        """Return whether tests notice a changed function: "killed" or "survived".

        ``tests`` are names of tests, or what these begin with; they take ``seconds`` on the
        unchanged source.
        """
        items: dict[str, list[Any]] = {name: [] for name in tests}
        for item in self._session.items:
            for name in {item.nodeid, item.nodeid.partition("[")[0]} & items.keys():
                items[name].append(item)
        missing = [name for name, found in items.items() if not found]
        if missing:
            raise SystemExit(f"error: there is no test {missing[0]}")
        path = self._laboratory.source / file

        def run() -> int:
            try:
                exchange_code(path, text)
            except ValueError:  # the function has other variables of those around it
                return _NOT_EXCHANGED
            return self._loop([item for name in tests for item in items[name]], max_failures=1)

        with self._laboratory.changed(file, text):
            code = self._laboratory.fork(run, 20 + 10 * seconds)
        if code == _NOT_EXCHANGED:
            return self._laboratory.outcome(file, text, tests, seconds)
        return KILLED if code else SURVIVED

    def _loop(self, items: Sequence[Any], max_failures: int = 0) -> int:
        from _pytest.main import pytest_runtestloop

        session = self._session
        session.items = list(items)
        session.config.option.maxfail = max_failures
        with contextlib.suppress(session.Failed, session.Interrupted):
            pytest_runtestloop(session)
        return int(session.testsfailed > 0)


class _Host:
    """A plug-in of pytest that hands the collected tests over instead of running them."""

    def __init__(self, files: Sequence[str], work: Callable[[Any], None]) -> None:
        self._files, self._work = files, work

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        """Import what mutants change, and do the work."""
        for file in self._files:
            importlib.import_module(
                file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            )
        self._work(session)
        return True


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
        self.source, self.output = folder / "src", folder / "output.txt"
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.copytree(root / "src", self.source)
        for name in _HEAVY:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def collect(
        self, tests: Sequence[str], files: Sequence[str], work: Callable[[Trials], None]
    ) -> None:
        """Collect tests in a process of their own, and do the work there."""

        def run() -> int:
            host = _Host(files, lambda session: work(Trials(self, session)))
            return _pytest([*tests], [host])

        if code := self.fork(run, 24 * 3600, fresh=True):
            raise SystemExit(f"error: the tests end with {code}; see {self.output}")

    def outcome(self, file: str, text: str, tests: Sequence[str], seconds: float) -> str:
        """Return whether tests notice a changed file, in a process that imports it anew."""
        files = list(dict.fromkeys(map(_file_of, tests)))
        with self.changed(file, text):
            code = self.fork(
                lambda: _pytest([*files, "-x"], [_Chosen(tests)]), 60 + 10 * seconds, fresh=True
            )
        if code == 5:
            raise SystemExit(f"error: no test was found in {', '.join(files)}")
        return KILLED if code else SURVIVED

    @contextlib.contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """Write a changed file to the copy of the source while the block lasts."""
        if "njit(" in text:  # what is compiled is kept by the file it is in, not by those it calls
            shutil.rmtree(self.folder / "compiled", ignore_errors=True)
        path = self.source / file
        before, times = path.read_bytes(), path.stat()
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def fork(self, run: Callable[[], int], seconds: float, *, fresh: bool = False) -> int:
        """Return the exit status of a function in a forked process, negative if it was killed.

        It has ``seconds`` of a processor, and many times as long if it does nothing. A ``fresh``
        process has nothing of biograft imported, and finds it in the copy.
        """
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            self._run_child(run, fresh=fresh)
        end = time.monotonic() + 300 + 20 * seconds
        done = status = 0
        while not done and time.monotonic() < end:
            time.sleep(0.01)
            done, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(ProcessLookupError):  # also what it left running
            os.killpg(child, signal.SIGKILL)
        if not done:
            _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    def _run_child(self, run: Callable[[], int], *, fresh: bool) -> NoReturn:
        code = 99
        try:
            os.setpgid(0, 0)  # no session of its own, which would get a share of the processors
            self._use_scratch()
            if fresh:
                self._start_afresh()
            code = run()
        except BaseException:
            with self.output.open("a", encoding="utf-8") as file:
                traceback.print_exc(file=file)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _use_scratch(self) -> None:
        """Have temporary files in the folder, where the next process removes them."""
        scratch = self.folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="run-", dir=scratch)

    def _start_afresh(self) -> None:
        os.chdir(self.root)
        output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_DATA, _MAX_DATA))
        os.environ["NUMBA_CACHE_DIR"] = str(self.folder / "compiled")
        os.environ["PYTHONPATH"] = str(self.source)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.source))
        for name in [each for each in sys.modules if each.partition(".")[0] == "biograft"]:
            del sys.modules[name]


def exchange_code(path: Path, text: str) -> None:
    """Give the functions of a file the code that they have in a changed text."""
    new = _functions_by_name(compile(text, str(path), "exec"))
    old: dict[str, set[FunctionType]] = defaultdict(set)
    for each in gc.get_objects():
        if type(each) is FunctionType and each.__code__.co_filename == str(path):
            old[each.__code__.co_qualname].add(each)
    for name, functions in old.items():
        firsts = sorted({function.__code__.co_firstlineno for function in functions})
        codes = new.get(name, [])
        if len(codes) != len(firsts):
            continue  # a function in a function, which gets its code from that one
        by_line = dict(zip(firsts, codes, strict=True))
        for function in functions:
            function.__code__ = by_line[function.__code__.co_firstlineno]


def _functions_by_name(code: CodeType) -> dict[str, list[CodeType]]:
    """Return the code of functions and methods, of equal names (such as of a setter) in order."""
    found: dict[str, list[CodeType]] = defaultdict(list)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_OPTIMIZED:
                found[each.co_qualname].append(each)
            else:  # the body of a class
                for name, codes in _functions_by_name(each).items():
                    found[name] += codes
    return found


def _pytest(arguments: list[str], plugins: list[Any]) -> int:
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # some plug-ins are imported
    return int(pytest.main([*arguments, *options], plugins=plugins))
