"""Input limits against decompression bombs, XML entity expansion and huge values.

Two limits apply to all readers and can be raised by environment variables. A compressed file may
expand to ``BIOGRAFT_MAX_EXPANSION`` MiB, or to 200 times its size if that is more; the same holds
for XML entities. A single value (a JSON value, an XML element, a file that is one document) may
have ``BIOGRAFT_MAX_VALUE`` MiB.

Bytes and lines of source files, plain or compressed; damage is reported with file and line.

All functions raise an :class:`~biograft.errors.InputError` for a file that cannot be used: missing,
a folder, empty, truncated gzip, wrong encoding, NUL bytes, an endless line, or a decompression bomb
(:mod:`biograft.kb.sources.files`).
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from biograft.errors import ConfigError, EncodingError, FormatError, InputError

if TYPE_CHECKING:
    from typing_extensions import Buffer

EXPANSION, VALUE = "BIOGRAFT_MAX_EXPANSION", "BIOGRAFT_MAX_VALUE"
RATIO = 200
"""Compressed text has typically a fifth, at least a fiftieth of its size."""
_DEFAULTS = {EXPANSION: 64, VALUE: 16}
_MIB = 1 << 20
_BUFFER_FACTOR = 4
"""The limit of a buffer, as a multiple of the expansion limit."""
_OBJECT_BYTES = 100
"""Overhead of a Python string and its container, in bytes."""


def max_expansion() -> int:
    """Return the bytes that a compressed file may expand to, whatever its size."""
    return _limit(EXPANSION)


def max_value() -> int:
    """Return the maximum bytes of a single value."""
    return _limit(VALUE)


def _limit(name: str) -> int:
    setting = os.environ.get(name, "").strip()
    if not setting:
        return _DEFAULTS[name] * _MIB
    if not (setting.isascii() and setting.isdecimal() and 0 < len(setting) < 10 and int(setting)):
        raise ConfigError(f"{name}: expected a number of MiB, found {setting!r}")
    return int(setting) * _MIB


class ExpansionLimit:
    """Checks the expansion of one file while it is read."""

    def __init__(self, path: Path) -> None:
        self._path, self._max_bytes = path, max_expansion()

    def exceeds(self, packed: int, unpacked: int) -> bool:
        """Return whether data becomes too large.

        Args:
            packed: Bytes of it that were read.
            unpacked: Bytes that they became.
        """
        return unpacked > self._max_bytes and unpacked > RATIO * packed

    def check(self, packed: int, unpacked: int, action: str = "unpacked") -> None:
        """Raise an error if data becomes too large.

        Args:
            packed: Bytes of it that were read.
            unpacked: Bytes that they became.
            action: What is done to it, for the message.
        """
        if self.exceeds(packed, unpacked):
            raise InputError(
                f"becomes more than {self._max_bytes // _MIB} MiB and {RATIO} times its size when "
                f"{action}",
                path=self._path,
                remedy=raise_limit(EXPANSION),
            )


class BufferLimit:
    """Checks the memory of a record that is buffered until it is complete.

    Args:
        subject: What is buffered, for the error.
        path: File it is from.
    """

    def __init__(self, subject: str, path: Path) -> None:
        self._what, self._path, self._max_bytes = subject, path, _BUFFER_FACTOR * max_expansion()
        self._size = 0

    def add(self, text: str, line: int | None = None) -> None:
        """Count a buffered text.

        Args:
            text: The text.
            line: Its line, for the error.
        """
        self._size += len(text) + _OBJECT_BYTES
        if self._size > self._max_bytes:
            raise FormatError(
                f"{self._what} takes more than {self._max_bytes // _MIB} MiB of memory",
                path=self._path,
                line=line,
                remedy=raise_limit(EXPANSION),
            )

    def clear(self) -> None:
        """Start over with the next record."""
        self._size = 0


def too_large(subject: str, path: Path, line: int | None = None) -> FormatError:
    """Return the error for a value above the limit.

    Args:
        subject: The value.
        path: The file.
        line: Its line.
    """
    return FormatError(
        f"{subject} of over {max_value() // _MIB} MiB",
        path=path,
        line=line,
        remedy=raise_limit(VALUE),
    )


def raise_limit(name: str) -> str:
    """Return the remedy that names the variable of a limit."""
    return (
        f"if the file is valid, set the environment variable {name} to more than "
        f"{_limit(name) // _MIB} (MiB)"
    )


GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 1 << 16
BLOCK_BYTES = 16 << 20
"""Large enough for polars to use all cores, small enough for memory to be reused."""
MAX_LINE_BYTES = 8 << 20
"""A longer line counts as damage."""

_BZIP2_MAGIC, _XZ_MAGIC = b"BZh", b"\xfd7zXZ\x00"
_OTHER_ARCHIVES = {b"PK\x03\x04": "zip", _BZIP2_MAGIC: "bzip2", _XZ_MAGIC: "xz"}
_INCREMENTAL = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError),
    *(UnicodeDecodeError, OverflowError),
)
"""Errors that zipfile raises for damaged archives, including member names and versions."""
_ENCRYPTED = 1
"""The flag of an encrypted member of a zip."""
_READ_BYTES = 1 << 20

_TAR_PACKED: Mapping[bytes, Callable[[IO[bytes]], Any]] = {
    GZIP_MAGIC: lambda raw: gzip.GzipFile(fileobj=raw),
    _BZIP2_MAGIC: bz2.BZ2File,
    _XZ_MAGIC: lzma.LZMAFile,
}
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a plain or gzipped file for reading its decompressed bytes."""
    raw, magic = _open(path)
    for mark, kind in _OTHER_ARCHIVES.items():
        if magic.startswith(mark):
            raw.close()
            raise InputError(f"is a {kind} archive", path=path, remedy="unpack it first")
    if not magic.startswith(GZIP_MAGIC):
        return raw
    try:
        packed = raw.seek(0, io.SEEK_END)
        raw.seek(max(packed - 4, 0))
        size = int.from_bytes(raw.read(), "little")  # of the last member, modulo 4 GiB
        raw.seek(0)
        if ExpansionLimit(path).exceeds(packed, size):
            # fail before the first of very many rows is read
            with path.open("rb") as again, _unpacked(path, again) as file:
                while file.read(_READ_BYTES):
                    pass
    except BaseException:
        raw.close()
        raise
    return cast("IO[bytes]", _unpacked(path, raw))


