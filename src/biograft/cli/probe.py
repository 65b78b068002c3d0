"""What ``biograft probe`` prints for people."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, Kb, Languages, Overwrite, Quiet, split_languages, split_list
from biograft.cli.probe_attention import attention
from biograft.cli.probe_similarity import similarity
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.nn.masked_lm import MaskedLanguageModel
    from biograft.probing import ClozeAnswers, ClozeQuery, ClozeReport, DecodingConfig, QueryConfig
    from biograft.progress import Progress

_PARTS = ("all", "type 1", "type 2")


def print_probe(told: dict[str, Any]) -> None:
    """Print recall of each model, of each relation, and how much better one is than another."""
    first = told["models"][0]["all"]
    typer.echo(f"{told['n_queries']:,} queries of {first['n_relations']} relations")
    for model in told["models"]:
        typer.echo(f"{model['model']}  {model['seconds']:.1f} s")
        for part in _PARTS:
            row = model[part]
            low, high = row["interval"]
            typer.echo(
                f"  {part:6} {row['recall']:6.2f}   {low:6.2f} to {high:6.2f}"
                f"   {row['n_queries']:,} queries, {row['n_relations']} relations"
            )
        if model["n_too_long"]:
            typer.echo(f"  too long for the model {model['n_too_long']:,} times, counted as wrong")
        shown = "  ".join(f"{n}: {recall:.2f}" for n, recall in model["by_length"].items())
        typer.echo(f"  by number of masks  {shown}")
    _print_relations(told["models"])
    for row in told["differences"]:
        typer.echo(f"{row['model']} against {row['than']}")
        for part in _PARTS:
            low, high = row[part]["interval"]
            typer.echo(
                f"  {part:6} {row[part]['difference']:+6.2f}   {low:+6.2f} to {high:+6.2f}"
                f"   p {row[part]['p']:.4f}"
            )


def _print_relations(models: Sequence[dict[str, Any]]) -> None:
    """Print recall by relation, a column a model."""
    width = max(len(row["relation"]) for row in models[0]["relations"])
    for rows in zip(*(model["relations"] for model in models), strict=True):
        figures = "  ".join(f"{row['all']['recall']:6.2f}" for row in rows)
        typer.echo(f"  {rows[0]['relation']:{width}} n={rows[0]['all']['n']:<6,} {figures}")


def cloze(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Folders of masked language models.")
    ],
    kb: Kb,
    languages: Languages = "en",
    masked: Annotated[
        str, typer.Option(metavar="both|head|tail", help="Which end of a triple is left blank.")
    ] = "both",
    relations: Annotated[
        str, typer.Option(metavar="treats,...", help="Ask about these relations only.")
    ] = "",
    wording: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="How relations are said: lines of name, tab, words."),
    ] = None,
    per_relation: Annotated[
        int, typer.Option(metavar="N", help="Queries of a relation, drawn at random; 0: all.")
    ] = 200,
    limit: Annotated[
        int, typer.Option(metavar="N", help="Queries in all, drawn at random; 0: all.")
    ] = 0,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ask these: lines of prompt, tab, relation, tab, ids."),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write-queries", metavar="FILE", help="Write the queries, to ask again."),
    ] = None,
    lengths: Annotated[
        str, typer.Option(metavar="1-10", help="Numbers of masks that a blank is tried with.")
    ] = "1-10",
    beam: Annotated[
        int, typer.Option(metavar="B", help="Fillings kept, and given for each number of masks.")
    ] = 5,
    order: Annotated[
        str,
        typer.Option(
            metavar="any|left-to-right|independent", help="Which masked place is filled next."
        ),
    ] = "any",
    examples: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the best answers to each query as JSON lines."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of what is drawn, and of the intervals.")
    ] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask masked language models to fill the blank in triples put into words.

    A query is right if one of the best fillings, of any number of masks, is a name of a right
    concept. Figures are recall in percent, the mean over relations, with 95 % intervals by
    drawing relations. Type 1: the query holds the answer's name; type 2: it does not.
    """
    from biograft.kb import KnowledgeBase
    from biograft.nn.masked_lm import MaskedLanguageModel
    from biograft.probing import ClozeReport, DecodingConfig, QueryConfig, gold_of
    from biograft.progress import Progress

    _refuse_equal(models)
    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    decoding = DecodingConfig(lengths=_numbers(lengths), beam=beam, order=order)
    config = QueryConfig(
        languages=split_languages(languages),
        masked=masked,
        relations=split_list(relations),
        per_relation=per_relation,
        limit=limit,
        seed=seed,
    )
    asked, told = _queries(base, config, queries, wording)
    loaded = [MaskedLanguageModel.from_pretrained(model) for model in models]
    if write is not None:
        from biograft.probing import write_queries

        write_queries(write, asked, overwrite=overwrite)
    with ExitStack() as stack:
        file = stack.enter_context(_open(examples, overwrite=overwrite)) if examples else None
        gold = [gold_of(base, query, config.languages) for query in asked]
        report = ClozeReport(asked, gold, seed)
        answers, seconds = _ask(loaded, report, decoding, progress)
        if file is not None:
            _write_examples(file, base, report, answers)
    told |= {"unit": "percent", "order": order, "beam": beam, "lengths": list(decoding.lengths)}
    told["models"] = [
        report.to_json(each) | {"seconds": taken}
        for each, taken in zip(answers, seconds, strict=True)
    ]
    told["differences"] = _differences(report, answers)
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False))
    else:
        print_probe(told)


