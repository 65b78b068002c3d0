"""``biograft pretrain``: pre-train a model by a recipe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import (
    Changes,
    Json,
    OptionalKb,
    Quiet,
    Resume,
    Run,
    Sweep,
    open_kb,
    print_json,
    print_sweep,
)
from biograft.progress import Progress


def pretrain(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE")],
    out: Run,
    kb: OptionalKb = None,
    encoder: Annotated[Path | None, "DIR"] = None,
    corpus: Annotated[Path | None, "DIR"] = None,
    vectors: Annotated[Path | None, "DIR"] = None,
    neighbours: Annotated[Path | None, "DIR"] = None,
    segmentation: Annotated[Path | None, "DIR"] = None,
    workers: Annotated[int | None, "N"] = None,
    changes: Changes = None,
    sweep: Sweep = None,
    resume: Resume = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train a model by a recipe; the result is RUN/encoder.

    An interrupt, or --set training.max_minutes=N, saves the state, from which --resume continues.

    Args:
        recipe: A pre-training recipe (biograft recipe list), or a .toml file.
        encoder: Model to start from, instead of the recipe's.
        corpus: Annotated text (of `corpus annotate`).
        vectors: Initial entity vectors (of `graph embed`).
        neighbours: Neighbours of entities (of `graph neighbours`).
        segmentation: Segments of long entities (of `corpus segment`).
        workers: Processes that pack annotated text; default: one a core.
    """
    from biograft.training.pretraining.recipe import PretrainingRecipe, pretrain as run_recipe

    folders = {
        "stream.shards": corpus,
        "stream.segmentation": segmentation,
        "knowledge.vectors": vectors,
        "knowledge.neighbours": neighbours,
    }
    overrides = [
        f"{key}={json.dumps(str(folder), ensure_ascii=False)}"
        for key, folder in folders.items()
        if folder is not None
    ]
    if workers is not None:
        overrides.append(f"stream.workers={workers}")
    overrides = [*(changes or ()), *overrides]
    if sweep:
        print_sweep(
            recipe,
            out,
            sweep,
            as_json=as_json,
            kb=kb,
            overrides=overrides,
            encoder=str(encoder or ""),
            resume=resume,
            progress=Progress(enabled=not quiet),
        )
        return
    result = run_recipe(
        PretrainingRecipe.load(recipe, overrides, encoder=str(encoder or "")),
        open_kb(kb) if kb else None,
        out,
        resume=resume,
        progress=Progress(enabled=not quiet),
    )
    if as_json:
        print_json(result.to_json())
        return
    trained = result.training
    loss = f"; loss {trained.loss:.4f}" if trained.loss is not None else ""
    typer.echo(result.training_data)
    typer.echo(f"step {trained.step:,} of {trained.n_steps:,} in {trained.seconds:.1f} s{loss}")
    typer.echo(f"batch: {trained.batch}")
    if not trained.finished:
        typer.echo(f"the time is over; continue with: biograft pretrain ... --resume -o {out}")
    typer.echo(f"encoder: {result.encoder}")
