"""``biograft probe similarity``: whether names of one thing are nearer than look-alikes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import (
    Json,
    OptionalKb,
    Overwrite,
    Quiet,
    split_languages,
    split_list,
)
from biograft.cli.probe_similarity_inputs import (
    Measures,
    MeasureSettings,
    make_queries,
    read_asked,
    refuse_unfit,
)
from biograft.cli.probe_similarity_text import print_similarity


def similarity(
    kb: OptionalKb = None,
    encoders: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="[LABEL=]DIR", help="Encoder to ask; may come again."),
    ] = None,
    baselines: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline", metavar="letters|sgns|glove", help="Compare this, too; may come again."
        ),
    ] = None,
    same_as: Annotated[
        list[str] | None,
        typer.Option(
            "--same-as",
            metavar="RELATION",
            help="Relation that joins concepts that are the same; may come again.",
        ),
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            metavar="all|names|relations",
            help="Pair names of one concept, of two joined by --same-as, or all.",
        ),
    ] = "all",
    languages: Annotated[
        str,
        typer.Option("--lang", metavar="en,zh", help="Pair names in these only; default: any."),
    ] = "",
    across_languages: Annotated[
        bool, typer.Option("--across-languages", help="Pair names of two languages, too.")
    ] = False,
    negatives: Annotated[
        int, typer.Option(metavar="N", help="Look-alikes beside each right name.")
    ] = 19,
    jaro_winkler: Annotated[
        float,
        typer.Option(
            "--jaro-winkler", metavar="X", help="Look-alikes are more alike than this to it."
        ),
    ] = 0.6,
    limit: Annotated[
        int, typer.Option(metavar="N", help="Pairs, drawn at random; 0: all of them.")
    ] = 0,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="SHARDS", help="Annotated text to count names in, for D3."),
    ] = None,
    rare: Annotated[
        int, typer.Option(metavar="N", min=0, help="D3: a name is found at most so often.")
    ] = 200,
    pooling: Annotated[
        str,
        typer.Option(
            metavar="inner|mean|cls|own",
            help="From tokens to a vector; inner: the mean but special tokens; own: as saved.",
        ),
    ] = "inner",
    told: Annotated[
        bool,
        typer.Option(
            "--told", help="Tell models that must be told which entities the names are of."
        ),
    ] = False,
    text: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Train sgns and glove on this; default: the corpus."),
    ] = None,
    dim: Annotated[int, typer.Option(metavar="N", help="Width of sgns and glove.")] = 100,
    epochs: Annotated[
        int, typer.Option(metavar="N", help="Epochs of sgns and glove; 0: 5 and 25.")
    ] = 0,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Seed of what is drawn, of intervals, of sgns and glove."),
    ] = 0,
    write: Annotated[
        Path | None,
        typer.Option("-o", "--write-queries", metavar="FILE", help="Write queries as JSON lines."),
    ] = None,
    queries_from: Annotated[
        Path | None,
        typer.Option(
            "--queries-from", "--queries", metavar="FILE", help="Ask what -o wrote; needs no --kb."
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask encoders which of 20 names means the same as a given one.

    The right name is another name of the concept, or of one that is the same; the others are
    names of other concepts of its type that look like it. D1: all queries; D2: those whose
    concepts have the same neighbours; D3: those with a name that is rare in the corpus. Accuracy
    is in percent; a name must be alone the nearest, ties are wrong.
    """
    from biograft.probing.similarity import (
        SimilarityConfig,
        SimilarityReport,
        TrainingConfig,
        write_queries,
    )
    from biograft.progress import Progress
    from biograft.runs import new_file

    training = TrainingConfig(dim=dim, epochs=epochs, seed=seed)
    settings = MeasureSettings(pooling, told, text or corpus, training)
    measures = Measures(tuple(encoders or ()), split_list(",".join(baselines or ())), settings)
    config = SimilarityConfig(
        same_as=split_list(",".join(same_as or ())),
        pairs=pairs,
        languages=split_languages(languages),
        across_languages=across_languages,
        negatives=negatives,
        jaro_winkler=jaro_winkler,
        limit=limit,
        seed=seed,
    )
    refuse_unfit(kb, queries_from, config)
    progress = Progress(enabled=not quiet)
    measures.load()
    with ExitStack() as stack:
        file = stack.enter_context(new_file(write, overwrite=overwrite)) if write else None
        if queries_from is not None:
            asked = read_asked(queries_from, corpus, progress)
        else:
            asked = make_queries(kb, config, corpus, progress)
        if file is not None:
            write_queries(file, asked.queries, asked.made_of)
    report = SimilarityReport(asked.queries, rare, seed)
    found = {"unit": "percent"} | asked.told | {"rare": rare, "pooling": pooling, "seed": seed}
    found |= {"told": told, **measures.tell(report, progress)}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        print_similarity(found)