def _refuse_equal(models: Sequence[Path]) -> None:
    for place, model in enumerate(models):
        if model in models[:place]:
            raise ConfigError(f"MODEL: {model} stands there twice")


def _numbers(text: str) -> tuple[int, ...]:
    """Read ``1-3,5`` as numbers."""
    numbers: list[int] = []
    for part in split_list(text):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise ConfigError(f"--lengths: expected numbers such as 1-10 or 1,2,5, found {text!r}")
        numbers += range(int(first), int(last if dash else first) + 1)
    return tuple(numbers)


def _queries(
    base: KnowledgeBase, config: QueryConfig, path: Path | None, wording: Path | None
) -> tuple[tuple[ClozeQuery, ...], dict[str, Any]]:
    """Read the queries, or make them of the store; with what there is to tell of them."""
    from biograft.errors import InputError
    from biograft.probing import build_queries, read_queries, read_wording

    if path is not None:
        if wording is not None or config != type(config)(
            languages=config.languages, seed=config.seed
        ):
            raise ConfigError(
                "--queries: holds queries as they are; leave away --masked, --relations, "
                "--wording, --per-relation and --limit, which say which are made of the store"
            )
        read = read_queries(path, base)
        return read, {"n_queries": len(read)}
    made = build_queries(base, config, read_wording(wording) if wording else None)
    if not made.queries:
        raise InputError(
            "no triple joins two concepts with names in the languages asked for",
            path=base.folder,
            remedy="choose others with --lang, or other relations",
        )
    return made.queries, {
        "n_queries": len(made.queries),
        "n_different": made.n_different,
        "n_triples": made.n_triples,
        "n_nameless": made.n_nameless,
    }


def _open(path: Path, *, overwrite: bool) -> Any:
    from biograft.artifacts import new_file

    return new_file(path, overwrite=overwrite)


def _ask(
    models: Sequence[MaskedLanguageModel],
    report: ClozeReport,
    config: DecodingConfig,
    progress: Progress,
) -> tuple[list[ClozeAnswers], list[float]]:
    """Ask one model after the other, and tell how many seconds each took."""
    from biograft.probing import ask

    answers, seconds = [], []
    for model in models:
        start = time.perf_counter()
        progress.start(f"ask {Path(model.name).name}")
        answers.append(ask(model, report.queries, report.gold, config, progress))
        progress.finish()
        seconds.append(round(time.perf_counter() - start, 3))
    return answers, seconds


def _write_examples(
    file: IO[bytes], base: KnowledgeBase, report: ClozeReport, answers: Sequence[ClozeAnswers]
) -> None:
    from biograft.probing import example

    for row, (query, gold) in enumerate(zip(report.queries, report.gold, strict=True)):
        content = {
            "prompt": query.prompt,
            "relation": query.relation,
            "type": 1 if gold.given_away else 2,
            "answers": [{"id": answer, "name": base[answer].name} for answer in query.answers],
            "models": {each.model: example(each.answers[row], gold) for each in answers},
        }
        file.write((json.dumps(content, ensure_ascii=False) + "\n").encode())


def _differences(report: ClozeReport, answers: Sequence[ClozeAnswers]) -> list[dict[str, Any]]:
    """Say how much better each further model is than the first."""
    from biograft.probing import PARTS

    told = []
    for each in answers[1:]:
        row: dict[str, Any] = {"model": each.model, "than": answers[0].model}
        for part in PARTS:
            found = report.compare(each.hits, answers[0].hits, part)
            row[part] = {
                "difference": round(100 * found.difference, 2),
                "interval": [round(100 * x, 2) for x in (found.interval.low, found.interval.high)],
                "p": round(found.p, 4),
            }
        told.append(row)
    return told


app = typer.Typer(
    help="Ask models what they know of a knowledge base, and look at their attention.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(cloze)
app.command()(attention)
app.command()(similarity)
