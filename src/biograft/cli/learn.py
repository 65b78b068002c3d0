"""``biograft learn``: teach an index decisions of reviewers, or annotated text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    Json,
    Kb,
    Overwrite,
    Quiet,
    Types,
    open_kb,
    print_json,
    refuse_input_as_output,
    report_left_out,
    warn_left_out,
)
from biograft.config import split_list
from biograft.errors import ConfigError, visible
from biograft.linking.config import LinkerConfig
from biograft.progress import Progress
from biograft.text.input_config import InputConfig

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.mapping import Decision

_TABLES = (".tsv", ".csv", ".xlsx")
_DATABASE = b"SQLite format 3\0"
_SETTINGS = ("overlaps", "misspelt", "reworded", "short_forms", "threshold", "assertion_rules")
"""Settings that change which mentions are found, and their status."""


def learn_from(
    kb: Kb,
    index: Annotated[Path, "INDEX"],
    reading: Annotated[InputConfig, Offered("encoding")],
    linker: Annotated[LinkerConfig, Offered(*_SETTINGS)],
    source: Annotated[str, typer.Argument(metavar="[SOURCE]")] = "",
    form: Annotated[str, "--format", "F"] = "",
    types: Types = "",
    detector: Annotated[bool, "--detector"] = False,
    queue: Annotated[str, "NAME"] = "",
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    show: Annotated[bool, "--list"] = False,
    forget_form: Annotated[str, "FORM"] = "",
    forget: Annotated[bool, "--forget"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach an index the decisions of reviewers, or annotated text; the store is not changed.

    Decisions: approved terms become names of their concepts, also in running text, a rejected
    concept is no candidate for its term again, and terms without a concept have none. Whatever
    changes the answers to other terms is measured by cross-validation, and applied only where it
    gains: the weights, the probabilities and the threshold of NIL.

    Annotated text: forms that people marked otherwise than the linker answers, with their concept,
    or as no mention, in any section or in one; and, where mentions have a status, the words beside
    them that say it, where the rules get it wrong. Both are kept only if cross-validation over the
    documents gains. They hold words of the text, and are for the owner of INDEX only.

    What INDEX learned before from the same kind of source is replaced.

    Args:
        index: Index that learns (`biograft index`).
        source: Decisions: all that `map --apply` takes, or a review: its file, or a postgresql://
            URL. Or annotated text: a file or folder of any document format (`biograft corpus
            formats`).
        form: Document format of annotated text; default: recognise it by content.
        detector: Also learn a detector of mentions from annotated text, which chooses among names,
            learned forms and other likely spans; kept only if cross-validation gains.
        queue: Queue of the review; default: all queues.
        out: Also write the approved terms as training pairs (gold format aap), or the learned forms
            and phrases that stand in three documents or more (JSON lines).
        show: List the learned forms and phrases of INDEX.
        forget_form: Remove one learned form or phrase from INDEX.
        forget: Remove all that INDEX learned.
    """
    if sum((bool(source), show, bool(forget_form), forget)) != 1:
        raise ConfigError("give one of: SOURCE to learn from, --list, --forget-form, --forget")
    if not source:
        _manage(index, forget_form, forget=forget, as_json=as_json)
        return
    refuse_input_as_output(out, source)
    base, started = open_kb(kb), time.perf_counter()
    if form or not _is_decisions(source):
        if queue:
            raise ConfigError("--queue: belongs to a review, and annotated text was given")
        found = _learn_text(
            base, index, source, (form, types), reading, linker, detector=detector, quiet=quiet
        )
        n_written = None if out is None else _export(index, out, overwrite=overwrite)
        found |= {} if n_written is None else {"n_written": n_written}
    else:
        if types or detector:
            option = "--types" if types else "--detector"
            raise ConfigError(f"{option}: belongs to annotated text, and decisions were given")
        made = _read_decisions(source, queue)
        found = _learn_decisions(base, index, made, out, overwrite=overwrite)
    found["seconds"] = round(time.perf_counter() - started, 3)
    if as_json:
        print_json({**found, "index": str(index)})
    else:
        _print(found)


def _is_decisions(source: str) -> bool:
    """Whether a source is a review or a table of decisions, or is not there at all."""
    from biograft.mapping.review_check import is_url

    path = Path(source)
    if is_url(source) or source.lower().endswith(_TABLES) or not path.exists():
        return True
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


def _learn_decisions(
    base: KnowledgeBase,
    index: Path,
    made: list[Decision],
    out: Path | None,
    *,
    overwrite: bool,
) -> dict[str, Any]:
    from biograft.mapping.learning import learn, write_pairs

    report = learn(base, index, made)
    n_pairs = None if out is None else write_pairs(out, made, overwrite=overwrite)
    return {**report.to_json(), "n_pairs": n_pairs}


