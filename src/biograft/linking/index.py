"""How much letters count beside vectors, as fine-tuning learned it for an encoder.

Fine-tuning scores a name by ``cosine + weight * lexical score``, over a temperature that changes
no order. :class:`~biograft.linking.fusion.FusedSearch` brings weights to the sum of 1: with
``1 / (1 + weight)`` for vectors and ``weight / (1 + weight)`` for letters it puts the same names
in the same order. Both scores are those of the indexes themselves, 0 where the lexical index does
not hold a name; letters are compared alike if the index is made with the recipe's ``lexical``
steps. Only the search puts names that are the text itself first, whatever the weights.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import Kind, new_folder
from biograft.errors import ConfigError, MissingExtraError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.linking.calibration import Calibration
from biograft.linking.candidates import Generator
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical.index import LexicalConfig, LexicalIndex
from biograft.linking.provenance import store_fingerprint
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.linking.dense import DenseConfig, DenseIndex
    from biograft.nn import TextEncoder

WEIGHTS = Kind(
    format="biograft-weights",
    version=1,
    called="search weights",
    remedy="train the encoder again, or remove the file: letters and vectors count alike then",
    file="biograft_weights.json",
    keys=("weights",),
)
_GENERATORS = ("dense", "lexical")


def write_weights(folder: Path, lexical: float, described: Mapping[str, Any]) -> None:
    """Write into an encoder's folder how much letters count; below 0 they help no search."""
    weights = {"dense": 1.0, "lexical": max(lexical, 0.0)}
    WEIGHTS.write(folder, {"weights": weights, "learned": {"lexical": lexical}, **described})


def read_weights(folder: Path) -> dict[str, float] | None:
    """Read the weights in an encoder's folder; none if none were learned."""
    path = folder / WEIGHTS.file
    if not path.exists():
        return None
    weights = WEIGHTS.read(folder)["weights"]
    if not are_weights(weights, _GENERATORS):
        raise WEIGHTS.damaged(path, f"weights are {weights!r}")
    return dict(weights)


def are_weights(value: object, generators: Collection[str]) -> bool:
    """Whether a value that was read says how much each of some generators counts."""
    if not isinstance(value, Mapping) or set(value) != set(generators):
        return False
    numbers = [number for number in value.values() if type(number) in (int, float)]
    in_range = all(math.isfinite(number) and number >= 0 for number in numbers)
    return len(numbers) == len(value) and in_range and sum(numbers) > 0


LEXICAL, DENSE, CALIBRATION = "lexical", "dense", "calibration.json"
INDEX = Kind(
    format="biograft-index",
    version=1,
    called="index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("store", "parts"),
)


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
    """Make the index of a store, dense too if an encoder is given; give its manifest.

    Weights that lie in the encoder's folder become those of the index
    (:mod:`biograft.linking.index`).
    """
    folder, config = Path(folder), config or IndexConfig()
    progress = progress or Progress(enabled=False)
    _refuse_other(folder, overwrite)
    weights = _learned(encoder)
    with new_folder(folder, overwrite=overwrite) as work:
        LexicalIndex.build(kb, config.lexical, progress).save(work / LEXICAL)
        if encoder is not None:
            aside = _aside(folder)
            dense = _dense_class()
            dense.build(kb, encoder, aside, config.dense, overwrite=True, progress=progress)
            aside.rename(work / DENSE)
        return _write_manifest(kb, work, weights)


def update_index(
    kb: KnowledgeBase,
    folder: str | Path,
    encoder: TextEncoder | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Bring an index to the present state of its store; only new names are encoded."""
    folder, progress = Path(folder), progress or Progress(enabled=False)
    manifest = INDEX.read(folder)
    parts, weights = manifest["parts"], _learned(encoder) or _weights(folder, manifest)
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
        return _write_manifest(kb, work, weights)


def open_index(
    kb: KnowledgeBase, folder: str | Path, weights: Mapping[str, float] | None = None
) -> OpenedIndex:
    """Open the index of a store; its own weights hold unless others are given."""
    folder = Path(folder)
    manifest = INDEX.read(folder)
    if manifest["store"] != store_fingerprint(kb):
        raise StoreError(
            f"{folder}: was made from another state of the knowledge base than {kb.folder}, or "
            "from another one; run `biograft index` again, with --update to keep the vectors"
        )
    weights = weights or _weights(folder, manifest)
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


def _learned(encoder: TextEncoder | None) -> dict[str, float] | None:
    """Give the weights that were learned with an encoder."""
    return read_weights(encoder.folder) if encoder and encoder.folder else None


def _weights(folder: Path, manifest: Mapping[str, Any]) -> dict[str, float] | None:
    """Give the weights that an index brings; none: its generators count alike."""
    weights = manifest.get("weights")
    if weights is None:
        return None
    if not are_weights(weights, manifest["parts"]):
        raise INDEX.damaged(folder / INDEX.file, f"weights are {weights!r}")
    return dict(weights)


def _write_manifest(
    kb: KnowledgeBase, work: Path, weights: Mapping[str, float] | None
) -> dict[str, Any]:
    content = {
        "store": store_fingerprint(kb),
        "n_concepts": len(kb),
        "n_names": kb.n_names,
        "parts": [name for name in (LEXICAL, DENSE) if (work / name).is_dir()],
        "weights": weights,
    }
    return INDEX.write(work, content)


def _refuse_other(folder: Path, overwrite: bool) -> None:
    """Replace an index, and nothing else."""
    if not overwrite or not folder.is_dir() or not any(folder.iterdir()):
        return
    damaged = (folder / LEXICAL).is_dir() and (folder / INDEX.file).is_file()
    if not damaged and not INDEX.is_at(folder):
        raise OutputError(f"{folder}: is no index, so it is not replaced by one")


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
