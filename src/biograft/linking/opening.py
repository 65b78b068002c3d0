"""The folder of an index: made as a whole from a store, opened as one search.

==================  =====================================================================
``manifest.json``   format, store, parts; what each part was made with is in its own folder
``lexical/``        names by their letters
``dense/``          names by their vectors, if an encoder was given
``calibration.json``  put there by hand or by a script: from scores to probabilities
==================  =====================================================================

Encoding takes hours for a large store. It is done beside the final place (``INDEX.dense``), so
that an interrupted build goes on where it was, and the finished index appears in one step.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import biograft
from biograft.errors import ConfigError, MissingExtraError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.calibration import Calibration
from biograft.linking.candidates import Generator
from biograft.linking.fusing import FusedSearch
from biograft.linking.lexical.index import LexicalConfig, LexicalIndex
from biograft.linking.provenance import store_fingerprint
from biograft.progress import Progress
from biograft.runs import new_folder

if TYPE_CHECKING:
    from biograft.linking.dense import DenseConfig, DenseIndex
    from biograft.nn import TextEncoder

FORMAT, VERSION = "biograft-index", 1
MANIFEST, LEXICAL, DENSE, CALIBRATION = "manifest.json", "lexical", "dense", "calibration.json"


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """What the parts of an index are made with; without ``dense`` its own defaults."""

    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    dense: DenseConfig | None = None

    def __post_init__(self) -> None:
        if self.dense is not None and self.dense.similarity != "cosine":
            raise ConfigError(
                f"similarity: expected cosine, whose scores can be put together with others; "
                f"found {self.dense.similarity!r}"
            )


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """A search over the names of a store, and the calibration that lies with it."""

    search: FusedSearch
    calibration: Calibration | None = None
    languages: tuple[str, ...] = ()
    """The languages whose names it holds; none: all."""


def build_index(
    kb: KnowledgeBase,
    folder: str | Path,
    encoder: TextEncoder | None = None,
    config: IndexConfig | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Make the index of a store, dense too if an encoder is given; give its manifest."""
    folder, config = Path(folder), config or IndexConfig()
    progress = progress or Progress(enabled=False)
    _refuse_other(folder, overwrite)
    with new_folder(folder, overwrite=overwrite) as work:
        LexicalIndex.build(kb, config.lexical, progress).save(work / LEXICAL)
        if encoder is not None:
            aside = _aside(folder)
            dense = _dense_class()
            dense.build(kb, encoder, aside, config.dense, overwrite=True, progress=progress)
            aside.rename(work / DENSE)
        return _write_manifest(kb, work)


def update_index(
    kb: KnowledgeBase,
    folder: str | Path,
    encoder: TextEncoder | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Bring an index to the present state of its store; only new names are encoded."""
    folder, progress = Path(folder), progress or Progress(enabled=False)
    parts = read_manifest(folder)["parts"]
    if encoder is not None and DENSE not in parts:
        raise ConfigError(f"{folder}: has no vectors to update; build it with an encoder")
    config = LexicalIndex.config_of(folder / LEXICAL)
    with new_folder(folder, overwrite=True) as work:
        LexicalIndex.build(kb, config, progress).save(work / LEXICAL)
        if DENSE in parts:
            aside = _aside(folder)
            shutil.rmtree(aside, ignore_errors=True)
            shutil.copytree(folder / DENSE, aside, copy_function=_link_or_copy)
            _dense_class().update(aside, kb, encoder, progress=progress)
            aside.rename(work / DENSE)
        # a calibration would no longer fit exactly, but its scores mean the same
        if (folder / CALIBRATION).exists():
            shutil.copy2(folder / CALIBRATION, work / CALIBRATION)
        return _write_manifest(kb, work)


def open_index(
    kb: KnowledgeBase, folder: str | Path, weights: Mapping[str, float] | None = None
) -> OpenedIndex:
    """Open the index of a store."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    if manifest["store"] != store_fingerprint(kb):
        raise StoreError(
            f"{folder}: was made from another state of the knowledge base than {kb.folder}, or "
            "from another one; run `biograft index` again, with --update to keep the vectors"
        )
    lexical = LexicalIndex.open(folder / LEXICAL, kb)
    generators: list[Generator] = [lexical]
    if DENSE in manifest["parts"]:
        generators.append(_dense_class().open(folder / DENSE, kb))
    calibration = folder / CALIBRATION
    return OpenedIndex(
        FusedSearch(generators, weights),
        Calibration.load(calibration) if calibration.exists() else None,
        lexical.config.languages,
    )


def open_search(
    kb: KnowledgeBase, folder: str | Path | None, languages: tuple[str, ...] = ()
) -> OpenedIndex:
    """Open an index that holds names in these languages; without a folder make one by letters."""
    if folder is None:
        by_letters = LexicalIndex.build(kb, LexicalConfig(languages=languages))
        return OpenedIndex(FusedSearch([by_letters]), None, languages)
    opened = open_index(kb, folder)
    if languages and set(languages) != set(opened.languages):
        held = ", ".join(opened.languages) or "all languages"
        raise ConfigError(
            f"languages: {folder} holds names in {held}; make one for {', '.join(languages)} with "
            "`biograft index --lang`"
        )
    return opened


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of an index, refusing what is none or of another version."""
    path = folder / MANIFEST
    try:
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(
            f"{folder}: no index ({error.strerror}); make one with `biograft index`"
        ) from error
    except ValueError as error:
        raise StoreError(f"{path}: damaged ({error}); run `biograft index` again") from error
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise StoreError(f"{folder}: not an index but {found!r}; make one with `biograft index`")
    if manifest.get("version") != VERSION:
        raise StoreError(
            f"{folder}: version {manifest.get('version')} of the format, this biograft reads "
            f"{VERSION}; run `biograft index` again"
        )
    if not {"store", "parts"} <= manifest.keys():
        raise StoreError(f"{path}: damaged; run `biograft index` again")
    known: dict[str, Any] = manifest
    return known


def _write_manifest(kb: KnowledgeBase, work: Path) -> dict[str, Any]:
    parts = [name for name in (LEXICAL, DENSE) if (work / name).is_dir()]
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"biograft {biograft.__version__}",
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "store": store_fingerprint(kb),
        "n_concepts": len(kb),
        "n_names": kb.n_names,
        "parts": parts,
    }
    (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def _refuse_other(folder: Path, overwrite: bool) -> None:
    """Replace an index, and nothing else."""
    if not overwrite or not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        read_manifest(folder)
    except StoreError as error:
        if (folder / LEXICAL).is_dir() and (folder / MANIFEST).is_file():
            return  # damaged, or of another version
        raise OutputError(f"{folder}: is no index, so it is not replaced by one") from error


def _aside(folder: Path) -> Path:
    """Name the place beside an index where its vectors are made."""
    real = Path(os.path.realpath(folder))
    return real.with_name(f"{real.name}.{DENSE}")


def _link_or_copy(source: str, target: str) -> None:
    """Link a file that will only be read; copy it where links cannot be."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _dense_class() -> type[DenseIndex]:
    try:
        from biograft.linking.dense import DenseIndex
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "searching by vectors") from error
    return DenseIndex
