"""The linking index: a folder with the lexical index of a store and, with an encoder, a dense one.

It also holds the weights of the two, and a calibration. Fine-tuning an encoder may learn the
lexical weight: it scores a name by ``cosine + weight * lexical score``, divided by a temperature.
:class:`~biograft.linking.fusion.FusedSearch` ranks names in the same order with the weights
``1 / (1 + weight)`` (dense) and ``weight / (1 + weight)`` (lexical), provided that the index is
built with the recipe's ``lexical`` steps. Only the search puts names equal to the text first.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biograft.artifacts import ArtifactKind, new_folder
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.store import store_fingerprint
from biograft.linking.calibration import Calibration
from biograft.linking.candidates import Generator
from biograft.linking.dense.config import DENSE_INDEX, DenseConfig
from biograft.linking.dense.encoders import NameEncoder, load_encoder
from biograft.linking.dense.index import DenseIndex
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical.index import LexicalConfig, LexicalIndex
from biograft.progress import Progress

WEIGHTS = ArtifactKind(
    format="biograft-lexical-weight",
    version=1,
    called="lexical weight",
    remedy="train the encoder again, or remove the file: both searches weigh the same then",
    file="biograft_lexical_weight.json",
    keys=("weights",),
)
_GENERATORS = ("dense", "lexical")


def write_weights(folder: Path, lexical: float, described: Mapping[str, Any]) -> None:
    """Write the lexical weight into an encoder's folder; a negative one becomes 0 in a search."""
    weights = {"dense": 1.0, "lexical": max(lexical, 0.0)}
    WEIGHTS.write(folder, {"weights": weights, "learned": {"lexical": lexical}, **described})


def read_weights(folder: Path) -> dict[str, float] | None:
    """Read the search weights from an encoder's folder; None if none were learned."""
    path = folder / WEIGHTS.file
    if not path.exists():
        return None
    weights = WEIGHTS.read(folder)["weights"]
    if not are_weights(weights, _GENERATORS):
        raise WEIGHTS.damaged(path, f"weights are {weights!r}")
    return dict(weights)


def are_weights(value: object, generators: Collection[str]) -> bool:
    """Return whether a value read from JSON maps each of these generators to a valid weight."""
    if not isinstance(value, Mapping) or set(value) != set(generators):
        return False
    weights = [weight for weight in value.values() if type(weight) in (int, float)]
    in_range = all(math.isfinite(weight) and weight >= 0 for weight in weights)
    return len(weights) == len(value) and in_range and sum(weights) > 0


LEXICAL, DENSE, CALIBRATION = "lexical", "dense", "calibration.json"
INDEX = ArtifactKind(
    format="biograft-index",
    version=1,
    called="index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("store", "parts"),
)


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """Settings of the parts of an index; without ``dense``, the defaults of a dense index."""

    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    dense: DenseConfig | None = None


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """A search over the names of a store, and the calibration in its folder."""

    search: FusedSearch
    calibration: Calibration | None = None
    languages: tuple[str, ...] = ()
    """The languages of the indexed names; empty means all."""


