"""The folder of a dense index: its files, and the manifest that is written last.

==================  =================================================================
``vectors.npy``     a vector a distinct text (with int8 also ``scales.npy``)
``texts.arrow``     the distinct texts, as the encoder saw them
``name_starts.npy`` where the names of each text begin in ``name_rows.npy``, and one end more
``name_rows.npy``   rows of the store's table of names, grouped by text
``encoder/``        the encoder itself, so that the index can be used without anything else
``graph.faiss``     the graph of neighbours, if the search is to be approximate
==================  =================================================================
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import biograft
from biograft.errors import StoreError
from biograft.runs import hash_file

FORMAT = "biograft-dense-index"
VERSION = 1
MANIFEST = "manifest.json"
_KEYS = ("config", "store", "encoder", "n_texts", "n_names", "dim", "largest_norm", "files")
_AGAIN = "run `biograft index` again"


def write_manifest(folder: Path, content: dict[str, Any]) -> None:
    """Write the manifest of a finished folder, with the size and hash of every file."""
    (folder / MANIFEST).unlink(missing_ok=True)  # of an attempt that could not be put in place
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"biograft {biograft.__version__}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **content,
        "files": {
            path.relative_to(folder).as_posix(): {
                "bytes": path.stat().st_size,
                "sha256": hash_file(path),
            }
            for path in paths
        },
    }
    text = json.dumps(manifest, ensure_ascii=False, indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of an index, refusing what is none, of another version or not whole."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise StoreError(f"{folder}: no such index; make one with `biograft index`")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{folder}: holds no {MANIFEST}, so it is no dense index") from error
    except ValueError as error:
        raise StoreError(f"{path}: damaged ({error}); {_AGAIN}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError(f"{path}: is not the manifest of a dense index")
    if manifest.get("version") != VERSION:
        raise StoreError(
            f"{folder}: dense index of version {manifest.get('version')}, this biograft reads "
            f"version {VERSION}; {_AGAIN}"
        )
    absent = [key for key in _KEYS if key not in manifest]
    if absent:
        raise StoreError(f"{path}: damaged: {absent[0]} is missing; {_AGAIN}")
    return manifest


def check_sizes(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse an index of which a file is missing or cut off."""
    for name, entry in manifest["files"].items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else -1
        if size != entry["bytes"]:
            found = f"{size:,} bytes" if size >= 0 else "no file"
            raise StoreError(
                f"{path}: damaged: expected {entry['bytes']:,} bytes, found {found}; {_AGAIN}"
            )


def check_hashes(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse an index of which a file is not as it was written."""
    for name, entry in manifest["files"].items():
        if hash_file(folder / name) != entry["sha256"]:
            raise StoreError(f"{folder / name}: damaged; {_AGAIN}")


def is_index(folder: Path) -> bool:
    """Whether a folder is a dense index of any version, so that another may replace it."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == FORMAT
