"""``biograft finetune`` with a recipe of a linker: a ranker, an encoder, a re-ranker, names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from biograft.cli.finetune_options import FinetuneOptions
from biograft.cli.gold_warnings import warn_left_out, warn_unknown
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import LinkQuery
    from biograft.kb import KnowledgeBase
    from biograft.linking.recipes import LinkingRecipe, Outcome


def train_linker(options: FinetuneOptions) -> None:
    """Train what a recipe of a linker says, and print what it gained."""
    from biograft.kb import KnowledgeBase
    from biograft.linking.recipes import Lesson, LinkingRecipe, finetune as run_recipe
    from biograft.linking.recipes.running import remove_run

    chosen = LinkingRecipe.load(options.recipe, options.changes, options.encoder)
    options.refuse(chosen.kind, "test", "seeds")
    if options.kb is None:
        raise ConfigError(f"--kb: a recipe of kind {chosen.kind!r} needs a knowledge base")
    data, kb = chosen.data, KnowledgeBase.open(options.kb)
    asked = _Gold(options.format or data.format, options.types or data.types, kb)
    dev = options.dev or data.dev
    held_out = asked.read("--dev", dev) if dev else None
    lesson = Lesson(
        kb=asked.kb,
        train=asked.read("--train", options.train or data.train),
        known=asked.read("--known", options.known) if options.known else (),
        dev=held_out,
        out=options.out,
        index=options.index,
        model=options.model,
        resume=options.resume,
        progress=Progress(enabled=not options.quiet),
    )
    if options.overwrite:
        remove_run(options.out)
    outcome = run_recipe(chosen, lesson)
    measured = _measure(outcome, held_out) if held_out else {}
    if options.as_json:
        described = {"recipe": chosen.name, "kind": chosen.kind, "run": str(options.out)}
        values = {**described, **outcome.to_json(), **measured}
        typer.echo(json.dumps(values, ensure_ascii=False))
        return
    _print(chosen, outcome, measured, options.out)


class _Gold:
    """Reads gold standards of one format for one store."""

    def __init__(self, form: str, types: tuple[str, ...], kb: KnowledgeBase) -> None:
        self.form, self.types, self.kb = form, types, kb

    def read(self, option: str, paths: Sequence[str]) -> list[LinkQuery]:
        """Read the queries of some files as one, their ids spelled as the store does."""
        from biograft.evaluation import GoldConfig, StoreIds, read_gold, resolve_gold

        if not paths:
            raise ConfigError(f"{option}: name a gold standard, here or as data.train in a recipe")
        if not self.form:
            raise ConfigError("--format: name the format of the gold standards")
        config = GoldConfig(types=self.types, keep_nil=True)
        queries: list[LinkQuery] = []
        for path in paths:
            gold = read_gold(path, self.form, config)
            warn_left_out(gold.log.rejected.counts, "rows", f"{path}: ")
            queries += gold.queries
        resolved = resolve_gold(queries, StoreIds(self.kb))
        warn_unknown(resolved.unknown, where=f"{option}: ")
        return list(resolved.queries)


def _measure(outcome: Outcome, dev: Sequence[LinkQuery]) -> dict[str, Any]:
    """Measure a linker that is whole in its run, without and with what was trained."""
    made = outcome.made
    if not {"kb", "index", "model"} <= made.keys():
        return {}
    from biograft.evaluation import EvaluationConfig, evaluate_linking
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    base, config = KnowledgeBase.open(made["kb"]), EvaluationConfig(ks=(1,), n_resamples=1)
    figures = {}
    for name, model in (("search", None), ("trained", made["model"])):
        linker = Linker.open(base, index=made["index"], model=model)
        figures[name] = evaluate_linking(linker, base, dev, config=config)["acc@1"]
    return {"dev": {"n": len(dev), **{name: round(v, 6) for name, v in figures.items()}}}


def _print(recipe: LinkingRecipe, outcome: Outcome, measured: Mapping[str, Any], out: Path) -> None:
    for name, value in _flat({**outcome.report, **measured}):
        shown = f"{value:.4f}" if isinstance(value, float) else f"{value:,}"
        typer.echo(f"  {name:28} {shown}")
    if not outcome.finished:
        typer.echo(f"the time is over; go on with: biograft finetune ... --resume -o {out}")
    for name, path in outcome.made.items():
        typer.echo(f"{name}: {path}")


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Give the numbers of a report, those of tables inside by their way."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, int | float):
            yield f"{before}{name}", value
