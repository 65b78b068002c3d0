"""Compiled loops, worker processes, and the machine they run on.

Loops are compiled by numba when they are needed, which for little work is never. Importing numba
and loading a compiled loop takes longer than linking a sentence. A function decorated by
:func:`njit` that says how much ``work`` a call is runs as plain Python until ``MAX_UNCOMPILED``
steps are spent in this process; from then on it is compiled, as is at once any function that does
not say so.

What numba compiles is kept on disk, for this machine's processor, in the first of these folders
that can be written: ``NUMBA_CACHE_DIR``, ``biograft`` in the user's folder for caches, a folder of
the user in that for temporary files.

Worker processes do jobs on the cores of this machine and return the results in order. What the jobs
share is opened once and forked, so that the workers share its memory; where it cannot be, each
worker opens its own. Jobs wait in a bounded queue, so that memory does not grow with their number.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import platform
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Generic, Protocol, TextIO, TypeVar

import biograft
from biograft.errors import BiograftError, OutputError
from biograft.language import READER

Function = Callable[..., Any]
Work = Callable[..., int]

MAX_UNCOMPILED = 50_000
"""Steps of a loop, of a microsecond each or less, that take less than to load numba."""
MAX_NEVER_COMPILED = 2_500_000
"""Steps that take less than to compile a loop: for those that no process has compiled yet."""
_MAX_WAITING = 10
"""Processes that may do so many steps uncompiled; the next one compiles, for all after it.

Compiling takes about ten times what one of them would gain by it."""
_USUAL_SECONDS = 10
"""Usual time to compile the loops of `biograft link`, for the message."""
_SILENT_SECONDS = 1.0
"""Minimum seconds before compiling is reported without a terminal."""
_CLEAR = "\r\x1b[K"


class _State(threading.local):
    """Whether this thread is within a call that runs uncompiled."""

    uncompiled = False


_lock = threading.RLock()
_state = _State()


class CompiledFunction:
    """A function that numba compiles, or loads from the cache, when a call is worth it.

    Args:
        function: Function in the subset of Python that numba compiles.
        options: Settings of ``numba.njit``.
        work: Estimates the steps of a call from its arguments; None only runs compiled within
            another.
        plain: Does the same with few calls of numpy while nothing is compiled; default: the
            function.
    """

    def __init__(
        self, function: Function, options: dict[str, Any], work: Work | None, plain: Function | None
    ) -> None:
        functools.update_wrapper(self, function)
        self._function, self._options, self._work = function, options, work
        self._plain = plain or function
        self._dispatcher: Function | None = None
        self._inner: Function | None = None

    def __call__(self, *args: Any) -> Any:
        """Call it, compiled or not."""
        if self._dispatcher is not None:
            return self._dispatcher(*args)
        if _state.uncompiled:
            return self._plain(*args)
        if self._work is not None and BUDGET.allows(self._function, self._work(*args)):
            return self.uncompiled(*args)
        return self.dispatcher(*args)

    def uncompiled(self, *args: Any) -> Any:
        """Call it, or what does the same, as plain Python."""
        import numpy as np

        _state.uncompiled = True
        try:
            with np.errstate(over="ignore"):  # hashes wrap around, silently if compiled
                return self._plain(*args)
        finally:
            _state.uncompiled = False

    @property
    def dispatcher(self) -> Function:
        """The function as numba made it, to be called from Python."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _compile(self._with_compiled(), self._options)
            return self._dispatcher

    @property
    def inner(self) -> Function:
        """The same for calls from compiled functions: without a wrapper, and without a cache.

        It is part of what is kept of the function that calls it; the wrapper costs a tenth of the
        time to compile.
        """
        with _lock:
            if self._inner is None:
                numba, options = _load_numba(), {**self._options, "no_cpython_wrapper": True}
                self._inner = numba.njit(**options)(self._with_compiled())
            return self._inner

    def _with_compiled(self) -> Function:
        """Return the function with what it calls compiled, for numba."""
        function: Any = self._function
        known = dict(function.__globals__)
        for name in _names(function.__code__):
            if isinstance(known.get(name), CompiledFunction):
                known[name] = known[name].inner
        made = FunctionType(
            function.__code__, known, function.__name__, function.__defaults__, function.__closure__
        )
        made.__qualname__ = function.__qualname__
        return made


