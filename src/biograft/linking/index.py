"""The linking index: a folder with what a linker searches a store with.

That is a lexical index, a names index to find names in text and, with an encoder, a dense index.
The folder also holds the weights of lexical and dense search, and a calibration.

Fine-tuning an encoder may learn the lexical weight: it scores a name by
``cosine + weight * lexical score``, divided by a temperature.
:class:`~biograft.linking.fusion.FusedSearch` ranks names in the same order with the weights
``1 / (1 + weight)`` (dense) and ``weight / (1 + weight)`` (lexical), provided that the index is
built with the recipe's ``lexical`` steps. Only the search puts names equal to the text first.
A weight learned beside inner products is first divided by what the index divides these by, for a
text whose vector is as long as those of names are on average; the order is the same for such texts.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import ArtifactKind, new_folder, sole_writer
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.calibration import Calibration
from biograft.linking.candidates import Generator
from biograft.linking.config import LinkerConfig
from biograft.linking.dense.config import DENSE_INDEX, DenseConfig
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical.index import LexicalConfig, LexicalIndex
from biograft.linking.reviewed import ReviewedNames
from biograft.progress import Progress
from biograft.text import NamesIndex, NamesIndexConfig

if TYPE_CHECKING:  # a lexical index is opened without what dense search needs
    from biograft.linking.dense.encoders import NameEncoder
    from biograft.linking.dense.index import DenseIndex

WEIGHTS = ArtifactKind(
    format="biograft-lexical-weight",
    version=2,
    called="lexical weight",
    remedy="train the encoder again, or remove the file: both searches weigh the same then",
    file="biograft_lexical_weight.json",
    keys=("weights", "similarity"),
)
_GENERATORS = ("dense", "lexical")


def write_weights(
    folder: Path, lexical: float, described: Mapping[str, Any], *, similarity: str = "cosine"
) -> None:
    """Write the lexical weight into an encoder's folder; a negative one becomes 0 in a search."""
    learned = {
        "weights": {"dense": 1.0, "lexical": max(lexical, 0.0)},
        "learned": {"lexical": lexical},
        "similarity": similarity,
    }
    WEIGHTS.write(folder, {**learned, **described}, overwrite=True)


def read_weights(folder: Path, similarity: str = "cosine") -> dict[str, float] | None:
    """Read the search weights from an encoder's folder; None if none were learned.

    They must have been learned beside the similarity that is searched by.
    """
    path = folder / WEIGHTS.file
    if not path.exists():
        return None
    content = WEIGHTS.read(folder)
    weights, learned_by = content["weights"], content["similarity"]
    if not are_weights(weights, _GENERATORS):
        raise WEIGHTS.damaged(path, f"weights are {weights!r}")
    if learned_by != similarity:
        raise ConfigError(
            f"similarity: {folder} brings a lexical weight learned with {learned_by}, found "
            f"{similarity}; search by {learned_by}, or remove {WEIGHTS.file} there: both searches "
            "weigh the same then"
        )
    return dict(weights)


def are_weights(value: object, generators: Collection[str]) -> bool:
    """Return whether a value read from JSON maps each of these generators to a valid weight."""
    if not isinstance(value, Mapping) or set(value) != set(generators):
        return False
    weights = [weight for weight in value.values() if type(weight) in (int, float)]
    in_range = all(math.isfinite(weight) and weight >= 0 for weight in weights)
    return len(weights) == len(value) and in_range and sum(weights) > 0


LEXICAL, DENSE, NAMES, CALIBRATION = "lexical", "dense", "names", "calibration.json"
REVIEWED_NAMES = "reviewed"
INDEX = ArtifactKind(
    format="biograft-index",
    version=2,
    called="index",
    remedy="run `biograft index` again",
    absent="make one with `biograft index`",
    keys=("store", "parts", "encoder"),
)


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """Settings of the parts of an index; without ``dense``, the defaults of a dense index."""

    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    dense: DenseConfig | None = None


