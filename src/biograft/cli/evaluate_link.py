"""``biograft evaluate link``: how well mentions that are given are linked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.evaluate_fit import check_fit, fit, print_fit
from biograft.cli.gold_warnings import warn_left_out, warn_unknown
from biograft.cli.options import (
    Calibration,
    Index,
    Json,
    Kb,
    Model,
    Overwrite,
    Quiet,
    Seed,
    Types,
    split_list,
)

if TYPE_CHECKING:
    from biograft.evaluation import EvaluationConfig, Gold, LinkingResult
    from biograft.kb import KnowledgeBase


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
        import biograft.evaluation.figures  # noqa: F401  # say what is missing before the work
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
    _warn(result, asked)
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
        _print(result, base, learned, _nil(config))
        print_fit(fitted.get("calibration"))


def _warn(result: LinkingResult, asked: Gold) -> None:
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


def _print(result: LinkingResult, base: KnowledgeBase, learned: Gold | None, nil: str) -> None:
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
