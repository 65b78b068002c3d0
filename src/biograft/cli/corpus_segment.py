"""``biograft corpus segment``: take long entity names apart, adjective part and head."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, Overwrite, Quiet
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.corpus.segmentation import Segmentation, Segmented


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
        _show(Segmentation.open(place), show, as_json=as_json)
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
        _show(Segmentation.open(out), show, as_json=as_json)


def _show(opened: Segmentation, names: Sequence[str], *, as_json: bool) -> None:
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
