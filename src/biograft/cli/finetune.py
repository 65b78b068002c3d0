"""``biograft finetune``: train a linker on mentions whose concepts are known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.gold_warnings import warn_left_out, warn_unknown
from biograft.cli.options import Changes, Json, Kb, Quiet, Resume, Run, Types, split_list
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import LinkQuery
    from biograft.kb import KnowledgeBase
    from biograft.linking.recipes import LinkingRecipe, Outcome


def finetune(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe of biograft (linker-ranker, linker-encoder, linker-encoder-cpu, "
            "linker-rerank), or a .toml file.",
        ),
    ],
    kb: Kb,
    out: Run,
    train: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Gold standard to learn from; may be given again."),
    ] = None,
    dev: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Gold standard to look at; never to learn from."),
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Ranker: gold that the encoder was trained on; it counts as seen."
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format of the gold standards.")
    ] = "",
    types: Types = "",
    index: Annotated[
        Path | None,
        typer.Option(metavar="INDEX", help="Index of KB; a ranker takes its vectors over."),
    ] = None,
    encoder: Annotated[
        str, typer.Option(metavar="NAME_OR_DIR", help="Encoder, instead of the recipe's.")
    ] = "",
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Re-ranking: the trained linker that ranks first, trained on other mentions.",
        ),
    ] = None,
    changes: Changes = None,
    resume: Resume = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove an earlier run at RUN first.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a linker by a recipe: a ranker, an encoder, or a re-ranker that reads the context.

    A ranker is RUN/model, to be used with RUN/kb and RUN/index; an encoder RUN/encoder; a
    re-ranker RUN/model, to be used with KB and INDEX.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking.recipes import Lesson, LinkingRecipe
    from biograft.linking.recipes import finetune as run_recipe
    from biograft.linking.recipes.running import remove_run

    if resume and overwrite:
        raise ConfigError("--resume goes on with a run, --overwrite removes it; give one of them")
    chosen = LinkingRecipe.load(recipe, changes or (), encoder)
    data = chosen.data
    asked = _Gold(form or data.format, split_list(types) or data.types, KnowledgeBase.open(kb))
    held_out = asked.read("--dev", dev or data.dev) if dev or data.dev else None
    lesson = Lesson(
        kb=asked.kb,
        train=asked.read("--train", train or data.train),
        known=asked.read("--known", known) if known else (),
        dev=held_out,
        out=out,
        index=index,
        model=model,
        resume=resume,
        progress=Progress(enabled=not quiet),
    )
    if overwrite:
        remove_run(out)
    outcome = run_recipe(chosen, lesson)
    measured = _measure(outcome, held_out) if held_out else {}
    if as_json:
        described = {"recipe": chosen.name, "kind": chosen.kind, "run": str(out)}
        values = {**described, **outcome.to_json(), **measured}
        typer.echo(json.dumps(values, ensure_ascii=False))
        return
    _print(chosen, outcome, measured, out)


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
