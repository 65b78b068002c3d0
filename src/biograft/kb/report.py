"""What a build did: everything read is accounted for as kept, merged, filtered or rejected."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biograft.kb.config import BuildConfig
from biograft.sources import ReadLog


@dataclass(frozen=True)
class SourceReport:
    """What was read from one source."""

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
        """How many rows were rejected, for whatever reason."""
        return sum(int(entry["n"]) for entry in self.rejected.values())

    @classmethod
    def of(cls, log: ReadLog, form: str, hashes: dict[Path, str]) -> SourceReport:
        """Sum up a reader's log."""
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
    """What a build read, kept, merged and rejected."""

    store: str
    counts: dict[str, int]
    merged: dict[str, int]
    sources: tuple[SourceReport, ...]
    dropped: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain values."""
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
    """Give what the build was told, for the manifest."""
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
