"""``biograft graph embed``: learn vectors for the entities and relations of a store."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Changes,
    Folder,
    Json,
    OptionalKb,
    Overwrite,
    Quiet,
    Resume,
    Store,
    split_list,
)
from biograft.errors import ConfigError, FormatError, InputError, OutputError, StoreError

if TYPE_CHECKING:
    from biograft.graph.embedding import Embeddings
    from biograft.kb import KnowledgeBase


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


def neighbours(
    kb: Store,
    out: Folder,
    k: Annotated[int, typer.Option("-k", metavar="K", help="Neighbours to keep.")] = 10,
    damping: Annotated[float, typer.Option(metavar="A", help="Chance to jump.")] = 0.15,
    normalise: Annotated[
        str, typer.Option(metavar="columns|rows|symmetric", help="How the adjacency is normalised.")
    ] = "columns",
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Rounds, up to 6, from the start; 0: the fixed point.")
    ] = 0,
    frequencies: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Start of few rounds: lines of id, tab, count."),
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="M", help="Start of entities without count: 1/M; 0: M = all.")
    ] = 0,
    relations: Annotated[
        str, typer.Option(metavar="is-a,...", help="Join by these relations only.")
    ] = "",
    refine: Annotated[
        bool, typer.Option("--refine", help="Solve exactly the entities whose choice is not sure.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Solve every entity exactly; slow.")
    ] = False,
    tolerance: Annotated[
        float, typer.Option(metavar="E", help="How far an exact score may be off.")
    ] = 1e-9,
    threads: Annotated[int, typer.Option(metavar="N", help="Threads; 0: one for each core.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Keep the K best neighbours of every entity by personalised entity PageRank.

    A table with relation, direction and type of each, to be read by row of the knowledge base.
    Work that was interrupted goes on where it was when the command is given again.
    """
    from biograft.graph.neighbours import build_neighbours
    from biograft.graph.pepr import PeprConfig
    from biograft.kb import KnowledgeBase
    from biograft.progress import Progress

    if frequencies and not rounds:
        raise ConfigError(
            "--frequencies: the fixed point does not depend on the start; give --rounds too"
        )
    if samples and not frequencies:
        raise ConfigError("--samples: is about the start; give --frequencies too")
    if samples < 0:
        raise ConfigError(f"--samples: expected 0 or more, found {samples}")
    config = PeprConfig(
        k=k,
        damping=damping,
        normalise=normalise,
        rounds=rounds,
        refine=refine,
        exact=exact,
        tolerance=tolerance,
        relations=split_list(relations),
        threads=threads,
    )
    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    start = _read_start(base, frequencies, samples) if frequencies else None
    manifest = build_neighbours(
        base, out, config, start=start,
        overwrite=overwrite, progress=progress,
    )  # fmt: skip
    seconds = round(sum(progress.seconds.values()), 3)
    if as_json:
        typer.echo(json.dumps({"neighbours": str(out), **manifest, "seconds": seconds}))
        return
    typer.echo(
        f"{manifest['n_edges']:,} edges to the best {k} neighbours of {manifest['n_linked']:,} "
        f"entities ({manifest['n_unsure']:,} unsure, {manifest['n_refined']:,} solved exactly) "
        f"in {seconds:.1f} s: {out}"
    )


def _read_start(base: KnowledgeBase, path: Path, samples: int) -> Any:
    """Read frequencies: count / sum for entities that occur, 1 / samples for others."""
    import numpy as np

    from biograft.sources.files import read_lines

    counts = np.zeros(len(base))
    for number, line in read_lines(path):
        identifier, _, count = line.partition("\t")
        if not count.isdecimal():
            raise FormatError("expected id, tab, count", path=path, line=number, text=line)
        row = base.find_row(identifier)
        if row is None:
            raise FormatError("no concept has this id", path=path, line=number, text=line)
        counts[row] += int(count)
    if not counts.sum():
        raise FormatError("no entity occurs", path=path)
    return np.where(counts > 0, counts / counts.sum(), 1 / (samples or len(base)))


app = typer.Typer(
    help="Embed the graph of a knowledge base, or rank the neighbours of its concepts.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(embed)
app.command()(evaluate)
app.command()(neighbours)
