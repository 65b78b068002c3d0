"""``biograft graph embed``: learn vectors for the entities and relations of a store."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import Changes, Folder, Json, Overwrite, Quiet, Resume, Store
from biograft.errors import OutputError


def embed(
    kb: Store,
    out: Folder,
    model: Annotated[
        str,
        typer.Option(
            metavar="RECIPE",
            help="transe, transr, transe-kebiolm, transr-smedbert, or a .toml file.",
        ),
    ] = "transe",
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of all that is drawn; default: 0.")
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the entities as text too: `N dim`, then rows."),
    ] = None,
    changes: Changes = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn vectors for the entities and relations of a knowledge base.

    Triples from files called valid and test are not learned from. The state is saved every
    training.save_every epochs; --resume goes on from it as if nothing had happened.
    """
    from biograft.graph.embedding import EmbeddingRecipe, Embeddings, embed_graph
    from biograft.kb import KnowledgeBase
    from biograft.progress import Progress

    if text is not None and text.exists() and not overwrite:
        raise OutputError(f"{text}: exists already; choose another place, or give --overwrite")
    recipe = EmbeddingRecipe.load(model, changes or ())
    if seed is not None:
        recipe = recipe.with_seed(seed)
    result = embed_graph(
        KnowledgeBase.open(kb),
        recipe,
        out,
        resume=resume,
        overwrite=overwrite,
        progress=Progress(enabled=not quiet),
    )
    if text is not None:
        Embeddings.open(out).write_text(text, overwrite=overwrite)
    told = {**result.to_json(), "peak_gib": round(_peak_gib(), 4)}
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    n = result.n_triples
    typer.echo(
        f"{n['train']:,} triples learned from ({n['valid']:,} valid, {n['test']:,} test held out)"
    )
    typer.echo(
        f"{told['epochs']} epochs in {told['seconds']:.1f} s; loss {told['loss']:.4f}; "
        f"vectors and optimiser {told['tables_gib']:.2f} GiB, peak {told['peak_gib']:.2f} GiB"
    )
    if told["valid_mrr"]:
        best = max(mrr for _, mrr in told["valid_mrr"])
        typer.echo(f"kept: epoch {told['kept_epoch']}, MRR {best:.2f} on the valid part")
    typer.echo(f"embeddings: {out}")


def _peak_gib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2 ** (30 if sys.platform == "darwin" else 20)
