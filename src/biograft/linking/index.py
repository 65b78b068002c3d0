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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biograft.artifacts import ArtifactKind, new_folder, sole_writer
from biograft.errors import ConfigError, OutputError, StoreError
from biograft.kb import KnowledgeBase
from biograft.kb.fingerprints import store_fingerprint
from biograft.linking.candidates import Generator
from biograft.linking.config import LinkerConfig
from biograft.linking.dense.config import DENSE_INDEX, DenseConfig
from biograft.linking.fusion import FusedSearch
from biograft.linking.lexical.index import LexicalConfig, LexicalIndex
from biograft.progress import Progress
from biograft.text import NamesIndex, NamesIndexConfig

if TYPE_CHECKING:  # a lexical index is opened without what dense search and decisions need
    from biograft.linking.calibration import Calibration
    from biograft.linking.dense.encoders import NameEncoder
    from biograft.linking.dense.index import DenseIndex
    from biograft.linking.learned import LearnedDetector, LearnedForm, StatusPhrase
    from biograft.linking.reviewed import ReviewedNames

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
    """Write the lexical weight into an encoder's folder; a negative one becomes 0 in a search.

    Args:
        folder: The encoder's folder.
        lexical: The weight that was learned, beside 1 for dense search.
        described: What the file says besides.
        similarity: Similarity of vectors that it was learned with.
    """
    learned = {
        "weights": {"dense": 1.0, "lexical": max(lexical, 0.0)},
        "learned": {"lexical": lexical},
        "similarity": similarity,
    }
    WEIGHTS.write(folder, {**learned, **described}, overwrite=True)


def read_weights(folder: Path, similarity: str = "cosine") -> dict[str, float] | None:
    """Read the search weights from an encoder's folder; None if none were learned.

    They must have been learned beside the similarity that is searched by.

    Args:
        folder: The encoder's folder.
        similarity: Similarity that is searched by.

    Raises:
        ConfigError: They were learned with another similarity.
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
    """Return whether a value read from JSON maps each of these generators to a valid weight.

    Args:
        value: The value.
        generators: Names of the generators.
    """
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
    """Settings of lexical search."""
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
    learned: Sequence[LearnedForm] = ()
    """Forms that were learned from annotated text, or that reviewers approved."""
    phrases: Sequence[StatusPhrase] = ()
    """Status phrases that were learned from annotated text."""
    learned_detector: LearnedDetector | None = None
    """Chooses mentions by what was learned from annotated text."""


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

    Args:
        kb: The knowledge base.
        folder: The folder to write.
        encoder: Encodes names; search weights in its folder become those of the index.
        config: Settings of the parts.
        overwrite: Replace an index.
        progress: Shows the stages.

    Returns:
        The manifest.

    Raises:
        OutputError: The folder exists, or holds something else than an index.
    """
    folder, config = Path(folder), config or IndexConfig()
    _refuse_other(folder, overwrite)
    learned = _learned(encoder, (config.dense or DenseConfig()).similarity)

    def make_dense(aside: Path) -> DenseIndex | None:
        if encoder is None:
            return None
        from biograft.linking.dense.index import DenseIndex

        return DenseIndex.build(kb, encoder, aside, config.dense, overwrite=True, progress=progress)

    with new_folder(folder, overwrite=overwrite) as work:
        return _write_parts(kb, folder, work, config.lexical, make_dense, learned, progress)


