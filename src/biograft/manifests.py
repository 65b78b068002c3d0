"""The JSON manifest of what biograft writes: its format, its version, and who made it.

A :class:`Kind` stands once beside the thing that it describes. It writes the manifest, and reads
it so that what is missing, damaged, another thing or of another version is refused in one line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import biograft
from biograft.errors import StoreError, shorten
from biograft.runs import new_file

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of thing on disk, in the words of its messages."""

    format: str
    version: int
    called: str
    """What people call it, such as ``dense index``."""
    remedy: str
    """What to do about one that is damaged."""
    absent: str = ""
    """What to do where there is none, if that is not the same."""
    file: str = MANIFEST
    """The manifest's name in the folder that it describes; empty: a file stands for itself."""
    keys: tuple[str, ...] = ()
    """What the manifest cannot do without."""

    def write(
        self, place: Path, content: Mapping[str, Any], *, overwrite: bool = False
    ) -> dict[str, Any]:
        """Write the manifest of a folder, or the file; give all that it says."""
        manifest = {
            "format": self.format,
            "version": self.version,
            "made_by": f"biograft {biograft.__version__}",
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            **content,
        }
        with new_file(place / self.file, overwrite=overwrite) as file:
            file.write((json.dumps(manifest, ensure_ascii=False, indent=1) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())  # whoever finds a manifest relies on it
        return manifest

    def read(self, place: Path) -> dict[str, Any]:
        """Read the manifest of a folder, or the file."""
        manifest = self._load(place)
        found = manifest.get("format") if isinstance(manifest, dict) else None
        if found is None:
            raise StoreError(
                f"{place / self.file}: states no format, so it is no {self.called}; {self._none}"
            )
        if found != self.format:
            raise StoreError(f"{place}: no {self.called} but {shorten(repr(found))}; {self._none}")
        version = manifest.get("version")
        if version != self.version:
            newer = isinstance(version, int) and version > self.version
            raise StoreError(
                f"{place}: {self.called} of version {shorten(repr(version))}, this biograft reads "
                f"version {self.version}; {'update biograft, or ' if newer else ''}{self.remedy}"
            )
        for key in self.keys:
            if key not in manifest:
                raise self.damaged(place / self.file, f"{key} is missing")
        return dict(manifest)

    def is_at(self, place: Path) -> bool:
        """Whether a place holds such a thing, of any version."""
        return bool(peek(place / self.file).get("format") == self.format)

    def check_files(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        """Refuse a folder in which a file is not as long as its manifest says.

        ``files`` maps names to sizes in bytes, or to tables in which ``bytes`` is the size.
        """
        files = manifest.get("files")
        if not isinstance(files, Mapping):
            raise self.damaged(folder / self.file, "the sizes of files are missing")
        for name, entry in files.items():
            path, expected = folder / name, entry
            if isinstance(entry, Mapping):
                expected = entry.get("bytes")
            size = path.stat().st_size if path.is_file() else None
            if size != expected:
                found = "no file" if size is None else f"{size} bytes"
                raise self.damaged(path, f"expected {expected} bytes, found {found}")

    def damaged(self, path: Path, why: object) -> StoreError:
        """Say that a file is damaged, and what to do."""
        return StoreError(f"{path}: damaged ({why}); {self.remedy}")

    @property
    def _none(self) -> str:
        return self.absent or self.remedy

    def _load(self, place: Path) -> Any:
        path = place / self.file
        try:
            return json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError) as error:
            if self.file and place.is_dir():
                message = f"{place}: holds no {self.file}, so it is no {self.called}; {self._none}"
            else:
                message = f"{place}: no such {self.called}; {self._none}"
            raise StoreError(message) from error
        except OSError as error:
            message = f"{place}: no {self.called} can be read ({error.strerror}); {self._none}"
            raise StoreError(message) from error
        except (ValueError, RecursionError) as error:
            raise self.damaged(path, error) from error


def peek(path: Path) -> dict[str, Any]:
    """Read a manifest of any format and version; nothing if there is none or it is damaged."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def file_sizes(folder: Path) -> dict[str, int]:
    """Give the size in bytes of every file in a folder, and in the folders inside."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}
