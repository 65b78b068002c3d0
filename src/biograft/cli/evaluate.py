"""``biograft evaluate``: the group, its commands link (given mentions) and text (end to end)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.evaluate_task import task
from biograft.cli.options import (
    Calibration,
    Index,
    Json,
    Kb,
    Languages,
    Model,
    NoAbbreviations,
    NoComposites,
    Overwrite,
    Quiet,
    Seed,
    Similarity,
    Texts,
    Threshold,
    Types,
    print_json,
    split_languages,
    split_list,
    warn_left_out,
    warn_unknown,
    warn_without_text,
)
from biograft.errors import ConfigError, OutputError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import (
        EvaluationConfig,
        Gold,
        GoldTexts,
        LinkingResult,
        LinkQuery,
        Score,
        ScoredQueries,
        TextIndex,
        TextResult,
    )
    from biograft.kb import KnowledgeBase

app = typer.Typer(
    help="Evaluate a linker, or the model of a task.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def link(
    kb: Kb,
    gold: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Gold standard: a file or folder; TAR::FOLDER for a folder in a tar archive.",
        ),
    ],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="F",
            help="biosyn, pubtator, aap, xlbel, cometa, cometa-specific, procedures or sample.",
        ),
    ],
    scorer: Annotated[
        str, typer.Option(metavar="lenient|strict", help="The papers' rule, or concept level.")
    ] = "lenient",
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    similarity: Similarity = None,
    types: Types = "",
    text: Texts = None,
    no_context: Annotated[
        bool, typer.Option("--no-context", help="Link mentions without the text around them.")
    ] = False,
    drop: Annotated[
        str,
        typer.Option(
            metavar="overlapping,unknown-ids",
            help="Leave out queries as some papers do; they are counted.",
        ),
    ] = "",
    nil: Annotated[
        bool, typer.Option("--nil", help="Include mentions whose gold answer is NIL.")
    ] = False,
    nil_below: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Count answers below this probability as NIL; default: as the linker does, "
            "with --nil or --calibration.",
        ),
    ] = None,
    train: Annotated[
        str, typer.Option(metavar="PATH", help="Training gold, to report unseen mentions apart.")
    ] = "",
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a report with charts to DIR.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--save-answers", metavar="FILE", help="Write each query with its answers, to compare."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|DIR",
            help="Compare with the answers of another run: a file of --save-answers, or the "
            "folder of a --report.",
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option("-k", "--depth", metavar="K", min=5, help="Answers to judge a query.")
    ] = 30,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Evaluate the first N queries; 0: all.")
    ] = 0,
    seed: Seed = 0,
    fit_calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Fit probabilities on these queries (dev, never test) and write them to FILE.",
        ),
    ] = None,
    aim: Annotated[
        str,
        typer.Option(
            metavar="f1|precision>=P",
            help="Criterion of the fitted NIL threshold; default: f1 with --nil, else none.",
        ),
    ] = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate entity linking on the mentions of a gold standard.

    Metrics are in percent, with 95 % intervals by a bootstrap over documents.
    """
    from biograft.evaluation import (
        EvaluationConfig,
        GoldConfig,
        ScoredQueries,
        TextIndex,
        drop_queries,
        evaluate_linking,
        read_gold,
        save_answers,
    )
    from biograft.evaluation.linking import CUTOFFS, nil_as_linked
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    _check_outputs(report, answers, overwrite=overwrite)
    other = ScoredQueries.load(against) if against is not None else None
    if fit_calibration is not None:
        _check_fit(fit_calibration, nil_below, calibration, overwrite=overwrite)
    elif aim:
        raise ConfigError("--aim: needs --fit-calibration, which fits the threshold")
    gold_config = GoldConfig(types=split_list(types), keep_nil=nil)
    ks = (*(k for k in CUTOFFS if k < depth), depth)
    config = EvaluationConfig(ks=ks, nil_below=nil_below, seed=seed, context=not no_context)
    base, texts = KnowledgeBase.open(kb), TextIndex.read(text or ())
    gold_set = drop_queries(read_gold(gold, form, gold_config, texts), base, split_list(drop))
    seen = read_gold(train, form, gold_config).queries if train else None
    queries = gold_set.queries[:limit] if limit else gold_set.queries
    linker = Linker.open(base, index, model, calibration, similarity=similarity)
    if nil_below is None and fit_calibration is None and (nil or calibration is not None):
        config = nil_as_linked(linker, config)
    result = evaluate_linking(linker, base, queries, scorer, config, Progress(enabled=not quiet))
    _warn_link(result, gold_set, texts)
    left_out = _left_out(gold_set)
    if answers is not None:
        save_answers(result, answers, overwrite=overwrite)
    compared = _compare(result, other, against, seed)
    if report is not None:
        provenance = {
            "knowledge base": str(kb), "gold": gold, "format": form,
            "index": str(index or "none"), "model": str(model or "none"),
            "calibration": str(calibration or "none"),
            "NIL": _nil_rule(config) or "where nothing is found", "left out": left_out,
        }  # fmt: skip
        _write_report(result, base, seen, provenance, report, overwrite=overwrite)
    fitted = {}
    if fit_calibration is not None:
        criterion = aim or ("f1" if nil else None)
        fitted = _fit(result, linker.score_source, criterion, fit_calibration, overwrite=overwrite)
    if as_json:
        more = {"left_out": left_out, "nil_below": config.nil_below}
        more |= {"n_without_text": gold_set.n_without_text}
        more |= {"calibration": fitted} if fitted else {}
        print_json({"format": form, **result.to_json(), **more, **compared})
    else:
        _print_link(result, base, seen, _nil_rule(config))
        _print_compared(compared)
        if fitted:
            _print_fit(fitted)