def build_index(
    kb: KnowledgeBase,
    folder: str | Path,
    encoder: NameEncoder | None = None,
    config: IndexConfig | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Build the index of a store, with a dense part if an encoder is given; return its manifest.

    Search weights in the encoder's folder become those of the index.
    """
    folder, config = Path(folder), config or IndexConfig()
    progress = progress or Progress(enabled=False)
    _refuse_other(folder, overwrite)
    weights, described = _learned(encoder), None
    similarity = config.dense.similarity if config.dense else "cosine"
    if weights and similarity != "cosine" and encoder:
        raise ConfigError(
            f"similarity: {encoder.folder} brings a lexical weight learned with cosines; search by "
            f"cosines, or remove {WEIGHTS.file} there: both searches weigh the same then"
        )
    with new_folder(folder, overwrite=overwrite) as work:
        LexicalIndex.build(kb, config.lexical, progress).save(work / LEXICAL)
        if encoder is not None:
            aside = _aside(folder)
            dense = DenseIndex.build(
                kb, encoder, aside, config.dense, overwrite=True, progress=progress
            )
            described = _describe(dense)
            aside.rename(work / DENSE)
        return _write_manifest(kb, work, weights, described)


def build_encoder_index(
    kb: KnowledgeBase,
    folder: Path,
    encoder: Path,
    progress: Progress | None = None,
    *,
    similarity: str = "cosine",
) -> Path:
    """Build the index of a store with the encoder in a folder; return the index folder."""
    config = IndexConfig(dense=DenseConfig(similarity=similarity))
    build_index(kb, folder, load_encoder(encoder), config, progress=progress)
    return folder


def update_index(
    kb: KnowledgeBase,
    folder: str | Path,
    encoder: NameEncoder | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Update an index to the current state of its store; only new names are encoded."""
    folder, progress = Path(folder), progress or Progress(enabled=False)
    manifest = INDEX.read(folder)
    parts, weights = manifest["parts"], _learned(encoder) or _weights(folder, manifest)
    if encoder is not None and DENSE not in parts:
        raise ConfigError(f"{folder}: has no vectors to update; build it with an encoder")
    config, described, keeps_scale = LexicalIndex.config_of(folder / LEXICAL), None, True
    with new_folder(folder, overwrite=True) as work:
        LexicalIndex.build(kb, config, progress).save(work / LEXICAL)
        if DENSE in parts:
            aside = _aside(folder)
            shutil.rmtree(aside, ignore_errors=True)
            shutil.copytree(folder / DENSE, aside, copy_function=_link_or_copy)
            dense = DenseIndex.update(aside, kb, encoder, progress=progress)
            described = _describe(dense)
            norm = DENSE_INDEX.read(folder / DENSE)["largest_norm"]
            keeps_scale = dense.config.similarity == "cosine" or norm == dense.largest_norm
            aside.rename(work / DENSE)
        # the calibration is no longer exact, but the meaning of the scores is unchanged, unless
        # inner products are divided by another norm
        if (folder / CALIBRATION).exists() and keeps_scale:
            shutil.copy2(folder / CALIBRATION, work / CALIBRATION)
        return _write_manifest(kb, work, weights, described)


def open_index(
    kb: KnowledgeBase,
    folder: str | Path,
    weights: Mapping[str, float] | None = None,
    *,
    similarity: str | None = None,
) -> OpenedIndex:
    """Open the index of a store; ``weights`` and ``similarity`` replace those of the index."""
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
        generators.append(DenseIndex.open(folder / DENSE, kb, similarity=similarity))
    elif similarity is not None:
        raise ConfigError(f"similarity: applies to dense search, and {folder} has no vectors")
    calibration = folder / CALIBRATION
    return OpenedIndex(
        FusedSearch(generators, weights),
        Calibration.load(calibration) if calibration.exists() else None,
        lexical.config.languages,
    )


def open_search(
    kb: KnowledgeBase,
    folder: str | Path | None,
    languages: tuple[str, ...] = (),
    similarity: str | None = None,
) -> OpenedIndex:
    """Open an index of names in these languages; without a folder, build one in memory."""
    if folder is None:
        if similarity is not None:
            raise ConfigError("similarity: applies to dense search; name an index with vectors")
        lexical = LexicalIndex.build(kb, LexicalConfig(languages=languages))
        return OpenedIndex(FusedSearch([lexical]), None, languages)
    opened = open_index(kb, folder, similarity=similarity)
    if languages and set(languages) != set(opened.languages):
        indexed = ", ".join(opened.languages) or "all languages"
        raise ConfigError(
            f"languages: {folder} holds names in {indexed}; make one for {', '.join(languages)} "
            "with `biograft index --lang`"
        )
    return opened


def _learned(encoder: NameEncoder | None) -> dict[str, float] | None:
    """Return the search weights that were learned with an encoder."""
    return read_weights(encoder.folder) if encoder and encoder.folder else None


def _weights(folder: Path, manifest: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the weights of an index; None means that its generators weigh the same."""
    weights = manifest.get("weights")
    if weights is None:
        return None
    if not are_weights(weights, manifest["parts"]):
        raise INDEX.damaged(folder / INDEX.file, f"weights are {weights!r}")
    return dict(weights)


def _describe(dense: DenseIndex) -> dict[str, Any]:
    return {**dense.manifest["encoder"], "similarity": dense.config.similarity}


def _write_manifest(
    kb: KnowledgeBase,
    work: Path,
    weights: Mapping[str, float] | None,
    encoder: Mapping[str, Any] | None,
) -> dict[str, Any]:
    content = {
        "store": store_fingerprint(kb),
        "n_concepts": len(kb),
        "n_names": kb.n_names,
        "parts": [name for name in (LEXICAL, DENSE) if (work / name).is_dir()],
        "weights": weights,
        "encoder": encoder,
    }
    return INDEX.write(work, content)


def _refuse_other(folder: Path, overwrite: bool) -> None:
    """Refuse to replace a folder that is no index."""
    if not overwrite or not folder.is_dir() or not any(folder.iterdir()):
        return
    damaged = (folder / LEXICAL).is_dir() and (folder / INDEX.file).is_file()
    if not damaged and not INDEX.is_at(folder):
        raise OutputError(f"{folder}: not an index, so it is not replaced by one")


def _aside(folder: Path) -> Path:
    """Return the folder beside an index in which its vectors are computed."""
    real = Path(os.path.realpath(folder))
    return real.with_name(f"{real.name}.{DENSE}")


def _link_or_copy(source: str, target: str) -> None:
    """Hard-link a file that will only be read; copy it where links are not supported."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