@dataclass(frozen=True, slots=True)
class OpenedIndex:
    """Searches of an index: by similarity and in text; and a calibration."""

    search: FusedSearch
    names: NamesIndex | None = None
    """Finds names in text; None where it is to be built in memory."""
    calibration: Calibration | None = None
    reviewed: ReviewedNames | None = None
    """Decisions of reviewers about terms."""
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
    weights, described = _learned(encoder, (config.dense or DenseConfig()).similarity), None
    with new_folder(folder, overwrite=overwrite) as work:
        LexicalIndex.build(kb, config.lexical, progress).save(work / LEXICAL)
        _save_names(kb, config.lexical, work, progress)
        if encoder is not None:
            from biograft.linking.dense.index import DenseIndex

            aside = _aside(folder)
            dense = DenseIndex.build(
                kb, encoder, aside, config.dense, overwrite=True, progress=progress
            )
            described = _describe(dense)
            weights = _scaled(weights, dense)
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
    from biograft.linking.dense.encoders import load_encoder

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
    """Update an index to the current state of its store; only new names are encoded.

    Nothing is done if the store has not changed and no encoder is given.

    Args:
        kb: The knowledge base, as it is now.
        folder: The index.
        encoder: The encoder of its vectors; default: the one that the index names.
        progress: Shows the stages.

    Returns:
        The manifest. ``removed`` lists the calibrations that were fitted before the knowledge base
        changed and are no longer in the index; the key is absent if there are none.
    """
    folder, progress = Path(folder), progress or Progress(enabled=False)
    with sole_writer(folder):
        if encoder is None and is_current(kb, folder):
            return INDEX.read(folder)
        return _update(kb, folder, encoder, progress)


def is_current(kb: KnowledgeBase, folder: str | Path) -> bool:
    """Return whether an index is whole and of the current state of a store."""
    if INDEX.read(Path(folder))["store"] != store_fingerprint(kb):
        return False
    try:
        open_index(kb, folder)
    except StoreError:
        return False
    return True


def _update(
    kb: KnowledgeBase, folder: Path, encoder: NameEncoder | None, progress: Progress
) -> dict[str, Any]:
    manifest = INDEX.read(folder)
    parts, weights = manifest["parts"], _weights(folder, manifest)
    if encoder is not None and DENSE not in parts:
        raise ConfigError(f"{folder}: has no vectors to update; build it with an encoder")
    config, described, keeps_scale = LexicalIndex.config_of(folder / LEXICAL), None, True
    with new_folder(folder, overwrite=True) as work:
        LexicalIndex.build(kb, config, progress).save(work / LEXICAL)
        _save_names(kb, config, work, progress)
        if DENSE in parts:
            from biograft.linking.dense.index import DenseIndex

            aside = _aside(folder)
            dense = DenseIndex.update(folder / DENSE, kb, encoder, out=aside, progress=progress)
            described = _describe(dense)
            learned = _learned(encoder, dense.config.similarity)
            weights = _scaled(learned, dense) or weights
            norm = DENSE_INDEX.read(folder / DENSE)["largest_norm"]
            keeps_scale = dense.config.similarity == "cosine" or norm == dense.largest_norm
            aside.rename(work / DENSE)
        if (folder / CALIBRATION).exists():
            shutil.copy2(folder / CALIBRATION, work / CALIBRATION)
        if (folder / REVIEWED_NAMES).is_dir():
            shutil.copytree(folder / REVIEWED_NAMES, work / REVIEWED_NAMES)
        # with other names, and where inner products are divided by another norm, a score means
        # another probability
        calibrations = (CALIBRATION, f"{REVIEWED_NAMES}/{CALIBRATION}")
        removed = [
            name
            for name in calibrations
            if (work / name).exists() and not (keeps_scale and _is_calibration_of(kb, work / name))
        ]
        for name in removed:
            (work / name).unlink()
        updated = _write_manifest(kb, work, weights, described)
        return {**updated, "removed": removed} if removed else updated


def _is_calibration_of(kb: KnowledgeBase, path: Path) -> bool:
    """Return whether a file is a calibration that holds for a knowledge base."""
    try:
        return Calibration.load(path).store in ("", store_fingerprint(kb))
    except StoreError:
        return False