def _learn_text(
    base: KnowledgeBase,
    index: Path,
    source: str,
    chosen: tuple[str, str],
    reading: InputConfig,
    linker: LinkerConfig,
    *,
    detector: bool,
    quiet: bool,
) -> dict[str, Any]:
    from biograft.evaluation import read_gold_texts
    from biograft.mapping.note_learning import learn_forms

    form, types = chosen
    gold = read_gold_texts(source, form, types=split_list(types), encoding=reading.encoding)
    warn_left_out(gold.log.rejected.counts, "mentions of the text")
    progress = Progress(enabled=not quiet)
    report = learn_forms(
        base,
        index,
        gold.documents,
        config=linker,
        source=Path(source).name,
        detector=detector,
        progress=progress,
    )
    progress.finish()
    return report.to_json()


def _export(index: Path, out: Path, *, overwrite: bool) -> int:
    """Write what was learned and no longer points to one document; return how much."""
    import json
    from dataclasses import asdict

    from biograft.artifacts import new_file
    from biograft.linking.learned import exported
    from biograft.linking.outputs.output import encoded

    forms = exported(index)
    with new_file(out, overwrite=overwrite) as file:
        for each in forms:
            file.write(encoded(f"{json.dumps(asdict(each), ensure_ascii=False)}\n"))
    return len(forms)


def _manage(index: Path, forget_form: str, *, forget: bool, as_json: bool) -> None:
    """List, or remove, what an index learned."""
    from dataclasses import asdict

    from biograft.linking.learned import forms_of, phrases_of, remove_form
    from biograft.mapping.learning import forget as forget_all

    if forget:
        forget_all(index)
        if as_json:
            print_json({"index": str(index), "forgotten": True})
    elif forget_form:
        n_removed = remove_form(index, forget_form)
        if as_json:
            print_json({"index": str(index), "n_removed": n_removed})
        else:
            typer.echo(f"removed {n_removed:,}")
    else:
        forms, phrases = forms_of(index), phrases_of(index)
        shown = [f"{x.form}  {x.concept or 'no mention'}  {x.support}" for x in forms]
        shown += [f"{x.phrase}  {x.flag or 'no trigger'}  {x.support}" for x in phrases]
        if as_json:
            for values in (*map(asdict, forms), *map(asdict, phrases)):
                print_json(values)
            return
        for line in shown:
            typer.echo(visible(line))


def _read_decisions(place: str, queue: str) -> list[Decision]:
    from biograft.mapping import read_earlier

    if place.lower().endswith(_TABLES) and "://" not in place:
        if queue:
            raise ConfigError("--queue: belongs to a review, and a table was given")
        return read_earlier(place)
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


def _print(found: dict[str, Any]) -> None:
    shown = [
        f"{key.removeprefix('n_').replace('_', ' ')} {value:,.4g}"
        for key, value in found.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and not key.startswith(("f1_", "gain", "detector"))
    ]
    typer.echo("  ".join(shown))
    if "gain" not in found:
        typer.echo("F1 of other terms, cross-validated, with the 95 % interval of the gain:")
        whole = {"f1_before": found["f1_before"], "f1_after": found["f1_after"]}
        for part in (*found["parts"], {"name": "all", "interval": found["interval"], **whole}):
            typer.echo(f"  {part['name']:24}  {_described(part)}")
        return
    low, high = found["interval"]
    typer.echo(
        f"F1 of mentions, cross-validated over documents: before {found['f1_before']:.1f}, after "
        f"{found['f1_after']:.1f}, gain {found['gain']:+.1f} ({low:+.1f} to {high:+.1f})"
    )
    statuses = found["statuses"]
    if statuses is not None:
        low, high = statuses["interval"]
        typer.echo(
            f"status right, cross-validated: before {statuses['accuracy_before']:.1f}, after "
            f"{statuses['accuracy_after']:.1f}, gain {statuses['gain']:+.1f} ({low:+.1f} to "
            f"{high:+.1f}), {statuses['n_phrases']:,} phrases"
        )
    for part, said in (("forms", found), ("statuses", statuses)):
        if said is not None and not said["is_applied"]:
            typer.echo(f"{part}: nothing is applied; the gain may be chance, mark more documents")
    if found["detector_gain"]:
        low, high = found["detector_interval"]
        kept = "applied" if found["detector"] else "not applied"
        gain = f"{found['detector_gain']:+.1f} ({low:+.1f} to {high:+.1f})"
        typer.echo(f"of this the detector: {gain}, {kept}")


def _described(part: dict[str, Any]) -> str:
    """Say what a part of what was learned gains, and whether it is applied."""
    said = []
    if part["f1_after"] is not None:
        low, high = part["interval"]
        said.append(
            f"{part['f1_before']:.3f} -> {part['f1_after']:.3f} ({low:+.3f} to {high:+.3f})"
        )
    if "applied" in part:
        said.append(f"{'applied' if part['applied'] else 'not applied'}: {part['reason']}")
    return "  ".join(said)
