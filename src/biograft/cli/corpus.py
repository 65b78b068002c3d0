"""``biograft corpus``: convert, formats, annotate, exclude, segment, stop-words, tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import CommandGroup, Offered
from biograft.cli.options import (
    REJECTED,
    Engine,
    Json,
    Kb,
    OutFile,
    Overwrite,
    Quiet,
    Resume,
    Store,
    is_given,
    note_without_index,
    open_kb,
    print_json,
    print_log,
    warn_faulty,
)
from biograft.config import split_columns
from biograft.errors import ConfigError
from biograft.linking.annotation.config import AnnotationConfig
from biograft.linking.config import LinkerConfig
from biograft.progress import Progress
from biograft.text.cleaning import CleaningConfig
from biograft.text.input_config import InputConfig
from biograft.text.segmentation.config import SegmentationConfig

if TYPE_CHECKING:
    from biograft.text.segmentation import SegmentedEntity
    from biograft.text.tasks import Overlap, Summary, TaskSet

_MAX_LABELS = 20

app = CommandGroup("Convert and annotate corpora, segment names, inspect task files.")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN")],
    out: Annotated[Path, "-o", "--out", "OUT"],
    to: Annotated[str, "FORMAT"],
    form: Annotated[str, "--from", "FORMAT"] = "",
    strict: Annotated[bool, "--strict"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convert annotated documents, and report what the new format cannot hold.

    Rejected rows and losses are reported; the exit status stays 0. With --strict they are an
    error (2), and nothing is written.

    Args:
        source: File or folder of documents; gzip is read too.
        out: File or folder to write.
        to: Format to write.
        form: Format of IN; default: detect by content.
        strict: Fail if anything is rejected or would be lost.
    """
    from biograft.text.formats import convert as convert_documents

    conversion = convert_documents(source, out, to, form, overwrite=overwrite, strict=strict)
    if as_json:
        print_json({**conversion.to_json(), "out": str(out)})
        return
    counts = ", ".join(f"{n:,} {what}" for what, n in conversion.counts.items())
    typer.echo(f"read        {counts} of {source} ({conversion.source})")
    print_log(conversion.to_json())
    for kind, n in conversion.losses.most_common():
        typer.echo(f"  lost      {n:,}  {kind}")
    typer.echo(f"written     {out} ({conversion.target})")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the document formats, and what each cannot hold."""
    from biograft.text.formats import DOCUMENT_FORMATS, Feature

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
    context: typer.Context,
    kb: Store,
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...")],
    out: Annotated[Path, "-o", "--out", "DIR"],
    reading: Annotated[InputConfig, Offered(without=("sheet",), lines=True)],
    annotation: Annotated[AnnotationConfig, Offered(cleaning=None)],
    cleaning: CleaningConfig,
    clean: Annotated[bool, "--clean/--no-clean"] = True,
    engine: Engine = "local",
    workers: Annotated[int, "N"] = 0,
    shard_mib: Annotated[int, typer.Option(metavar="N", min=1)] = 8,
    resume: Resume = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Annotate text with the concepts of a knowledge base, for pre-training.

    Plain text has one document a line. Files of any document format, and tables with --column, are
    recognised by their content; their annotations are read with --mentions given or both only.
    Broken records are reported and left out; the exit status is then 1.

    Args:
        texts: Files, folders, zip archives, or '-' for standard input.
        out: Folder of the shards.
        clean: Remove HTML, URLs and stray symbols.
        workers: Processes; default: one a core.
        shard_mib: Text per shard, in MiB.
    """
    from biograft.linking.annotation.runner import ExecutionConfig, annotate

    config = replace(annotation, cleaning=cleaning if clean else None)
    if is_given(context, "threshold") and not config.threshold_matters:
        raise ConfigError(
            f"--threshold {config.threshold}: without --index and abbreviations every span is a "
            "name and scores 0.99 or 1; leave it out, or give more than 0.99 to drop normal forms"
        )
    execution = ExecutionConfig(
        engine=engine,
        workers=workers,
        resume=resume,
        reading=reading,
        chunk_bytes=shard_mib << 20,
    )
    note_without_index(open_kb(kb), config.index, quiet=quiet)
    manifest = annotate(kb, texts, out, config, execution, Progress(enabled=not quiet))
    rejected = manifest["report"]["rejected"]
    warn_faulty("records left out", rejected)
    for note in manifest["notes"]:
        typer.echo(f"warning: {note}", err=True)
    for error in manifest["skipped"]:
        typer.echo(f"skipped: {error}", err=True)
    if as_json:
        keys = ("n_shards", "n_documents", "n_spans", "n_concepts", "seconds")
        print_json(
            {
                "folder": str(out),
                **{key: manifest[key] for key in keys},
                "n_skipped": len(manifest["skipped"]),
                "n_rejected": sum(entry["n"] for entry in rejected.values()),
                **manifest["report"],
            }
        )
    else:
        _print_annotation(manifest, out)
    if rejected or manifest["skipped"]:
        raise typer.Exit(REJECTED)


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
def exclude(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...")],
    similar_to: Annotated[list[Path], "FILE"],
    out: OutFile,
    reading: Annotated[InputConfig, Offered("format", "encoding", "column", lines=True)],
    n: Annotated[int, "N"] = 8,
    min_overlap: Annotated[float, "R"] = 0.6,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Remove near-duplicates of test texts from text to train on.

    Texts are compared by character n-grams; case, width, punctuation and whitespace do not count.
    The text that is left is written one document a line.

    Args:
        texts: Training text: a document a line, any format, or tables.
        similar_to: Test texts; may be repeated.
        n: Length of n-grams.
        min_overlap: Ratio of the shorter text's n-grams that near-duplicates share, at least.
    """
    from biograft.artifacts import new_file
    from biograft.text.inputs import read_texts
    from biograft.text.near_duplicates import NearDuplicateConfig, NearDuplicates

    near = NearDuplicateConfig(n=n, min_overlap=min_overlap)
    tests = NearDuplicates(read_texts(similar_to, reading), near)
    counts = Counter[str](kept=0, removed=0)
    with new_file(out, overwrite=overwrite) as file:
        for text in read_texts(texts, reading):
            removed = tests.matches(text)
            counts["removed" if removed else "kept"] += 1
            if not removed:
                file.write(f"{' '.join(text.split())}\n".encode())
    if as_json:
        print_json({"file": str(out), "test_texts": len(tests), **counts})
    else:
        typer.echo(
            f"removed {counts['removed']:,} near-duplicates of {len(tests):,} texts; "
            f"{counts['kept']:,} documents -> {out}"
        )


@app.command()
def segment(
    config: SegmentationConfig,
    reading: Annotated[InputConfig, Offered("format", "encoding", "column", lines=True)],
    folder: Annotated[Path, typer.Argument(metavar="KB")],
    texts: Annotated[list[Path] | None, typer.Argument(metavar="[TEXT]...")] = None,
    out: Annotated[Path | None, "-o", "--out", "DIR"] = None,
    show: Annotated[list[str] | None, "NAME"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Segment the long names of a knowledge base into sub-entities, adjective part and head.

    Review DIR/cut_points.tsv: delete lines, and pass it back with --cut-points.

    With --show and no -o, an existing segmentation is opened: corpus segment DIR --show NAME.

    Args:
        folder: Knowledge base; with --show alone, a segmentation.
        texts: Text to mine phrases from: a document a line, any document format, or tables.
        out: Folder of the segmentation to build.
        show: Show how a name is segmented; repeatable.
    """
    from biograft.text.segmentation import Segmentation, build_segmentation

    if out is not None:
        manifest = build_segmentation(
            open_kb(folder),
            texts or [],
            out,
            config,
            reading=reading,
            overwrite=overwrite,
            progress=Progress(enabled=not quiet),
        )
        if as_json:
            summary = {key: value for key, value in manifest.items() if key != "files"}
            print_json({"segmentation": str(out), **summary})
        else:
            seconds = sum(manifest["seconds"].values())
            typer.echo(f"{manifest['n_phrases']:,} phrases, {manifest['n_cut_points']} cut points")
            typer.echo(
                f"{manifest['n_long']:,} of {manifest['n_names']:,} names are long "
                f"({seconds:.1f} s): {out}"
            )
    elif not show:
        raise ConfigError("-o: name a folder for the result, or names to --show")
    elif texts or overwrite or config != SegmentationConfig() or reading != InputConfig(lines=True):
        raise ConfigError(
            "--show: without -o an existing segmentation is opened; leave out the options that "
            "build one"
        )
    if not show:
        return
    for entity in map(Segmentation.open(out or folder).segment, show):
        if as_json:
            print_json(
                {
                    "text": entity.text,
                    "long": entity.is_long,
                    "segments": entity.segments,
                    "adjective": entity.adjective,
                    "head": entity.head,
                }
            )
        else:
            typer.echo(_entity_line(entity))


def _entity_line(entity: SegmentedEntity) -> str:
    if not entity.is_long:
        return f"{entity.text}\tshort"
    segments = " | ".join(map(entity.cut, entity.segments))
    adjective, head = entity.cut(entity.adjective), entity.cut(entity.head)
    return f"{segments}\tadjective: {adjective}\thead: {head}"


@app.command()
def stop_words(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...")],
    kb: Kb,
    out: OutFile,
    reading: Annotated[InputConfig, Offered("format", "encoding", "column", lines=True)],
    linker: Annotated[LinkerConfig, Offered("languages")],
    min_count: Annotated[int, typer.Option(metavar="N", min=1)] = 3,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List names of KB that are ordinary words in text, with counts, for review.

    Remove the lines of the names that are to be found; the rest is a file for --stop-file.

    Args:
        texts: Ordinary text: a document a line, any document format, or tables.
        min_count: Occurrences of a word in the text.
    """
    from biograft.text import NamesIndex, NamesIndexConfig
    from biograft.text.inputs import read_texts
    from biograft.text.stop_words import StopWordConfig, propose_stop_words, write_stop_words

    base, progress = open_kb(kb), Progress(enabled=not quiet)
    names = NamesIndex.from_store(base, NamesIndexConfig(languages=linker.languages), progress)
    progress.start("read texts")
    words = propose_stop_words(
        names,
        lambda row: base.name(row).text,
        read_texts(texts, reading),
        StopWordConfig(min_count=min_count),
    )
    progress.finish()
    write_stop_words(words, out, overwrite=overwrite)
    if as_json:
        print_json({"file": str(out), "words": [asdict(word) for word in words]})
    else:
        typer.echo(f"{len(words):,} names that may be ordinary words -> {out}; look through them")


@app.command()
def tasks(
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    form: Annotated[str, "--format", "F"] = "",
    columns: Annotated[str, "ROLE=COLUMN,..."] = "",
    split: Annotated[str, "train|dev|test"] = "",
    dev_list: Annotated[Path | None, "FILE"] = None,
    grouped: Annotated[bool, "--grouped"] = False,
    schema: Annotated[Path | None, "FILE"] = None,
    against: Annotated[Path | None, "OTHER"] = None,
    out: Annotated[Path | None, "-o", "--out", "FILE"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Summarise a task file: examples, labels, lengths, and the level of chance.

    Broken rows are reported with file and line, and left out; the exit status is then 1.

    Args:
        file: Task file, plain or gz.
        form: Format; default: detect by content.
        columns: For tables: the column of each role (a name, or #1).
        split: Split to read, for DDI.
        dev_list: Pairs of the dev documents, for DDI.
        grouped: Read relations as their groups, for ChemProt.
        schema: Schema of the relations, for CMeIE.
        against: Count the overlap with this file, such as train.
        out: Write the examples as JSON lines.
    """
    from biograft.text.tasks import TaskConfig, overlap, read_task, summarise, write_examples

    config = TaskConfig(
        path=file,
        format=form,
        columns=split_columns(columns),
        split=split,
        dev_list=dev_list,
        grouped=grouped,
        schema=schema,
    )
    task = read_task(config)
    summary, shared = summarise(task.examples), None
    if against is not None:
        other = read_task(
            replace(config, path=against, format=task.format, split="train" if split else "")
        )
        shared = overlap(other.examples, task.examples)
    if out is not None:
        write_examples(task.examples, out, overwrite=overwrite)
    rejected = task.log.rejected.to_json()
    if as_json:
        values = {
            "file": str(file),
            "format": task.format,
            **summary.to_json(),
            "n_read": task.log.n_read,
            "rejected": rejected,
            "doubtful": task.log.doubtful.to_json(),
            "notes": task.log.notes,
        }
        print_json(values if shared is None else {**values, "overlap": shared.to_json()})
    else:
        _print_task(file, task, summary, shared)
    warn_faulty("rows left out", rejected)
    if rejected:
        raise typer.Exit(REJECTED)


@app.command()
def coverage(
    kb: Store,
    files: Annotated[list[str], typer.Argument(metavar="FILE...")],
    task: Annotated[str, "ner|relation"] = "ner",
    form: Annotated[str, "--format", "F"] = "",
    split: Annotated[str, "test"] = "",
    encoder: Annotated[Path | None, "ENCODER"] = None,
    as_json: Json = False,
) -> None:
    """Count the mentions of task files that a knowledge base, and a model's entities, have by name.

    Args:
        files: Task files.
        task: Task of the files.
        form: Format; default: detect by content.
        split: Split to read, for DDI.
        encoder: Folder of an encoder with an entity table, such as KeBioLM.
    """
    from biograft.models.knowledge.entities import read_entities
    from biograft.models.tasks.task import TASKS, TaskDataConfig
    from biograft.text.tasks.summary import count_known

    entities = read_entities(encoder) if encoder is not None else ()
    if encoder is not None and not entities:
        raise ConfigError(f"--encoder: {encoder} has no entity table")
    config = TaskDataConfig(format=form, has_splits=bool(split))
    examples = TASKS.load(task).read(files, split or "test", config).examples
    counts = count_known(examples, open_kb(kb), {entity.id for entity in entities})
    if as_json:
        print_json(counts)
        return
    n = counts.pop("mentions")
    typer.echo(f"{n:,} mentions")
    for name, known in counts.items():
        typer.echo(f"  {name:10} {known:,} ({100 * known / max(n, 1):.1f} %)")


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
