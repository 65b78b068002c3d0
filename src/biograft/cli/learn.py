"""``biograft learn``: decisions into an index, so that they count from now on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import (
    Json,
    Kb,
    Overwrite,
    print_json,
    refuse_input_as_output,
    report_left_out,
)
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.mapping import Decision

_TABLE = ".tsv"


def learn_decisions(
    kb: Kb,
    index: Annotated[Path, "INDEX"],
    decisions: Annotated[str, typer.Argument(metavar="[DECISIONS]")] = "",
    queue: Annotated[str, "NAME"] = "",
    out: Annotated[Path | None, "-o", "--out", "PAIRS"] = None,
    forget: Annotated[bool, "--forget"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Teach an index the decisions of reviewers; the knowledge base is not changed.

    Approved terms become names of their concepts, a rejected concept is no candidate for its term
    again, and terms without a concept have none. With 50 decisions or more, the weights and the
    probabilities are fitted to them, too. What INDEX learned before is replaced.

    Args:
        index: Index that learns (`biograft index`).
        decisions: Decisions: SSSOM (.tsv), or a review: its file, or a postgresql:// URL.
        queue: Queue of the review; default: all queues.
        out: Also write the approved terms as training pairs (gold format aap).
        forget: Remove learned names and weights from INDEX.
    """
    from biograft.kb import KnowledgeBase
    from biograft.mapping.learning import forget as forget_decisions, learn, write_pairs

    if forget == bool(decisions):
        raise ConfigError("give decisions to learn, or --forget")
    if forget:
        forget_decisions(index)
        if as_json:
            print_json({"index": str(index), "forgotten": True})
        return
    refuse_input_as_output(out, decisions)
    started = time.perf_counter()
    made = _read(decisions, queue)
    report = learn(KnowledgeBase.open(kb), index, made)
    n_pairs = None if out is None else write_pairs(out, made, overwrite=overwrite)
    summary = {**report.to_json(), "seconds": round(time.perf_counter() - started, 3)}
    if as_json:
        print_json({**summary, "n_pairs": n_pairs, "index": str(index)})
        return
    shown = [
        f"{key.removeprefix('n_')} {value:,.4g}"
        for key, value in summary.items()
        if isinstance(value, int | float) and not key.startswith("f1_")
    ]
    typer.echo("  ".join(shown))
    before, after = report.f1_before, report.f1_after
    typer.echo(f"F1 of other terms, cross-validated: before {before:.3f}, after {after:.3f}")


def _read(place: str, queue: str) -> list[Decision]:
    from biograft.mapping import read_decisions

    if place.lower().endswith(_TABLE) and "://" not in place:
        if queue:
            raise ConfigError("--queue: belongs to a review, and a file of SSSOM was given")
        return read_decisions(place)
    from biograft.cli.review import open_review
    from biograft.mapping import export_decisions

    with open_review(place) as store:
        queues = [queue] if queue else [each["queue"] for each in store.queues()]
        left_out: list[tuple[str, str]] = []
        decided = [
            decision
            for each in queues
            for decision in export_decisions(store, each, left_out=left_out)
        ]
    report_left_out(left_out)
    return decided
