"""``biograft graph``: embed (knowledge graph embeddings), evaluate, neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import CommandGroup
from biograft.cli.options import (
    Changes,
    Folder,
    Json,
    OptionalKb,
    Overwrite,
    Quiet,
    Resume,
    Store,
    open_kb,
    print_json,
)
from biograft.compute import peak_bytes
from biograft.errors import ConfigError, FormatError, InputError, OutputError, StoreError
from biograft.graph.config import PeprConfig
from biograft.kb.names import whole_number
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.graph.embedding import Embeddings
    from biograft.kb import KnowledgeBase

app = CommandGroup("Train graph embeddings, or rank the neighbours of concepts.")


@app.command()
def embed(
    kb: Store,
    out: Folder,
    model: Annotated[str, "RECIPE"] = "transe",
    seed: Annotated[int | None, "N"] = None,
    text: Annotated[Path | None, "FILE"] = None,
    device: Annotated[str, "auto|cpu|cuda"] = "auto",
    start_from: Annotated[Path | None, "DIR"] = None,
    changes: Changes = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train TransE or TransR embeddings of the entities and relations of a knowledge base.

    Triples from files called valid and test are held out. The state is saved every
    training.save_every epochs; --resume continues from it exactly. After the first steps, the
    time and memory of the training are estimated.

    Args:
        model: transe, transr, transe-kebiolm, transr-smedbert, or a .toml file.
        seed: Random seed of the training; default: 0.
        text: Write the entity vectors as text, too: `N dim`, then rows.
        device: Where to train; auto: TransE of over 200,000 entities on a GPU, if there is one.
        start_from: Start with the vectors of these embeddings of KB, such as TransR with
            TransE's.
    """
    from biograft.graph.embedding import (
        EmbeddingExecution,
        Embeddings,
        GraphRecipe,
        embed_graph,
    )

    if text is not None and text.exists() and not overwrite:
        raise OutputError(f"{text}: exists already; choose another file, or give --overwrite")
    recipe = GraphRecipe.load(model, changes or ())
    if seed is not None:
        recipe = recipe.with_seed(seed)
    result = embed_graph(
        open_kb(kb),
        recipe,
        out,
        start_from=start_from,
        resume=resume,
        overwrite=overwrite,
        execution=EmbeddingExecution(
            device=device,
            announce=None if quiet else lambda estimate: typer.echo(str(estimate), err=True),
            progress=Progress(enabled=not quiet),
        ),
    )
    if text is not None:
        Embeddings.open(out).write_text(text, overwrite=overwrite)
    summary = {**result.to_json(), "peak_gib": round(peak_bytes() / 2**30, 4)}
    if as_json:
        print_json(summary)
        return
    n = summary["n_triples"]
    typer.echo(f"{n['train']:,} training triples ({n['valid']:,} valid, {n['test']:,} test)")
    typer.echo(
        f"{summary['epochs']} epochs in {summary['seconds']:.1f} s; loss {summary['loss']:.4f}; "
        f"vectors and optimiser {summary['tables_gib']:.2f} GiB, peak {summary['peak_gib']:.2f} GiB"
    )
    if summary["valid_mrr"]:
        best = max(mrr for _, mrr in summary["valid_mrr"])
        typer.echo(f"best: epoch {summary['best_epoch']}, validation MRR {best:.2f}")
    typer.echo(f"embeddings: {out}")


