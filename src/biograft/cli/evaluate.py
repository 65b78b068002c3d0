"""The part of ``biograft evaluate link`` that fits a calibration to what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    Threshold,
    Types,
    split_languages,
    split_list,
    warn_left_out,
    warn_unknown,
)
from biograft.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from biograft.evaluation import (
        EvaluationConfig,
        Gold,
        GoldTexts,
        LinkingResult,
        Score,
        TextResult,
    )
    from biograft.kb import KnowledgeBase


def check_fit(
    file: Path | None,
    aim: str,
    nil_below: float | None,
    calibration: Path | None,
    *,
    overwrite: bool,
) -> None:
    """Refuse before the long work what could not be done after it."""
    if file is None:
        if aim:
            raise ConfigError("--aim: is about the threshold that --fit-calibration fits")
        return
    if nil_below is not None:
        raise ConfigError("--nil-below: a threshold is fitted by --fit-calibration; leave it out")
    if calibration is not None:
        raise ConfigError("--calibration: --fit-calibration fits another; leave one of them out")
    if file.exists() and not overwrite:
        raise OutputError(f"{file}: exists already; choose another place, or allow it to be "
                          "replaced (--overwrite)")  # fmt: skip


def fit(
    result: LinkingResult, search: str, aim: str | None, file: Path, *, overwrite: bool
) -> dict[str, Any]:
    """Fit a calibration to the answers, write it, and say what it gains."""
    from biograft.evaluation.calibration import calibrate_result, calibration_gain

    calibration = calibrate_result(result, search, aim=aim)
    before, after = calibration_gain(result)
    calibration.save(file, overwrite=overwrite)
    figures = {
        "file": str(file), "n": calibration.n, "search": search,
        "threshold": calibration.threshold, "ece_before": before, "ece_after": after,
    }  # fmt: skip
    return {"calibration": figures}


def print_fit(fitted: dict[str, Any] | None) -> None:
    """Say what was fitted, if anything was."""
    if fitted is None:
        return
    threshold = fitted["threshold"]
    nil = f"NIL below {threshold:.4f}" if threshold is not None else "no threshold of NIL"
    typer.echo(
        f"calibration error {100 * fitted['ece_before']:.2f} before, "
        f"{100 * fitted['ece_after']:.2f} after (each answer by a fit to other documents); {nil}"
    )
    typer.echo(f"calibration: {fitted['file']}")


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
            "--format", metavar="F", help="biosyn, pubtator, aap, xlbel, procedures or sample."
        ),
    ],
    scorer: Annotated[
        str, typer.Option(metavar="lenient|strict", help="The papers' rule, or concept level.")
    ] = "lenient",
    index: Index = None,
    model: Model = None,
    calibration: Calibration = None,
    types: Types = "",
    nil: Annotated[
        bool, typer.Option("--nil", help="Ask also where the gold answer is that none fits.")
    ] = False,
    nil_below: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Take answers below this probability for NIL; default: as the linker would, "
            "with --nil or --calibration.",
        ),
    ] = None,
    train: Annotated[
        str, typer.Option(metavar="PATH", help="Training gold, to tell what was never seen.")
    ] = "",
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a report with figures there.")
    ] = None,
    depth: Annotated[
        int, typer.Option("-k", "--depth", metavar="K", min=5, help="How many answers to judge.")
    ] = 30,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Ask the first N queries only; 0: all.")
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
            help="What the fitted threshold of NIL is to reach; default: f1 with --nil, else none.",
        ),
    ] = "",
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well mentions are linked to the concepts of a knowledge base.

    Figures are in percent, their 95 % intervals by drawing documents.
    """
    from biograft.evaluation import (
        EvaluationConfig,
        GoldConfig,
        evaluate_linking,
        nil_as_linked,
        read_gold,
    )
    from biograft.evaluation.linking import CUTOFFS
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker
    from biograft.progress import Progress

    if report is not None:
        pass
    check_fit(fit_calibration, aim, nil_below, calibration, overwrite=overwrite)
    gold_config = GoldConfig(types=split_list(types), keep_nil=nil)
    ks = (*(k for k in CUTOFFS if k < depth), depth)
    config = EvaluationConfig(ks=ks, nil_below=nil_below, seed=seed)
    base, asked = KnowledgeBase.open(kb), read_gold(gold, form, gold_config)
    learned = read_gold(train, form, gold_config) if train else None
    queries = asked.queries[:limit] if limit else asked.queries
    linker = Linker.open(base, index, model, calibration)
    if nil_below is None and fit_calibration is None and (nil or calibration is not None):
        config = nil_as_linked(linker, config)
    result = evaluate_linking(linker, base, queries, scorer, config, Progress(enabled=not quiet))
    described = {
        "knowledge base": str(kb), "gold": gold, "format": form,
        "index": str(index or "none"), "model": str(model or "none"),
        "calibration": str(calibration or "none"), "NIL": _nil(config) or "where nothing is found",
        "left out": dict(asked.log.filtered) | dict(asked.log.rejected.counts),
    }  # fmt: skip
    _warn_link(result, asked)
    if report is not None:
        _write_report(result, base, learned, (report, described, overwrite))
    fitted = {}
    if fit_calibration is not None:
        goal = aim or ("f1" if nil else None)
        fitted = fit(result, linker.described, goal, fit_calibration, overwrite=overwrite)
    if as_json:
        more = {"left_out": described["left out"], "nil_below": config.nil_below, **fitted}
        typer.echo(json.dumps({"format": form, **result.to_json(), **more}, ensure_ascii=False))
    else:
        _print_link(result, base, learned, _nil(config))
        print_fit(fitted.get("calibration"))


