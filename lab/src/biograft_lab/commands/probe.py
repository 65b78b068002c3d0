"""``biograft probe``: the group of probes, and its command cloze."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, Kb, Overwrite, Quiet, print_json
from biograft.config import split_list
from biograft.errors import ConfigError, InputError, shorten
from biograft.kb.names import language_codes, whole_number
from biograft.progress import Progress
from biograft_lab.commands.options import refuse_repeated
from biograft_lab.commands.probe_attention import attention
from biograft_lab.commands.probe_similarity import similarity

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.models.masked_lm import MaskedLanguageModel
    from biograft_lab.probing import (
        ClozeAnswers,
        ClozeQuery,
        ClozeReport,
        DecodingConfig,
        QueryConfig,
    )

_PARTS = ("all", "type 1", "type 2")

app = typer.Typer(
    help="Probe what models know, and what they attend to.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(attention)
app.command()(similarity)


@app.command()
def cloze(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Folders of masked language models.")
    ],
    kb: Kb,
    languages: Annotated[
        str, typer.Option("--lang", metavar="en,zh", help="Names in these languages only.")
    ] = "en",
    masked: Annotated[
        str, typer.Option(metavar="both|head|tail", help="End of the triple to predict.")
    ] = "both",
    relations: Annotated[
        str, typer.Option(metavar="treats,...", help="Queries of these relations only.")
    ] = "",
    wording: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Phrases of relations: lines of name, tab, words."),
    ] = None,
    per_relation: Annotated[
        int, typer.Option(metavar="N", help="Queries per relation, sampled; 0: all.")
    ] = 200,
    limit: Annotated[int, typer.Option(metavar="N", help="Queries in all, sampled; 0: all.")] = 0,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Queries to read: lines of prompt, tab, relation, tab, ids."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write-queries", metavar="FILE", help="Write the queries for --queries."),
    ] = None,
    lengths: Annotated[
        str, typer.Option(metavar="1-10", help="Numbers of mask tokens to try for each blank.")
    ] = "1-10",
    beam: Annotated[
        int, typer.Option(metavar="B", help="Beam size, and answers per number of masks.")
    ] = 5,
    order: Annotated[
        str,
        typer.Option(
            metavar="any|left-to-right|independent", help="Order of filling the mask tokens."
        ),
    ] = "any",
    examples: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the best answers to each query as JSON lines."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed of the queries and intervals.")
    ] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Probe masked language models with cloze queries made of triples.

    A query is right if one of the best answers, with any number of masks, is a name of a right
    concept. Recall is in percent, averaged over relations, with 95 % intervals by a bootstrap
    over relations. Type 1: the query contains the answer's name; type 2: it does not.
    """
    from biograft.kb import KnowledgeBase
    from biograft.models.masked_lm import MaskedLanguageModel
    from biograft_lab.probing import ClozeReport, DecodingConfig, QueryConfig, cloze_gold

    refuse_repeated("MODEL", models)
    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    decoding = DecodingConfig(lengths=_parse_lengths(lengths), beam=beam, order=order)
    config = QueryConfig(
        languages=language_codes(languages),
        masked=masked,
        relations=split_list(relations),
        per_relation=per_relation,
        limit=limit,
        seed=seed,
    )
    cloze_queries, counts = _get_queries(base, config, queries, wording)
    loaded = [MaskedLanguageModel.from_pretrained(model) for model in models]
    if write is not None:
        from biograft_lab.probing import write_queries

        write_queries(write, cloze_queries, overwrite=overwrite)
    with ExitStack() as stack:
        file = stack.enter_context(_new_file(examples, overwrite=overwrite)) if examples else None
        gold = [cloze_gold(base, query, config.languages) for query in cloze_queries]
        report = ClozeReport(cloze_queries, gold, seed)
        answers, seconds = _answer(loaded, report, decoding, progress)
        if file is not None:
            _write_examples(file, base, report, answers)
    results = counts | {"unit": "percent", "order": order, "beam": beam}
    results |= {
        "lengths": list(decoding.lengths),
        "models": [
            report.to_json(each) | {"seconds": taken}
            for each, taken in zip(answers, seconds, strict=True)
        ],
        "differences": _differences(report, answers),
    }
    if as_json:
        print_json(results)
    else:
        _print_cloze(results)


_MAX_LENGTH = 512
"""The tokens that an answer may have."""


def _parse_lengths(text: str) -> tuple[int, ...]:
    """Parse ``1-3,5`` as numbers."""
    numbers: list[int] = []
    for item in split_list(text):
        low, dash, high = item.partition("-")
        first, last = whole_number(low), whole_number(high if dash else low)
        if first is None or last is None or last > _MAX_LENGTH:
            raise ConfigError(
                "--lengths: expected numbers such as 1-10 or 1,2,5, up to "
                f"{_MAX_LENGTH}, found {shorten(repr(text))}"
            )
        numbers += range(first, last + 1)
    return tuple(numbers)


