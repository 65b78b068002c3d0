"""``biograft evaluate``: linking, end to end or of given mentions, findings, robustness, tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import (
    REJECTED,
    Json,
    Kb,
    Overwrite,
    Quiet,
    Seed,
    Store,
    Texts,
    Types,
    open_kb,
    open_linker,
    print_json,
    refuse_given,
    refuse_input_as_output,
    report_inputs,
    warn_left_out,
    warn_unknown,
    warn_without_text,
)
from biograft.config import split_list
from biograft.errors import ConfigError, OutputError
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.progress import Progress
from biograft.text.documents import Document
from biograft.text.input_config import InputConfig

if TYPE_CHECKING:
    from biograft.evaluation import (
        AssertionMistake,
        FindingMistake,
        Gold,
        LinkingResult,
        Population,
        ScoredQueries,
    )
    from biograft.kb import KnowledgeBase
    from biograft.metrics.precision_recall import Counts
    from biograft.metrics.significance import Interval
    from biograft.models.tasks.task import TaskDataConfig


app = CommandGroup("Evaluate a linker, or the model of a task.")

_SETTINGS = (
    *("search", "lexical_weight", "similarity", "prompt", "sources", "languages"),
    *("abbreviations", "appositions", "short_forms"),
)
"""Settings of a linker that count for given mentions; of the gold are the types."""
NOT_OF_TEXT = ("k", "mentions", "types", "assertions", "explain")
"""Settings of a linker that are fixed where plain text is linked to be evaluated."""


@app.command()
def link(
    kb: Kb,
    files: Annotated[LinkerFiles, Offered(without=("detector",))],
    linker: Annotated[LinkerConfig, Offered(*_SETTINGS)],
    gold: Annotated[str, "PATH"],
    form: Annotated[str, "--format", "F"],
    scorer: Annotated[str, "lenient|strict"] = "lenient",
    types: Types = "",
    text: Texts = None,
    no_context: Annotated[bool, "--no-context"] = False,
    split_mentions: Annotated[bool, "--split-mentions"] = False,
    drop: Annotated[str, "overlapping,unknown-ids"] = "",
    nil: Annotated[bool, "--nil"] = False,
    nil_below: Annotated[float | None, "P"] = None,
    train: Annotated[str, "PATH"] = "",
    report: Annotated[Path | None, "DIR"] = None,
    answers: Annotated[Path | None, "--save-answers", "FILE"] = None,
    against: Annotated[Path | None, "FILE|DIR"] = None,
    depth: Annotated[int, typer.Option("-k", "--depth", metavar="K", min=5)] = 30,
    limit: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
    seed: Seed = 0,
    fit_calibration: Annotated[Path | None, "FILE"] = None,
    aim: Annotated[str, "f1|precision>=P"] = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate entity linking on the mentions of a gold standard.

    Metrics are in percent, with 95 % intervals by a bootstrap over documents.

    Args:
        gold: Gold standard: a file or folder; TAR::FOLDER for a folder in a tar archive.
        form: biosyn, pubtator, documents (any of `biograft corpus formats`), aap, xlbel,
            cometa, cometa-specific, procedures, babelon or sample.
        scorer: lenient: any gold id counts; strict: exactly one concept.
        no_context: Link mentions without the text around them.
        split_mentions: Let the linker split composite mentions, not the benchmark; with
            --scorer strict a mention is right if all its concepts are found and no other.
        drop: Leave out queries as some papers do; they are counted.
        nil: Include mentions whose gold answer is NIL.
        nil_below: Count answers below this probability as NIL; default: as the linker does,
            with --nil or --calibration.
        train: Training gold, to report unseen mentions separately.
        report: Write a report with charts to DIR.
        answers: Write each query with its answers, to compare.
        against: Compare with the answers of another run: a file of --save-answers, or the
            folder of a --report.
        depth: Answers to judge a query.
        limit: Evaluate the first N queries; 0: all.
        fit_calibration: Fit probabilities on these queries (dev, never test) and write them to
            FILE.
        aim: Criterion of the fitted NIL threshold; default: f1 with --nil, else none.
    """
    from biograft.evaluation import (
        EvaluationConfig,
        GoldConfig,
        LinkingReport,
        ScoredQueries,
        TextIndex,
        drop_queries,
        evaluate_linking,
        find_mistakes,
        read_gold,
        save_answers,
        similarity_buckets,
        sub_populations,
        write_report,
    )
    from biograft.evaluation.linking import CUTOFFS, nil_as_linked

    if report is not None:
        import biograft.evaluation.figures  # noqa: F401  # a missing extra is said at once
    if answers is not None:
        _refuse_existing(answers, overwrite=overwrite)
    other = ScoredQueries.load(against) if against is not None else None
    _check_fit(fit_calibration, aim, nil_below, files.calibration, overwrite=overwrite)
    gold_config = GoldConfig(types=split_list(types), keep_nil=nil)
    ks = (*(k for k in CUTOFFS if k < depth), depth)
    config = EvaluationConfig(
        ks=ks,
        nil_below=nil_below,
        seed=seed,
        context=not no_context,
        split_mentions=split_mentions,
    )
    base, texts = open_kb(kb), TextIndex.read(text or ())
    gold_set = drop_queries(read_gold(gold, form, gold_config, texts), base, split_list(drop))
    seen = read_gold(train, form, gold_config).queries if train else None
    queries = gold_set.queries[:limit] if limit else gold_set.queries
    opened = open_linker(base, files, linker, quiet=quiet)
    if nil_below is None and fit_calibration is None and (nil or files.calibration is not None):
        config = nil_as_linked(opened, config)
    result = evaluate_linking(opened, base, queries, scorer, config, Progress(enabled=not quiet))
    _warn(gold_set, result, with_texts=texts is not None)
    if answers is not None:
        save_answers(result, answers, overwrite=overwrite)
    compared = _compare(result, other, against, seed)
    populations = sub_populations(result, base, seen)
    left_out = {**gold_set.log.filtered, **gold_set.log.rejected.counts}
    nil_rule = ""
    if config.nil_below is not None:
        nil_rule = f"below {'the score ' if config.nil_by_score else ''}{config.nil_below:.4f}"
    if report is not None:
        from biograft.evaluation.figures import draw_figures

        buckets = similarity_buckets(result, base)
        described = LinkingReport(
            result=result,
            populations=populations,
            buckets=buckets,
            mistakes=find_mistakes(result, base),
            figures=draw_figures(result, buckets),
            provenance={
                "knowledge base": str(kb),
                "gold": gold,
                "format": form,
                "index": str(files.index or "none"),
                "model": str(files.model or "none"),
                "calibration": str(files.calibration or "none"),
                "search": opened.score_source,
                "NIL": nil_rule or "where nothing is found",
                "left out": left_out,
            },
        )
        write_report(described, report, overwrite=overwrite)
        typer.echo(f"report written to {report}", err=True)
    fitted = {}
    if fit_calibration is not None:
        criterion = aim or ("f1" if nil else None)
        search = opened.score_source
        fitted = _fit(result, base, search, criterion, fit_calibration, overwrite=overwrite)
    if as_json:
        values = {
            "format": form,
            **result.to_json(),
            "search": opened.score_source,
            "left_out": left_out,
            "nil_below": config.nil_below,
            "n_without_text": gold_set.n_without_text,
        }
        more = {"calibration": fitted} if fitted else {}
        print_json({**values, **more, **compared})
    else:
        _print_link(result, populations, nil_rule)
        _print_compared(compared)
        if fitted:
            _print_fit(fitted)