def njit(
    *, work: Work | None = None, plain: Function | None = None, **options: Any
) -> Callable[[Function], Any]:
    """Have a function compiled by ``numba.njit``, without Python's lock, when it is first needed.

    A function without ``work`` runs uncompiled, or its ``plain``, within one that does.

    Args:
        work: Takes the arguments of a call and estimates its steps.
        plain: Another function that does the same with few calls of numpy; without one, the
            function itself runs uncompiled.
        options: Further settings of ``numba.njit``.
    """
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    return lambda function: CompiledFunction(function, options, work, plain)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function, or one within it, may read from its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


class Budget:
    """The steps that this process may still run uncompiled."""

    def __init__(self) -> None:
        self.left = MAX_UNCOMPILED

    def allows(self, function: Function, steps: int) -> bool:
        """Whether a call of a function may run uncompiled; its steps are taken off.

        Args:
            function: The function.
            steps: Estimated steps of the call.
        """
        self.left -= steps
        if self.left >= 0:
            return True
        few = self.left + MAX_NEVER_COMPILED - MAX_UNCOMPILED >= 0
        return few and not _is_kept(function) and _may_wait()

    def end(self) -> None:
        """Compile all that is called from now on, so that the cache gets what is needed later."""
        self.left = -MAX_NEVER_COMPILED


BUDGET = Budget()


def _compile(function: Function, options: dict[str, Any]) -> Function:
    """Make a dispatcher of numba with its cache in our folder; other users of numba keep theirs."""
    numba, folder = _load_numba(), cache_folder()
    usual = numba.config.CACHE_DIR
    try:
        numba.config.CACHE_DIR = str(folder or "")
        made: Function = numba.njit(cache=folder is not None, **options)(function)
    finally:
        numba.config.CACHE_DIR = usual
    return made


@functools.cache
def _is_kept(function: Function) -> bool:
    """Whether a function is in the cache, compiled by this process or another."""
    code, folder = function.__code__, cache_folder()
    name = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}"
    return folder is not None and any(folder.glob(f"*/{name}.*.nbi"))


@functools.cache
def _may_wait() -> bool:
    """Whether this process need not compile yet; each that waits leaves a byte in the cache."""
    folder = cache_folder()
    if folder is None:
        return True  # what it compiled would not be kept
    with contextlib.suppress(OSError), (folder / "waiting").open("ab") as file:
        if file.tell() < _MAX_WAITING:
            file.write(b".")
            return True
    return False


@functools.cache
def _load_numba() -> Any:
    """Import numba, and listen to what it compiles."""
    import numba
    from numba.core import event

    events: Any = event
    events.Listener.register(_Listener)
    events.register("numba:compile", _listener)
    _spare_linear_algebra()
    return numba


def _spare_linear_algebra() -> None:
    """Import a part of numba that imports scipy.linalg only to see whether it is there.

    That takes a sixth of a second; numba itself has imported scipy, if it is.
    """
    from numba.np import linalg as numba_linalg

    linalg: Any = numba_linalg
    check = getattr(linalg, "ensure_blas", None)
    if check is not None and "scipy" in sys.modules:
        linalg.ensure_blas = lambda: None
        try:
            from numba.np import arraymath

            module: Any = arraymath
            module.ensure_blas = check
        finally:
            linalg.ensure_blas = check


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder for compiled loops, which exists and can be written; None if none can."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    version = f"{biograft.__version__}-numba-{metadata.version('numba')}"
    if chosen and _is_writable(Path(chosen)):
        return Path(chosen)
    with contextlib.suppress(RuntimeError):  # of a user without a home
        if _is_writable(usual := _user_caches() / "biograft" / version):
            return usual
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    with contextlib.suppress(OSError):  # of a system without a folder for temporary files
        temporary = Path(tempfile.gettempdir()) / f"biograft-{user}"
        # numba unpickles what it finds there: no other user may write to it
        if _is_writable(temporary) and _is_private(temporary) and _is_writable(temporary / version):
            return temporary / version
    return None