def _warn_link(result: LinkingResult, asked: Gold) -> None:
    """Say what makes the figures other than they look."""
    warn_left_out(asked.log.rejected.counts, "rows of the gold")
    effect = (
        f"; {result.resolved.n_unreachable:,} queries cannot be right by all they need; "
        "they count as asked"
    )
    warn_unknown(result.resolved.unknown, effect)


def _nil(config: EvaluationConfig) -> str:
    """Say below what an answer is taken for NIL; nothing if none is that is found."""
    if config.nil_below is None:
        return ""
    return f"below {'the score ' if config.nil_by_score else ''}{config.nil_below:.4f}"


def _print_link(result: LinkingResult, base: KnowledgeBase, learned: Gold | None, nil: str) -> None:
    from biograft.evaluation import sub_populations

    told = f"; NIL {nil}" if nil else ""
    typer.echo(f"{result.n:,} queries, {result.scorer} scorer{told}")
    for name, value in result.metrics.items():
        within = result.intervals.get(name)
        shown = f"   {100 * within.low:6.2f} to {100 * within.high:6.2f}" if within else ""
        typer.echo(f"  {name:14} {100 * value:6.2f}{shown}")
    for part in sub_populations(result, base, learned.queries if learned else None):
        typer.echo(f"  {part.name:20} n={part.n:<7,} acc@1 {100 * part.acc1:6.2f}")


def _write_report(
    result: LinkingResult,
    base: KnowledgeBase,
    learned: Gold | None,
    place: tuple[Path, dict[str, Any], bool],
) -> None:
    from biograft.evaluation import (
        LinkingReport,
        find_mistakes,
        similarity_buckets,
        sub_populations,
        write_report,
    )
    from biograft.evaluation.figures import draw_figures

    folder, provenance, overwrite = place
    buckets = similarity_buckets(result, base)
    made = LinkingReport(
        result=result,
        populations=sub_populations(result, base, learned.queries if learned else None),
        buckets=buckets,
        mistakes=find_mistakes(result, base),
        figures=draw_figures(result, buckets),
        provenance=provenance,
    )
    write_report(made, folder, overwrite=overwrite)
    typer.echo(f"report written to {folder}", err=True)


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
        int, typer.Option(metavar="N", min=0, help="The first N documents only; 0: all.")
    ] = 0,
    no_abbreviations: NoAbbreviations = False,
    no_composites: NoComposites = False,
    lang: Languages = "",
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure from end to end: find mentions in bare texts, and link them.

    The mentions of the gold are only compared with, never shown to the linker. spans: a mention
    of exactly this span is found; mentions: and its concepts are exactly the gold's; documents:
    the set of concepts of each document. Gold mentions without a concept (NIL) and answers of
    NIL count as spans, not as concepts. With --types all that is found is compared with the
    mentions of these types. Figures are in percent, their 95 % intervals by drawing documents.
    """
    from biograft.evaluation import evaluate_text, read_gold_texts
    from biograft.kb import KnowledgeBase
    from biograft.linking import Linker
    from biograft.progress import Progress

    base = KnowledgeBase.open(kb)
    asked = read_gold_texts(gold, form, types=split_list(types), limit=limit)
    linker = Linker.open(
        base, index, model, calibration,
        k=1, threshold=threshold,
        abbreviations=not no_abbreviations, composites=not no_composites,
        languages=split_languages(lang),
    )  # fmt: skip
    result = evaluate_text(linker, asked.documents, progress=Progress(enabled=not quiet), seed=seed)
    _warn_text(result, asked)
    if as_json:
        left_out = dict(asked.log.filtered) | dict(asked.log.rejected.counts)
        values = {"format": form, **result.to_json(), "left_out": left_out}
        typer.echo(json.dumps(values, ensure_ascii=False))
    else:
        _print_text(result)


def _warn_text(result: TextResult, asked: GoldTexts) -> None:
    """Say what makes the figures other than they look."""
    warn_left_out(asked.log.rejected.counts, "mentions of the gold")
    warn_unknown(result.unknown, "; mentions of them cannot be right, and count as missed")


def _print_text(result: TextResult) -> None:
    nil = f", {result.n_nil:,} of them without a concept" if result.n_nil else ""
    typer.echo(f"{result.n_documents:,} documents, {result.n_mentions:,} gold mentions{nil}")
    cells = "".join(f"{name:>26}" for name in ("precision", "recall", "F1"))
    typer.echo(f"  {'':9}{cells}{'right':>9}{'wrong':>9}{'missed':>9}")
    for level, score in result.scores.items():
        typer.echo(f"  {level:9}{_figures(score)}")


def _figures(score: Score) -> str:
    counts, cells = score.counts, []
    for name, within in score.intervals.items():
        value = 100 * getattr(counts, name)
        cells.append(f"{value:8.2f} ({100 * within.low:6.2f}-{100 * within.high:6.2f})".rjust(26))
    cells += [f"{n:>9,}" for n in (counts.right, counts.wrong, counts.missed)]
    return "".join(cells)


def task(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Task model, or RUN of one.")],
    data: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="File to measure the model on.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Its format; default: recognised.")
    ] = "",
    part: Annotated[
        str, typer.Option(metavar="test", help="Part of a file that holds several (DDI).")
    ] = "",
    grouped: Annotated[bool, typer.Option("--grouped", help="ChemProt: BLURB's groups.")] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write the answers.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Compare the runs MODEL and RUN over their seeds."),
    ] = None,
    figure: Annotated[
        float | None,
        typer.Option(
            metavar="0.856", help="Compare the run MODEL with a published figure of its kind."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a model on a file, or compare runs.

    Classes are measured one by one and together (F1, micro), answers of questions by acc@1 and
    MRR. Runs are compared by F1 or acc@1 of their seeds on the test set both were trained with:
    Welch's t-test and, where the seeds are the same, the paired one; with a published figure by
    a one-sample t-test.
    """
    from biograft.tasks import compare_runs, compare_with_figure

    found: dict[str, Any] = {}
    asked = _Asked(form, part, grouped, out)
    if data:
        found["data"] = _measure(model, data, asked)
    else:
        asked.refuse_without_data()
    if against is not None:
        found["against"] = compare_runs(model, against)
    if figure is not None:
        found["figure"] = compare_with_figure(model, figure)
    if not found:
        raise ConfigError("name what to measure: --data, --against or --figure")
    if as_json:
        typer.echo(json.dumps({"model": str(model), **found}, ensure_ascii=False))
    else:
        _print_task(found)


