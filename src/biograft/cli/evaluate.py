"""``biograft evaluate``: link (given mentions), text (end to end), task (models of tasks)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        TextIndex,
        drop_queries,
        evaluate_linking,
        read_gold,
    )
    from biograft.evaluation.linking import CUTOFFS, nil_as_linked
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker

    if report is not None:
        import biograft.evaluation.figures  # noqa: F401  # a missing extra fails before the work
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
        print_json({"format": form, **result.to_json(), **more})
    else:
        _print_link(result, base, seen, _nil_rule(config))
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


def _check_fit(
    file: Path, nil_below: float | None, calibration: Path | None, *, overwrite: bool
) -> None:
    """Refuse before the evaluation what would fail after it."""
    if nil_below is not None:
        raise ConfigError("--nil-below: --fit-calibration fits a threshold; leave one of them out")
    if calibration is not None:
        raise ConfigError("--calibration: --fit-calibration fits another; leave one of them out")
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


@dataclass(frozen=True, slots=True)
class _DataOptions:
    """How ``evaluate task`` reads its files, and where it writes the predictions."""

    form: str
    split: str
    grouped: bool
    schema: Path | None
    out: Path | None

    def refuse_without_data(self) -> None:
        """Refuse these options when no file is named."""
        options = {
            "--format": self.form,
            "--split": self.split,
            "--grouped": self.grouped,
            "--schema": self.schema,
            "--out": self.out,
        }
        names = [name for name, value in options.items() if value]
        if names:
            raise ConfigError(f"{', '.join(names)}: needs a file to read; name one with --data")


@app.command()
def task(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Task model, or RUN of one.")],
    data: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="File to evaluate on; repeatable.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format of --data; default: detect.")
    ] = "",
    split: Annotated[
        str, typer.Option(metavar="test", help="Split of a file that holds several (DDI).")
    ] = "",
    grouped: Annotated[bool, typer.Option("--grouped", help="BLURB's groups of ChemProt.")] = False,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Schema of the relations of CMeIE.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the predictions.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Compare the runs MODEL and RUN over their seeds."),
    ] = None,
    published: Annotated[
        float | None,
        typer.Option(metavar="0.856", help="Compare the run MODEL with a published result."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluate the model of a task on a file, or compare runs.

    Classes are scored one by one and together (micro F1), answer rankings by acc@1 and MRR. Runs
    are compared by the F1 or acc@1 of their seeds on their common test set: with Welch's t-test
    and, for equal seeds, the paired one. A published result is compared by a one-sample t-test.
    """
    from biograft.tasks import compare_runs, compare_with_value

    results: dict[str, Any] = {}
    options = _DataOptions(form, split, grouped, schema, out)
    if data:
        results["data"] = _evaluate_task(model, data, options)
    else:
        options.refuse_without_data()
    if against is not None:
        results["against"] = compare_runs(model, against)
    if published is not None:
        results["published"] = compare_with_value(model, published)
    if not results:
        raise ConfigError("nothing to do: give --data, --against or --published")
    if as_json:
        print_json({"model": str(model), **results})
        return
    if "data" in results:
        _print_task(results.pop("data"))
    for comparison in results.values():
        _print_comparison(comparison)


def _evaluate_task(folder: Path, paths: list[str], options: _DataOptions) -> dict[str, Any]:
    from biograft.tasks import TASKS, open_task
    from biograft.tasks.configs import TaskDataConfig

    model = open_task(folder)
    kind = TASKS.load(model.kind)
    data = TaskDataConfig(
        format=options.form,
        has_splits=bool(options.split),
        grouped=options.grouped,
        schema=str(options.schema or ""),
    )
    gold = kind.read(paths, options.split or "test", data)
    warn_left_out(gold.rejected, "rows")
    answers = model.predict(gold.examples)
    if options.out is not None:
        model.write(gold.examples, answers, options.out)
    report = model.report(gold.examples, answers).to_json()
    return {"n": len(gold.examples), "metrics": list(kind.metrics), **report}


def _print_task(report: Mapping[str, Any]) -> None:
    """Print each class, if there are any, all of them together, and chance."""
    for name, metrics in report.get("classes", {}).items():
        line = ", ".join(f"{key} {metrics[key]:.4f}" for key in ("f1", "precision", "recall"))
        typer.echo(f"  {name or '(entity)':20} {line} ({metrics['right'] + metrics['missed']:,})")
    names = report["metrics"]
    typer.echo(f"  {'all':20} " + ", ".join(f"{name} {report[name]:.4f}" for name in names))
    if "chance" in report:
        chance = report["chance"]
        levels = [f"{name} {chance[name]:.4f}" for name in names if name in chance]
        typer.echo(f"  {'chance':20} " + ", ".join(levels))
    for reason, n in report.get("left_out", {}).items():
        typer.echo(f"  {n:,} {reason} left out", err=True)
    if report.get("n_tied"):
        typer.echo(f"  {report['n_tied']:,} questions tied, counted as wrong", err=True)


def _print_comparison(comparison: Mapping[str, Any]) -> None:
    metric, against = comparison["metric"], comparison["against"]
    change = f"{comparison['difference']:+.4f}"
    typer.echo(f"  {metric} {comparison[metric]:.4f} vs {against:.4f}: {change}")
    for test in ("welch", "paired", "one_sample"):
        if test in comparison:
            typer.echo(f"  {test.replace('_', '-')} t-test: p = {comparison[test]['p']:.4f}")