def _unpacked(path: Path, raw: IO[bytes]) -> _UnpackedFile:
    return _UnpackedFile(path, raw, cast("IO[bytes]", gzip.GzipFile(fileobj=raw)))


def open_stored(path: Path) -> IO[bytes]:
    """Open a file for reading its bytes as stored; what is no regular file could block forever."""
    try:
        if path.is_dir():
            raise InputError("is a folder, expected a file", path=path, remedy="name a file in it")
        if exists(path) and not path.is_file():
            raise InputError("is a pipe or device", path=path, remedy="save it as a file first")
        if type(path) is not type(Path()):  # it is in memory, or decodes another file
            return path.open("rb")
        return io.BufferedReader(_StoredFile(path))
    except (FileNotFoundError, ValueError) as error:  # the latter for a NUL in the path
        raise InputError("does not exist", path=path, remedy="check the path") from error
    except OSError as error:
        raise _unreadable(path, error) from error


class _StoredFile(io.FileIO):
    """A file on disk; an error while it is read names it, so that it is not taken for the output's.

    The command line knows of an ``OSError`` only that something could not be read or written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path

    def readinto(self, buffer: Buffer) -> int | None:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def readall(self) -> bytes:
        try:
            return super().readall()
        except OSError as error:
            raise _unreadable(self._path, error) from error


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be read ({error.strerror})", path=path)


def _open(path: Path) -> tuple[IO[bytes], bytes]:
    """Open a file that is not empty, and return its first bytes."""
    raw = open_stored(path)
    try:
        magic = raw.read(6)
        raw.seek(0)
        if not magic:
            raise InputError("is empty", path=path, remedy="check that the download is complete")
    except BaseException:
        raw.close()
        raise
    return raw, magic


@contextlib.contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; damage to it raises an ``InputError``."""
    with _zip_explained(path):
        archive = zipfile.ZipFile(path)
    with archive:
        yield archive


@contextlib.contextmanager
def _zip_explained(path: Path) -> Iterator[None]:
    """Turn whatever zipfile says of damaged archives into one clear line."""
    try:
        yield
    except (PermissionError, FileNotFoundError):
        raise
    except _ZIP_ERRORS as error:
        raise InputError(
            f"its zip data is damaged or cut short ({error or 'it ends too early'})",
            path=path,
            remedy="fetch the file again",
        ) from error


