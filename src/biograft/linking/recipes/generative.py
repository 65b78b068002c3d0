"""Train a linker that generates names, by a recipe."""

from __future__ import annotations

from biograft.errors import ConfigError, MissingExtraError
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.opening import open_search
from biograft.linking.recipes.kinds import Lesson, Outcome, RecipeKind
from biograft.linking.recipes.recipe import LinkingRecipe


def run_generative(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/model``; an index is searched only to fit how much it counts beside."""
    try:
        from biograft.linking.generative import Mentions, train_generative
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "training a generative linker") from error
    config: GenerativeConfig = recipe.config
    searches = config.fit_share or config.share < 1
    if lesson.index is not None and not searches:
        raise ConfigError(
            "index: nothing is searched where generation alone counts; leave it out, or set "
            "config.fit_share=true"
        )
    lesson.progress.start("index")
    languages = config.names.languages
    opened = open_search(lesson.kb, lesson.index, languages) if searches else None
    mentions = Mentions(
        train=lesson.train,
        held_out=lesson.dev or (),
        search=opened.search if opened else None,
    )
    result = train_generative(
        lesson.kb,
        mentions,
        config,
        lesson.out,
        resume=lesson.resume,
        progress=lesson.progress,
    )
    return Outcome.of_linker(result)


KIND = RecipeKind(
    config=GenerativeConfig,
    encoder_key="config.model",
    needs_encoder=False,
    takes=frozenset({"dev", "index"}),
    run=run_generative,
)
