"""``biograft index``: make the names of a knowledge base quick to search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, Languages, Overwrite, Quiet, Store, split_languages
from biograft.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from biograft.nn import TextEncoder


def index(
    kb: Store,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="INDEX", help="Folder to make.")],
    encoder: Annotated[
        str,
        typer.Option(
            metavar="NAME_OR_DIR", help="Encoder for search by vectors; default: by letters only."
        ),
    ] = "",
    pooling: Annotated[
        str | None,
        typer.Option(metavar="mean|cls", help="How the encoder pools; default: as its files say."),
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens of a name to read.")
    ] = None,
    storage: Annotated[
        str, typer.Option(metavar="float32|float16|bfloat16|int8", help="How vectors are kept.")
    ] = "float32",
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Search a graph; for millions of names.")
    ] = False,
    lang: Languages = "",
    steps: Annotated[
        str | None,
        typer.Option(metavar="case,plural,...", help="How names are normalised before comparing."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Bring INDEX up to date; known vectors are kept.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make an index of all names: by letters, and by vectors if an encoder is given.

    An encoder that `biograft finetune` trained may bring along how much letters and vectors count;
    with others they count alike.

    Encoding that was interrupted goes on where it was when the command is given again.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking import build_index, update_index
    from biograft.progress import Progress

    given = {
        "--pooling": pooling, "--max-length": max_length, "--approximate": approximate or None,
        "--storage": storage if storage != "float32" else None,
    }  # fmt: skip
    _refuse_idle(given, needs_encoder=not encoder)
    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    loaded = _load(encoder, pooling, max_length) if encoder else None
    if update:
        fixed = {
            **given,
            "--lang": lang or None,
            "--steps": steps,
            "--overwrite": overwrite or None,
        }
        _refuse_fixed(fixed)
        manifest = update_index(base, out, loaded, progress=progress)
    else:
        config = _config(lang, steps, storage, approximate=approximate, dense=bool(encoder))
        manifest = build_index(base, out, loaded, config, overwrite=overwrite, progress=progress)
    seconds = round(sum(progress.seconds.values()), 3)
    if as_json:
        typer.echo(json.dumps({"index": str(out), **manifest, "seconds": seconds}))
        return
    parts = " and ".join(manifest["parts"])
    typer.echo(f"{manifest['n_names']:,} names indexed ({parts}) in {seconds:.1f} s: {out}")
    if weights := manifest["weights"]:
        counts = (f"{name} {w / sum(weights.values()):.3g}" for name, w in weights.items())
        typer.echo(f"weights learned with the encoder: {', '.join(counts)}")


def _config(lang: str, steps: str | None, storage: str, *, approximate: bool, dense: bool) -> Any:
    from biograft.linking import IndexConfig
    from biograft.linking.lexical import LexicalConfig

    languages = split_languages(lang)
    by_letters = LexicalConfig(languages=languages)
    if steps is not None:
        by_letters = LexicalConfig(steps=steps, languages=languages)
    if not dense:
        return IndexConfig(lexical=by_letters)
    from biograft.linking.dense import DenseConfig

    by_vectors = DenseConfig(storage=storage, approximate=approximate, languages=languages)
    return IndexConfig(lexical=by_letters, dense=by_vectors)


def _load(name: str, pooling: str | None, max_length: int | None) -> TextEncoder:
    try:
        from biograft.nn import TextEncoder
    except ModuleNotFoundError as error:
        raise MissingExtraError("models", "an encoder") from error
    return TextEncoder.from_pretrained(name, pooling=pooling, max_length=max_length)


def _refuse_idle(given: dict[str, Any], *, needs_encoder: bool) -> None:
    for option, value in given.items():
        if needs_encoder and value is not None:
            raise ConfigError(f"{option}: is about vectors; name an --encoder too")


def _refuse_fixed(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value is not None and option not in ("--pooling", "--max-length"):
            raise ConfigError(f"{option}: an update keeps what INDEX was made with; leave it out")