def _warn(gold: Gold, result: LinkingResult, *, with_texts: bool) -> None:
    """Warn of rows left out, doubtful rows, unknown ids, and mentions without text.

    Args:
        gold: The gold standard.
        result: What a linker reached on it.
        with_texts: Whether documents of the gold standard were named.
    """
    from biograft.evaluation.linking import DROPS

    log, resolved = gold.log, result.resolved
    warn_left_out(log.rejected.counts, "rows of the gold")
    warn_left_out({r: log.filtered[r] for r in DROPS.values() if r in log.filtered}, "queries")
    for reason, n in log.doubtful.counts.items():
        typer.echo(f"warning: {n:,} rows of the gold: {reason}", err=True)
    n = resolved.n_unreachable
    warn_unknown(resolved.unknown, f"; {n:,} queries cannot be answered right, and count as wrong")
    if with_texts:
        warn_without_text(gold.n_without_text, len(gold.queries))


def _print_link(result: LinkingResult, populations: Sequence[Population], nil: str) -> None:
    """Print metrics with their intervals, then those of sub-populations.

    Args:
        result: Result of a linker.
        populations: Its sub-populations.
        nil: What counts as NIL, in words.
    """
    nil = f"; NIL {nil}" if nil else ""
    typer.echo(f"{result.n:,} queries, {result.scorer} scorer{nil}")
    for name, value in result.metrics.items():
        interval = result.intervals.get(name)
        bounds = f"   {100 * interval.low:6.2f} to {100 * interval.high:6.2f}" if interval else ""
        typer.echo(f"  {name:14} {100 * value:6.2f}{bounds}")
    for part in populations:
        typer.echo(f"  {part.name:20} n={part.n:<7,} acc@1 {100 * part.acc1:6.2f}")