def _left_out(gold: Gold | GoldTexts) -> dict[str, int]:
    return dict(gold.log.filtered) | dict(gold.log.rejected.counts)


def _nil_rule(config: EvaluationConfig) -> str:
    """Describe the NIL threshold; empty if there is none."""
    if config.nil_below is None:
        return ""
    return f"below {'the score ' if config.nil_by_score else ''}{config.nil_below:.4f}"


def _warn_link(result: LinkingResult, gold: Gold, texts: TextIndex | None) -> None:
    from biograft.evaluation.ids import DROPS

    warn_left_out(gold.log.rejected.counts, "rows of the gold")
    warn_left_out(
        {r: gold.log.filtered[r] for r in DROPS.values() if r in gold.log.filtered}, "queries"
    )
    for reason, n in gold.log.doubtful.counts.items():
        typer.echo(f"warning: {n:,} rows of the gold: {reason}", err=True)
    effect = (
        f"; {result.resolved.n_unreachable:,} queries cannot be answered right, and count as wrong"
    )
    warn_unknown(result.resolved.unknown, effect)
    if texts is not None:
        warn_without_text(gold.n_without_text, len(gold.queries))


def _print_link(
    result: LinkingResult, base: KnowledgeBase, seen: Sequence[LinkQuery] | None, nil_rule: str
) -> None:
    from biograft.evaluation import sub_populations

    nil = f"; NIL {nil_rule}" if nil_rule else ""
    typer.echo(f"{result.n:,} queries, {result.scorer} scorer{nil}")
    for name, value in result.metrics.items():
        interval = result.intervals.get(name)
        bounds = f"   {100 * interval.low:6.2f} to {100 * interval.high:6.2f}" if interval else ""
        typer.echo(f"  {name:14} {100 * value:6.2f}{bounds}")
    for part in sub_populations(result, base, seen):
        typer.echo(f"  {part.name:20} n={part.n:<7,} acc@1 {100 * part.acc1:6.2f}")


def _compare(
    result: LinkingResult, other: ScoredQueries | None, against: Path | None, seed: int
) -> dict[str, Any]:
    """Compare by all metrics that both runs have, as plain values; nothing without another run."""
    from biograft.evaluation import compare

    if other is None:
        return {}
    tests = {each.metric: each.to_json() for each in compare(result, other, seed=seed)}
    return {"against": {"file": str(against), **tests}}


_COMPARED = ("acc@1", "acc@5", "mrr")
"""The metrics whose comparison is printed; JSON has all."""


def _print_compared(compared: Mapping[str, Any]) -> None:
    for against in compared.values():
        typer.echo(f"against {against['file']}:")
        for metric in (name for name in _COMPARED if name in against):
            tests = against[metric]
            low, high = tests["interval"]
            interval = f"{low:+6.2f} to {high:+6.2f}"
            p_values = f"randomisation {_p_value(tests['randomisation_p'])}"
            if tests["mcnemar_p"] is not None:
                p_values += f", McNemar {_p_value(tests['mcnemar_p'])}"
            typer.echo(f"  {metric:14} {tests['difference']:+6.2f}   {interval}   {p_values}")


def _p_value(p: float) -> str:
    return f"p = {p:.4f}" if p >= 0.0001 else "p < 0.0001"


def _write_report(
    result: LinkingResult,
    base: KnowledgeBase,
    seen: Sequence[LinkQuery] | None,
    provenance: dict[str, Any],
    folder: Path,
    *,
    overwrite: bool,
) -> None:
    from biograft.evaluation import (
        LinkingReport,
        find_mistakes,
        similarity_buckets,
        sub_populations,
        write_report,
    )
    from biograft.evaluation.figures import draw_figures

    buckets = similarity_buckets(result, base)
    report = LinkingReport(
        result=result,
        populations=sub_populations(result, base, seen),
        buckets=buckets,
        mistakes=find_mistakes(result, base),
        figures=draw_figures(result, buckets),
        provenance=provenance,
    )
    write_report(report, folder, overwrite=overwrite)
    typer.echo(f"report written to {folder}", err=True)


