"""The manifest of a store: written last, read first; a folder without one is no store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from biograft.kb.layout import SCHEMAS, STORE, VOCABULARIES, file_name
from biograft.kb.report import config_to_json
from biograft.kb.tables import Table
from biograft.manifests import peek
from biograft.runs import hash_file

if TYPE_CHECKING:
    from biograft.kb.assemble import Assembly
    from biograft.kb.config import BuildConfig
    from biograft.kb.report import BuildReport


def table_sizes(folder: Path) -> dict[str, int]:
    """Count the rows of the tables that a report speaks of."""
    tables = ("names", "definitions", "types", "ids", "relations")
    return {table: Table(folder, table).n_rows for table in tables}


def write_manifest(
    folder: Path, config: BuildConfig, report: BuildReport, assembly: Assembly
) -> None:
    """Write the manifest last: a folder without one is no store."""
    vocabularies = assembly.gathered.vocabularies
    labels = assembly.gathered.labels
    names = Table(folder, "names").numbers("language").all()
    languages = vocabularies["language"].words
    per_language = np.bincount(names, minlength=len(languages)).tolist()
    manifest = {
        "config": config_to_json(config),
        **{key: value for key, value in report.to_json().items() if key != "store"},
        "n_names_by_language": dict(zip(languages, per_language, strict=True)),
        "vocabularies": {
            "languages": languages,
            "sources": vocabularies["source"].words,
            "relations": vocabularies["relation"].words,
            "types": [[code, *labels.get(code, ("", ""))] for code in vocabularies["type"].words],
        },
        "files": {
            file_name(table): {
                "bytes": (folder / file_name(table)).stat().st_size,
                "sha256": hash_file(folder / file_name(table)),
            }
            for table in SCHEMAS
        },
    }
    STORE.write(folder, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a store, refusing what is none or of another version."""
    manifest = STORE.read(folder)
    if not _is_whole(manifest):
        raise STORE.damaged(folder / STORE.file, "parts are missing")
    return manifest


def _is_whole(manifest: dict[str, Any]) -> bool:
    """Whether a manifest names the files and words that a store cannot do without."""
    files, words = manifest.get("files"), manifest.get("vocabularies")
    if not isinstance(files, dict) or not isinstance(words, dict):
        return False
    tables = (files.get(file_name(table)) for table in SCHEMAS)
    return all(isinstance(words.get(name), list) for name in VOCABULARIES) and all(
        isinstance(entry, dict) and {"bytes", "sha256"} <= set(entry) for entry in tables
    )


def is_store(folder: Path) -> bool:
    """Whether a folder is a store of any version, and holds nothing besides."""
    manifest = peek(folder / STORE.file)
    if manifest.get("format") != STORE.format:
        return False
    files = manifest.get("files")
    known = {STORE.file, *(files if isinstance(files, dict) else ())}
    return {entry.name for entry in folder.iterdir()} <= known