@app.command()
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="DIR")],
    kb: OptionalKb = None,
    split: Annotated[str, "test|valid|train"] = "test",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate link prediction: rank the true tail and head of each triple among all entities.

    Ranks are filtered: other true answers do not count. MRR and hits are in percent. The
    knowledge base is the one that DIR was made from; --kb names it after a move.

    Args:
        folder: Embeddings made by `biograft graph embed`.
        split: Triples to evaluate on.
    """
    from biograft.graph.embedding import SPLITS, Embeddings, predict_links, read_triples

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
    metrics = result.to_json()
    if as_json:
        print_json({**metrics, "split": split, "seconds": round(progress.seconds["ranking"], 3)})
        return
    typer.echo(f"{metrics['n']:,} {split} triples, {metrics['n_candidates']:,} candidate entities")
    typer.echo("        MRR   hits@1   hits@3  hits@10  mean rank")
    for side, row in (("both", metrics), ("tail", metrics["tail"]), ("head", metrics["head"])):
        hits = "  ".join(f"{row[name]:7.2f}" for name in ("hits@1", "hits@3", "hits@10"))
        typer.echo(f"{side}  {row['mrr']:6.2f}  {hits}  {row['mean_rank']:9.1f}")


def _open_base(embeddings: Embeddings, kb: Path | None) -> KnowledgeBase:
    """Open the store that the embeddings were made from."""
    from biograft.graph.embedding import graph_fingerprint

    folder = kb or Path(embeddings.manifest["kb"])
    if kb is None and not folder.exists():
        raise InputError(
            f"made from {folder}, which does not exist",
            path=embeddings.folder,
            remedy="name the knowledge base with --kb",
        )
    base = open_kb(folder)
    made_from = (embeddings.manifest["graph"], embeddings.manifest["n_entities"])
    if (graph_fingerprint(base), len(base)) != made_from:
        raise StoreError(
            f"{embeddings.folder}: made from another knowledge base than {folder}, or from an "
            "earlier state of it; name the right one with --kb, or embed again"
        )
    return base


@app.command()
def neighbours(
    kb: Store,
    out: Folder,
    pepr: PeprConfig,
    frequencies: Annotated[Path | None, "FILE"] = None,
    samples: Annotated[int, "M"] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank the neighbours of every entity by personalised entity PageRank, and keep the K best.

    The result is a table with the relation, direction and type of each neighbour, by row of the
    knowledge base. Interrupted work continues when the command is given again.

    Args:
        frequencies: Start vector for --rounds: lines of id, tab, count.
        samples: Start value 1/M of uncounted entities; 0: M = all.
    """
    from biograft.graph.neighbours import build_neighbours

    if frequencies and not pepr.rounds:
        raise ConfigError(
            "--frequencies: the fixed point does not depend on the start; give --rounds too"
        )
    if samples and not frequencies:
        raise ConfigError("--samples: applies to the start vector; give --frequencies too")
    if samples < 0:
        raise ConfigError(f"--samples: expected 0 or more, found {samples}")
    base, progress = open_kb(kb), Progress(enabled=not quiet)
    start = _read_start(base, frequencies, samples) if frequencies else None
    manifest = build_neighbours(
        base, out, pepr, start=start, overwrite=overwrite, progress=progress
    )
    seconds = round(sum(progress.seconds.values()), 3)
    if as_json:
        print_json({"neighbours": str(out), **manifest, "seconds": seconds})
        return
    typer.echo(
        f"{manifest['n_edges']:,} edges to the best {pepr.k} neighbours of "
        f"{manifest['n_linked']:,} entities ({manifest['n_uncertain']:,} uncertain, "
        f"{manifest['n_refined']:,} solved exactly) in {seconds:.1f} s: {out}"
    )


def _read_start(base: KnowledgeBase, path: Path, samples: int) -> Any:
    """Read frequencies: count / sum for entities that occur, 1 / samples for others."""
    import numpy as np

    from biograft.kb.sources.files import read_lines

    counts = np.zeros(len(base))
    for number, line in read_lines(path):
        identifier, _, count = line.partition("\t")
        n = whole_number(count)
        if n is None:
            raise FormatError("expected id, tab, count", path=path, line=number, text=line)
        row = base.find_row(identifier)
        if row is None:
            raise FormatError("no concept has this id", path=path, line=number, text=line)
        counts[row] += n
    if not counts.sum():
        raise FormatError("no entity occurs", path=path)
    return np.where(counts > 0, counts / counts.sum(), 1 / (samples or len(base)))
