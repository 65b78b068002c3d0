"""Train a ranker: the store grown by the mentions, its index, and the ranker beside them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from biograft.errors import ConfigError, MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.linking.labelled import LabelledMention
from biograft.linking.opening import OpenedIndex, build_index, open_index, update_index
from biograft.linking.provenance import store_fingerprint
from biograft.linking.recipes.kinds import Lesson, Outcome, RecipeKind
from biograft.linking.recipes.recipe import LinkingRecipe
from biograft.linking.recipes.running import label_mentions
from biograft.linking.supervised import RankerConfig, TrainedRanker, grow_store
from biograft.training.run_folder import check_run, start_run

if TYPE_CHECKING:
    from biograft.nn import TextEncoder


def run_ranker(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/kb``, ``out/index`` and ``out/model``; what is there is not made again."""
    try:
        from biograft.linking.supervised import train_network
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a ranker") from error
    if lesson.index is not None and recipe.encoder is not None:
        raise ConfigError("encoder: the index brings its own; leave one of the two out")
    mentions, known, out = label_mentions(lesson.train), label_mentions(lesson.known), lesson.out
    encoder = recipe.encoder.load() if recipe.encoder else None
    provenance = {
        "kb": store_fingerprint(lesson.kb),
        "mentions": _fingerprint(mentions),
        "known": _fingerprint(known),
        "encoder": encoder.fingerprint() if encoder else None,
        "index": str(lesson.index) if lesson.index else None,
    }
    (check_run if lesson.resume else start_run)(out, recipe.to_json(), provenance)
    lesson.progress.start("knowledge base")
    if not (out / "kb").exists():
        grow_store(lesson.kb, [*known, *mentions], out / "kb")
    kb = KnowledgeBase.open(out / "kb")
    opened = _index(kb, lesson, encoder)
    trained = train_network(kb, opened.search, mentions, recipe.config, lesson.progress, known)
    generators = [generator.name for generator in opened.search.generators]
    ranker = TrainedRanker(kb, trained.network, trained.memory, generators)
    ranker.save(out / "model", recipe.config, trained.report, overwrite=True)
    made = {name: out / name for name in ("kb", "index", "model")}
    return Outcome(made=made, report=trained.report)


def _index(kb: KnowledgeBase, lesson: Lesson, encoder: TextEncoder | None) -> OpenedIndex:
    """Make the index of the grown store; vectors that the given index holds are taken over."""
    folder = lesson.out / "index"
    if folder.exists():
        return open_index(kb, folder)
    if lesson.index is None:
        build_index(kb, folder, encoder, progress=lesson.progress)
        return open_index(kb, folder)
    open_index(lesson.kb, lesson.index)  # refuses that of another store
    work = folder.with_name("index.copied")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(lesson.index, work)
    update_index(kb, work, progress=lesson.progress)
    work.rename(folder)
    return open_index(kb, folder)


def _fingerprint(mentions: Sequence[LabelledMention]) -> str:
    digest = hashlib.sha256()
    for mention in mentions:
        told = (mention.text, sorted(mention.concepts), mention.document)
        digest.update(repr(told).encode())
    return digest.hexdigest()


KIND = RecipeKind(
    config=RankerConfig,
    encoder_key="encoder.name",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "known"}),
    run=run_ranker,
)
