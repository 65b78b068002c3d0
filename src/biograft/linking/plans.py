"""Plans of long work: what its result is made of, so that nothing else goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import biograft
from biograft.artifacts import MANIFEST, ArtifactKind, hash_file
from biograft.errors import ConfigError, shorten
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.kb.sources.files import exists
from biograft.text.input_config import InputConfig
from biograft.text.inputs import n_bytes


def made_of(
    kb: KnowledgeBase,
    files: Mapping[str, Any],
    reading: InputConfig,
    inputs: Iterable[Path],
    **settings: Any,
) -> dict[str, Any]:
    """Describe all that determines a result, as plain JSON values.

    Args:
        kb: The knowledge base.
        files: What may name the index, a trained part or another file; a folder has a manifest.
        reading: How the inputs are read.
        inputs: Their paths.
        settings: Everything else.
    """
    content = {
        "version": biograft.__version__,
        "store": store_fingerprint(kb),
        "files": {
            name: _hash(Path(path))
            for name, path in files.items()
            if path and isinstance(path, str | Path) and exists(Path(path))
        },
        **settings,
        "reading": asdict(reading),
        "inputs": [{"file": path.name, "bytes": n_bytes(path)} for path in inputs],
    }
    plain: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return plain


def _hash(path: Path) -> str | int:
    """Return the hash of a file, or of the manifest of a folder; else the size of the folder."""
    file = path / MANIFEST if path.is_dir() else path
    return hash_file(file) if file.is_file() else n_bytes(path)


def read_plan(kind: ArtifactKind, folder: Path, out: Path, now: dict[str, Any]) -> dict[str, Any]:
    """Read the plan of work that was begun; refuse to go on with anything else.

    Args:
        kind: The kind of plan, with the key ``made_of``.
        folder: Where it is.
        out: The output, for the error.
        now: What the result would be made of now.

    Raises:
        ConfigError: if something has changed; the message names it.
    """
    plan = kind.read(folder)
    for key, (before, changed) in _changes(plan["made_of"], now):
        raise ConfigError(
            f"{out}: was begun with another {key} ({shorten(repr(before))}, now "
            f"{shorten(repr(changed))}); use the same, or {kind.remedy}"
        )
    return plan


def _changes(before: Any, now: Any, key: str = "") -> Iterable[tuple[str, tuple[Any, Any]]]:
    """Yield what differs, by its name."""
    if isinstance(before, dict) and isinstance(now, dict):
        for each in {**before, **now}:
            yield from _changes(before.get(each), now.get(each), f"{key} {each}".strip())
    elif before != now:
        yield key, (before, now)
