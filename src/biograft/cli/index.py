"""``biograft index``: build or update a search index of the names of a knowledge base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import (
    Json,
    Overwrite,
    Quiet,
    Store,
    open_kb,
    print_json,
    refuse_given,
)
from biograft.linking.dense.config import DenseConfig
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.linking.dense.encoders import NameEncoder


_OF_TRANSFORMERS = (
    *("pooling", "max_length", "query_prompt", "document_prompt", "encoder_engine"),
)
_OF_DENSE = ("storage", "similarity", "approximate")


def index(
    context: typer.Context,
    kb: Store,
    out: Annotated[Path, "-o", "--out", "INDEX"],
    dense: Annotated[DenseConfig, Offered("similarity", "storage", "approximate", "languages")],
    encoder: Annotated[str | None, "NAME_OR_DIR|none"] = None,
    pooling: Annotated[str | None, "mean|cls|lasttoken|..."] = None,
    max_length: Annotated[int | None, "N"] = None,
    query_prompt: Annotated[str | None, "TEXT"] = None,
    document_prompt: Annotated[str | None, "TEXT"] = None,
    encoder_engine: Annotated[str | None, "torch|openvino"] = None,
    steps: Annotated[str | None, "case,plural,..."] = None,
    update: Annotated[bool, "--update"] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Index names for lexical search and dense search.

    Lexical and dense search weigh the same, unless the encoder was trained by `biograft finetune`
    and brings learned weights. Interrupted encoding continues when the command is given again.

    Args:
        out: Folder to write.
        encoder: Encoder for dense search, or none. Default: static-english (without torch), for
            a store with English names, at most 500,000 names in all.
        pooling: Pooling of the encoder; default: from its files, or as known for SapBERT.
        max_length: Maximum number of tokens of a name; default: as for --pooling, else the
            model's.
        query_prompt: Text before each mention, such as 'query: ' of E5; default: from its files.
        document_prompt: Text before each name; default: from its files.
        encoder_engine: Engine that computes vectors of names: torch, or openvino, faster on
            processors; queries are encoded by torch. Default: torch.
        steps: Normalisation steps of lexical search.
        update: Update INDEX; unchanged names are not encoded again.
    """
    from biograft.linking import IndexConfig, LexicalConfig, build_index, update_index
    from biograft.linking.dense.encoders import default_encoder, load_encoder
    from biograft.linking.index import is_current

    base, progress = open_kb(kb), Progress(enabled=not quiet)
    loaded: NameEncoder | None = None
    if encoder not in (None, "none"):
        loaded = load_encoder(
            encoder,
            pooling=pooling,
            max_length=max_length,
            query_prompt=query_prompt,
            document_prompt=document_prompt,
            engine=encoder_engine,
        )
    elif encoder is None and not update:
        loaded = default_encoder(base, dense.languages)
        reason = "applies to a transformers model; name it with --encoder"
        refuse_given(context, _OF_TRANSFORMERS, reason)
    if loaded is None:
        reason = "applies to dense search; name an --encoder too"
        refuse_given(context, (*_OF_TRANSFORMERS, *_OF_DENSE), reason)
    if update:
        reason = "an update keeps the settings of INDEX; leave it out"
        refuse_given(context, (*_OF_DENSE, "languages", "steps", "overwrite"), reason)
        if loaded is None and is_current(base, out):
            typer.echo(f"{out}: is up to date, the store has not changed", err=True)
        manifest = update_index(base, out, loaded, progress=progress)
        for name in manifest.get("removed", ()):
            again = "biograft learn" if "/" in name else "biograft evaluate link --fit-calibration"
            typer.echo(
                f"{out / name}: removed, it was fitted before the knowledge base changed; fit it "
                f"again with `{again}`",
                err=True,
            )
    else:
        lexical = LexicalConfig(languages=dense.languages)
        if steps is not None:
            lexical = replace(lexical, steps=steps)
        config = IndexConfig(lexical=lexical, dense=dense if loaded is not None else None)
        manifest = build_index(base, out, loaded, config, overwrite=overwrite, progress=progress)
    seconds = round(sum(progress.seconds.values()), 3)
    if as_json:
        print_json({"index": str(out), **manifest, "seconds": seconds})
    else:
        _print_index(manifest, out, seconds)


def _print_index(manifest: dict[str, Any], out: Path, seconds: float) -> None:
    parts = " and ".join(manifest["parts"])
    typer.echo(f"{manifest['n_names']:,} names indexed ({parts}) in {seconds:.1f} s: {out}")
    if encoder := manifest["encoder"]:
        settings, origins = encoder["settings"], encoder["origins"]
        case = "lowercased" if settings["lower"] else "case kept"
        typer.echo(
            f"encoder {encoder['name']}: {settings['pooling']} pooling ({origins['pooling']}), at "
            f"most {settings['max_length']} tokens ({origins['max_length']}), {case}; similarity: "
            f"{encoder['similarity']}"
        )
    if weights := manifest["weights"]:
        ratios = (f"{name} {w / sum(weights.values()):.3g}" for name, w in weights.items())
        typer.echo(f"weights learned with the encoder: {', '.join(ratios)}")
