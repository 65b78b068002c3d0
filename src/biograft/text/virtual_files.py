"""Files that are not on disk as they are read: standard input, members of a zip, other encodings.

A :class:`VirtualFile` is a path that gives its own bytes. Every reader takes it in place of a file.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, cast

from biograft.errors import EncodingError, InputError
from biograft.kb.sources.files import (
    ReadStream,
    max_value,
    open_bytes,
    open_zip,
    read_members,
    shown_encoding,
    too_large,
)
from biograft.text.input_config import UTF_8

if TYPE_CHECKING:
    _Path = Path
else:
    _Path = type(Path())

STDIN = "-"
GB18030 = "gb18030"
READ_AS_GB18030 = (
    "is no UTF-8; read as Chinese text in GB18030 (if it is in another encoding, save it as UTF-8)"
)
_BLOCK = 1 << 16
_ADJACENT = re.compile(rb"[\x80-\xff]{2,}")


class VirtualFile(_Path):
    """A path whose bytes come from a function; its name is that of messages and documents."""

    opener: Callable[[], IO[bytes]]
    size: int

    @classmethod
    def of(cls, name: str | Path, opener: Callable[[], IO[bytes]], size: int) -> VirtualFile:
        """Make a file.

        Args:
            name: Name in messages, and of documents.
            opener: Opens its bytes.
            size: Number of bytes.
        """
        file = cls(name)
        file.opener, file.size = opener, size
        return file

    @classmethod
    def of_bytes(cls, name: str | Path, data: bytes) -> VirtualFile:
        """Make a file of bytes in memory.

        Args:
            name: Name in messages, and of documents.
            data: The bytes.
        """
        return cls.of(name, lambda: io.BytesIO(data), len(data))

    def open(self, mode: str = "rb", *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]
        """Open it for reading bytes.

        Args:
            mode: Ignored; the bytes are read.
        """
        return self.opener()

    def exists(self, **_: Any) -> bool:
        """It exists."""
        return True

    def is_dir(self, **_: Any) -> bool:
        """It is no folder."""
        return False

    def is_file(self, **_: Any) -> bool:
        """It is a file."""
        return True

    def stat(self, **_: Any) -> Any:
        """Return its size, as ``st_size``."""
        return SimpleNamespace(st_size=self.size)


def zip_members(path: Path) -> Iterator[VirtualFile]:
    """Read the files of a zip archive, sorted by name, each into memory."""
    with open_zip(path) as archive:
        entries = [entry.filename for entry in archive.infolist()]
        names = sorted(
            name for name in entries if name and not name.endswith("/") and not _is_hidden(name)
        )
        if not names:
            raise InputError("holds no file", path=path, remedy="check the archive")
        if any(name.endswith((".ann", ".ann.gz")) for name in names):
            raise InputError(
                "is a zip of brat files", path=path, remedy="unpack it, and name the folder"
            )
        for name, data in read_members(archive, path, names, max_value() + 1):
            if len(data) > max_value():
                raise too_large(f"{name} is a file", path)
            yield VirtualFile.of_bytes(path / name, data)


def is_zip(path: Path) -> bool:
    """Whether a file on disk is a zip archive."""
    return path.is_file() and zipfile.is_zipfile(path)


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


def transcoded(path: Path, encoding: str) -> VirtualFile:
    """Return a file of another encoding, plain or gzipped, as one of UTF-8; it is streamed.

    Args:
        path: The file.
        encoding: Its encoding.
    """
    return VirtualFile.of(
        path, lambda: cast("IO[bytes]", _Utf8Stream(path, encoding)), path.stat().st_size
    )


class _Utf8Stream(ReadStream):
    """The text of a file in another encoding, as bytes of UTF-8."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._path, self._encoding = path, encoding
        self._begin()

    def _begin(self) -> None:
        self._file = open_bytes(self._path)
        self._decoder = codecs.getincrementaldecoder(self._encoding)()
        self._rest, self._line, self._ended = b"", 1, False

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if offset or whence != io.SEEK_SET:
            raise io.UnsupportedOperation("a file in another encoding is read from its beginning")
        self._file.close()
        self._begin()
        return 0

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or len(self._rest) < size):
            self._fill()
        size = len(self._rest) if size < 0 else size
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _fill(self) -> None:
        data = self._file.read(_BLOCK)
        self._ended = not data
        try:
            text = self._decoder.decode(data, final=self._ended)
        except UnicodeError as error:
            raise self._not_decodable(error) from error
        self._line += text.count("\n")
        self._rest += text.encode(errors="replace")

    def _not_decodable(self, error: UnicodeError) -> EncodingError:
        problem, line = f"is not {self._encoding}", self._line
        if isinstance(error, UnicodeDecodeError) and error.start < len(error.object):
            problem = f"byte 0x{error.object[error.start]:02x} is not {self._encoding}"
            line += error.object.count(b"\n", 0, error.start)
        return EncodingError(problem, path=self._path, line=line)

    def close(self) -> None:
        self._file.close()
        super().close()


def text_encoding(path: Path, configured: str = UTF_8) -> str:
    """Return the encoding that is configured; by default another one if it is certain.

    Certain are UTF-16 with a byte order mark, and Chinese text in GB18030 that is no UTF-8.

    Args:
        path: The file.
        configured: Name of the encoding.
    """
    if codecs.lookup(configured).name != UTF_8 or not path.is_file() or is_zip(path):
        return configured
    works = working_encoding(path)
    return shown_encoding(_head(path), configured) if works in (GB18030, "utf-16") else configured


def working_encoding(path: Path) -> str:
    """Return an encoding in which a whole file can be read, the most probable first."""
    head = _head(path)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        candidates = ["utf-16"]
    else:
        # letters with accents stand alone, the bytes of Chinese characters side by side
        n_high = sum(byte > 0x7F for byte in head)
        n_adjacent = sum(map(len, _ADJACENT.findall(head)))
        candidates = [UTF_8, GB18030 if n_adjacent * 2 > n_high else "cp1252"]
    return next((each for each in candidates if _is_readable(path, each)), "latin-1")


def _is_readable(path: Path, encoding: str) -> bool:
    try:
        with contextlib.closing(_Utf8Stream(path, encoding)) as stream:
            while stream.read(_BLOCK):
                pass
    except EncodingError:
        return False
    return True


def _head(path: Path) -> bytes:
    with open_bytes(path) as file:
        return file.read(_BLOCK)
