"""``biograft corpus``: convert, formats, annotate, segment, tasks."""

from __future__ import annotations

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
    print_json,
    split_columns,
    stop_words_of,
    warn_left_out,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.annotation import AnnotationConfig
    from biograft.corpus.formats import Conversion
    from biograft.corpus.segmentation import Segmentation, SegmentedEntity
    from biograft.corpus.tasks import Overlap, Summary, TaskSet

REJECTED = 1
"""Exit status when broken records were left out and all others were read."""

_MAX_EXAMPLES = 3
_MAX_LABELS = 20

app = typer.Typer(
    help="Convert and annotate corpora, segment names, inspect task files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="File or folder of documents; gzip is read too.")
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="OUT", help="File or folder to write.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="Format to write.")],
    form: Annotated[
        str,
        typer.Option("--from", metavar="FORMAT", help="Format of IN; default: detect by content."),
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if anything is rejected or would be lost.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert annotated documents, and report what the new format cannot hold.

    Rejected rows and losses are reported; the exit status stays 0. With --strict they are an
    error (2), and nothing is written.
    """
    from biograft.corpus.formats import convert as convert_documents

    conversion = convert_documents(source, out, to, form, overwrite=overwrite, strict=strict)
    if as_json:
        print_json({**conversion.to_json(), "out": str(out)})
    else:
        _print_conversion(conversion, source, out)


def _print_conversion(conversion: Conversion, source: Path, out: Path) -> None:
    counts = ", ".join(f"{n:,} {what}" for what, n in conversion.counts.items())
    typer.echo(f"read        {counts} of {source} ({conversion.source})")
    log = conversion.log
    for reason, n in log.filtered.items():
        typer.echo(f"  left out  {n:,}  {reason}")
    for what, faults in (("rejected", log.rejected), ("doubtful", log.doubtful)):
        for reason, n in faults.counts.most_common():
            typer.echo(f"  {what}  {n:,}  {reason}")
            for example in faults.examples[reason][:_MAX_EXAMPLES]:
                typer.echo(f"            {example.path}:{example.line}: {example.text}")
    for kind, n in conversion.losses.most_common():
        typer.echo(f"  lost      {n:,}  {kind}")
    typer.echo(f"written     {out} ({conversion.target})")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the document formats, and what each cannot hold."""
    from biograft.corpus.formats import DOCUMENT_FORMATS, Feature

    for name, help_line in DOCUMENT_FORMATS.help().items():
        form = DOCUMENT_FORMATS.load(name)
        lacks = [str(feature) for feature in Feature if feature not in form.holds]
        if as_json:
            entry = {"format": name, "help": help_line, "writes": form.write is not None}
            print_json({**entry, "lacks": lacks})
        else:
            typer.echo(f"{name:12} {help_line}")
            if lacks and form.write is not None:
                typer.echo(f"{'':12} loses {', '.join(lacks)}")


@app.command()
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
            "--format", metavar="text|jsonl", help="One document a line; default: by file name."
        ),
    ] = "",
    language: Annotated[
        str, typer.Option("--language", metavar="en", help="Only names in this language.")
    ] = "",
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="P",
            help="Drop spans that score below this; default: 0.85. Names score 1 or 0.99 (normal "
            "form); long forms of abbreviations and a calibrated --index score less. It finds no "
            "text that is only similar to a name.",
        ),
    ] = None,
    max_spans: Annotated[
        int, typer.Option("--max-spans", metavar="N", help="Maximum spans per document; 0: all.")
    ] = 0,
    index: Index = None,
    no_abbreviations: NoAbbreviations = False,
    stop_file: StopFile = None,
    clean: Annotated[
        bool, typer.Option("--clean/--no-clean", help="Remove HTML, URLs and stray symbols.")
    ] = True,
    min_length: Annotated[
        int, typer.Option(metavar="N", help="Drop documents of fewer characters.")
    ] = 0,
    max_length: Annotated[
        int, typer.Option(metavar="N", help="Split longer documents at punctuation; 0: never.")
    ] = 0,
    engine: Annotated[str, typer.Option(metavar="local|ray", help="Where to run.")] = "local",
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; default: one a core.")] = 0,
    shard_mib: Annotated[
        int, typer.Option("--shard-mib", metavar="N", min=1, help="Text per shard, in MiB.")
    ] = 8,
    resume: Resume = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Annotate text with the concepts of a knowledge base, for pre-training.

    The input has one document a line. Broken records are reported and left out; the exit status
    is then 1.
    """
    from biograft.annotation.runner import ExecutionConfig, annotate_corpus

    config = _annotation_config(
        **({} if threshold is None else {"threshold": threshold}),
        max_spans=max_spans, abbreviations=not no_abbreviations, language=language,
        index=index, stop_words=stop_words_of(stop_file),
        cleaning={"min_length": min_length, "max_length": max_length} if clean else None,
    )  # fmt: skip
    if threshold is not None and not config.threshold_matters:
        raise ConfigError(
            f"--threshold {threshold}: without --index and abbreviations every span is a name and "
            "scores 0.99 or 1; leave it out, or give more than 0.99 to drop normal forms"
        )
    execution = ExecutionConfig(
        engine=engine, workers=workers, resume=resume, form=form, chunk_bytes=shard_mib << 20
    )
    manifest = annotate_corpus(kb, texts, out, config, execution, Progress(enabled=not quiet))
    rejected = manifest["report"]["rejected"]
    for reason, entry in rejected.items():
        typer.echo(f"rejected {entry['n']:,}: {reason}", err=True)
        for example in entry["examples"]:
            typer.echo(f"  {example['file']}:{example['line']}: {example['text']!r}", err=True)
    if as_json:
        print_json(_annotation_json(manifest, out))
    else:
        _print_annotation(manifest, out)
    if rejected:
        raise typer.Exit(REJECTED)


def _annotation_config(
    *, cleaning: dict[str, Any] | None, language: str, **settings: Any
) -> AnnotationConfig:
    from biograft.annotation import AnnotationConfig
    from biograft.corpus.cleaning import CleaningConfig
    from biograft.languages import language_code

    return AnnotationConfig(
        cleaning=CleaningConfig(**cleaning) if cleaning is not None else None,
        language=language_code(language) if language else "",
        **settings,
    )


def _annotation_json(manifest: dict[str, Any], out: Path) -> dict[str, Any]:
    keys = ("n_shards", "n_documents", "n_spans", "n_concepts", "seconds")
    report = manifest["report"]
    return {
        "folder": str(out),
        **{key: manifest[key] for key in keys},
        "n_rejected": sum(entry["n"] for entry in report["rejected"].values()),
        **report,
    }


def _print_annotation(manifest: dict[str, Any], out: Path) -> None:
    counts, cleaned = manifest["report"]["counts"], manifest["report"]["cleaned"]
    n = manifest["n_documents"]
    lines = [
        f"records     {counts.get('records', 0):,}",
        f"documents   {n:,} ({counts.get('characters', 0):,} characters)",
        f"spans       {manifest['n_spans']:,} ({manifest['n_spans'] / max(n, 1):.2f} per document)",
        *(f"  {key:<18}{counts[key]:,}" for key in sorted(counts) if " " in key),
        f"concepts    {manifest['n_concepts']:,}",
    ]
    if cleaned:
        lines.append("cleaned     " + ", ".join(f"{key} {n:,}" for key, n in cleaned.items()))
    lines.append(f"shards      {manifest['n_shards']:,} in {out}  ({manifest['seconds']:.1f} s)")
    typer.echo("\n".join(lines))


@app.command()
def segment(
    folder: Annotated[
        Path,
        typer.Argument(metavar="KB", help="Knowledge base; with --show alone, a segmentation."),
    ],
    texts: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[TEXT]...", help="Text to mine phrases from, a document a line."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Folder of the segmentation to build."),
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
        typer.Option(metavar="FILE", help="Reviewed cut points; default: count them anew."),
    ] = None,
    word_segmenter: Annotated[
        str | None,
        typer.Option(metavar="rjieba|unigram", help="Chinese word segmenter; default: rjieba."),
    ] = None,
    max_single: Annotated[
        float | None,
        typer.Option(metavar="RATIO", help="Maximum ratio of single characters; default: 0.4."),
    ] = None,
    min_count: Annotated[
        int | None, typer.Option(metavar="N", help="Minimum count of a phrase; default: 8.")
    ] = None,
    max_entries: Annotated[
        int | None,
        typer.Option(metavar="N", help="Counts in memory, 100 bytes each; default: 33554432."),
    ] = None,
    max_units: Annotated[
        int | None,
        typer.Option(metavar="N", help="Words in memory, 200 bytes each; default: 4194304."),
    ] = None,
    min_quality: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Minimum quality of a phrase, learned from names of KB."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment the long names of a knowledge base into sub-entities, adjective part and head.

    Review DIR/cut_points.tsv: delete lines, and pass it back with --cut-points.

    With --show and no -o, an existing segmentation is opened: corpus segment DIR --show NAME.
    """
    from biograft.corpus.segmentation import Segmentation

    options = {
        "language": language, "cut_points": cut_points, "word_segmenter": word_segmenter,
        "max_single": max_single, "min_count": min_count, "max_entries": max_entries,
        "max_units": max_units, "min_quality": min_quality,
    }  # fmt: skip
    settings = {key: value for key, value in options.items() if value is not None}
    if out is not None:
        manifest = _build_segmentation(
            folder, texts or [], out, settings,
            overwrite=overwrite, progress=Progress(enabled=not quiet),
        )  # fmt: skip
        _print_segmentation(manifest, out, as_json=as_json)
    elif not show:
        raise ConfigError("-o: name a folder for the result, or names to --show")
    elif texts or settings or overwrite:
        raise ConfigError(
            "--show: without -o an existing segmentation is opened; leave out the options that "
            "build one"
        )
    if show:
        _print_names(Segmentation.open(out or folder), show, as_json=as_json)


