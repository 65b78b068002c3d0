"""Build report and manifest: every row read is counted as kept, merged, filtered or rejected."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.artifacts import describe_files, new_file, peek
from biograft.kb.tables import SCHEMAS, STORE, VOCABULARIES, Table, file_name

if TYPE_CHECKING:
    from biograft.kb.assembly import Assembly
    from biograft.kb.config import BuildConfig
    from biograft.kb.sources import ReadLog


@dataclass(frozen=True)
class SourceReport:
    """Counts of one source."""

    path: str
    format: str
    files: tuple[dict[str, Any], ...]
    n_read: int
    filtered: dict[str, int]
    rejected: dict[str, Any]
    doubtful: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def n_rejected(self) -> int:
        """Number of rejected rows, for any reason."""
        return sum(int(entry["n"]) for entry in self.rejected.values())

    @classmethod
    def of(cls, log: ReadLog, form: str, hashes: dict[Path, str]) -> SourceReport:
        """Summarise a reader's log."""
        files = tuple(
            {"path": str(path), "bytes": path.stat().st_size, "sha256": hashes[path]}
            for path in log.files
        )
        return cls(
            path=str(log.path),
            format=form,
            files=files,
            n_read=log.n_read,
            filtered=dict(log.filtered.most_common()),
            rejected=log.rejected.to_json(),
            doubtful=log.doubtful.to_json(),
            notes=tuple(log.notes),
        )


@dataclass(frozen=True)
class BuildReport:
    """Report of a build: read, kept, merged and rejected rows."""

    store: str
    counts: dict[str, int]
    merged: dict[str, int]
    sources: tuple[SourceReport, ...]
    dropped: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    unmerged: tuple[tuple[str, str, str], ...] = ()
    """Links between concepts that were not used to merge: both ids and the reason."""

    def write_unmerged(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the links that were not used to merge as a table."""
        with new_file(path, overwrite=overwrite) as file:
            for row in (("first", "second", "reason"), *self.unmerged):
                file.write(("\t".join(row) + "\n").encode())

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "store": self.store,
            **{f"n_{name}": n for name, n in self.counts.items()},
            "merged": self.merged,
            "dropped": self.dropped,
            "warnings": list(self.warnings),
            "sources": [
                {
                    "path": source.path,
                    "format": source.format,
                    "n_read": source.n_read,
                    "n_rejected": source.n_rejected,
                    "filtered": source.filtered,
                    "rejected": source.rejected,
                    "doubtful": source.doubtful,
                    "notes": list(source.notes),
                    "files": list(source.files),
                }
                for source in self.sources
            ],
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }


def config_to_json(config: BuildConfig) -> dict[str, Any]:
    """Return the configuration as plain values, for the manifest."""
    return {
        "merge": config.merge,
        "types": list(config.types),
        "languages": list(config.languages),
        "names": {
            "lowercase": config.names.lowercase,
            "strip_symbols": config.names.strip_symbols,
            "resolve_shared": config.names.resolve_shared,
        },
        "sources": [
            {
                "languages": list(source.languages),
                "vocabularies": list(source.vocabularies),
                "keep_concepts_of": list(source.keep_concepts_of),
                "term_types": list(source.term_types),
                "relations": list(source.relations),
                "keep_suppressed": source.keep_suppressed,
                "keep_codes": source.keep_codes,
                "encoding": source.encoding,
                "language": source.language,
                "default_type": source.default_type,
                "columns": dict(source.columns),
                "separator": source.separator,
            }
            for source in config.sources
        ],
    }


def table_sizes(folder: Path) -> dict[str, int]:
    """Count the rows of the tables in a report."""
    tables = ("names", "definitions", "types", "ids", "relations")
    return {table: Table(folder, table).n_rows for table in tables}


def write_manifest(
    folder: Path, config: BuildConfig, report: BuildReport, assembly: Assembly
) -> None:
    """Write the manifest last: a folder without one is no store."""
    vocabularies = assembly.records.vocabularies
    labels = assembly.records.labels
    names = Table(folder, "names").numbers("language").all()
    languages = vocabularies["language"].labels
    per_language = np.bincount(names, minlength=len(languages)).tolist()
    manifest = {
        "config": config_to_json(config),
        **{key: value for key, value in report.to_json().items() if key != "store"},
        "n_names_by_language": dict(zip(languages, per_language, strict=True)),
        "vocabularies": {
            "languages": languages,
            "sources": vocabularies["source"].labels,
            "relations": vocabularies["relation"].labels,
            "types": [[code, *labels.get(code, ("", ""))] for code in vocabularies["type"].labels],
        },
        "files": describe_files(folder),
    }
    STORE.write(folder, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a store; refuse other folders and other versions."""
    manifest = STORE.read(folder)
    if not _is_complete(manifest):
        raise STORE.damaged(folder / STORE.file, "entries are missing")
    return manifest


def _is_complete(manifest: dict[str, Any]) -> bool:
    """Whether a manifest lists all required files and vocabularies."""
    files, vocabularies = manifest.get("files"), manifest.get("vocabularies")
    if not isinstance(files, dict) or not isinstance(vocabularies, dict):
        return False
    tables = (files.get(file_name(table)) for table in SCHEMAS)
    return all(isinstance(vocabularies.get(name), list) for name in VOCABULARIES) and all(
        isinstance(entry, dict) and {"bytes", "sha256"} <= set(entry) for entry in tables
    )


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
