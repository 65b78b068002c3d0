"""``biograft review``: decide about mapped terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import (
    REJECTED,
    Json,
    Overwrite,
    open_kb,
    print_json,
    refuse_input_as_output,
    report_encoding,
    report_left_out,
)
from biograft.config import Config, Option
from biograft.errors import ConfigError, MissingExtraError, visible
from biograft.language import READER
from biograft.mapping.review_records import APPROVE, ReviewFilter
from biograft.text.input_config import InputConfig

if TYPE_CHECKING:
    from biograft.mapping import BulkResult, ReviewItem, ReviewStore

app = CommandGroup("Decide about mapped terms, alone or with colleagues.")

Database = Annotated[
    str,
    typer.Option("--review", metavar="DB", help="Review: a file (SQLite), or a postgresql:// URL."),
]
Queue = Annotated[str, typer.Option(metavar="NAME", help="Queue of the review.")]
Terms = Annotated[
    list[int] | None,
    typer.Argument(
        metavar="[ID]...", help="Ids of terms. Default: all terms that match the filters."
    ),
]
_SHOWN = 20
_RISKS = {
    "none": "no suggestion",
    "flag": "a doubtful flag",
    "reason": "the mapping says why it is in doubt",
    "acronym": "an acronym",
}


@dataclass(frozen=True, kw_only=True)
class DecisionOptions(Config):
    """The reviewer, a comment, and the confirmation of bulk decisions."""

    reviewer: Annotated[str, Option("Reviewer; default: your user name.", metavar="NAME")] = ""
    comment: Annotated[str, Option("Reason for the decision.", metavar="TEXT")] = ""
    yes: Annotated[bool, Option("Do not ask for confirmation of bulk decisions.")] = False

    @property
    def name(self) -> str:
        """The name of the reviewer."""
        import getpass

        try:
            return self.reviewer or getpass.getuser()
        except (OSError, KeyError):
            raise ConfigError("--reviewer: this system knows no user name; give one") from None


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    review: Database,
    reading: Annotated[InputConfig, Offered("encoding")],
    options: Annotated[DecisionOptions, Offered("reviewer")],
    queue: Queue = "review",
    approvals: Annotated[int | None, "1|2"] = None,
    blind: Annotated[bool, "--blind"] = False,
    kb: Annotated[Path | None, "KB"] = None,
    as_json: Json = False,
) -> None:
    """Import mapped terms, or decisions that were made in a spreadsheet.

    Rows that another reviewer decided meanwhile are left as they are and listed, with exit status
    1. Decisions stay when the same terms are imported again.

    Args:
        file: Output of `biograft map` or `biograft review export`, edited or not; or SSSOM.
        approvals: Approvals required; default: 1.
        blind: The second reviewer does not see the decision of the first; needs --approvals 2.
        kb: Knowledge base; a concept that it does not have is not approved.
    """
    from biograft.mapping import import_review

    if blind and approvals != 2:
        raise ConfigError("--blind: needs --approvals 2")
    report_encoding(file, reading.encoding)
    with open_review(review, create=True, kb=kb) as store:
        done = import_review(
            store,
            file,
            reviewer=options.name,
            queue=queue,
            approvals=approvals,
            encoding=reading.encoding,
        )
        if blind:
            store.set_approvals(queue, 2, blind=True)
    counts = {
        "n_rows": done.n_rows,
        "n_added": done.n_added,
        "n_decided": done.n_decided,
        "n_unchanged": done.n_unchanged,
        "n_refused": len(done.problems),
    }
    if as_json:
        problems = [{"line": line, "why": why} for line, why in done.problems]
        print_json({**counts, "batch": done.batch, "refused": problems})
    else:
        typer.echo("  ".join(f"{key.removeprefix('n_')} {n:,}" for key, n in counts.items()))
        for line, why in done.problems:
            typer.echo(visible(f"{file}:{line}: {why}"), err=True)
    if done.problems:
        raise typer.Exit(REJECTED)


@app.command("list")
def list_terms(
    review: Database,
    where: ReviewFilter,
    options: Annotated[DecisionOptions, Offered("reviewer")],
    queue: Queue = "review",
    n: Annotated[int, typer.Option("-n", metavar="N", min=1)] = _SHOWN,
    as_json: Json = False,
) -> None:
    """List terms, the highest frequency x doubt first.

    Where second opinions are blind, terms that another reviewer proposed are listed as open.

    Args:
        n: Maximum terms listed.
    """
    viewer = options.name
    with open_review(review) as store:
        items = store.items(queue, where, limit=n, viewer=viewer)
        total = store.count(queue, where, viewer)
    _report(items, None, as_json)
    if total > len(items) and not as_json:
        typer.echo(f"{len(items):,} of {total:,}; see -n", err=True)


def _decide(
    action: str,
    review: str,
    ids: list[int] | None,
    where: ReviewFilter,
    queue: str,
    options: DecisionOptions,
    as_json: bool,
    kb: Path | None = None,
    risky: bool = False,
    **given: Any,
) -> None:
    """Decide about terms by their ids, or about all that match filters, and print the result.

    Args:
        action: approve, reject or nil.
        review: The review.
        ids: Ids of terms.
        where: Filters, where no ids are given.
        queue: Queue of the filters.
        options: Who decides, and why.
        as_json: Print JSON.
        kb: Knowledge base that has the concepts; None: they are not looked up.
        risky: Approve doubtful terms, such as acronyms, with the others, too.
        given: Details of a decision about one term; None is not given.
    """
    from biograft.mapping import TermDecision, draw_sample

    who, comment = options.name, options.comment
    details = {name: value for name, value in given.items() if value is not None}
    with open_review(review, kb=kb) as store:
        if ids:
            if where != ReviewFilter():
                raise ConfigError("give ids of terms or filters, not both")
            decisions = [
                TermDecision(each, action, who, comment=comment, **details)
                for each in dict.fromkeys(ids)
            ]
            items = store.decide_all(decisions)
            _report(items, None, as_json)
            concept = details.get("concept")
            known = {each.concept for item in items for each in item.term.candidates}
            if kb is None and concept is not None and concept not in known:
                note = f"{concept!r} is no candidate, and was not looked up; --kb looks it up"
                typer.echo(visible(f"warning: {note}"), err=True)
            return
        if where == ReviewFilter():
            raise ConfigError("give ids of terms, or filters such as --min-probability 0.95")
        if details:
            raise ConfigError("a concept, a relation or a version belongs to one term; give its id")
        leave_risky = action == APPROVE and not risky
        if leave_risky:
            sample = draw_sample(store, queue, where, reviewer=who)
            n, note = sample.n_terms, f": {sample}"
            _report_left(sample.left)
        else:
            n, note = store.count(queue, replace(where, waits_for=who)), ""
        if n and not options.yes:
            typer.confirm(f"{action} {n:,} terms{note}?", abort=True, err=True)
        done = store.decide_many(
            action,
            reviewer=who,
            queue=queue,
            where=where,
            comment=comment,
            expected=n,
            leave_risky=leave_risky,
        )
    _report([], done, as_json)


@app.command()
def approve(
    review: Database,
    where: Annotated[ReviewFilter, Offered(without=("waits_for",))],
    options: DecisionOptions,
    ids: Terms = None,
    concept: Annotated[str | None, "ID"] = None,
    name: Annotated[str | None, "NAME"] = None,
    relation: Annotated[str | None, "exact|broad|narrow|close|related"] = None,
    version: Annotated[int | None, "N"] = None,
    risky: Annotated[bool, "--risky"] = False,
    queue: Queue = "review",
    kb: Annotated[Path | None, "KB"] = None,
    as_json: Json = False,
) -> None:
    """Approve the suggestion of terms, or --concept for one.

    Without ids: all terms that match the filters and wait for you, after a confirmation. Acronyms,
    ambiguous terms and others in doubt are left, to be decided one by one. Check a sample first:
    `biograft review sample`.

    Args:
        concept: Concept to approve instead of the suggested one.
        name: Name of --concept.
        relation: Relation of the concept to the term; default: exact.
        version: Version that you saw; refused if there is a newer one.
        risky: Approve acronyms, ambiguous terms and others in doubt, too.
        kb: Knowledge base; a concept that it does not have is not approved.
    """
    _decide(
        "approve",
        review,
        ids,
        where,
        queue,
        options,
        as_json,
        kb,
        risky,
        concept=concept,
        name=name,
        relation=relation,
        version=version,
    )


@app.command()
def sample(
    review: Database,
    where: Annotated[ReviewFilter, Offered(without=("status", "waits_for"))],
    options: Annotated[DecisionOptions, Offered("reviewer")],
    queue: Queue = "review",
    n: Annotated[int, typer.Option("-n", metavar="N", min=1)] = 60,
    as_json: Json = False,
) -> None:
    """List a random sample of terms to check before the others are approved at once.

    When all of them are decided, it says how many of the others are wrong at most. Filters are
    those of `biograft review approve`.

    Args:
        n: Terms of the sample; those found by a translated name have a sample of their own.
    """
    from biograft.mapping import draw_sample

    with open_review(review) as store:
        found = draw_sample(store, queue, where, reviewer=options.name, size=n)
    if as_json:
        print_json(found.to_json())
        return
    _report(found.to_check, None, as_json)
    _report_left(found.left)
    typer.echo(f"{found.n_terms:,} terms: {found}", err=True)


def _report_left(left: Mapping[str, int]) -> None:
    for risk, n in left.items():
        typer.echo(f"{n:,} left for single decisions: {_RISKS[risk]}", err=True)


@app.command("target")
def add_target(
    term: Annotated[int, typer.Argument(metavar="ID")],
    concept: Annotated[str, typer.Argument(metavar="CONCEPT")],
    review: Database,
    options: Annotated[DecisionOptions, Offered("reviewer", "comment")],
    name: Annotated[str, "NAME"] = "",
    relation: Annotated[str, "exact|broad|narrow|close|related"] = "exact",
    kb: Annotated[Path | None, "KB"] = None,
    as_json: Json = False,
) -> None:
    """Approve a further concept of a term; each is exported on its own.

    Args:
        term: Id of a term.
        concept: Id of the further concept.
        name: Name of the concept; default: that of --kb.
        relation: Relation of the concept to the term.
        kb: Knowledge base; a concept that it does not have is not approved.
    """
    if kb is not None and not name:
        base = open_kb(kb)
        row = base.find_row(concept)
        name = "" if row is None else base.name_at(row)
    said = {"reviewer": options.name, "comment": options.comment, "relation": relation}
    with open_review(review, kb=kb) as store:
        _report([store.add_target(term, concept, name=name, **said)], None, as_json)


@app.command()
def reject(
    review: Database,
    where: Annotated[ReviewFilter, Offered("status", "flag", "text", "max_score")],
    options: DecisionOptions,
    ids: Terms = None,
    concept: Annotated[str | None, "ID"] = None,
    queue: Queue = "review",
    as_json: Json = False,
) -> None:
    """Reject the suggestion of terms; it never comes first again for them.

    Args:
        concept: Concept to use instead of the best candidate.
    """
    _decide("reject", review, ids, where, queue, options, as_json, concept=concept)


@app.command("nil")
def no_concept(
    review: Database,
    where: Annotated[ReviewFilter, Offered("status", "flag", "text", "max_score")],
    options: DecisionOptions,
    ids: Terms = None,
    queue: Queue = "review",
    as_json: Json = False,
) -> None:
    """Mark terms as having no concept in the knowledge base."""
    _decide("nil", review, ids, where, queue, options, as_json)


@app.command("comment")
def add_comment(
    term: Annotated[int, typer.Argument(metavar="ID")],
    text: Annotated[str, typer.Argument(metavar="TEXT")],
    review: Database,
    options: Annotated[DecisionOptions, Offered("reviewer")],
    as_json: Json = False,
) -> None:
    """Add a comment to a term.

    Args:
        term: Id of a term.
        text: Comment text.
    """
    with open_review(review) as store:
        event = store.comment(term, text, reviewer=options.name)
    if as_json:
        print_json(event.to_json())


@app.command()
def undo(
    review: Database,
    options: Annotated[DecisionOptions, Offered("reviewer", "comment")],
    event: Annotated[int | None, typer.Argument(metavar="[EVENT]")] = None,
    batch: Annotated[str, "ID"] = "",
    as_json: Json = False,
) -> None:
    """Undo a decision, or all decisions of a batch; newer decisions stay.

    Args:
        event: Id of an event of the history.
        batch: A bulk action, such as an import.
    """
    if (event is None) == (not batch):
        raise ConfigError("give the id of an event, or --batch (see `biograft review history`)")
    with open_review(review) as store:
        by = {"reviewer": options.name, "comment": options.comment}
        if event is not None:
            _report([store.undo(event, **by)], None, as_json)
        else:
            _report([], store.undo_batch(batch, **by), as_json)


@app.command()
def history(
    review: Database,
    options: Annotated[DecisionOptions, Offered("reviewer")],
    term: Annotated[int | None, typer.Argument(metavar="[ID]")] = None,
    queue: Queue = "review",
    n: Annotated[int, typer.Option("-n", metavar="N", min=1)] = _SHOWN,
    as_json: Json = False,
) -> None:
    """List who decided what, when and why, the latest first.

    Args:
        term: Id of a term. Default: the whole queue.
        n: Maximum events.
    """
    with open_review(review) as store:
        events = store.history(queue, term, limit=n, viewer=options.name)
    for each in events:
        if as_json:
            print_json(each.to_json())
            continue
        concept = (each.after.concept if each.after else None) or ""
        undone = READER.translate("(undone)") if each.undone else ""
        action, batch = map(READER.translate, (each.action, f"batch {each.batch}"))
        said = (each.id, each.at, each.reviewer, action, concept, each.text, each.comment)
        shown = [*map(str, said), undone, batch]
        typer.echo(visible("  ".join(filter(None, shown))))


@app.command()
def agreement(review: Database, queue: Queue = "review", as_json: Json = False) -> None:
    """Compare the decisions of two reviewers: Cohen's kappa, and where they disagree."""
    from biograft.mapping import review_agreement

    with open_review(review) as store:
        found = review_agreement(store, queue).to_json()
    if as_json:
        print_json(found)
        return
    for pair in found["pairs"]:
        kappa = "-" if pair["kappa"] is None else f"{pair['kappa']:.3f}"
        who = f"{pair['first']}, {pair['second']}"
        typer.echo(visible(f"{who}: {pair['n_equal']:,} of {pair['n_terms']:,}, kappa {kappa}"))
    for each in found["disagreements"]:
        shown = [f"{each['id']}", each["text"], each["status"]]
        for said in each["opinions"]:
            relation = "" if said["relation"] == "exact" else said["relation"]
            words = (said["reviewer"], said["action"], relation, said["concept"], said["name"])
            shown.append(" ".join(filter(None, words)))
        typer.echo(visible("  ".join(shown)))


