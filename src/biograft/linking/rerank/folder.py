"""The folder of a re-ranker: its files, and the manifest that is written last.

====================  ===========================================================
``encoder/``          the encoder, which transformers loads as any other
``head.safetensors``  the head that makes a score of a pair, and the bias of NIL
``ranker/``           the trained linker that ranks first, if there is one
====================  ===========================================================
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import biograft
from biograft.config import from_mapping
from biograft.errors import ConfigError, StoreError
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.mixing import Mix
from biograft.linking.rerank.model import CrossEncoder
from biograft.runs import new_folder

FORMAT, VERSION = "biograft-context-ranker", 1
MANIFEST, RANKER = "manifest.json", "ranker"
_AGAIN = "train the re-ranker again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of a re-ranker but its weights."""

    config: RerankConfig
    mix: Mix
    weights: Mapping[str, float]
    """How much each generator counted in the first ranking, where no trained linker made it."""
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


def write_reranker(
    folder: Path, model: CrossEncoder, described: Description, ranker: Path | None
) -> None:
    """Write a re-ranker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        model.save(work)
        if ranker is not None:
            shutil.copytree(ranker, work / RANKER)
        files = sorted(path for path in work.rglob("*") if path.is_file())
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "made_by": f"biograft {biograft.__version__}",
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            **asdict(described),
            "files": {path.relative_to(work).as_posix(): path.stat().st_size for path in files},
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        (work / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_description(folder: Path) -> Description:
    """Read what a re-ranker is, refusing what is none, of another version or not whole."""
    manifest = _read_manifest(folder)
    try:
        for name, size in manifest["files"].items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != size:
                raise StoreError(f"{path}: missing or not as long as it was; {_AGAIN}")
        return Description(
            config=from_mapping(RerankConfig, manifest["config"], "config."),
            mix=Mix(**manifest["mix"]),
            weights={name: float(weight) for name, weight in manifest["weights"].items()},
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{folder / MANIFEST}: damaged ({error!r}); {_AGAIN}") from error


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{folder}: holds no re-ranker ({error.strerror}: {path.name})") from error
    except ValueError as error:
        raise StoreError(f"{path}: damaged ({error}); {_AGAIN}") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise StoreError(f"{path}: expected a {FORMAT}, found {found!r}")
    if manifest.get("version") != VERSION:
        raise StoreError(
            f"{folder}: re-ranker of version {manifest.get('version')}, this biograft reads "
            f"version {VERSION}; {_AGAIN}"
        )
    return dict(manifest)