class _Asked:
    """How the file is to be read, and where answers go."""

    def __init__(self, form: str, part: str, grouped: bool, out: Path | None) -> None:
        self.form, self.part, self.grouped, self.out = form, part, grouped, out

    def refuse_without_data(self) -> None:
        """Refuse what says something of a file where none is named."""
        given = {
            "--format": self.form,
            "--part": self.part,
            "--grouped": self.grouped,
            "--out": self.out,
        }
        named = [name for name, value in given.items() if value]
        if named:
            raise ConfigError(f"{', '.join(named)}: means nothing without a file; name it (--data)")


def _measure(place: Path, paths: list[str], asked: _Asked) -> dict[str, Any]:
    from biograft.tasks import TASKS, open_task
    from biograft.tasks.configs import DataConfig

    model = open_task(place)
    kind = TASKS.load(model.kind)
    data = DataConfig(format=asked.form, has_parts=bool(asked.part), grouped=asked.grouped)
    read = kind.read(paths, asked.part or "test", data)
    warn_left_out(read.rejected, "rows")
    answers = model.predict(read.examples)
    if asked.out is not None:
        model.write(read.examples, answers, asked.out)
    report = model.report(read.examples, answers).to_json()
    return {"n": len(read.examples), "figures": list(kind.figures), **report}


def _print_task(found: Mapping[str, Any]) -> None:
    if "data" in found:
        _print_report(found["data"])
    for name in ("against", "figure"):
        if name in found:
            said = found[name]
            main = said["figure"]
            typer.echo(
                f"  {main} {said[main]:.4f} against {said['against']:.4f}: "
                f"{said['difference']:+.4f}"
            )
            for test in ("welch", "paired", "one_sample"):
                if test in said:
                    typer.echo(f"  {test.replace('_', '-')} t-test: p = {said[test]['p']:.4f}")


def _print_report(report: Mapping[str, Any]) -> None:
    """Print the classes, where there are any, all of them together, and chance."""
    for name, figures in report.get("classes", {}).items():
        shown = ", ".join(f"{key} {figures[key]:.4f}" for key in ("f1", "precision", "recall"))
        typer.echo(f"  {name or '(entity)':20} {shown} ({figures['right'] + figures['missed']:,})")
    names = report["figures"]
    typer.echo(f"  {'all':20} " + ", ".join(f"{name} {report[name]:.4f}" for name in names))
    if "chance" in report:
        levels = [
            f"{name} {report['chance'][name]:.4f}" for name in names if name in report["chance"]
        ]
        typer.echo(f"  {'chance':20} " + ", ".join(levels))
    for reason, n in report.get("left_out", {}).items():
        typer.echo(f"  {n:,} {reason} left out", err=True)
    if report.get("n_tied"):
        typer.echo(f"  {report['n_tied']:,} questions tied, counted against the model", err=True)


app = typer.Typer(
    help="Measure a linker or a model of a task on a gold standard.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(link)
app.command()(text)
app.command()(task)