def _fit(
    result: LinkingResult,
    base: KnowledgeBase,
    search: str,
    criterion: str | None,
    file: Path,
    *,
    overwrite: bool,
) -> dict[str, Any]:
    """Fit a calibration to the answers, write it, and return its summary.

    Args:
        result: The answers.
        base: The knowledge base that they are from.
        search: Where their scores are from.
        criterion: Criterion of the NIL threshold; None fits none.
        file: File to write.
        overwrite: Replace the file.
    """
    from biograft.evaluation.linking import calibrate_result, calibration_gain
    from biograft.kb.fingerprints import store_fingerprint

    calibration = calibrate_result(result, search, aim=criterion, store=store_fingerprint(base))
    before, after = calibration_gain(result)
    calibration.save(file, overwrite=overwrite)
    return {
        "file": str(file),
        "n": calibration.n,
        "search": search,
        "threshold": calibration.threshold,
        "ece_before": before,
        "ece_after": after,
    }


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


def _check_fit(
    file: Path | None,
    aim: str,
    nil_below: float | None,
    calibration: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Refuse before the evaluation what would fail after it."""
    if file is None:
        if aim:
            raise ConfigError("--aim: needs --fit-calibration, which fits the threshold")
        return
    if nil_below is not None:
        raise ConfigError("--nil-below: --fit-calibration fits a threshold; leave one of them out")
    if calibration is not None:
        raise ConfigError("--calibration: --fit-calibration fits another; leave one of them out")
    _refuse_existing(file, overwrite=overwrite)


def _refuse_existing(file: Path, *, overwrite: bool) -> None:
    if file.exists() and not overwrite:
        raise OutputError(f"{file}: exists already; choose another file, or give --overwrite")


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
    files: LinkerFiles,
    reading: Annotated[InputConfig, Offered("encoding")],
    linker: Annotated[
        LinkerConfig, Offered(without=(*NOT_OF_TEXT, "assertion_rules"), k=1, assertions=False)
    ],
    gold: Annotated[str, "PATH"],
    form: Annotated[str, "--format", "F"] = "",
    types: Types = "",
    limit: Annotated[int, typer.Option(metavar="N", min=0)] = 0,
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

    Args:
        gold: Gold standard: a file of texts.
        form: sample, or one of `biograft corpus formats`; default: recognise it by content.
        limit: Evaluate the first N documents; 0: all.
    """
    from biograft.evaluation import evaluate_text, read_gold_texts

    base = open_kb(kb)
    gold_set = read_gold_texts(
        gold, form, types=split_list(types), limit=limit, encoding=reading.encoding
    )
    opened = open_linker(base, files, linker, quiet=quiet)
    progress = Progress(enabled=not quiet)
    result = evaluate_text(opened, gold_set.documents, progress=progress, seed=seed)
    warn_left_out(gold_set.log.rejected.counts, "mentions of the gold")
    warn_unknown(result.unknown, "; their mentions count as missed")
    if as_json:
        left_out = {**gold_set.log.filtered, **gold_set.log.rejected.counts}
        print_json({"format": form, **result.to_json(), "left_out": left_out})
        return
    nil = f", {result.n_nil:,} of them without a concept" if result.n_nil else ""
    typer.echo(f"{result.n_documents:,} documents, {result.n_mentions:,} gold mentions{nil}")
    counts = {level: score.counts for level, score in result.scores.items()}
    _print_counts(counts, {level: score.intervals for level, score in result.scores.items()})


@app.command()
def agreement(
    first: Annotated[Path, typer.Argument(metavar="FIRST")],
    second: Annotated[Path, typer.Argument(metavar="SECOND")],
    differences: Annotated[bool, "--differences"] = False,
    as_json: Json = False,
) -> None:
    """Compare two annotations of the same documents: F1, and Cohen's kappa.

    F1 of the spans, of the mentions with the same concepts, and of the concepts of each document.
    Kappa counts the spans that both have marked: their concepts, and their statuses, where a
    mention without one is present. Documents are paired by their ids.

    Args:
        first: Documents of one annotator, of any format (`biograft corpus formats`).
        second: The same documents of another annotator.
        differences: List what only one has marked, or both otherwise.
    """
    from biograft.evaluation import compare_annotators
    from biograft.text.formats import read_documents

    found = compare_annotators(read_documents(first), read_documents(second)).to_json()
    listed = found["differences"]
    if as_json:
        print_json(found if differences else found | {"differences": len(listed)})
        return
    typer.echo(f"{found['n_documents']:,} documents, {found['n_both']:,} spans marked by both")
    for level in ("spans", "mentions", "documents"):
        low, high = found[level]["intervals"]["f1"]
        typer.echo(f"  F1 of {level:14}{found[level]['f1']:8.2f} ({low:.2f}-{high:.2f})")
    for name, kappa in found["kappa"].items():
        typer.echo(f"  kappa of {name:11}{'-' if kappa is None else f'{kappa:.4f}':>8}")
    for each in listed if differences else ():
        sides = [" ".join(each[side] or ["not marked"]).strip() for side in ("first", "second")]
        place = f"{each['document']}, {each['start']}-{each['end']}: {each['text']}"
        typer.echo(f"{place}: {' / '.join(sides)}")
    if found["left_out"]:
        warn_left_out({"only one has annotated them": len(found["left_out"])}, "documents")


@app.command()
def task(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL")],
    data: Annotated[list[str] | None, "PATH"] = None,
    form: Annotated[str, "--format", "F"] = "",
    split: Annotated[str, "test"] = "",
    grouped: Annotated[bool, "--grouped"] = False,
    schema: Annotated[Path | None, "FILE"] = None,
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    against: Annotated[Path | None, "RUN"] = None,
    published: Annotated[float | None, "0.856"] = None,
    as_json: Json = False,
) -> None:
    """Evaluate the model of a task on a file, or compare runs.

    Classes are scored one by one and together (micro F1), answer rankings by acc@1 and MRR. Runs
    are compared by the F1 or acc@1 of their seeds on their common test set: with Welch's t-test
    and, for equal seeds, the paired one. A published result is compared by a one-sample t-test.

    Args:
        model: Task model, or RUN of one.
        data: File to evaluate on; repeatable.
        form: Format of --data; default: detect.
        split: Split of a file that holds several (DDI).
        grouped: BLURB's groups of ChemProt.
        schema: Schema of the relations of CMeIE.
        out: Write the predictions.
        against: Compare the runs MODEL and RUN over their seeds.
        published: Compare the run MODEL with a published result.
    """
    from biograft.models.tasks.task import TaskDataConfig
    from biograft.training.tasks import compare_runs, compare_with_value

    results: dict[str, Any] = {}
    if data:
        config = TaskDataConfig(
            format=form, has_splits=bool(split), grouped=grouped, schema=str(schema or "")
        )
        results["data"] = _evaluate_task(model, data, split or "test", config, out)
    else:
        names = ("form", "split", "grouped", "schema", "out")
        refuse_given(context, names, "needs a file to read; name one with --data")
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


def _evaluate_task(
    folder: Path, paths: list[str], split: str, config: TaskDataConfig, out: Path | None
) -> dict[str, Any]:
    """Evaluate the model of a task on files.

    Args:
        folder: Folder of the model.
        paths: Files to evaluate on.
        split: Split to read.
        config: How the files are read.
        out: File for the predictions.
    """
    from biograft.models.tasks import TASKS, open_task

    model = open_task(folder)
    kind = TASKS.load(model.kind)
    gold = kind.read(paths, split, config)
    warn_left_out(gold.rejected, "rows")
    answers = model.predict(gold.examples)
    if out is not None:
        model.write(gold.examples, answers, out)
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


@app.command()
def mean(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    as_json: Json = False,
) -> None:
    """Print mean and standard deviation of several results, such as those of folds.

    Args:
        files: Results, printed by other commands with --json; numbers that all have are averaged.
    """
    from biograft.artifacts import peek
    from biograft.training.tasks.results import summarise_numbers

    found = summarise_numbers([peek(file) for file in files])
    if not found:
        raise ConfigError("no number is in all of the files; expected results of --json")
    if as_json:
        print_json(found)
        return
    for name, values in found.items():
        spread = f" ± {values['deviation']:.4f}" if len(files) > 1 else ""
        typer.echo(f"  {name:28} {values['mean']:.4f}{spread}")


@app.command()
def assertion(
    gold: Annotated[Path, "FILE"],
    rules: Annotated[Path | None, "FILE"] = None,
    mistakes: Annotated[bool, "--mistakes"] = False,
    as_json: Json = False,
) -> None:
    """Evaluate assertion status: negated, uncertain, historical, hypothetical, other people.

    Precision, recall and F1 of each flag in percent. A mention is right if it has exactly the
    flags of the gold standard.

    Args:
        gold: Gold standard: texts as JSON lines.
        rules: Assertion rules, TOML; default: those of biograft.
        mistakes: List the mentions with a wrong flag, too.
    """
    from dataclasses import asdict

    from biograft.clinical import RuleAssertions
    from biograft.evaluation import evaluate_assertions, read_assertions

    model = None if rules is None else RuleAssertions(rules=rules)
    result = evaluate_assertions(read_assertions(gold), model)
    if as_json:
        listed = {"mistakes": [asdict(each) for each in result.mistakes]} if mistakes else {}
        print_json({"gold": str(gold), **result.to_json(), **listed})
        return
    n_right = result.n_mentions - len(result.mistakes)
    typer.echo(
        f"{result.n_documents:,} documents, {result.n_mentions:,} mentions, "
        f"{n_right:,} right ({100 * result.accuracy:.2f} %)"
    )
    _print_counts(result.flags)
    for each in result.mistakes if mistakes else ():
        because = f" (by {', '.join(map(repr, each.triggers))})" if each.triggers else ""
        typer.echo(_mistake_line(each, "present") + because)


def _mistake_line(mistake: AssertionMistake | FindingMistake, none: str) -> str:
    """Return where a mistake is, what was expected, and what was found.

    Args:
        mistake: A mistake of an evaluation.
        none: Word for a side that is empty.
    """
    expected, found = (", ".join(words) or none for words in (mistake.expected, mistake.found))
    where = f"{mistake.document}, {mistake.start}-{mistake.end}"
    return f"{where}: {mistake.text}: expected {expected}, found {found}"


def _print_counts(
    rows: Mapping[str, Counts], intervals: Mapping[str, Mapping[str, Interval]] | None = None
) -> None:
    """Print precision, recall and F1 in percent, with the counts that they are made from.

    Args:
        rows: Counts by the name of the row.
        intervals: Confidence intervals of the metrics by the name of the row.
    """
    width = 10 if intervals is None else 26
    names = "".join(f"{name:>{width}}" for name in ("precision", "recall", "F1"))
    typer.echo(f"  {'':18}{names}{'right':>10}{'wrong':>10}{'missed':>10}")
    for name, counts in rows.items():
        cells = []
        for metric in ("precision", "recall", "f1"):
            cell = f"{100 * getattr(counts, metric):.2f}"
            if intervals is not None:
                interval = intervals[name][metric]
                cell += f" ({100 * interval.low:6.2f}-{100 * interval.high:6.2f})"
            cells.append(cell.rjust(width))
        cells += [f"{n:>10,}" for n in (counts.right, counts.wrong, counts.missed)]
        typer.echo(f"  {name:18}{''.join(cells)}")


@app.command()
def findings(
    kb: Kb,
    files: LinkerFiles,
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_TEXT, k=1)],
    gold: Annotated[str, "FILE|notes-en-test|..."],
    types: Annotated[str, "disease,..."] = "disease,symptom,finding",
    mistakes: Annotated[bool, "--mistakes"] = False,
    as_json: Json = False,
) -> None:
    """Evaluate findings in notes: span, concept and status, of mentions and documents.

    The linker sees plain text. "spans" counts mentions with exactly the gold span, "findings" those
    with the gold concept, too, "statuses" those that also have the gold status; "documents" counts
    the concepts of each note. Metrics are in percent.

    Args:
        gold: Notes with findings, JSON lines; or notes-en-dev, notes-en-test, notes-zh-dev or
            notes-zh-test, which ship with biograft.
        types: Types of concepts that count; '': all.
        mistakes: List what was missed, wrong, or of a wrong status.
    """
    from dataclasses import asdict

    from biograft.evaluation import evaluate_findings, read_assertions

    opened = open_linker(open_kb(kb), files, linker)
    result = evaluate_findings(opened, read_assertions(gold), split_list(types))
    if as_json:
        listed = {"mistakes": [asdict(each) for each in result.mistakes]} if mistakes else {}
        print_json({"gold": gold, **result.to_json(), **listed})
        return
    typer.echo(f"{result.n_documents:,} notes, {result.n_findings:,} findings")
    statuses = {f"- {status}": counts for status, counts in result.statuses.items()}
    shown = {name: counts for name, counts in statuses.items() if counts.right + counts.missed}
    _print_counts({**result.levels, **shown})
    if n := result.typos["mentions"]:
        found, right = result.typos["spans"], result.typos["findings"]
        typer.echo(f"  misspelt: {n} findings, {found} found, {right} with the right concept")
    for each in result.mistakes if mistakes else ():
        typer.echo(_mistake_line(each, "nothing"))


