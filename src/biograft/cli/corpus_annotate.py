"""``biograft corpus annotate``: text to shards of annotated documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    REJECTED,
    Engine,
    Json,
    Quiet,
    Resume,
    Store,
    is_given,
    note_without_index,
    print_json,
)
from biograft.errors import ConfigError
from biograft.linking.annotation.config import AnnotationConfig
from biograft.progress import Progress
from biograft.text.cleaning import CleaningConfig
from biograft.text.input_config import InputConfig


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
    note_without_index(kb, config.index, quiet=quiet)
    manifest = annotate(kb, texts, out, config, execution, Progress(enabled=not quiet))
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
