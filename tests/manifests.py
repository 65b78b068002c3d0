"""Manifests whose content or files a test changed, recorded anew."""

from __future__ import annotations

import json
from pathlib import Path

from biograft.artifacts import CHECKSUM, hash_file


def reseal(manifest: Path) -> None:
    """Record sizes and hashes of changed files, so that what finds the change is not a hash."""
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content.pop(CHECKSUM, None)
    for name in content.get("files") or ():
        path = manifest.parent / name
        if path.is_file():
            content["files"][name] = {"bytes": path.stat().st_size, "sha256": hash_file(path)}
    manifest.write_text(json.dumps(content), encoding="utf-8")
