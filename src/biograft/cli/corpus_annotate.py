"""``biograft corpus annotate``: text to shards of annotated documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    REJECTED,
    Column,
    Encoding,
    Engine,
    IdColumn,
    Index,
    InputFormat,
    Json,
    NoAbbreviations,
    Quiet,
    Resume,
    SkipErrors,
    StopFile,
    Store,
    note_without_index,
    print_json,
    stop_words_of,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.annotation import AnnotationConfig


def annotate(
    kb: Store,
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXT...", help="Files, folders, zip archives, or '-' for standard input."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the shards.")],
    form: InputFormat = "",
    encoding: Encoding = "utf-8",
    column: Column = "",
    id_column: IdColumn = "",
    skip_errors: SkipErrors = False,
    mentions: Annotated[
        str,
        typer.Option(
            metavar="given|find|both",
            help="Find names in the texts, take the mentions of annotated files by their concept "
            "ids, or both; given and both need --no-clean.",
        ),
    ] = "find",
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
    engine: Engine = "local",
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; default: one a core.")] = 0,
    shard_mib: Annotated[
        int, typer.Option("--shard-mib", metavar="N", min=1, help="Text per shard, in MiB.")
    ] = 8,
    resume: Resume = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Annotate text with the concepts of a knowledge base, for pre-training.

    Plain text has one document a line. Files of any document format, and tables with --column, are
    recognised by their content; their annotations are read with --mentions given or both only.
    Broken records are reported and left out; the exit status is then 1.
    """
    from biograft.annotation.runner import ExecutionConfig, annotate_corpus
    from biograft.corpus.inputs import InputConfig

    config = _annotation_config(
        **({} if threshold is None else {"threshold": threshold}),
        max_spans=max_spans, abbreviations=not no_abbreviations, language=language,
        index=index, mentions=mentions, stop_words=stop_words_of(stop_file),
        cleaning={"min_length": min_length, "max_length": max_length} if clean else None,
    )  # fmt: skip
    if threshold is not None and not config.threshold_matters:
        raise ConfigError(
            f"--threshold {threshold}: without --index and abbreviations every span is a name and "
            "scores 0.99 or 1; leave it out, or give more than 0.99 to drop normal forms"
        )
    reading = InputConfig(
        format=form, encoding=encoding, column=column, id_column=id_column, lines=True,
        skip_errors=skip_errors,
    )  # fmt: skip
    execution = ExecutionConfig(
        engine=engine, workers=workers, resume=resume, reading=reading, chunk_bytes=shard_mib << 20
    )
    note_without_index(kb, index, quiet=quiet)
    manifest = annotate_corpus(kb, texts, out, config, execution, Progress(enabled=not quiet))
    rejected = manifest["report"]["rejected"]
    for reason, entry in rejected.items():
        typer.echo(f"rejected {entry['n']:,}: {reason}", err=True)
        for example in entry["examples"]:
            typer.echo(f"  {example['file']}:{example['line']}: {example['text']!r}", err=True)
    for note in manifest["notes"]:
        typer.echo(f"warning: {note}", err=True)
    for error in manifest["skipped"]:
        typer.echo(f"skipped: {error}", err=True)
    if as_json:
        print_json(_annotation_json(manifest, out))
    else:
        _print_annotation(manifest, out)
    if rejected or manifest["skipped"]:
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
        "n_skipped": len(manifest["skipped"]),
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
