"""``biograft graph evaluate``: how well embeddings predict what triples lack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import Json, OptionalKb, Quiet
from biograft.errors import InputError, StoreError

if TYPE_CHECKING:
    from biograft.graph.embedding import Embeddings
    from biograft.kb import KnowledgeBase


def evaluate(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Embeddings made by `biograft graph embed`.")
    ],
    kb: OptionalKb = None,
    split: Annotated[
        str, typer.Option(metavar="test|valid|train", help="Which triples to ask about.")
    ] = "test",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank the true tail and head of each held-out triple among all entities.

    Other true answers do not count. MRR and hits are in percent. The knowledge base is the one
    that DIR was made from, unless --kb says where it is now.
    """
    from biograft.graph.embedding import SPLITS, Embeddings, predict_links, read_triples
    from biograft.progress import Progress

    if split not in SPLITS:
        raise typer.BadParameter(f"expected one of {', '.join(SPLITS)}", param_hint="--split")
    embeddings = Embeddings.open(folder)
    base = _open_base(embeddings, kb)
    triples = read_triples(base)
    if not (triples.splits == SPLITS.index(split)).any():
        raise InputError(
            f"holds no {split} triples",
            path=base.folder,
            remedy="build it from files called train, valid and test, or name another --split",
        )
    progress = Progress(enabled=not quiet)
    progress.start("ranking")
    result = predict_links(embeddings.tables, embeddings.model, triples, split, progress)
    progress.finish()
    told = result.to_json()
    told |= {"split": split, "seconds": round(progress.seconds["ranking"], 3)}
    if as_json:
        typer.echo(json.dumps(told))
        return
    typer.echo(f"{told['n']:,} {split} triples, {told['n_candidates']:,} entities to choose from")
    typer.echo("        MRR   hits@1   hits@3  hits@10  mean rank")
    for side, row in (("both", told), ("tail", told["tail"]), ("head", told["head"])):
        figures = "  ".join(f"{row[name]:7.2f}" for name in ("hits@1", "hits@3", "hits@10"))
        typer.echo(f"{side}  {row['mrr']:6.2f}  {figures}  {row['mean_rank']:9.1f}")


def _open_base(embeddings: Embeddings, kb: Path | None) -> KnowledgeBase:
    """Open the store that embeddings were made from."""
    from biograft.graph.embedding import graph_fingerprint
    from biograft.kb import KnowledgeBase

    place = kb or Path(embeddings.manifest["kb"])
    if kb is None and not place.exists():
        raise InputError(
            f"made from {place}, which is not there",
            path=embeddings.folder,
            remedy="say where the knowledge base is with --kb",
        )
    base = KnowledgeBase.open(place)
    if graph_fingerprint(base) != embeddings.manifest["graph"]:
        raise StoreError(
            f"{embeddings.folder}: made from another knowledge base than {place}, or from an "
            "earlier state of it; name the right one with --kb, or embed again"
        )
    return base