def _write_parts(
    kb: KnowledgeBase,
    folder: Path,
    work: Path,
    lexical: LexicalConfig,
    make_dense: Callable[[Path], DenseIndex | None],
    learned: Mapping[str, float] | None,
    progress: Progress | None,
    weights: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Write the parts of an index to a working folder, and the manifest.

    Vectors are computed beside ``folder``, where they stay if that is interrupted. Weights that an
    encoder ``learned`` replace ``weights``, divided for scores from -1 to 1.
    """
    progress = progress or Progress()
    LexicalIndex.build(kb, lexical, progress).save(work / LEXICAL)
    names = NamesIndex.from_store(kb, NamesIndexConfig(languages=lexical.languages), progress)
    names.save(work / NAMES, store_fingerprint(kb), kb.n_names)
    described, real = None, Path(os.path.realpath(folder))
    aside = real.with_name(f"{real.name}.{DENSE}")
    dense = make_dense(aside)
    if dense is not None:
        described = {**dense.manifest["encoder"], "similarity": dense.config.similarity}
        if learned:
            weights = {**learned, LEXICAL: learned[LEXICAL] / dense.mean_scale()}
        aside.rename(work / DENSE)
    content = {
        "store": store_fingerprint(kb),
        "n_concepts": len(kb),
        "n_names": kb.n_names,
        "parts": [name for name in (LEXICAL, DENSE) if (work / name).is_dir()],
        "weights": weights,
        "encoder": described,
    }
    return INDEX.write(work, content)


def build_encoder_index(
    kb: KnowledgeBase,
    folder: Path,
    encoder: Path,
    progress: Progress | None = None,
    *,
    similarity: str = "cosine",
) -> Path:
    """Build the index of a store with the encoder in a folder; return the index folder.

    Args:
        kb: The knowledge base.
        folder: The folder to write.
        encoder: The folder of the encoder.
        progress: Shows the stages.
        similarity: Similarity of vectors.
    """
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
    folder = Path(folder)
    with sole_writer(folder):
        if encoder is None and is_current(kb, folder):
            return INDEX.read(folder)
        manifest, similarity = INDEX.read(folder), "cosine"
        weights, has_vectors = _weights(folder, manifest), DENSE in manifest["parts"]
        if has_vectors:
            similarity = manifest["encoder"]["similarity"]
        elif encoder is not None:
            raise ConfigError(f"{folder}: has no vectors to update; build it with an encoder")

        def make_dense(aside: Path) -> DenseIndex | None:
            if not has_vectors:
                return None
            from biograft.linking.dense.index import DenseIndex

            return DenseIndex.update(folder / DENSE, kb, encoder, out=aside, progress=progress)

        lexical, learned = LexicalIndex.config_of(folder / LEXICAL), _learned(encoder, similarity)
        with new_folder(folder, overwrite=True) as work:
            updated = _write_parts(
                kb, folder, work, lexical, make_dense, learned, progress, weights
            )
            from biograft.linking.learned import LEARNED_FORMS

            for name in (REVIEWED_NAMES, LEARNED_FORMS):
                if (folder / name).is_dir():
                    shutil.copytree(folder / name, work / name)
            if (folder / CALIBRATION).exists():
                shutil.copy2(folder / CALIBRATION, work / CALIBRATION)
            # with other names, and where inner products are divided by another norm, a score
            # means another probability
            scaled = () if similarity == "cosine" else (folder, work)
            norms = {DENSE_INDEX.read(each / DENSE)["largest_norm"] for each in scaled}
            removed = []
            for name in (CALIBRATION, f"{REVIEWED_NAMES}/{CALIBRATION}"):
                path = work / name
                if path.exists() and not (len(norms) < 2 and _is_calibration_of(kb, path)):
                    path.unlink()
                    removed.append(name)
        return {**updated, "removed": removed} if removed else updated


def is_current(kb: KnowledgeBase, folder: str | Path) -> bool:
    """Return whether an index is whole and of the current state of a store.

    Args:
        kb: The knowledge base, as it is now.
        folder: The index.
    """
    if INDEX.read(Path(folder))["store"] != store_fingerprint(kb):
        return False
    try:
        open_index(kb, folder)
    except StoreError:
        return False
    return True


def _is_calibration_of(kb: KnowledgeBase, path: Path) -> bool:
    """Return whether a file is a calibration that holds for a knowledge base."""
    from biograft.linking.calibration import Calibration

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
    with_learned: bool = True,
) -> OpenedIndex:
    """Open the index of a store; ``search``, weight and similarity of ``config`` replace its own.

    The calibration of the index is left out where these change the scores.

    Args:
        kb: The knowledge base.
        folder: The index.
        config: Options of the search.
        with_reviewed: Use the decisions of reviewers in it.
        with_learned: Use the forms that it learned from annotated text.

    Returns:
        The opened index.

    Raises:
        StoreError: It is missing, damaged, or of another state of the knowledge base.
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
        from biograft.linking.reviewed import ReviewedNames

        reviewed = ReviewedNames.open(folder / REVIEWED_NAMES, kb)
        if len(kinds) > 1 and own and reviewed.weights:
            weights = dict(reviewed.weights)
    if config.lexical_weight is not None:
        weights = {LEXICAL: config.lexical_weight, DENSE: 1 - config.lexical_weight}
    by_name = {generators[kind].name: weight for kind, weight in (weights or {}).items()}
    search = FusedSearch([*generators.values()], by_name)
    names = NamesIndex.open(folder / NAMES, store_fingerprint(kb))
    path, calibration = folder / CALIBRATION, None
    if path.exists():
        from biograft.linking.calibration import Calibration

        calibration = Calibration.load(path)
        chosen = (config.search, config.lexical_weight, config.similarity) != (None, None, None)
        if chosen and calibration.search not in ("", str(search)):
            calibration = None
    fitted = reviewed.calibration if reviewed is not None else None
    if fitted is not None and fitted.search == str(search):
        calibration = fitted
    learned = list(reviewed.forms()) if reviewed is not None else []
    phrases: Sequence[StatusPhrase] = ()
    detector = None
    if with_learned:
        from biograft.linking.learned import detector_of, forms_of, phrases_of

        learned += forms_of(folder)
        phrases, detector = phrases_of(folder), detector_of(folder)
    return OpenedIndex(search, names, calibration, reviewed, languages, learned, phrases, detector)


def open_search(
    kb: KnowledgeBase, folder: str | Path | None, config: LinkerConfig | None = None
) -> OpenedIndex:
    """Open an index; without a folder, build a lexical one in memory.

    Args:
        kb: The knowledge base.
        folder: The index, or None.
        config: Options of the search.

    Returns:
        The opened index.
    """
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


def _learned(encoder: NameEncoder | None, similarity: str) -> dict[str, float] | None:
    """Return the search weights that were learned with an encoder."""
    return read_weights(encoder.folder, similarity) if encoder and encoder.folder else None


def _weights(folder: Path, manifest: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the weights of an index; None means that its generators weigh the same."""
    weights = manifest.get("weights")
    if weights is None:
        return None
    if not are_weights(weights, manifest["parts"]):
        raise INDEX.damaged(folder / INDEX.file, f"weights are {weights!r}")
    return dict(weights)


def _refuse_other(folder: Path, overwrite: bool) -> None:
    """Refuse to replace a folder that is no index."""
    if not overwrite or not folder.is_dir() or not any(folder.iterdir()):
        return
    damaged = (folder / LEXICAL).is_dir() and (folder / INDEX.file).is_file()
    if not damaged and not INDEX.is_at(folder):
        raise OutputError(f"{folder}: not an index, so it is not replaced by one")
