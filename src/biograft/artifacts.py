"""Artifacts on disk: atomic writes, and a JSON manifest with format, version and provenance.

Each kind of artifact declares an :class:`ArtifactKind`. It writes the manifest; on reading, it
refuses in one line a folder that is missing, damaged, of another kind or of another version.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import filecmp
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from threading import Event
from tokenize import TokenError
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


import biograft
from biograft.errors import BiograftError, OutputError, StoreError, shorten

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_NO_FILE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG}
"""Errors where no file can be created beside a path."""
_PAUSE = 0.1


class _Held(threading.local):
    """The paths whose locks this thread holds; they cover everything below them."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()


_held = _Held()


@contextlib.contextmanager
def lock_path(target: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a path, and everything below it, for the duration of the block.

    The path need not exist, but its parent folder must.

    Args:
        target: File or folder.
        wait: Wait for another process or thread that holds the lock; without, it is an error.
    """
    target = Path(os.path.realpath(target))
    if not target.name or not _held.paths.isdisjoint({target, *target.parents}):
        yield
        return
    lock = _acquire(target, wait=wait)
    _held.paths.add(target)
    try:
        yield
    finally:
        _held.paths.discard(target)
        if lock is not None:
            _release(*lock)


def is_alive(pid: int) -> bool:
    """Whether a process of this host is running; Windows cannot say, so that all are there."""
    if os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _acquire(target: Path, *, wait: bool) -> tuple[Path, int] | None:
    """Acquire the lock of a path: its open file; None where no file can be created beside it."""
    path = target.with_name(f".{target.name}.lock")
    attempt = _try if _has_locks(path.parent) else _try_alone
    while True:
        try:
            file = attempt(path)
        except OSError as error:
            if error.errno in _NO_FILE and target.is_dir():
                return None  # such as a mounted volume, which is written in itself
            raise
        if file is not None:
            os.truncate(file, 0)
            os.write(file, f"{os.getpid()} {socket.gethostname()}".encode())
            return path, file
        if not wait:
            raise OutputError(
                f"{target}: written by {_holder(path)}; wait until it has ended, or choose "
                "another place"
            )
        time.sleep(_PAUSE)


def _try(path: Path) -> int | None:
    """Open and lock a lock file; None if another process holds it."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_under(path, file):
                return file
        except BlockingIOError:
            os.close(file)
            return None
        except OSError:
            os.close(file)
            raise
        os.close(file)  # its holder has removed it meanwhile


def _try_alone(path: Path) -> int | None:
    """Create a lock file; None if a running process has it."""
    for _ in range(2):
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        pid, host = _read(path)
        if host != socket.gethostname() or is_alive(pid):
            return None
        path.unlink(missing_ok=True)
    return None


def _release(path: Path, file: int) -> None:
    is_own = _is_under(path, file)
    if fcntl is None:
        os.close(file)  # Windows removes no open file
    with contextlib.suppress(OSError):
        if is_own:
            path.unlink()
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # forked processes have the file open, too
        os.close(file)


def _has_locks(folder: Path) -> bool:
    """Whether the file system of a folder supports locks."""
    if fcntl is None:
        return False
    try:
        file = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _is_under(path: Path, file: int) -> bool:
    """Whether an open file is the one that has this name now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    """Name the process that holds a lock, and since when."""
    pid, host = _read(path)
    since = ""
    with contextlib.suppress(OSError):
        since = time.strftime(" since %Y-%m-%d %H:%M:%S", time.localtime(path.stat().st_mtime))
    if pid and host == socket.gethostname():
        return f"process {pid}{since}"
    other = f"process {pid} of {host}" if pid else "another process"
    return f"{other}{since} (if it is gone, remove {path})"


def _read(path: Path) -> tuple[int, str]:
    """Read the process and host that hold a lock; 0 and empty if unknown."""
    try:
        pid, _, host = path.read_text(encoding="utf-8").partition(" ")
        return int(pid), host
    except (OSError, ValueError):
        return 0, ""


Array: TypeAlias = "npt.NDArray[Any]"
Mode = Literal["r", "r+", "c"]

_FAULTS = (OSError, ValueError, TypeError, ArithmeticError, SyntaxError, TokenError)
"""Errors that numpy raises for foreign or damaged files."""


def open_array(path: Path, *kinds: type[np.generic], n_axes: int = 1, mode: Mode = "r") -> Array:
    """Map one array into memory, if its numbers are of one of these kinds.

    Args:
        path: The ``.npy`` file.
        n_axes: Number of axes that it must have.
        mode: ``r`` only reads; ``r+`` writes to the file; ``c`` keeps changes in memory.
        kinds: Types of numbers that are accepted.
    """
    import numpy as np

    try:
        with np.errstate(over="raise"):  # of sizes that no array can have
            array: Array = np.lib.format.open_memmap(path, mode=mode)
    except _FAULTS as error:
        raise ValueError(f"{path.name}: {' '.join(str(error).split())}") from error
    if array.dtype not in map(np.dtype, kinds) or array.ndim != n_axes:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{path.name}: expected {n_axes} axes of {expected}, found {array.ndim} of "
            f"{array.dtype}"
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError(f"{path.name}: its numbers do not lie as they are written here")
    return array


Size: TypeAlias = "str | int"
"""A number, or the name of a size; in a shape also one more than it: ``"nodes + 1"``."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array of an artifact: its type, its shape, and the numbers that it may hold."""

    kinds: str
    """Types of its numbers, such as ``uint32 int64``."""
    shape: tuple[Size, ...]
    """The size of each axis. The first array with a size that is not known yet says how large it
    is."""
    low: float | None = None
    """Smallest number."""
    high: float | None = None
    """Largest number."""
    below: str = ""
    """A size that is larger than each number."""
    ends: str = ""
    """A size: the array holds positions, which never go back, up to it."""
    first: int = 0
    """First of the positions."""
    outer: bool = False
    """Check only the first and the last position; the reader of those between
    checks them."""
    rising: bool = False
    """Whether each number is larger than the one before."""


def open_arrays(
    folder: Path, specs: Mapping[str, ArraySpec], *, mode: Mode = "r", **sizes: int
) -> dict[str, Array]:
    """Map arrays of a folder into memory; ``ValueError`` if they are not as declared.

    Args:
        folder: Folder with a file ``NAME.npy`` for each array.
        specs: The arrays by name.
        mode: As of ``numpy.load``: ``c`` for compiled loops, which need writable arrays.
        sizes: Sizes that are known, such as the number of names of a store.
    """
    import numpy as np

    arrays: dict[str, Array] = {}
    for name, spec in specs.items():
        kinds = [np.dtype(kind).type for kind in spec.kinds.split()]
        path, n_axes = folder / f"{name}.npy", len(spec.shape)
        array: Array = np.asarray(open_array(path, *kinds, n_axes=n_axes, mode=mode))
        expected = []
        for size, found in zip(spec.shape, array.shape, strict=True):
            known, _, more = str(size).partition(" + ")
            least = int(more or 0)
            number = int(known) if known.isdigit() else sizes.setdefault(known, found - least)
            expected.append(number + least)
        check_length(name, array, *expected)
        arrays[name] = array
    for name, spec in specs.items():
        _check_numbers(name, arrays[name], spec, sizes)
    return arrays


def _check_numbers(name: str, array: Array, spec: ArraySpec, sizes: Mapping[str, int]) -> None:
    low = -math.inf if spec.low is None else spec.low
    high = math.inf if spec.high is None else spec.high
    if spec.below:
        high = sizes[spec.below] - 1
    if (low, high) != (-math.inf, math.inf):
        check_range(name, array, low, high)
    if spec.ends:
        check = check_outer_ends if spec.outer else check_ends
        check(name, array, sizes[spec.ends], first=spec.first)
    if spec.rising and not bool((array[1:] > array[:-1]).all()):
        raise ValueError(f"{name}: expected numbers that rise")


def save_arrays(folder: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write arrays into a folder, each as ``NAME.npy``.

    Args:
        folder: An existing folder.
        arrays: The arrays by name.
    """
    for name, array in arrays.items():
        save_array(folder / f"{name}.npy", array)


def create_array(path: Path, kind: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """Create an array on disk, mapped into memory for writing, with all its space reserved.

    Args:
        path: The ``.npy`` file; one that exists is replaced.
        kind: Type of its numbers.
        shape: Length of each axis.
    """
    import numpy as np

    array: Array = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)
    with path.open("r+b") as file:
        reserve(file)
    return array


def reserve(file: IO[bytes]) -> None:
    """Reserve the space of a file of holes; a full disk is an ``OSError`` here.

    Later it would be a signal (SIGBUS), which ends the process where it writes to the mapped file.
    """
    if hasattr(os, "posix_fallocate") and (size := os.fstat(file.fileno()).st_size):
        os.posix_fallocate(file.fileno(), 0, size)


def save_array(path: Path, array: npt.ArrayLike) -> None:
    """Write one array, the bytes of ``np.save``; an error of the disk keeps its number.

    numpy writes to a file itself, and says of a full disk only how many numbers it has written.

    Args:
        path: The ``.npy`` file.
        array: The array.
    """
    import numpy as np

    with path.open("wb") as file:
        plain: Any = SimpleNamespace(write=file.write)
        np.lib.format.write_array(plain, np.asanyarray(array), allow_pickle=False)


def check_length(name: str, array: Array, *shape: int) -> None:
    """Refuse an array of another shape.

    Args:
        name: Name of the array in the error.
        array: The array.
        shape: Expected length of each axis.
    """
    if array.shape != shape:
        raise ValueError(f"{name}: expected {_times(shape)} numbers, found {_times(array.shape)}")


def check_range(name: str, array: Array, low: float, high: float) -> None:
    """Refuse numbers below ``low`` or above ``high``, and NaN.

    Args:
        name: Name of the array in the error.
        array: The array; an empty one is in any range.
        low: Smallest number allowed.
        high: Largest number allowed.
    """
    if not array.size:
        return
    first, last = array.min().item(), array.max().item()
    if not (low <= first and last <= high):
        raise ValueError(f"{name}: expected {low} to {high}, found {first} to {last}")


def check_ends(name: str, ends: Array, last: int, *, first: int = 0) -> None:
    """Refuse positions that do not ascend from ``first`` to ``last``.

    Args:
        name: Name of the array in the error.
        ends: Positions, of any shape.
        last: Expected last position.
        first: Expected first position.
    """
    check_outer_ends(name, ends, last, first=first)
    flat = ends.reshape(-1)
    if not bool((flat[1:] >= flat[:-1]).all()):
        raise ValueError(f"{name}: expected positions that never go back")


def check_outer_ends(name: str, ends: Array, last: int, *, first: int = 0) -> None:
    """Refuse positions of which the first and the last are others; those between are not read.

    Args:
        name: Name of the array in the error.
        ends: Positions, of any shape.
        last: Expected last position.
        first: Expected first position.
    """
    if not ends.size or (ends.flat[0], ends.flat[-1]) != (first, last):
        found = f"{ends.flat[0]} to {ends.flat[-1]}" if ends.size else "none"
        raise ValueError(f"{name}: expected positions from {first} to {last}, found {found}")


def _times(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


MANIFEST = "manifest.json"
UNFINISHED = "output"
"""Name of an output in its :func:`unfinished_folder`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactKind:
    """An artifact type: format, version, wording of errors."""

    format: str
    version: int
    called: str
    """Name in messages, such as ``dense index``."""
    remedy: str
    """Remedy if damaged."""
    absent: str = ""
    """Remedy if missing; defaults to ``remedy``."""
    file: str = MANIFEST
    """The manifest's name in the folder that it describes; empty: a file stands for itself."""
    keys: tuple[str, ...] = ()
    """Required manifest keys."""

    @contextlib.contextmanager
    def new(
        self, folder: Path, content: Mapping[str, Any], *, overwrite: bool = False
    ) -> Iterator[Path]:
        """Write a folder: its files in the body of the statement, then its manifest.

        Args:
            folder: Where the folder is when the body has ended.
            content: The manifest, without the sizes and hashes of the files.
            overwrite: Replace an earlier folder.

        Yields:
            The folder to write the files to.
        """
        with new_folder(folder, overwrite=overwrite) as work:
            yield work
            self.write(work, {**content, "files": describe_files(work)})

    def write(
        self, path: Path, content: Mapping[str, Any], *, overwrite: bool = False
    ) -> dict[str, Any]:
        """Write the manifest of a folder, or the file; return its content.

        One that says the same but for its date stays, with its date.

        Args:
            path: The folder, or the path itself of an artifact that is one file.
            content: Entries beside format, version, maker and date; plain JSON values.
            overwrite: Replace a manifest that exists; without, it is an error.
        """
        manifest: dict[str, Any] = {
            "format": self.format,
            "version": self.version,
            "made_by": f"biograft {biograft.__version__}",
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            **content,
        }
        plain = json.loads(json.dumps(manifest))  # keys as they are read again
        earlier = peek(path / self.file) if overwrite else {}
        if _without_date(earlier) == _without_date(plain) and _is_unchanged(earlier):
            return {key: value for key, value in earlier.items() if key != CHECKSUM}
        written = {**manifest, CHECKSUM: _checksum(plain)}
        with new_file(path / self.file, overwrite=overwrite) as file:
            file.write(_rendered(written))
            file.flush()
            os.fsync(file.fileno())  # readers rely on a manifest that they find
        return manifest

    def read(self, path: Path) -> dict[str, Any]:
        """Read the manifest of a folder, or the file."""
        manifest = self._load(path)
        found = manifest.get("format") if isinstance(manifest, dict) else None
        if found is None:
            raise StoreError(
                f"{path / self.file}: states no format, so it is no {self.called}; {self._none}"
            )
        if found != self.format:
            raise StoreError(f"{path}: no {self.called} but {shorten(repr(found))}; {self._none}")
        version = manifest.get("version")
        if version != self.version:
            newer = isinstance(version, int) and version > self.version
            raise StoreError(
                f"{path}: {self.called} of version {shorten(repr(version))}, this biograft reads "
                f"version {self.version}; {'update biograft, or ' if newer else ''}{self.remedy}"
            )
        for key in self.keys:
            if key not in manifest:
                raise self.damaged(path / self.file, f"{key} is missing")
        if not _is_unchanged(manifest):
            raise self.damaged(path / self.file, _CHANGED)
        return {key: value for key, value in manifest.items() if key != CHECKSUM}

    def is_at(self, path: Path) -> bool:
        """Whether a folder or file is of this kind, of any version."""
        return bool(peek(path / self.file).get("format") == self.format)

    def is_free(self, path: Path) -> bool:
        """Whether one can begin at a path: nothing but what a killed writer left is there."""
        remove_abandoned(path / self.file)
        return not path.exists() or _is_empty_folder(path)

    def check_files(
        self, folder: Path, manifest: Mapping[str, Any], *, hashes: bool = False
    ) -> None:
        """Refuse a folder in which a file has not the size, or hash, that its manifest says.

        Args:
            folder: Folder of the artifact.
            manifest: Its manifest, whose ``files`` has the size and the hash of each file.
            hashes: Also compare the hashes, which reads every file.
        """
        files = manifest.get("files")
        if not isinstance(files, Mapping):
            raise self.damaged(folder / self.file, "the sizes of files are missing")
        if not all(isinstance(entry, Mapping) and "sha256" in entry for entry in files.values()):
            raise StoreError(
                f"{folder}: {self.called} of an earlier biograft, without hashes; {self.remedy}"
            )
        for name, problem in find_changed_files(folder, files, hashes=hashes):
            raise self.damaged(folder / name, problem)

    def damaged(self, path: Path, why: object) -> StoreError:
        """Say that a file is damaged, and what to do.

        Args:
            path: The file.
            why: What is wrong with it.
        """
        reason = " ".join(str(why).split())  # those of other libraries may have several lines
        return StoreError(f"{path}: damaged ({reason}); {self.remedy}")

    @property
    def _none(self) -> str:
        return self.absent or self.remedy

    def _load(self, path: Path) -> Any:
        file = path / self.file
        try:
            return json.loads(_content(file))
        except (FileNotFoundError, NotADirectoryError) as error:
            if self.file and path.is_dir():
                message = f"{path}: holds no {self.file}, so it is no {self.called}; {self._none}"
            else:
                message = f"{path}: no such {self.called}; {self._none}"
            raise StoreError(message) from error
        except OSError as error:
            message = f"{path}: no {self.called} can be read ({error.strerror}); {self._none}"
            raise StoreError(message) from error
        except (ValueError, RecursionError) as error:
            raise self.damaged(file, error) from error


def _content(file: Path) -> bytes:
    """Read a regular file; pipes and devices, which could block, are errors."""
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe or a device")
    return file.read_bytes()


def peek(path: Path) -> dict[str, Any]:
    """Read a manifest of any format and version; nothing if there is none or it is damaged."""
    try:
        content = json.loads(_content(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


CHECKSUM = "checksum"
"""The key of a manifest's own hash, which covers all other keys."""
_CHANGED = "its content is not what was written"


def _checksum(manifest: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a manifest as it is read, whatever the order of its keys."""
    content = {key: value for key, value in manifest.items() if key != CHECKSUM}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _rendered(manifest: Mapping[str, Any]) -> bytes:
    return (json.dumps(manifest, ensure_ascii=False, indent=1) + "\n").encode()


def _is_unchanged(manifest: Mapping[str, Any]) -> bool:
    return CHECKSUM not in manifest or manifest[CHECKSUM] == _checksum(manifest)


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Give the size and the hash of every file in a folder, and in the folders inside."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hash_file(path),
        }
        for path in paths
    }


def find_changed_files(
    folder: Path, files: Mapping[str, Any], *, hashes: bool
) -> Iterator[tuple[str, str]]:
    """Yield the files of a folder that are not as described, and what is wrong with each.

    Args:
        folder: Folder of the files.
        files: Size (``bytes``) and hash (``sha256``) by the path of each file in the folder.
        hashes: Also compare the hashes, which reads every file.
    """
    for name, entry in files.items():
        path = folder / name
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            yield name, "a file outside of the folder"
            continue
        expected = entry if isinstance(entry, Mapping) else {}
        try:
            size = path.stat().st_size if path.is_file() else None
        except OSError:  # a name that no file can have
            size = None
        if size is None or size != expected.get("bytes"):
            found = "no file" if size is None else f"{size} bytes"
            yield name, f"expected {expected.get('bytes')} bytes, found {found}"
        elif hashes and hash_file(path) != expected.get("sha256"):
            yield name, _CHANGED


@dataclass(frozen=True, slots=True)
class CheckedArtifact:
    """An artifact that was compared with what its manifest says."""

    path: Path | str
    format: str
    n_files: int
    n_bytes: int
    problems: tuple[str, ...]
    """Problems, one line each; empty if all files are as written."""


def check_artifacts(path: Path) -> Iterator[CheckedArtifact]:
    """Read everything below a path that a manifest describes, and compare hashes."""
    files = [path] if path.is_file() else sorted(path.rglob("*.json"))
    for file in files:
        manifest = peek(file)
        if str(manifest.get("format")).startswith("biograft"):
            yield _check_artifact(file, manifest)
        elif file.name == MANIFEST:
            yield CheckedArtifact(file.parent, "unknown", 0, 0, (f"{file}: cannot be read",))


def _check_artifact(file: Path, manifest: Mapping[str, Any]) -> CheckedArtifact:
    problems = [] if _is_unchanged(manifest) else [f"{file}: {_CHANGED}"]
    described = manifest.get("files")
    files = described if isinstance(described, Mapping) else {}
    changed = find_changed_files(file.parent, files, hashes=True)
    problems += [f"{file.parent / name}: {problem}" for name, problem in changed]
    if manifest["format"] == ANNOTATION and not (file.parent / MANIFEST).exists():
        problems.append(f"{file.parent}: was not finished; continue it (--resume), or remove it")
    sizes = [entry.get("bytes", 0) for entry in files.values() if isinstance(entry, Mapping)]
    path = file.parent if file.name == MANIFEST else file
    return CheckedArtifact(path, manifest["format"], len(files), sum(sizes), tuple(problems))


ANNOTATION = "biograft-annotation"
"""Format of the plan of an annotation, which has a manifest beside it when it is finished."""
_HASH_CHUNK = 1 << 20
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Arguments of Linux's renameat2: relative to the working folder, and exchange."""
_WORK = re.compile(
    rf"\.([^/]+)\.{re.escape(socket.gethostname())}\.\d+-[0-9a-f]{{8}}\.(?:building|writing)"
)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")
"""Message of numpy for a file that was not written completely."""
_STATED = re.compile(r"\(os error (\d{1,4})\)")
"""Suffix of system errors in messages of Rust libraries, such as safetensors."""
_NO_PLACE = {
    *(errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG),
    *(errno.EBUSY, errno.ENOTEMPTY),
}
"""System errors of an invalid output path, such as a folder below a file."""


def hash_file(path: Path, stop: Event | None = None) -> str:
    """Compute the SHA-256 of a file's bytes as stored.

    Args:
        path: The file.
        stop: Gives up early once it is set.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while (chunk := file.read(_HASH_CHUNK)) and not (stop and stop.is_set()):
            digest.update(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def new_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give an empty working folder that becomes ``target`` when the block ends well.

    Nothing is seen under the target's name until everything is written. If the block raises
    (an interrupt too), the working folder is removed and an earlier target stays as it was.
    Working folders that a killed process of this host left behind are removed first. A second
    writer to the same path is refused as long as the block lasts. A target with the same files
    stays as it is, with its date. An empty working folder as a target is filled as it is.

    Args:
        target: Path of the folder.
        overwrite: Replace a folder that exists.
    """
    target = Path(os.path.realpath(target))  # a link as target stays a link
    if _WORK.fullmatch(target.name) and _is_empty_folder(target):
        yield target
        return
    _refuse_existing(target, overwrite)
    if target.exists() and not target.is_dir():
        raise _file_there(target)
    with sole_writer(target):
        with _explained(target):
            remove_abandoned(target)
            work = _work_name(target, "building")
        try:
            with _explained(target):
                work.mkdir()  # an interrupt right after it must find its way to the removal below
                yield work
                _swap(work, target, overwrite=overwrite)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise


@contextlib.contextmanager
def sole_writer(target: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a path for writing while the block lasts: other writers are refused, or wait.

    For what is written over a long time, or beside the path, before it is moved there; a
    ``new_folder`` of the same path, or below it, may be within.

    Args:
        target: File or folder.
        wait: Wait for another writer; without, it is an error.
    """
    with contextlib.ExitStack() as held:
        with _explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock_path(target, wait=wait))
        with _explained(target, "free space and start again,"):
            yield


@contextlib.contextmanager
def unfinished_folder(target: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a folder beside a target, for this user only, that stays when the block fails.

    What the block writes there as ``UNFINISHED``, a file or a folder, becomes the target when the
    block ends well; the folder is removed.

    Args:
        target: Path of the file or folder.
        overwrite: Replace one that exists.
    """
    target = Path(os.path.realpath(target))
    _refuse_existing(target, overwrite)
    folder = target.parent / f".{target.name}.unfinished"
    with sole_writer(target):
        folder.mkdir(mode=0o700, exist_ok=True)
        yield folder
        work = folder / UNFINISHED
        if work.is_dir():
            if target.is_file():
                raise _file_there(target)
            _swap(work, target, overwrite=overwrite)
        else:
            _refuse_existing(target, overwrite)  # another process may have made it meanwhile
            work.replace(target)
        shutil.rmtree(folder)


@contextlib.contextmanager
def new_file(target: Path, *, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when the block ends well.

    Args:
        target: Path of the file.
        overwrite: Replace a file that exists.
    """
    if target.is_symlink():
        target = Path(os.path.realpath(target))  # a link as target stays a link
    _refuse_existing(target, overwrite)
    with _explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(target)
    work = _work_name(target, "writing")
    try:
        with _explained(target):
            with work.open("wb") as file:
                yield file
            _refuse_existing(target, overwrite)  # another process may have made it meanwhile
            work.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):  # such as where nothing can be written
            work.unlink()
        raise


def write_lines(target: Path, lines: Iterable[str], *, overwrite: bool = False) -> int:
    """Write lines of text to a new file; return their number.

    Args:
        target: Path of the file.
        lines: The lines, without line ends.
        overwrite: Replace a file that exists.
    """
    n = 0
    with new_file(target, overwrite=overwrite) as file:
        for line in lines:
            file.write(f"{line}\n".encode())
            n += 1
    return n


def _refuse_existing(target: Path, overwrite: bool) -> None:
    with _explained(target):
        if not target.exists() or _is_empty_folder(target):
            return
        if not (target.is_file() or target.is_dir()):
            raise OutputError(f"{target}: is a pipe or a device, not replaced; name a file")
    if not overwrite:
        raise _exists(target)


def _file_there(target: Path) -> OutputError:
    return OutputError(f"{target}: is a file, and a folder is to be written there")


def _exists(target: Path) -> OutputError:
    return OutputError(
        f"{target}: exists already; remove it, choose another place, or allow it to be replaced "
        "(--overwrite)"
    )


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _work_name(target: Path, state: str) -> Path:
    """Return a hidden path beside a target; it names the process and the host that work there."""
    if not target.name:
        raise OutputError(f"{target}: is no place for a result; name a folder or file in it")
    host, run = socket.gethostname(), f"{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(f".{target.name}.{host}.{run}.{state}")


def remove_abandoned(target: Path) -> list[Path]:
    """Remove working folders and files of ``target`` whose process on this host is gone."""
    prefix, removed = f".{target.name}.{socket.gethostname()}.", []
    for folder in target.parent.glob(f"{_escaped(prefix)}*"):
        run, _, state = folder.name.removeprefix(prefix).partition(".")
        pid = run.partition("-")[0]
        known = state in ("building", "replaced", "writing")
        if pid.isdigit() and known and not is_alive(int(pid)):
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)
            else:
                folder.unlink(missing_ok=True)
            removed.append(folder)
    return removed


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _swap(work: Path, target: Path, *, overwrite: bool) -> None:
    """Put the finished folder in place; an older one is kept aside until that is done."""
    if _is_empty_folder(target):
        target.rmdir()
    if not target.exists():
        work.rename(target)
        return
    if not overwrite:
        raise _exists(target)  # another process made it meanwhile
    if _is_same(work, target) or _exchange(work, target):
        shutil.rmtree(work, ignore_errors=True)
        return
    old = work.with_suffix(".replaced")
    target.rename(old)
    try:
        work.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _without_date(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key not in ("made_at", CHECKSUM)}


def _is_same(a: Path, b: Path) -> bool:
    """Whether two folders have the same files, but for the dates of their manifests."""
    files = [{path.relative_to(each): path for path in each.rglob("*")} for each in (a, b)]
    if files[0].keys() != files[1].keys():
        return False
    pairs = [(path, files[1][name]) for name, path in files[0].items() if not path.is_dir()]
    pairs.sort(key=lambda pair: pair[0].stat().st_size)  # manifests first: they differ most often
    return all(_is_same_file(*pair) for pair in pairs)


def _is_same_file(a: Path, b: Path) -> bool:
    if not b.is_file() or b.is_symlink() != a.is_symlink():
        return False
    if a.stat().st_size == b.stat().st_size and filecmp.cmp(a, b, shallow=False):
        return True
    one, other = (peek(path) if path.suffix == ".json" else {} for path in (a, b))
    if "made_at" not in one or not _is_unchanged(other) or b.read_bytes() != _rendered(other):
        return False  # or damaged
    # the hashes of files follow the dates of their manifests; they are compared themselves
    return _without_date({**one, "files": ()}) == _without_date({**other, "files": ()})


def _exchange(a: Path, b: Path) -> bool:
    """Give two folders each other's name in one step, so that neither is ever missing.

    Only Linux can, and not on every file system; says whether it was done.
    """
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, TypeError, OSError):
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE)
    return done == 0


@contextlib.contextmanager
def _explained(target: Path, remedy: str = "nothing was kept; free space") -> Iterator[None]:
    """Turn what the operating system says while writing into one clear line."""
    try:
        yield
    except BiograftError:
        raise
    except Exception as error:
        number = _system_error(error)
        if number in _FULL:
            raise OutputError(
                f"{_shown(target)}: the disk is full; {remedy} or choose another place"
            ) from error
        if number in _NO_PLACE and isinstance(error, OSError):
            raise OutputError(
                f"{_shown(target)}: cannot be written ({error.strerror}); choose another place"
            ) from error
        if number is not None and (number == errno.EIO or not isinstance(error, OSError)):
            where = getattr(error, "filename", None)
            what = "a file" if where is None else _shown(where)
            raise OutputError(
                f"{_shown(target)}: was not finished, since {what} cannot be read or written "
                f"({os.strerror(number)}); look at the disk and start again"
            ) from error
        raise


def _shown(target: str | Path) -> str:
    """Write a path in a working folder as what it becomes."""
    return _WORK.sub(r"\1", str(target))


def _system_error(error: Exception) -> int | None:
    """Return the number of the system's error, which numpy hides and libraries in Rust write out.

    >>> _system_error(OSError("8 requested and 0 written")) == errno.ENOSPC
    True
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if isinstance(error, OSError) and _CUT_SHORT.search(str(error)):
        return errno.ENOSPC
    stated = _STATED.search(str(error))
    return int(stated[1]) if stated else None
