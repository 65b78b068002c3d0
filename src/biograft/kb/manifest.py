"""Build report and manifest: every row read is counted as kept, merged, filtered or rejected."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from biograft.artifacts import peek, write_lines
from biograft.kb.sources import KEPT_EXAMPLES
from biograft.kb.tables import SCHEMAS, STORE, VOCABULARIES, file_name


@dataclass(frozen=True)
class SourceReport:
    """Counts of one source."""

    path: str
    """File or folder that was read."""
    format: str
    """Name of its format."""
    n_read: int
    """Number of records that were read."""
    n_rejected: int
    """Number of rejected rows, for any reason."""
    filtered: dict[str, int]
    """Number of records that the settings left out, by reason."""
    rejected: dict[str, Any]
    """Records that could not be used: counts by reason, and examples."""
    doubtful: dict[str, Any]
    """Records that were kept though something is odd: counts by reason, and examples."""
    notes: tuple[str, ...]
    """Remarks for the user."""
    files: tuple[dict[str, Any], ...]
    """Name, size and hash of each file."""


@dataclass(frozen=True)
class BuildReport:
    """Report of a build: read, kept, merged and rejected rows."""

    store: str
    """Hash of the content of the knowledge base."""
    counts: dict[str, int]
    """Number of concepts, names, relations and so on."""
    merged: dict[str, int]
    """Number of concepts that were merged, by reason."""
    sources: tuple[SourceReport, ...]
    """Report of each source."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Number of names left out, by rule."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each phase."""
    unmerged: tuple[tuple[str, str, str, str], ...] = ()
    """Links between concepts that were not used to merge: both ids, the reason, the name of those
    by name."""
    merges: tuple[tuple[str, str, str, str], ...] = ()
    """Ids that were merged: the id, that of its concept, by what, the name of those by name."""

    def write_unmerged(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the links that were not used to merge as a table.

        Args:
            path: File to write.
            overwrite: Replace a file that exists.
        """
        rows = (("first", "second", "reason", "name"), *self.unmerged)
        write_lines(path, map("\t".join, rows), overwrite=overwrite)

    def write_merges(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the ids that were merged into others as a table.

        Args:
            path: File to write.
            overwrite: Replace a file that exists.
        """
        rows = (("id", "into", "by", "name"), *self.merges)
        write_lines(path, map("\t".join, rows), overwrite=overwrite)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "store": self.store,
            **{f"n_{name}": n for name, n in self.counts.items()},
            "merged": self.merged,
            "merges": {
                by: {
                    "n": n,
                    "examples": [
                        {"id": id_, "into": into, "name": name}
                        for id_, into, _, name in islice(
                            (each for each in self.merges if each[2] == by), KEPT_EXAMPLES
                        )
                    ],
                }
                for by, n in Counter(each[2] for each in self.merges).most_common()
            },
            "dropped": self.dropped,
            "warnings": list(self.warnings),
            "sources": [asdict(source) for source in self.sources],
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a store; refuse other folders and other versions."""
    manifest = STORE.read(folder)
    files, vocabularies = manifest.get("files"), manifest.get("vocabularies")
    is_complete = (
        isinstance(files, dict)
        and isinstance(vocabularies, dict)
        and all(isinstance(vocabularies.get(name), list) for name in VOCABULARIES)
        and all(
            isinstance(entry := files.get(file_name(table)), dict)
            and {"bytes", "sha256"} <= set(entry)
            for table in SCHEMAS
        )
    )
    if not is_complete:
        raise STORE.damaged(folder / STORE.file, "entries are missing")
    return manifest


def is_store(folder: Path) -> bool:
    """Whether a folder is a store of any version and holds no other files."""
    manifest = peek(folder / STORE.file)
    if manifest.get("format") != STORE.format:
        return False
    files = manifest.get("files")
    known = {STORE.file, *(files if isinstance(files, dict) else ())}
    return {entry.name for entry in folder.iterdir()} <= known


def inode_of(folder: Path) -> tuple[int, int] | None:
    """Return the device and inode that identify the folder behind a path."""
    with contextlib.suppress(OSError):
        return (status := folder.stat()).st_dev, status.st_ino
    return None