def read_members(
    archive: zipfile.ZipFile, path: Path, names: Iterable[str], max_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """Read at most ``max_bytes`` bytes of each of the named members of a zip.

    Args:
        archive: An opened zip.
        path: Its path, for errors.
        names: Members to read, in this order.
        max_bytes: Bytes of each that are read.
    """
    expansion, size, n_bytes = ExpansionLimit(path), path.stat().st_size, 0
    for name in names:
        entry = archive.getinfo(name)
        if entry.flag_bits & _ENCRYPTED:
            raise InputError(f"{name} is encrypted", path=path, remedy="unpack it first")
        if entry.compress_type not in _INCREMENTAL:
            # only these are decompressed incrementally
            raise InputError(f"{name} is not packed by deflate", path=path, remedy="unpack it")
        with _zip_explained(path), archive.open(name) as member:
            data = member.read(max_bytes)
        n_bytes += len(data)
        expansion.check(size, n_bytes)
        yield name, data


@contextlib.contextmanager
def open_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar archive, compressed or not, for one sequential pass."""
    raw, magic = _open(path)
    unpack = next((unpack for mark, unpack in _TAR_PACKED.items() if magic.startswith(mark)), None)
    try:
        with (
            _TarFile(path, raw, unpack(raw) if unpack else raw) as file,
            tarfile.open(fileobj=cast("IO[bytes]", file), mode="r:") as tar,
        ):
            yield tar
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise InputError(
            f"is no tar archive, or damaged ({error})", path=path, remedy="fetch it again"
        ) from error


class ReadStream(io.RawIOBase):
    """A stream of bytes that defines ``read``."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Read bytes into a buffer; return their number."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _UnpackedFile(ReadStream):
    """The decompressed bytes of a file, within the expansion limit."""

    def __init__(self, path: Path, raw: IO[bytes], file: IO[bytes]) -> None:
        self._path, self._raw, self._file = path, raw, file
        self._expansion, self._n_read = ExpansionLimit(path), 0

    def read(self, size: int = -1) -> bytes:
        try:
            return self._read_some(size) if size >= 0 else b"".join(iter(self._read_some, b""))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"its gzip data is damaged or cut short ({error})",
                path=self._path,
                remedy="fetch the file again",
            ) from error

    def _read_some(self, size: int = _READ_BYTES) -> bytes:
        data = self._file.read(size)
        self._n_read += len(data)
        self._expansion.check(self._raw.tell(), self._n_read)
        return data

    def tell(self) -> int:
        return self._raw.tell()

    def close(self) -> None:
        self._file.close()
        self._raw.close()
        super().close()


class _TarFile(_UnpackedFile):
    """The bytes of a tar archive, read forwards and in bounded steps."""

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._n_read

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._n_read:
            raise io.UnsupportedOperation("a tar archive is read forwards")
        while self._n_read < offset and self._read_some(min(_READ_BYTES, offset - self._n_read)):
            pass
        return self._n_read

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= max_value():
            raise too_large("a header", self._path)
        return self._read_some(size)


def read_head(path: Path) -> bytes:
    """Read the first decompressed bytes of a file, to recognise its format."""
    with open_bytes(path) as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise InputError("is empty", path=path, remedy="check that the download is complete")
    return head


def exists(path: Path) -> bool:
    """Whether a file or folder exists; False for names that the system does not allow."""
    try:
        return path.exists()
    except OSError:
        return False


def is_empty(path: Path) -> bool:
    """Whether a file, plain or gzipped, is empty."""
    with open_stored(path) as raw:
        if not raw.read(1):
            return True
    with open_bytes(path) as file:
        return not file.read(1)


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Read a whole file as text (for formats that are one document).

    Args:
        path: The file, also gzipped.
        encoding: Its encoding.
    """
    with open_bytes(path) as file:
        data = file.read()
    return decode(data, path, 1, encoding)


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Complete lines of a file: their bytes and the number of the first line."""

    data: bytes
    first: int
    fraction: float
    """The fraction of the file up to the end of these lines."""


def read_line_blocks(path: Path, size: int = BLOCK_BYTES) -> Iterator[LineBlock]:
    """Read a file as blocks of complete lines.

    Args:
        path: The file, also gzipped.
        size: Bytes of a block.
    """
    total = max(path.stat().st_size, 1) if path.is_file() else 1
    first = 1
    with open_bytes(path) as raw:
        file = io.BufferedReader(raw) if isinstance(raw, io.RawIOBase) else raw
        while data := file.read(size):
            if not data.endswith(b"\n"):
                data += file.readline(MAX_LINE_BYTES + 1)
            if first == 1:
                refuse_utf16(data, path)
                data = data.removeprefix(codecs.BOM_UTF8)
            _check_bytes(data, path, first)
            yield LineBlock(data, first, min(raw.tell() / total, 1.0))
            first += data.count(b"\n")


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Read the lines of a file with their numbers, without line ends.

    Args:
        path: The file, also gzipped.
        encoding: Its encoding.
    """
    if encoding.lower().startswith(("utf-16", "utf16")):
        yield from number_lines(read_text(path, encoding))
        return
    for block in read_line_blocks(path, 1 << 20):
        yield from number_lines(decode(block.data, path, block.first, encoding), block.first)


def number_lines(text: str, first: int = 1) -> Iterator[tuple[int, str]]:
    r"""Number the lines of a text; unlike ``splitlines``, only a line feed ends one.

    Args:
        text: Text of complete lines.
        first: Number of the first line.

    >>> list(number_lines("a\u2028b\r\nc"))
    [(1, 'a\u2028b'), (2, 'c')]
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, first):
        yield number, line[:-1] if line.endswith("\r") else line


