"""``biograft corpus segment``: long names to sub-entities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Column,
    Encoding,
    InputFormat,
    Json,
    Overwrite,
    Quiet,
    print_json,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.corpus.segmentation import Segmentation, SegmentedEntity


def segment(
    folder: Annotated[
        Path,
        typer.Argument(metavar="KB", help="Knowledge base; with --show alone, a segmentation."),
    ],
    texts: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[TEXT]...",
            help="Text to mine phrases from: a document a line, any document format, or tables.",
        ),
    ] = None,
    form: InputFormat = "",
    encoding: Encoding = "utf-8",
    column: Column = "",
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
        typer.Option(metavar="FILE", help="Reviewed cut points; default: count them again."),
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
    from biograft.corpus.inputs import InputConfig
    from biograft.corpus.segmentation import Segmentation

    reading = InputConfig(format=form, encoding=encoding, column=column, lines=True)
    options = {
        "language": language, "cut_points": cut_points, "word_segmenter": word_segmenter,
        "max_single": max_single, "min_count": min_count, "max_entries": max_entries,
        "max_units": max_units, "min_quality": min_quality,
    }  # fmt: skip
    settings = {key: value for key, value in options.items() if value is not None}
    if out is not None:
        manifest = _build_segmentation(
            folder, texts or [], out, settings, reading=reading,
            overwrite=overwrite, progress=Progress(enabled=not quiet),
        )  # fmt: skip
        _print_segmentation(manifest, out, as_json=as_json)
    elif not show:
        raise ConfigError("-o: name a folder for the result, or names to --show")
    elif texts or settings or overwrite or reading != InputConfig(lines=True):
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