def _check_outputs(report: Path | None, answers: Path | None, *, overwrite: bool) -> None:
    """Refuse before the evaluation what would fail after it."""
    if report is not None:
        import biograft.evaluation.figures  # noqa: F401  # a missing extra
    if answers is not None:
        _refuse_existing(answers, overwrite=overwrite)


def _check_fit(
    file: Path, nil_below: float | None, calibration: Path | None, *, overwrite: bool
) -> None:
    """Refuse before the evaluation what would fail after it."""
    if nil_below is not None:
        raise ConfigError("--nil-below: --fit-calibration fits a threshold; leave one of them out")
    if calibration is not None:
        raise ConfigError("--calibration: --fit-calibration fits another; leave one of them out")
    _refuse_existing(file, overwrite=overwrite)


def _refuse_existing(file: Path, *, overwrite: bool) -> None:
    if file.exists() and not overwrite:
        raise OutputError(f"{file}: exists already; choose another file, or give --overwrite")


def _fit(
    result: LinkingResult, score_source: str, criterion: str | None, file: Path, *, overwrite: bool
) -> dict[str, Any]:
    """Fit a calibration to the answers, write it, and return its summary."""
    from biograft.evaluation.calibration import calibrate_result, calibration_gain

    calibration = calibrate_result(result, score_source, aim=criterion)
    before, after = calibration_gain(result)
    calibration.save(file, overwrite=overwrite)
    return {
        "file": str(file), "n": calibration.n, "search": score_source,
        "threshold": calibration.threshold, "ece_before": before, "ece_after": after,
    }  # fmt: skip


def _print_fit(fitted: Mapping[str, Any]) -> None:
    threshold = fitted["threshold"]
    nil = f"NIL below {threshold:.4f}" if threshold is not None else "no NIL threshold"
    typer.echo(
        f"calibration error {100 * fitted['ece_before']:.2f} before, "
        f"{100 * fitted['ece_after']:.2f} after (cross-fitted over documents); {nil}"
    )
    typer.echo(f"calibration: {fitted['file']}")


@app.command()
def text(
    kb: Kb,
    gold: Annotated[str, typer.Option(metavar="PATH", help="Gold standard: a file of texts.")],
    form: Annotated[str, typer.Option("--format", metavar="F", help="pubtator or sample.")],
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    threshold: Threshold = None,
    types: Types = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Evaluate the first N documents; 0: all.")
    ] = 0,
    no_abbreviations: NoAbbreviations = False,
    no_composites: NoComposites = False,
    lang: Languages = "",
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate end to end: find the mentions in plain text, and link them.

    The linker never sees the gold mentions. Three levels: "spans" counts mentions with exactly
    the gold span; "mentions" those that also have exactly the gold concepts; "documents" the set
    of concepts of each document. Gold mentions without a concept, and NIL answers, count as
    spans only. With --types, every prediction is compared with the mentions of these types.
    Metrics are in percent, with 95 % intervals by a bootstrap over documents.
    """
    from biograft.evaluation import evaluate_text, read_gold_texts
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    base = KnowledgeBase.open(kb)
    gold_set = read_gold_texts(gold, form, types=split_list(types), limit=limit)
    linker = Linker.open(
        base, index, model, calibration,
        k=1, threshold=threshold,
        abbreviations=not no_abbreviations, composites=not no_composites,
        languages=split_languages(lang),
    )  # fmt: skip
    progress = Progress(enabled=not quiet)
    result = evaluate_text(linker, gold_set.documents, progress=progress, seed=seed)
    warn_left_out(gold_set.log.rejected.counts, "mentions of the gold")
    warn_unknown(result.unknown, "; their mentions count as missed")
    if as_json:
        print_json({"format": form, **result.to_json(), "left_out": _left_out(gold_set)})
    else:
        _print_text(result)


def _print_text(result: TextResult) -> None:
    nil = f", {result.n_nil:,} of them without a concept" if result.n_nil else ""
    typer.echo(f"{result.n_documents:,} documents, {result.n_mentions:,} gold mentions{nil}")
    cells = "".join(f"{name:>26}" for name in ("precision", "recall", "F1"))
    typer.echo(f"  {'':9}{cells}{'right':>9}{'wrong':>9}{'missed':>9}")
    for level, score in result.scores.items():
        typer.echo(f"  {level:9}{_score_cells(score)}")


def _score_cells(score: Score) -> str:
    counts, cells = score.counts, []
    for name, interval in score.intervals.items():
        value, low, high = 100 * getattr(counts, name), 100 * interval.low, 100 * interval.high
        cells.append(f"{value:8.2f} ({low:6.2f}-{high:6.2f})".rjust(26))
    cells += [f"{n:>9,}" for n in (counts.right, counts.wrong, counts.missed)]
    return "".join(cells)


app.command()(task)