def decode(data: bytes, path: Path, first: int, encoding: str) -> str:
    """Decode bytes that begin at line ``first`` of a file; an error names the line.

    Args:
        data: Bytes.
        path: Their file, for errors.
        first: Line at which they begin.
        encoding: Their encoding; UTF-8 may have a byte order mark.
    """
    try:
        return data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except LookupError as error:
        raise ConfigError(f"no encoding is called {encoding!r}") from error
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        guess = "gb18030" if is_gb18030(data[:HEAD_BYTES]) else "latin-1"
        raise EncodingError(
            f"byte 0x{data[error.start]:02x} is not {encoding}",
            path=path,
            line=line,
            text=data.split(b"\n")[line - first].decode(encoding, errors="replace"),
            remedy=f"name the encoding (encoding {guess}?)",
        ) from error
    except UnicodeError as error:  # codecs that are not for files, such as idna
        raise EncodingError(
            f"is not {encoding} ({error})", path=path, line=first, remedy="name another encoding"
        ) from error


_COMMON_CHINESE = range(0xB0, 0xD8)
"""First bytes of the common characters of GB 2312, which most in Chinese texts are."""
_KOREAN = range(0xB0, 0xC9)
"""The part of these bytes that every character of a Korean text in EUC-KR has, too."""
_MIN_COMMON = 20


def is_gb18030(head: bytes) -> bool:
    """Whether bytes are Chinese text in GB18030 and not UTF-8; the last line may be cut.

    Args:
        head: The first bytes of a file.
    """
    whole = head[: head.rfind(b"\n") + 1] or head
    with contextlib.suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(whole)
        return False
    try:
        text = codecs.getincrementaldecoder("gb18030")().decode(whole)
    except UnicodeDecodeError:
        return False
    leads = [char.encode("gb18030")[0] for char in text if not char.isascii()]
    common = [lead for lead in leads if lead in _COMMON_CHINESE]
    is_korean = len(common) > _MIN_COMMON and all(lead in _KOREAN for lead in common)
    return len(common) > 0.5 * len(leads) and not is_korean


def shown_encoding(head: bytes, configured: str) -> str:
    """Return the configured encoding; by default UTF-16 or GB18030 where the first bytes show it.

    Args:
        head: The first bytes of a file.
        configured: Name of the encoding.
    """
    is_default = configured.lower() in ("utf-8", "utf8")
    if is_default and head.startswith(_UTF16_BOMS):
        return "utf-16"
    return "gb18030" if is_default and is_gb18030(head) else configured


def refuse_utf16(head: bytes, path: Path) -> None:
    """Raise an ``EncodingError`` for a file that begins as UTF-16.

    Args:
        head: First bytes of the file.
        path: The file.
    """
    if head.startswith(_UTF16_BOMS):
        raise EncodingError("is UTF-16", path=path, line=1, remedy="convert it to UTF-8 first")


def _check_bytes(data: bytes, path: Path, first: int) -> None:
    """Raise a ``FormatError`` for NUL bytes and endless lines."""
    if (position := data.find(b"\x00")) >= 0:
        raise FormatError(
            "holds a NUL byte",
            path=path,
            line=first + data.count(b"\n", 0, position),
            remedy="the file is damaged or not text; fetch it again",
        )
    if len(data) > MAX_LINE_BYTES:
        start = 0
        while len(data) - start > MAX_LINE_BYTES:
            # jump back from the last allowed end: few steps even in large blocks
            end = data.rfind(b"\n", start, start + MAX_LINE_BYTES + 1) + 1
            if end <= start:
                raise FormatError(
                    f"a line of over {MAX_LINE_BYTES >> 20} MiB",
                    path=path,
                    line=first + data.count(b"\n", 0, start),
                    text=data[start : start + 200].decode("utf-8", errors="replace"),
                    remedy="line ends are missing, or the format is another; name it",
                )
            start = end
