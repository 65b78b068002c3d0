"""Train a re-ranker by a recipe."""

from __future__ import annotations

from biograft.errors import MissingExtraError
from biograft.linking.linker import Linker
from biograft.linking.recipes.kinds import Lesson, Outcome, RecipeKind
from biograft.linking.recipes.recipe import LinkingRecipe
from biograft.linking.rerank.config import RerankConfig


def run_rerank(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/model``; candidates are those of the index, ranked by the model if given."""
    try:
        from biograft.linking.rerank import gather_examples, train_reranker
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a re-ranker") from error
    lesson.progress.start("candidates")
    linker = Linker.open(lesson.kb, lesson.index, lesson.model)
    data = gather_examples(lesson.kb, linker, lesson.train, recipe.config, lesson.dev)
    result = train_reranker(
        data,
        recipe.config,
        lesson.out,
        ranker=lesson.model,
        resume=lesson.resume,
        progress=lesson.progress,
    )
    return Outcome.of_linker(result)


KIND = RecipeKind(
    config=RerankConfig,
    encoder_key="config.encoder",
    needs_encoder=False,
    takes=frozenset({"dev", "index", "model"}),
    run=run_rerank,
)
