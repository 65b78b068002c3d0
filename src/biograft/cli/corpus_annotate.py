"""``biograft corpus annotate``: from text to shards of linked spans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Index,
    Json,
    NoAbbreviations,
    Quiet,
    Resume,
    StopFile,
    Store,
    stop_words_of,
)

if TYPE_CHECKING:
    from biograft.annotation import AnnotationConfig

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
    from biograft.annotation.running import Running, annotate_corpus
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