@app.command("status")
def show_status(
    review: Database,
    options: Annotated[DecisionOptions, Offered("reviewer")],
    as_json: Json = False,
) -> None:
    """Count the terms of each queue by status."""
    with open_review(review) as store:
        queues = store.queues(options.name)
    for each in queues:
        if as_json:
            print_json(each)
            continue
        share = each["n_decided"] / max(each["n_terms"], 1)
        statuses = (f"{status} {n:,}" for status, n in each["statuses"].items())
        counts = "  ".join(map(READER.translate, statuses))
        blindly = ", blind" if each["blind"] else ""
        needs = f"two people decide{blindly}  " if each["approvals"] == 2 else ""
        typer.echo(
            visible(
                f"{each['queue']}  "
                + READER.translate(f"{share:.0%} of {each['n_terms']:,} terms")
                + f"  {READER.translate(needs)}{counts}"
            )
        )


@app.command("export")
def export_file(
    review: Database,
    out: Annotated[Path, "-o", "--out", "OUT"],
    queue: Queue = "review",
    proposals: Annotated[bool, "--proposals"] = False,
    kb: Annotated[Path | None, "KB"] = None,
    out_encoding: Annotated[str, "NAME"] = "utf-8",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write the decisions as a mapping set, or all terms as a worksheet for a spreadsheet.

    Args:
        out: File to write: .csv, .tsv or .xlsx to be edited and imported again; decisions as
            .sssom.tsv, .usagi.csv, .omop.csv (source_to_concept_map) or .json (FHIR ConceptMap);
            .zip for all of these.
        proposals: In SSSOM also terms without a decision.
        kb: Knowledge base of the concepts, for .omop.csv and .json.
        out_encoding: Encoding of a CSV or TSV: utf-8-sig for Excel, gb18030 or utf-16.
    """
    from biograft.linking.outputs.tables import check_encoding
    from biograft.mapping import export_review
    from biograft.mapping.review_files import format_of_export

    refuse_input_as_output(out, review)
    check_encoding(out_encoding, format_of_export(out))
    left_out: list[tuple[str, str]] = []
    with open_review(review) as store:
        n = export_review(
            store,
            out,
            queue=queue,
            proposals=proposals,
            overwrite=overwrite,
            left_out=left_out,
            encoding=out_encoding,
            kb=None if kb is None else open_kb(kb),
        )
    report_left_out(left_out)
    if as_json:
        print_json({"n_rows": n, "n_left_out": len(left_out), "out": str(out)})
    else:
        typer.echo(f"{n:,} rows")


def open_review(place: str, *, create: bool = False, kb: Path | None = None) -> ReviewStore:
    """Open a review, or say which extra it needs.

    Args:
        place: File, or a postgresql:// URL.
        create: Begin a review where there is none.
        kb: Knowledge base; no concept that it does not have can be approved.
    """
    try:
        from biograft.mapping import ReviewStore
    except ModuleNotFoundError as error:
        raise MissingExtraError("review", "a review") from error
    base = None if kb is None else open_kb(kb)
    known = None if base is None else lambda concept: base.find_row(concept) is not None
    return ReviewStore.open(place, create=create, has_concept=known)


def _line(item: ReviewItem) -> str:
    state, suggestion = item.state, item.suggestion
    status, flag = map(READER.translate, (state.status, item.term.flag))
    decided = [status, state.concept, state.name, state.reviewer, state.second_reviewer]
    proposed = (
        [flag]
        if suggestion is None
        else [
            f"{suggestion.concept} {suggestion.name}",
            "" if suggestion.score is None else f"{suggestion.score:.3f}",
            flag,
        ]
    )
    shown = [f"{item.id}", item.term.text, f"x{item.term.frequency:,}"]
    shown += proposed if state.status == "open" else [each or "" for each in decided]
    return visible("  ".join(filter(None, shown)))


def _report(items: Sequence[ReviewItem], done: BulkResult | None, as_json: bool) -> None:
    for item in items:
        if as_json:
            print_json(item.to_json())
        else:
            typer.echo(_line(item))
    if done is None:
        return
    if as_json:
        print_json(done.to_json())
        return
    typer.echo(f"changed {done.n_changed:,}  skipped {len(done.skipped):,}  batch {done.batch}")
    for _, why in done.skipped[:_SHOWN]:
        typer.echo(visible(why), err=True)