@app.command()
def robustness(
    kb: Store,
    notes: Annotated[list[str], typer.Argument(metavar="FILE|notes-en-dev|...")],
    files: LinkerFiles,
    reading: InputConfig,
    linker: Annotated[LinkerConfig, Offered(without=NOT_OF_TEXT, k=1)],
    kinds: Annotated[str, "blanks,order,..."] = "",
    variants: Annotated[int, typer.Option(metavar="N", min=1)] = 5,
    seed: Annotated[int, "N"] = 0,
    output: Annotated[Path | None, "FILE"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate whether findings in notes stay the same in variants of their layout.

    Variants have other blanks, line breaks and character widths, another order of lists, an
    unknown word in a list, or other words as concepts; findings (span, concept, status) must not
    change. Misspelt triggers are counted apart.

    Args:
        notes: Notes: files, folders or zip archives that `biograft link` reads; or notes-en-dev
            and others that ship with biograft.
        kinds: Kinds of variants: blanks, tabs, trailing, hard-blanks, crlf, wraps, widths, order,
            unknown, concepts, headings, typos; default: all.
        variants: Variants of each kind a note.
        seed: Random seed of the variants.
        output: Write every variant that changed, as JSON lines; they hold pieces of the notes.
    """
    from biograft.evaluation import (
        RobustnessConfig,
        evaluate_robustness,
        read_assertions,
        save_cases,
    )
    from biograft.evaluation.assertion import NOTES
    from biograft.evaluation.robustness import TYPOS
    from biograft.text import Inputs

    config = RobustnessConfig(kinds=split_list(kinds), variants=variants, seed=seed)
    shipped = [name for name in notes if name in NOTES and not Path(name).exists()]
    inputs = Inputs([name for name in notes if name not in shipped], reading)
    if output is not None:
        refuse_input_as_output(output, *notes)
        _refuse_existing(output, overwrite=overwrite)
    documents = chain(
        (Document(each.id, each.text) for name in shipped for each in read_assertions(name)),
        inputs,
    )
    opened = open_linker(open_kb(kb), files, linker, quiet=quiet)
    result = evaluate_robustness(opened, documents, config, Progress(enabled=not quiet))
    if output is not None:
        save_cases(result, output, overwrite=overwrite)
    left_out = report_inputs(inputs)
    if as_json:
        print_json(result.to_json())
    else:
        n = result.variants.total() - result.variants[TYPOS]
        typer.echo(f"{result.n_documents:,} notes, {n:,} variants, {result.n_changed:,} changed")
        typer.echo(f"  {'':14}{'variants':>10}{'changed':>10}{'unchanged':>12}")
        for kind, counts in result.to_json()["kinds"].items():
            share = f"{counts['unchanged']:.2f} %"
            typer.echo(f"  {kind:14}{counts['variants']:>10,}{counts['changed']:>10,}{share:>12}")
    if left_out:
        raise typer.Exit(REJECTED)