def _build_segmentation(
    kb: Path, texts: Sequence[Path], out: Path, settings: dict[str, Any], **options: Any
) -> dict[str, Any]:
    from biograft.config import from_mapping
    from biograft.corpus.segmentation import SegmentationConfig, build_segmentation
    from biograft.kb import KnowledgeBase
    from biograft.languages import language_code

    if "language" in settings:
        settings["language"] = language_code(settings["language"])
    of_phrases = {"min_count", "max_entries", "max_units", "min_quality"} & settings.keys()
    if of_phrases:
        settings["phrases"] = {key: settings.pop(key) for key in sorted(of_phrases)}
    config = from_mapping(SegmentationConfig, settings)
    return build_segmentation(KnowledgeBase.open(kb), texts, out, config, **options)


def _print_segmentation(manifest: dict[str, Any], out: Path, *, as_json: bool) -> None:
    if as_json:
        summary = {key: value for key, value in manifest.items() if key != "files"}
        print_json({"segmentation": str(out), **summary})
        return
    seconds = sum(manifest["seconds"].values())
    typer.echo(f"{manifest['n_phrases']:,} phrases, {manifest['n_cut_points']} cut points")
    typer.echo(
        f"{manifest['n_long']:,} of {manifest['n_names']:,} names are long ({seconds:.1f} s): {out}"
    )


