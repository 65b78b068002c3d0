"""``biograft corpus annotate``: from text to shards of linked spans."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Index,
    Json,
    NoAbbreviations,
    Overwrite,
    Quiet,
    Resume,
    StopFile,
    Store,
    split_list,
    stop_words_of,
    warn_left_out,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.annotation import AnnotationConfig
    from biograft.corpus.formats import Conversion
    from biograft.corpus.segmentation import Segmentation, Segmented
    from biograft.corpus.tasks import Overlap, Summary, TaskSet
    from biograft.sources.log import Rejections

REJECTED = 1
"""Exit status where records were broken and everything else was annotated."""


def annotate(
    kb: Store,
    texts: Annotated[
        list[Path],
        typer.Argument(metavar="TEXT...", help="Files, or folders of files; .gz too."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the shards.")],
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="text|jsonl", help="One document a line; default: by the ending."
        ),
    ] = "",
    language: Annotated[
        str, typer.Option("--language", metavar="en", help="Only names in this language.")
    ] = "",
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="P", help="Leave out spans below this score.")
    ] = 0.85,
    max_spans: Annotated[
        int, typer.Option("--max-spans", metavar="N", help="Spans of a document at most; 0: all.")
    ] = 0,
    index: Index = None,
    no_abbreviations: NoAbbreviations = False,
    stop_file: StopFile = None,
    clean: Annotated[
        bool, typer.Option("--clean/--no-clean", help="Take out HTML, addresses and odd signs.")
    ] = True,
    min_length: Annotated[
        int, typer.Option(metavar="N", help="Drop documents of fewer characters.")
    ] = 0,
    max_length: Annotated[
        int, typer.Option(metavar="N", help="Cut longer documents at punctuation; 0: never.")
    ] = 0,
    engine: Annotated[
        str, typer.Option(metavar="local|ray", help="Where the work is done.")
    ] = "local",
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes; default: one for each core.")
    ] = 0,
    shard_mib: Annotated[
        int, typer.Option("--shard-mib", metavar="N", min=1, help="Text in each shard, in MiB.")
    ] = 8,
    resume: Resume = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the concepts of a knowledge base in text, one document a line, for pre-training.

    Broken records are reported and left out; the exit status is then 1.
    """
    from biograft.annotation.runner import Running, annotate_corpus
    from biograft.progress import Progress

    config = _config(
        threshold=threshold, max_spans=max_spans, abbreviations=not no_abbreviations,
        language=language, index=index, stop_words=stop_words_of(stop_file),
        cleaning={"min_length": min_length, "max_length": max_length} if clean else None,
    )  # fmt: skip
    running = Running(
        engine=engine, workers=workers, resume=resume, form=form, chunk_bytes=shard_mib << 20
    )
    progress = Progress(enabled=not quiet)
    manifest = annotate_corpus(kb, texts, out, config, running, progress)
    for line in _rejected(manifest["report"]["rejected"]):
        typer.echo(line, err=True)
    typer.echo(json.dumps(_figures(manifest, out)) if as_json else _table(manifest, out))
    if manifest["report"]["rejected"]:
        raise typer.Exit(REJECTED)


def _config(*, cleaning: dict[str, Any] | None, language: str, **settings: Any) -> AnnotationConfig:
    from biograft.annotation import AnnotationConfig
    from biograft.corpus.cleaning import CleaningConfig
    from biograft.languages import language_code

    return AnnotationConfig(
        cleaning=CleaningConfig(**cleaning) if cleaning is not None else None,
        language=language_code(language) if language else "",
        **settings,
    )


def _figures(manifest: dict[str, Any], out: Path) -> dict[str, Any]:
    """Give what scripts want to know."""
    keys = ("n_shards", "n_documents", "n_spans", "n_concepts", "seconds")
    report = manifest["report"]
    n_rejected = sum(entry["n"] for entry in report["rejected"].values())
    return {
        "folder": str(out),
        **{key: manifest[key] for key in keys},
        "n_rejected": n_rejected,
        **report,
    }


