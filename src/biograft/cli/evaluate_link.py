"""``biograft evaluate link``: evaluate a linker on given mentions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    Json,
    Kb,
    Overwrite,
    Quiet,
    Seed,
    Texts,
    Types,
    note_without_index,
    print_json,
    warn_left_out,
    warn_unknown,
    warn_without_text,
)
from biograft.config import split_list
from biograft.errors import ConfigError, OutputError
from biograft.linking.config import LinkerConfig, LinkerFiles
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.evaluation import (
        EvaluationConfig,
        Gold,
        LinkingResult,
        LinkQuery,
        ScoredQueries,
    )
    from biograft.kb import KnowledgeBase


_SETTINGS = (
    *("search", "lexical_weight", "similarity", "sources", "languages"),
    *("abbreviations", "appositions", "short_forms"),
)
"""Settings of a linker that count for given mentions; of the gold are the types."""


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
    base, texts = KnowledgeBase.open(kb), TextIndex.read(text or ())
    gold_set = drop_queries(read_gold(gold, form, gold_config, texts), base, split_list(drop))
    seen = read_gold(train, form, gold_config).queries if train else None
    queries = gold_set.queries[:limit] if limit else gold_set.queries
    note_without_index(base, files.index, quiet=quiet)
    opened = Linker.open(base, **vars(files), config=linker)
    if nil_below is None and fit_calibration is None and (nil or files.calibration is not None):
        config = nil_as_linked(opened, config)
    result = evaluate_linking(opened, base, queries, scorer, config, Progress(enabled=not quiet))
    evaluated = _Evaluated(base, gold_set, seen, config, result, opened.score_source)
    evaluated.warn(with_texts=texts is not None)
    if answers is not None:
        save_answers(result, answers, overwrite=overwrite)
    compared = _compare(result, other, against, seed)
    if report is not None:
        inputs = {
            "knowledge base": kb,
            "gold": gold,
            "format": form,
            "index": files.index or "none",
            "model": files.model or "none",
            "calibration": files.calibration or "none",
        }
        evaluated.write_report(report, inputs, overwrite=overwrite)
    fitted = {}
    if fit_calibration is not None:
        criterion = aim or ("f1" if nil else None)
        fitted = evaluated.fit(criterion, fit_calibration, overwrite=overwrite)
    if as_json:
        more = {"calibration": fitted} if fitted else {}
        print_json({"format": form, **evaluated.to_json(), **more, **compared})
    else:
        evaluated.print()
        _print_compared(compared)
        if fitted:
            _print_fit(fitted)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """The result of an evaluation, with what was evaluated."""

    base: KnowledgeBase
    gold: Gold
    seen: Sequence[LinkQuery] | None
    config: EvaluationConfig
    result: LinkingResult
    score_source: str

    @property
    def left_out(self) -> dict[str, int]:
        """Number of rows and queries left out, by reason."""
        return {**self.gold.log.filtered, **self.gold.log.rejected.counts}

    @property
    def nil_rule(self) -> str:
        """The NIL threshold in words; empty if there is none."""
        config = self.config
        if config.nil_below is None:
            return ""
        return f"below {'the score ' if config.nil_by_score else ''}{config.nil_below:.4f}"

    def warn(self, *, with_texts: bool) -> None:
        """Warn of rows left out, doubtful rows, unknown ids, and mentions without text."""
        from biograft.evaluation.linking import DROPS

        log, resolved = self.gold.log, self.result.resolved
        warn_left_out(log.rejected.counts, "rows of the gold")
        warn_left_out({r: log.filtered[r] for r in DROPS.values() if r in log.filtered}, "queries")
        for reason, n in log.doubtful.counts.items():
            typer.echo(f"warning: {n:,} rows of the gold: {reason}", err=True)
        n = resolved.n_unreachable
        warn_unknown(
            resolved.unknown, f"; {n:,} queries cannot be answered right, and count as wrong"
        )
        if with_texts:
            warn_without_text(self.gold.n_without_text, len(self.gold.queries))

    def to_json(self) -> dict[str, Any]:
        return {
            **self.result.to_json(),
            "search": self.score_source,
            "left_out": self.left_out,
            "nil_below": self.config.nil_below,
            "n_without_text": self.gold.n_without_text,
        }

    def print(self) -> None:
        """Print metrics with their intervals, then those of sub-populations."""
        from biograft.evaluation import sub_populations

        result = self.result
        nil = f"; NIL {self.nil_rule}" if self.nil_rule else ""
        typer.echo(f"{result.n:,} queries, {result.scorer} scorer{nil}")
        for name, value in result.metrics.items():
            interval = result.intervals.get(name)
            bounds = (
                f"   {100 * interval.low:6.2f} to {100 * interval.high:6.2f}" if interval else ""
            )
            typer.echo(f"  {name:14} {100 * value:6.2f}{bounds}")
        for part in sub_populations(result, self.base, self.seen):
            typer.echo(f"  {part.name:20} n={part.n:<7,} acc@1 {100 * part.acc1:6.2f}")

    def write_report(self, folder: Path, inputs: Mapping[str, Any], *, overwrite: bool) -> None:
        """Write a report with charts, which names the inputs of the command."""
        from biograft.evaluation import (
            LinkingReport,
            find_mistakes,
            similarity_buckets,
            sub_populations,
            write_report,
        )
        from biograft.evaluation.figures import draw_figures

        buckets = similarity_buckets(self.result, self.base)
        report = LinkingReport(
            result=self.result,
            populations=sub_populations(self.result, self.base, self.seen),
            buckets=buckets,
            mistakes=find_mistakes(self.result, self.base),
            figures=draw_figures(self.result, buckets),
            provenance={
                **{name: str(value) for name, value in inputs.items()},
                "search": self.score_source,
                "NIL": self.nil_rule or "where nothing is found",
                "left out": self.left_out,
            },
        )
        write_report(report, folder, overwrite=overwrite)
        typer.echo(f"report written to {folder}", err=True)

    def fit(self, criterion: str | None, file: Path, *, overwrite: bool) -> dict[str, Any]:
        """Fit a calibration to the answers, write it, and return its summary."""
        from biograft.evaluation.linking import calibrate_result, calibration_gain
        from biograft.kb.fingerprints import store_fingerprint

        calibration = calibrate_result(
            self.result, self.score_source, aim=criterion, store=store_fingerprint(self.base)
        )
        before, after = calibration_gain(self.result)
        calibration.save(file, overwrite=overwrite)
        return {
            "file": str(file),
            "n": calibration.n,
            "search": self.score_source,
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


def _check_outputs(report: Path | None, answers: Path | None, *, overwrite: bool) -> None:
    """Refuse before the evaluation what would fail after it."""
    if report is not None:
        import biograft.evaluation.figures  # noqa: F401  # a missing extra
    if answers is not None:
        _refuse_existing(answers, overwrite=overwrite)


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