def _print_names(segmentation: Segmentation, names: Sequence[str], *, as_json: bool) -> None:
    for name in names:
        entity = segmentation.segment(name)
        if as_json:
            print_json(_entity_json(entity))
        else:
            typer.echo(_entity_line(entity))


def _entity_json(entity: SegmentedEntity) -> dict[str, Any]:
    return {
        "text": entity.text,
        "long": entity.is_long,
        "segments": entity.segments,
        "adjective": entity.adjective,
        "head": entity.head,
    }


def _entity_line(entity: SegmentedEntity) -> str:
    if not entity.is_long:
        return f"{entity.text}\tshort"
    segments = " | ".join(map(entity.cut, entity.segments))
    adjective, head = entity.cut(entity.adjective), entity.cut(entity.head)
    return f"{segments}\tadjective: {adjective}\thead: {head}"


@app.command()
def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Task file, plain or gz.")],
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format; default: detect by content.")
    ] = "",
    columns: Annotated[
        str,
        typer.Option(
            metavar="ROLE=COLUMN,...", help="For tables: the column of each role (a name, or #1)."
        ),
    ] = "",
    split: Annotated[
        str, typer.Option(metavar="train|dev|test", help="Split to read, for DDI.")
    ] = "",
    dev_list: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pairs of the dev documents, for DDI.")
    ] = None,
    grouped: Annotated[
        bool, typer.Option("--grouped", help="Read relations as their groups, for ChemProt.")
    ] = False,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Schema of the relations, for CMeIE.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="OTHER", help="Count the overlap with this file, such as train."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Write the examples as JSON lines."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Summarise a task file: examples, labels, lengths, and the level of chance.

    Broken rows are reported with file and line, and left out; the exit status is then 1.
    """
    from biograft.corpus.tasks import TaskConfig, overlap, read_task, summarise, write_examples

    config = TaskConfig(
        path=file, format=form, columns=split_columns(columns), split=split, dev_list=dev_list,
        grouped=grouped, schema=schema,
    )  # fmt: skip
    task = read_task(config)
    summary, shared = summarise(task.examples), None
    if against is not None:
        other = read_task(
            replace(config, path=against, format=task.format, split="train" if split else "")
        )
        shared = overlap(other.examples, task.examples)
    if out is not None:
        write_examples(task.examples, out, overwrite=overwrite)
    if as_json:
        print_json(_task_json(file, task, summary, shared))
    else:
        _print_task(file, task, summary, shared)
    rejected = task.log.rejected
    warn_left_out(rejected.counts, "rows")
    for examples in rejected.examples.values():
        for example in examples[:1]:
            typer.echo(f"  {example.path}:{example.line}: {example.text}", err=True)
    if rejected.counts:
        raise typer.Exit(REJECTED)


def _task_json(
    file: Path, task: TaskSet, summary: Summary, shared: Overlap | None
) -> dict[str, object]:
    values: dict[str, object] = {
        "file": str(file),
        "format": task.format,
        **summary.to_json(),
        "n_read": task.log.n_read,
        "rejected": task.log.rejected.to_json(),
        "doubtful": task.log.doubtful.to_json(),
        "notes": task.log.notes,
    }
    return values if shared is None else values | {"overlap": shared.to_json()}


def _print_task(file: Path, task: TaskSet, summary: Summary, shared: Overlap | None) -> None:
    lines = [f"{file}: {summary.n_examples:,} examples ({summary.kind}, format {task.format})"]
    labels = list(summary.labels.items())[:_MAX_LABELS]
    counts = ", ".join(f"{label} {n:,}" for label, n in labels)
    n_more = len(summary.labels) - len(labels)
    lines.append(f"labels    {counts}" + (f" and {n_more} more" if n_more else ""))
    if summary.n_unlabelled:
        lines.append(f"          {summary.n_unlabelled:,} without a label")
    lines.append(
        f"texts     up to {summary.max_length:,} characters, {summary.mean_length:,.0f} on average"
    )
    lines.append(f"repeated  {summary.n_repeated:,}")
    if summary.extra:
        extra = (f"{key.removeprefix('n_')} {n:,}" for key, n in summary.extra.items())
        lines.append(f"counts    {', '.join(extra).replace('_', ' ')}")
    lines.append(f"chance    {_chance(summary)}")
    if shared is not None:
        lines.append(
            f"overlap   {shared.n_seen:,} of {shared.n_examples:,} examples are in both "
            f"({shared.n_contradicted:,} with another answer), "
            f"{shared.n_texts_seen:,} of {shared.n_texts:,} texts"
        )
    lines += [f"note      {note}" for note in task.log.notes]
    typer.echo("\n".join(lines))
    for reason, n in task.log.doubtful.counts.items():
        typer.echo(f"warning: {n:,} doubtful: {reason}", err=True)


def _chance(summary: Summary) -> str:
    levels = []
    for name, value in summary.chance.items():
        if isinstance(value, float):
            levels.append(f"{name} {100 * value:.1f} %")
        else:
            levels.append(f"by always answering {' + '.join(value) or 'nothing'}")
    return ", ".join(levels)