def _get_queries(
    base: KnowledgeBase, config: QueryConfig, path: Path | None, wording: Path | None
) -> tuple[tuple[ClozeQuery, ...], dict[str, Any]]:
    """Read the queries, or build them from the store; also return the counts to report."""
    from biograft_lab.probing import build_queries, read_queries, read_wording

    if path is not None:
        if wording is not None or config != type(config)(
            languages=config.languages, seed=config.seed
        ):
            raise ConfigError(
                "--queries: its queries are complete; leave out --masked, --relations, --wording, "
                "--per-relation and --limit, which build queries from the knowledge base"
            )
        queries = read_queries(path, base)
        return queries, {"n_queries": len(queries)}
    built = build_queries(base, config, read_wording(wording) if wording else None)
    if not built.queries:
        raise InputError(
            "no triple joins two concepts with names in the chosen languages",
            path=base.folder,
            remedy="choose others with --lang, or other relations",
        )
    return built.queries, {
        "n_queries": len(built.queries),
        "n_different": built.n_different,
        "n_triples": built.n_triples,
        "n_nameless": built.n_nameless,
    }


def _new_file(path: Path, *, overwrite: bool) -> Any:
    from biograft.artifacts import new_file

    return new_file(path, overwrite=overwrite)


def _answer(
    models: Sequence[MaskedLanguageModel],
    report: ClozeReport,
    config: DecodingConfig,
    progress: Progress,
) -> tuple[list[ClozeAnswers], list[float]]:
    """Run the models one after the other; also return the seconds that each took."""
    from biograft_lab.probing import answer_queries

    answers, seconds = [], []
    for model in models:
        start = time.perf_counter()
        progress.start(f"query {Path(model.name).name}")
        answers.append(answer_queries(model, report.queries, report.gold, config, progress))
        progress.finish()
        seconds.append(round(time.perf_counter() - start, 3))
    return answers, seconds


def _write_examples(
    file: IO[bytes], base: KnowledgeBase, report: ClozeReport, answers: Sequence[ClozeAnswers]
) -> None:
    from biograft_lab.probing import example_answers

    for row, (query, gold) in enumerate(zip(report.queries, report.gold, strict=True)):
        content = {
            "prompt": query.prompt,
            "relation": query.relation,
            "type": 1 if gold.contains_answer else 2,
            "answers": [{"id": answer, "name": base[answer].name} for answer in query.answers],
            "models": {each.model: example_answers(each.answers[row], gold) for each in answers},
        }
        file.write((json.dumps(content, ensure_ascii=False) + "\n").encode())


def _differences(report: ClozeReport, answers: Sequence[ClozeAnswers]) -> list[dict[str, Any]]:
    """Compare each further model with the first."""
    rows = []
    for each in answers[1:]:
        row: dict[str, Any] = {"model": each.model, "than": answers[0].model}
        for part in _PARTS:
            result = report.compare(each.hits, answers[0].hits, part)
            bounds = (result.interval.low, result.interval.high)
            row[part] = {
                "difference": round(100 * result.difference, 2),
                "interval": [round(100 * bound, 2) for bound in bounds],
                "p": round(result.p, 4),
            }
        rows.append(row)
    return rows


def _print_cloze(results: dict[str, Any]) -> None:
    """Print the recall of each model, by type, by relation, and the differences."""
    first = results["models"][0]["all"]
    typer.echo(f"{results['n_queries']:,} queries of {first['n_relations']} relations")
    for model in results["models"]:
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
        recalls = "  ".join(f"{n}: {recall:.2f}" for n, recall in model["by_length"].items())
        typer.echo(f"  by number of masks  {recalls}")
    _print_relations(results["models"])
    for row in results["differences"]:
        typer.echo(f"{row['model']} vs {row['than']}")
        for part in _PARTS:
            low, high = row[part]["interval"]
            typer.echo(
                f"  {part:6} {row[part]['difference']:+6.2f}   {low:+6.2f} to {high:+6.2f}"
                f"   p {row[part]['p']:.4f}"
            )


def _print_relations(models: Sequence[dict[str, Any]]) -> None:
    """Print recall by relation, one column per model."""
    width = max(len(row["relation"]) for row in models[0]["relations"])
    for rows in zip(*(model["relations"] for model in models), strict=True):
        recalls = "  ".join(f"{row['all']['recall']:6.2f}" for row in rows)
        typer.echo(f"  {rows[0]['relation']:{width}} n={rows[0]['all']['n']:<6,} {recalls}")