def _table(manifest: dict[str, Any], out: Path) -> str:
    counts, cleaned = manifest["report"]["counts"], manifest["report"]["cleaned"]
    n = manifest["n_documents"]
    lines = [
        f"records     {counts.get('records', 0):,}",
        f"documents   {n:,} ({counts.get('characters', 0):,} characters)",
        f"spans       {manifest['n_spans']:,} ({manifest['n_spans'] / max(n, 1):.2f} a document)",
        *(f"  {key:<18}{counts[key]:,}" for key in sorted(counts) if " " in key),
        f"concepts    {manifest['n_concepts']:,}",
    ]
    if cleaned:
        lines.append("cleaned     " + ", ".join(f"{key} {n:,}" for key, n in cleaned.items()))
    lines.append(f"shards      {manifest['n_shards']:,} in {out}  ({manifest['seconds']:.1f} s)")
    return "\n".join(lines)


def _rejected(reasons: dict[str, Any]) -> list[str]:
    lines = []
    for reason, entry in reasons.items():
        lines.append(f"rejected {entry['n']:,}: {reason}")
        lines += [f"  {e['file']}:{e['line']}: {e['text']!r}" for e in entry["examples"]]
    return lines


_SHOWN_EXAMPLES = 3


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="File or folder of documents; gzip is read too.")
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="OUT", help="File or folder to write.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format to write.")],
    form: Annotated[
        str, typer.Option("--from", metavar="FORMAT", help="Format; default: found by content.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse when anything is rejected or would be lost.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert annotated documents, saying exactly what the new format could not hold.

    What is rejected or lost is in the report and does not change the exit status (0), unless
    --strict makes it an error (2): then nothing is written.
    """
    from biograft.corpus.formats import convert as convert_documents

    done = convert_documents(source, out, to, form, overwrite=overwrite, strict=strict)
    if as_json:
        _print_json({**done.to_json(), "out": str(out)})
    else:
        _print_report(done, source, out)


def formats(as_json: Json = False) -> None:
    """List the formats of documents, and what each cannot hold."""
    from biograft.corpus.formats import DOCUMENT_FORMATS, Feature

    for name, help_line in DOCUMENT_FORMATS.help().items():
        form = DOCUMENT_FORMATS.load(name)
        lacks = [str(feature) for feature in Feature if feature not in form.holds]
        if as_json:
            entry = {"format": name, "help": help_line, "writes": form.write is not None}
            _print_json({**entry, "lacks": lacks})
        else:
            typer.echo(f"{name:12} {help_line}")
            if lacks and form.write is not None:
                typer.echo(f"{'':12} loses {', '.join(lacks)}")


def _print_report(done: Conversion, source: Path, out: Path) -> None:
    """Say what was read, what was wrong with it, and what was lost."""
    found = ", ".join(f"{n:,} {what}" for what, n in done.counts.items())
    typer.echo(f"read        {found} of {source} ({done.source})")
    for reason, n in done.log.filtered.items():
        typer.echo(f"  left out  {n:,}  {reason}")
    for what, faults in (("rejected", done.log.rejected), ("doubtful", done.log.doubtful)):
        for reason, n in faults.counts.most_common():
            typer.echo(f"  {what}  {n:,}  {reason}")
            for example in faults.examples[reason][:_SHOWN_EXAMPLES]:
                typer.echo(f"            {example.path}:{example.line}: {example.text}")
    for kind, n in done.losses.most_common():
        typer.echo(f"  lost      {n:,}  {kind}")
    typer.echo(f"written     {out} ({done.target})")


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def segment(
    place: Annotated[
        Path,
        typer.Argument(metavar="KB", help="Knowledge base; with --show alone, a segmentation."),
    ],
    texts: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[TEXT]...", help="Text to mine phrases from, a document a line."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Folder to make of KB.")
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option("--show", metavar="NAME", help="Show how a name is segmented; repeatable."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(metavar="LANG", help="Names in this language; default: zh."),
    ] = None,
    cut_points: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Reviewed cut points; default: counted anew."),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(metavar="rjieba|own", help="Segmenter of Chinese words; default: rjieba."),
    ] = None,
    max_single: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Single characters allowed; default: 0.4."),
    ] = None,
    min_count: Annotated[
        int | None, typer.Option(metavar="N", help="Occurrences of a phrase; default: 8.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment the long names of a knowledge base into sub-entities, adjective part and head.

    DIR/cut_points.tsv is for you to review: delete lines, and give it back with --cut-points.

    With --show and no -o, a segmentation that is there is read: corpus segment DIR --show NAME.
    """
    from biograft.corpus.segmentation import Segmentation

    settings = {
        "language": language, "cut_points": cut_points, "words": words, "max_single": max_single,
    }  # fmt: skip
    given: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    if out is None:
        if not show:
            raise ConfigError("-o: name a folder for the result, or names to --show")
        if texts or given or min_count is not None or overwrite:
            raise ConfigError("--show: without -o a segmentation is read as it is; leave out what"
                              " is about making one")  # fmt: skip
        _show_segmentation(Segmentation.open(place), show, as_json=as_json)
        return
    from biograft.config import from_mapping
    from biograft.corpus.segmentation import SegmentationConfig, build_segmentation
    from biograft.kb import KnowledgeBase
    from biograft.languages import language_code

    if language is not None:
        given["language"] = language_code(language)
    if min_count is not None:
        given["phrases"] = {"min_count": min_count}
    config = from_mapping(SegmentationConfig, given)
    manifest = build_segmentation(
        KnowledgeBase.open(place), texts or [], out, config,
        overwrite=overwrite, progress=Progress(enabled=not quiet),
    )  # fmt: skip
    if as_json:
        summary = {key: value for key, value in manifest.items() if key != "files"}
        typer.echo(json.dumps({"segmentation": str(out), **summary}, ensure_ascii=False))
    else:
        seconds = sum(manifest["seconds"].values())
        typer.echo(f"{manifest['n_phrases']:,} phrases, {manifest['n_cut_points']} cut points")
        typer.echo(f"{manifest['n_long']:,} of {manifest['n_names']:,} names are long "
                   f"({seconds:.1f} s): {out}")  # fmt: skip
    if show:
        _show_segmentation(Segmentation.open(out), show, as_json=as_json)


def _show_segmentation(opened: Segmentation, names: Sequence[str], *, as_json: bool) -> None:
    for name in names:
        found = opened.segment(name)
        typer.echo(_to_json(found) if as_json else _to_line(found))


def _to_json(found: Segmented) -> str:
    content = {
        "text": found.text,
        "long": found.is_long,
        "pieces": found.pieces,
        "adjective": found.adjective,
        "head": found.head,
    }
    return json.dumps(content, ensure_ascii=False)


def _to_line(found: Segmented) -> str:
    if not found.is_long:
        return f"{found.text}\tshort"
    pieces = " | ".join(map(found.cut, found.pieces))
    return f"{pieces}\tadjective: {found.cut(found.adjective)}\thead: {found.cut(found.head)}"


"""Exit status where rows were left out of what was read."""
_MOST_LABELS = 20


def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Task file, plain or gz.")],
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Its format; default: by its content.")
    ] = "",
    columns: Annotated[
        str,
        typer.Option(
            metavar="ROLE=COLUMN,...", help="For tables: what holds what (a name, or #1 ...)."
        ),
    ] = "",
    part: Annotated[str, typer.Option(metavar="train|dev|test", help="Of DDI: this part.")] = "",
    dev_list: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of DDI: pairs of the dev documents.")
    ] = None,
    grouped: Annotated[
        bool, typer.Option("--grouped", help="Of ChemProt: relations by their groups.")
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Such as train: count what of FILE stands in it."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write it as JSON lines.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Say what a task file holds: examples, labels, lengths, and the level of chance.

    Broken rows are told with file and line, and left out; the exit status is then 1.
    """
    from biograft.corpus.tasks import TaskConfig, overlap, read_task, summarise, write_examples

    config = TaskConfig(
        path=file, format=form, columns=_columns(columns), part=part, dev_list=dev_list,
        grouped=grouped,
    )  # fmt: skip
    found = read_task(config)
    summary = summarise(found.examples)
    shared = None
    if against is not None:
        other = read_task(
            replace(config, path=against, format=found.format, part="train" if part else "")
        )
        shared = overlap(other.examples, found.examples)
    if out is not None:
        write_examples(found.examples, out, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(_values(file, found, summary, shared), ensure_ascii=False))
    else:
        _show_tasks(file, found, summary, shared)
    _tell(found.log.rejected)
    if found.log.rejected.counts:
        raise typer.Exit(REJECTED)


def _columns(value: str) -> dict[str, str]:
    """Read ``first=q1,second=q2``."""
    columns = {}
    for part in split_list(value):
        role, equals, column = part.partition("=")
        if not equals or not role.strip() or not column.strip():
            raise ConfigError(f"--columns: {part!r} is not of the form role=column")
        columns[role.strip()] = column.strip()
    return columns


def _values(
    file: Path, found: TaskSet, summary: Summary, shared: Overlap | None
) -> dict[str, object]:
    values: dict[str, object] = {
        "file": str(file),
        "format": found.format,
        **summary.to_json(),
        "n_read": found.log.n_read,
        "rejected": found.log.rejected.to_json(),
        "doubtful": found.log.doubtful.to_json(),
        "notes": found.log.notes,
    }
    return values if shared is None else values | {"overlap": shared.to_json()}


def _show_tasks(file: Path, found: TaskSet, summary: Summary, shared: Overlap | None) -> None:
    lines = [f"{file}: {summary.n_examples:,} examples ({summary.kind}, format {found.format})"]
    shown = list(summary.labels.items())[:_MOST_LABELS]
    counts = ", ".join(f"{label} {n:,}" for label, n in shown)
    more = len(summary.labels) - len(shown)
    lines.append(f"labels    {counts}" + (f" and {more} more" if more else ""))
    if summary.n_unlabelled:
        lines.append(f"          {summary.n_unlabelled:,} without a label")
    length = f"{summary.longest:,} characters at most, {summary.mean_length:,.0f} on average"
    lines.append(f"texts     {length}")
    lines.append(f"repeated  {summary.n_repeated:,}")
    if summary.extra:
        named = (f"{key.removeprefix('n_')} {n:,}" for key, n in summary.extra.items())
        lines.append(f"counts    {', '.join(named).replace('_', ' ')}")
    lines.append(f"chance    {_chance(summary)}")
    if shared is not None:
        lines.append(
            f"overlap   {shared.n_seen:,} of {shared.n_examples:,} examples asked there too "
            f"({shared.n_contradicted:,} answered otherwise), "
            f"{shared.n_texts_seen:,} of {shared.n_texts:,} texts"
        )
    lines += [f"note      {note}" for note in found.log.notes]
    typer.echo("\n".join(lines))
    for reason, n in found.log.doubtful.counts.items():
        typer.echo(f"warning: {n:,} doubtful: {reason}", err=True)


def _chance(summary: Summary) -> str:
    parts = []
    for name, value in summary.chance.items():
        if isinstance(value, float):
            parts.append(f"{name} {100 * value:.1f} %")
        else:
            parts.append(f"by always answering {' + '.join(value) or 'nothing'}")
    return ", ".join(parts)


def _tell(rejected: Rejections) -> None:
    """Say what was left out, with an example of each reason."""
    warn_left_out(rejected.counts, "rows")
    for examples in rejected.examples.values():
        for example in examples[:1]:
            typer.echo(f"  {example.path}:{example.line}: {example.text}", err=True)


app = typer.Typer(
    help="Convert corpora, annotate text with concepts, segment long names, look at task files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(convert)
app.command()(formats)
app.command()(annotate)
app.command()(segment)
app.command()(tasks)