def open_index(
    kb: KnowledgeBase,
    folder: str | Path,
    config: LinkerConfig | None = None,
    *,
    with_reviewed: bool = True,
) -> OpenedIndex:
    """Open the index of a store; ``search``, weight and similarity of ``config`` replace its own.

    The calibration of the index is left out where these change the scores.
    """
    folder, config = Path(folder), config or LinkerConfig()
    manifest = INDEX.read(folder)
    if manifest["store"] != store_fingerprint(kb):
        raise StoreError(
            f"{folder}: was made from another state of the knowledge base than {kb.folder}, or "
            "from another one; run `biograft index` again, with --update to keep the vectors"
        )
    languages = LexicalIndex.config_of(folder / LEXICAL).languages
    if config.languages and set(config.languages) != set(languages):
        indexed = ", ".join(languages) or "all languages"
        raise ConfigError(
            f"languages: {folder} holds names in {indexed}; make one for "
            f"{', '.join(config.languages)} with `biograft index --lang`"
        )
    kinds = _kinds_of_search(config, manifest["parts"], str(folder))
    generators: dict[str, Generator] = {}
    if LEXICAL in kinds:
        generators[LEXICAL] = LexicalIndex.open(folder / LEXICAL, kb)
    if DENSE in kinds:
        from biograft.linking.dense.index import DenseIndex

        dense = DenseIndex.open(folder / DENSE, kb, similarity=config.similarity)
        generators[DENSE] = dense
    own = config.similarity in (None, (manifest["encoder"] or {}).get("similarity"))
    weights = _weights(folder, manifest) if len(kinds) > 1 and own else None
    reviewed = None
    if with_reviewed and (folder / REVIEWED_NAMES).is_dir():
        reviewed = ReviewedNames.open(folder / REVIEWED_NAMES, kb)
        if len(kinds) > 1 and own and reviewed.weights:
            weights = dict(reviewed.weights)
    if config.lexical_weight is not None:
        weights = {LEXICAL: config.lexical_weight, DENSE: 1 - config.lexical_weight}
    by_name = {generators[kind].name: weight for kind, weight in (weights or {}).items()}
    search = FusedSearch([*generators.values()], by_name)
    names = NamesIndex.open(folder / NAMES, store_fingerprint(kb))
    calibration = _calibration(folder, config, str(search))
    if reviewed is not None and reviewed.calibration is not None:
        fits = reviewed.calibration.search == str(search)
        calibration = reviewed.calibration if fits else calibration
    return OpenedIndex(search, names, calibration, reviewed, languages)


def open_search(
    kb: KnowledgeBase, folder: str | Path | None, config: LinkerConfig | None = None
) -> OpenedIndex:
    """Open an index; without a folder, build a lexical one in memory."""
    if folder is not None:
        return open_index(kb, folder, config)
    config = config or LinkerConfig()
    _kinds_of_search(config, (LEXICAL,), "lexical search in memory")
    lexical = LexicalIndex.build(kb, LexicalConfig(languages=config.languages))
    return OpenedIndex(FusedSearch([lexical]), languages=config.languages)


def _kinds_of_search(config: LinkerConfig, parts: Collection[str], where: str) -> list[str]:
    """Return the kinds of search to open; refuse what needs another part or kind."""
    kinds = config.search.split("+") if config.search else [*parts]
    if DENSE in kinds and DENSE not in parts:
        remedy = "make an index of them with `biograft index --encoder`"
        raise ConfigError(f"search: {where} has no vectors to search; {remedy}")
    if config.lexical_weight is not None and len(kinds) < 2:
        raise ConfigError(
            f"lexical_weight: weighs lexical search beside dense search, found {kinds[0]} search "
            "alone; leave it out, or search an index with vectors by both"
        )
    if config.similarity is not None and DENSE not in kinds:
        raise ConfigError(
            f"similarity: applies to dense search, found lexical search alone ({where}); leave it "
            "out, or search an index with vectors"
        )
    return kinds


def _calibration(folder: Path, config: LinkerConfig, scores: str) -> Calibration | None:
    """Load the calibration of an index, unless it is one of other scores than those chosen."""
    path = folder / CALIBRATION
    loaded = Calibration.load(path) if path.exists() else None
    chosen = (config.search, config.lexical_weight, config.similarity) != (None, None, None)
    if loaded and chosen and loaded.search not in ("", scores):
        return None
    return loaded


def _save_names(kb: KnowledgeBase, config: LexicalConfig, work: Path, progress: Progress) -> None:
    """Write the names index of the names that the lexical index holds."""
    names = NamesIndex.from_store(kb, NamesIndexConfig(languages=config.languages), progress)
    names.save(work / NAMES, store_fingerprint(kb), kb.n_names)


def _learned(encoder: NameEncoder | None, similarity: str) -> dict[str, float] | None:
    """Return the search weights that were learned with an encoder."""
    return read_weights(encoder.folder, similarity) if encoder and encoder.folder else None


def _scaled(weights: dict[str, float] | None, dense: DenseIndex) -> dict[str, float] | None:
    """Return learned weights for the scores of an index, which are from -1 to 1."""
    return weights and {**weights, LEXICAL: weights[LEXICAL] / dense.mean_scale()}


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
