"""The files of an artefact; manifests whose content or files a test changed, recorded anew."""

from __future__ import annotations

import json
from pathlib import Path

from biograft.artifacts import CHECKSUM, hash_file


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder, and in the folders inside."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def changed(before: dict[str, bytes], folder: Path) -> list[str]:
    """Return the files of a folder that are not as before."""
    now = contents(folder)
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def reseal(manifest: Path) -> None:
    """Record sizes and hashes of changed files, so that what finds the change is not a hash."""
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content.pop(CHECKSUM, None)
    for name in content.get("files") or ():
        path = manifest.parent / name
        if path.is_file():
            content["files"][name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
    manifest.write_text(json.dumps(content), encoding="utf-8")
