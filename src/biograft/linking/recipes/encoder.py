"""Fine-tune an encoder by a recipe."""

from __future__ import annotations

from biograft.errors import ConfigError
from biograft.linking.finetuning import FinetuneConfig
from biograft.linking.recipes.kinds import Lesson, Outcome, RecipeKind
from biograft.linking.recipes.recipe import LinkingRecipe
from biograft.linking.recipes.running import label_mentions


def run_encoder(recipe: LinkingRecipe, lesson: Lesson) -> Outcome:
    """Write ``out/encoder``, with the weight of letters in it where that is learned."""
    from biograft.linking.finetuning import finetune_encoder

    if recipe.encoder is None:
        raise ConfigError(f"recipe {recipe.name}: missing key 'encoder.name'")
    result = finetune_encoder(
        lesson.kb,
        recipe.encoder.load(),
        label_mentions(lesson.train),
        recipe.config,
        lesson.out,
        resume=lesson.resume,
        progress=lesson.progress,
    )
    report = {k: v for k, v in result.to_json().items() if k not in ("run", "encoder", "finished")}
    finished = result.training.finished
    return Outcome(made={"encoder": result.encoder}, report=report, finished=finished)


KIND = RecipeKind(
    config=FinetuneConfig,
    encoder_key="encoder.name",
    needs_encoder=True,
    takes=frozenset(),
    run=run_encoder,
)
