"""``biograft corpus segment``: long names to sub-entities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    Json,
    Overwrite,
    Quiet,
    print_json,
)
from biograft.errors import ConfigError
from biograft.progress import Progress
from biograft.text.input_config import InputConfig
from biograft.text.segmentation.config import SegmentationConfig

if TYPE_CHECKING:
    from biograft.text.segmentation import Segmentation, SegmentedEntity


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
    from biograft.kb import KnowledgeBase
    from biograft.text.segmentation import Segmentation, build_segmentation

    if out is not None:
        manifest = build_segmentation(
            KnowledgeBase.open(folder),
            texts or [],
            out,
            config,
            reading=reading,
            overwrite=overwrite,
            progress=Progress(enabled=not quiet),
        )
        _print_segmentation(manifest, out, as_json=as_json)
    elif not show:
        raise ConfigError("-o: name a folder for the result, or names to --show")
    elif texts or overwrite or config != SegmentationConfig() or reading != InputConfig(lines=True):
        raise ConfigError(
            "--show: without -o an existing segmentation is opened; leave out the options that "
            "build one"
        )
    if show:
        _print_names(Segmentation.open(out or folder), show, as_json=as_json)


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
