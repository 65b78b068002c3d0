"""``biograft evaluate``: measure a linker on a gold standard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from biograft.evaluation import Gold, LinkingResult
    from biograft.kb import KnowledgeBase

app = typer.Typer(
    help="Measure a linker on a gold standard.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _root() -> None:
    """Keep ``link`` a command of its own while it is the only one."""


@app.command()
def link(
    kb: Annotated[Path, typer.Option("--kb", metavar="KB", help="Folder of the knowledge base.")],
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
    index: Annotated[
        Path | None, typer.Option(metavar="INDEX", help="Index to search; default: by letters.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Trained linker to rank with.")
    ] = None,
    types: Annotated[
        str, typer.Option(metavar="Disease,...", help="Ask mentions of these types only.")
    ] = "",
    nil: Annotated[
        bool, typer.Option("--nil", help="Ask also where the gold answer is that none fits.")
    ] = False,
    nil_below: Annotated[
        float | None,
        typer.Option(metavar="P", help="Take answers below this probability for NIL."),
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
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the intervals.")] = 0,
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
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the report, the calibration.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Measure how well mentions are linked to the concepts of a knowledge base.

    Figures are in percent, their 95 % intervals by drawing documents.
    """
    from biograft.evaluation import EvaluationConfig, GoldConfig, evaluate_linking, read_gold
    from biograft.evaluation.linking import CUTOFFS
    from biograft.kb import KnowledgeBase
    from biograft.linking import open_ranker
    from biograft.progress import Progress

    if report is not None:
        import biograft.evaluation.figures  # noqa: F401  # say what is missing before the work
    _check_fit(fit_calibration, aim, nil_below, overwrite=overwrite)
    wanted = tuple(part.strip() for part in types.split(",") if part.strip())
    gold_config = GoldConfig(types=wanted, keep_nil=nil)
    ks = (*(k for k in CUTOFFS if k < depth), depth)
    config = EvaluationConfig(ks=ks, nil_below=nil_below, seed=seed)
    base, asked = KnowledgeBase.open(kb), read_gold(gold, form, gold_config)
    learned = read_gold(train, form, gold_config) if train else None
    queries = asked.queries[:limit] if limit else asked.queries
    ranker = open_ranker(base, index=index, model=model)
    result = evaluate_linking(ranker, base, queries, scorer, config, Progress(enabled=not quiet))
    described = {
        "knowledge base": str(kb), "gold": gold, "format": form,
        "index": str(index or "none"), "model": str(model or "none"),
        "left out": dict(asked.log.filtered) | dict(asked.log.rejected.counts),
    }  # fmt: skip
    _warn(result, asked)
    if report is not None:
        _write_report(result, base, learned, (report, described, overwrite))
    fitted = {}
    if fit_calibration is not None:
        goal = aim or ("f1" if nil else None)
        fitted = _fit(result, ranker.described, goal, fit_calibration, overwrite=overwrite)
    if as_json:
        more = {"left_out": described["left out"], **fitted}
        typer.echo(json.dumps({"format": form, **result.to_json(), **more}, ensure_ascii=False))
    else:
        _print(result, base, learned)
        _print_fit(fitted.get("calibration"))


def _check_fit(file: Path | None, aim: str, nil_below: float | None, *, overwrite: bool) -> None:
    """Refuse before the long work what could not be done after it."""
    if file is None:
        if aim:
            raise ConfigError("--aim: is about the threshold that --fit-calibration fits")
        return
    if nil_below is not None:
        raise ConfigError("--nil-below: a threshold is fitted by --fit-calibration; leave it out")
    if file.exists() and not overwrite:
        raise OutputError(f"{file}: exists already; choose another place, or allow it to be "
                          "replaced (--overwrite)")  # fmt: skip


def _fit(
    result: LinkingResult, search: str, aim: str | None, file: Path, *, overwrite: bool
) -> dict[str, Any]:
    """Fit a calibration to the answers, write it, and say what it gains."""
    from biograft.evaluation.calibrating import calibrate_result, calibration_gain

    calibration = calibrate_result(result, search, aim=aim)
    before, after = calibration_gain(result)
    calibration.save(file, overwrite=overwrite)
    figures = {
        "file": str(file), "n": calibration.n, "search": search,
        "threshold": calibration.threshold, "ece_before": before, "ece_after": after,
    }  # fmt: skip
    return {"calibration": figures}


def _print_fit(fitted: dict[str, Any] | None) -> None:
    if fitted is None:
        return
    threshold = fitted["threshold"]
    nil = f"NIL below {threshold:.4f}" if threshold is not None else "no threshold of NIL"
    typer.echo(
        f"calibration error {100 * fitted['ece_before']:.2f} before, "
        f"{100 * fitted['ece_after']:.2f} after (each answer by a fit to other documents); {nil}"
    )
    typer.echo(f"calibration: {fitted['file']}")


def _warn(result: LinkingResult, asked: Gold) -> None:
    """Say what makes the figures other than they look."""
    for reason, n in asked.log.rejected.counts.items():
        typer.echo(f"warning: {n:,} rows of the gold left out: {reason}", err=True)
    unknown = sorted(result.resolved.unknown)
    if unknown:
        typer.echo(
            f"warning: the knowledge base does not know {len(unknown):,} gold ids "
            f"(such as {', '.join(unknown[:3])}); {result.resolved.n_unreachable:,} queries "
            "cannot be right by all they need; they count as asked",
            err=True,
        )


def _print(result: LinkingResult, base: KnowledgeBase, learned: Gold | None) -> None:
    from biograft.evaluation import sub_populations

    typer.echo(f"{result.n:,} queries, {result.scorer} scorer")
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