def _user_caches() -> Path:
    """Return the user's folder for caches, by the habits of the system."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path("~/AppData/Local").expanduser())
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Whether a folder belongs to this user, and only this user can write to it."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022 and not folder.is_symlink()


def announce(stream: TextIO) -> None:
    """Report once on a stream that loops are being compiled."""
    _listener.stream = stream


class _Listener:
    """Is told by numba when it compiles a function, and by that one when it needs another."""

    def __init__(self) -> None:
        self.stream: TextIO | None = None
        self._depth, self._seconds, self._started = 0, 0.0, 0.0

    def notify(self, event: Any) -> None:
        """Count the seconds of the outermost functions."""
        if event.is_start:
            self._depth += 1
            if self._depth == 1:
                self._started = time.perf_counter()
        else:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += time.perf_counter() - self._started
        if self.stream is not None:
            self._say(self.stream)

    def _say(self, stream: TextIO) -> None:
        with contextlib.suppress(ValueError):  # it may be closed
            on_terminal = stream.isatty()
            if on_terminal or self._seconds > _SILENT_SECONDS:
                self.stream = None
                said = f"biograft: compiling for this machine, once (about {_USUAL_SECONDS} s)"
                stream.write(f"{_CLEAR if on_terminal else ''}{READER.translate(said)}\n")
                stream.flush()


_listener = _Listener()


J = TypeVar("J")
R = TypeVar("R")
_JOBS_PER_WORKER = 2
"""Jobs that are read ahead per worker."""

_opened: Any = None
"""Shared data of the jobs of this process, if it is a worker."""


class Opener(Protocol):
    """Opens what all jobs share."""

    def open(self) -> Any:
        """Open it, which may take memory and time."""


@dataclass(frozen=True, slots=True)
class Finished(Generic[R]):
    """A job that an earlier run has done, with its result."""

    result: R


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Execution of jobs: the number of processes (one is this process itself).

    Without ``fork`` each process opens its own. ``place`` and ``remedy`` are for the message when a
    worker is killed.
    """

    n: int
    place: str
    remedy: str
    fork: bool = True


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_in_order(
    work: Callable[[Any, J], R],
    jobs: Iterable[J | Finished[R]],
    opener: Opener,
    workers: Workers,
) -> Iterator[R]:
    """Do ``work(opened, job)`` for all jobs, and yield the results in their order.

    Args:
        work: Function of what the opener opened, and a job.
        jobs: Jobs; one that is :class:`Finished` already keeps its place in the order.
        opener: Opens what all jobs need, once in each process.
        workers: Number and kind of processes; one runs here.
    """
    if workers.n == 1:
        open_once = cache(opener.open)
        for job in jobs:
            yield job.result if isinstance(job, Finished) else work(open_once(), job)
        return
    forked = workers.fork and "fork" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if forked else "spawn")
    given = (opener.open(), True) if forked else (opener, False)
    pool = ProcessPoolExecutor(workers.n, context, _start_worker, given)
    try:
        yield from _run_pool(pool, work, jobs, workers.n * _JOBS_PER_WORKER)
    except BrokenProcessPool as error:
        raise OutputError(
            f"{workers.place}: a worker ended early (out of memory?); {workers.remedy}"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _run_pool(
    pool: ProcessPoolExecutor,
    work: Callable[[Any, J], R],
    jobs: Iterable[J | Finished[R]],
    max_pending: int,
) -> Iterator[R]:
    """Do jobs in a pool with at most ``max_pending`` of them submitted."""
    pending: deque[Future[R] | Finished[R]] = deque()
    for job in jobs:
        while len(pending) >= max_pending:
            yield _result(pending.popleft())
        pending.append(job if isinstance(job, Finished) else pool.submit(_work, work, job))
    while pending:
        yield _result(pending.popleft())


def _result(pending: Future[R] | Finished[R]) -> R:
    return pending.result if isinstance(pending, Finished) else pending.result()


def _start_worker(given: Any, is_open: bool) -> None:
    """Set up a worker process, which ends with its parent and leaves interrupts to it."""
    global _opened  # noqa: PLW0603 - the one thing a worker keeps from job to job
    leave_interrupts_to_parent()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _opened = given if is_open else given.open()
    except BiograftError as error:
        _opened = error  # raised with the first job: a pool only tells that its worker died


def leave_interrupts_to_parent() -> None:
    """Let the parent end this worker: an interrupt reaches all processes of a terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(work: Callable[[Any, J], R], job: J) -> R:
    if _opened is None:
        raise RuntimeError("a worker got a job before it was ready")
    if isinstance(_opened, BiograftError):
        raise _opened
    return work(_opened, job)


_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""Instructions that decide how fast vectors are multiplied."""
_CPUINFO = Path("/proc/cpuinfo")


def peak_bytes() -> int:
    """Return the most memory that this process had so far; 0 on Windows."""
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used << 10


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, Python, and the instructions that matter for speed."""
    info = _read_cpuinfo()
    flags = set(info.get("flags", info.get("Features", "")).split())
    return {
        "python": platform.python_version(),
        "processor": info.get("model name", platform.machine()),
        "n_cores": os.cpu_count(),
        "omp_threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "instructions": [name for name in _INSTRUCTIONS if name in flags],
        "bf16": not flags.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"}),
    }


def _read_cpuinfo() -> dict[str, str]:
    """Read what Linux says of the first core; nothing on other systems."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in reversed(lines))
    return {key.strip(): value.strip() for key, _, value in pairs}
