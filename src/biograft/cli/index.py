"""``biograft index``: build or update a search index of the names of a knowledge base."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Json,
    Languages,
    Overwrite,
    Quiet,
    Store,
    print_json,
    split_languages,
)
from biograft.errors import ConfigError
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.linking import IndexConfig
    from biograft.linking.dense.encoders import NameEncoder


def index(
    kb: Store,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="INDEX", help="Folder to write.")],
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME_OR_DIR|none",
            help="Encoder for dense search, or none. Default: static-english (without torch), "
            "for a store with English names, at most 500,000 names in all.",
        ),
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            metavar="mean|cls",
            help="Pooling of the encoder; default: from its files, or as known for SapBERT.",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Maximum number of tokens of a name; default: as for --pooling, else the model's.",
        ),
    ] = None,
    encoder_engine: Annotated[
        str | None,
        typer.Option(
            metavar="torch|openvino",
            help="Engine that computes vectors of names: torch, or openvino, faster on "
            "processors; queries are encoded by torch. Default: torch.",
        ),
    ] = None,
    similarity: Annotated[
        str,
        typer.Option(
            metavar="cosine|dot",
            help="Similarity of dense search: cosine, or inner product of the vectors as they are.",
        ),
    ] = "cosine",
    storage: Annotated[
        str, typer.Option(metavar="float32|float16|bfloat16|int8", help="Data type of the vectors.")
    ] = "float32",
    approximate: Annotated[
        bool,
        typer.Option("--approximate", help="Approximate search, for millions of names."),
    ] = False,
    lang: Languages = "",
    steps: Annotated[
        str | None,
        typer.Option(metavar="case,plural,...", help="Normalisation steps of lexical search."),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Update INDEX; unchanged names are not encoded again.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Index names for lexical search and dense search.

    Lexical and dense search weigh the same, unless the encoder was trained by `biograft finetune`
    and brings learned weights. Interrupted encoding continues when the command is given again.
    """
    from biograft.kb import KnowledgeBase
    from biograft.linking import build_index, update_index
    from biograft.linking.dense.encoders import default_encoder, load_encoder
    from biograft.linking.index import is_current

    dense_options = {
        "--pooling": pooling, "--max-length": max_length, "--encoder-engine": encoder_engine,
        "--approximate": approximate or None,
        "--storage": storage if storage != "float32" else None,
        "--similarity": similarity if similarity != "cosine" else None,
    }  # fmt: skip
    base, progress = KnowledgeBase.open(kb), Progress(enabled=not quiet)
    loaded: NameEncoder | None = None
    if encoder not in (None, "none"):
        loaded = load_encoder(
            encoder, pooling=pooling, max_length=max_length, engine=encoder_engine
        )
    elif encoder is None and not update:
        loaded = default_encoder(base, split_languages(lang))
        fixed = {
            "--pooling": pooling, "--max-length": max_length, "--encoder-engine": encoder_engine,
        }  # fmt: skip
        _refuse(fixed, "applies to a transformers model; name it with --encoder")
    if loaded is None:
        _refuse(dense_options, "applies to dense search; name an --encoder too")
    if update:
        fixed = {
            "--approximate": approximate or None, "--storage": dense_options["--storage"],
            "--similarity": dense_options["--similarity"],
            "--lang": lang or None, "--steps": steps, "--overwrite": overwrite or None,
        }  # fmt: skip
        _refuse(fixed, "an update keeps the settings of INDEX; leave it out")
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
        dense = None
        if loaded is not None:
            dense = {"storage": storage, "similarity": similarity, "approximate": approximate}
        config = _index_config(lang, steps, dense)
        manifest = build_index(base, out, loaded, config, overwrite=overwrite, progress=progress)
    seconds = round(sum(progress.seconds.values()), 3)
    _compile_for_linking(base, out, progress)
    if as_json:
        print_json({"index": str(out), **manifest, "seconds": seconds})
    else:
        _print_index(manifest, out, seconds)


def _compile_for_linking(base: KnowledgeBase, out: Path, progress: Progress) -> None:
    """Compile now what `biograft link` needs for long texts, since the user waits anyway."""
    from biograft.compiled import BUDGET
    from biograft.linking import Linker

    if not base.n_names:
        return
    progress.start("compile for linking")
    BUDGET.end()
    # a transformers encoder, which would be loaded again, has no loops to compile
    linker = Linker.open(base, out, search="lexical" if "torch" in sys.modules else None)
    name = base.name_at(0)
    linker(f"{name} was found, {name}x was not.")
    linker.link_mentions([f"{name}x"])
    progress.finish()


def _refuse(options: dict[str, Any], reason: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise ConfigError(f"{option}: {reason}")


def _index_config(lang: str, steps: str | None, dense: dict[str, Any] | None) -> IndexConfig:
    from biograft.linking import IndexConfig
    from biograft.linking.lexical import LexicalConfig

    languages = split_languages(lang)
    lexical = LexicalConfig(languages=languages)
    if steps is not None:
        lexical = LexicalConfig(steps=steps, languages=languages)
    if dense is None:
        return IndexConfig(lexical=lexical)
    from biograft.linking.dense import DenseConfig

    return IndexConfig(lexical=lexical, dense=DenseConfig(**dense, languages=languages))


def _print_index(manifest: dict[str, Any], out: Path, seconds: float) -> None:
    parts = " and ".join(manifest["parts"])
    typer.echo(f"{manifest['n_names']:,} names indexed ({parts}) in {seconds:.1f} s: {out}")
    if encoder := manifest["encoder"]:
        typer.echo(_describe(encoder))
    if weights := manifest["weights"]:
        ratios = (f"{name} {w / sum(weights.values()):.3g}" for name, w in weights.items())
        typer.echo(f"weights learned with the encoder: {', '.join(ratios)}")


def _describe(encoder: dict[str, Any]) -> str:
    """Describe the settings of an encoder, each with its origin."""
    settings, origins = encoder["settings"], encoder["origins"]
    case = "lowercased" if settings["lower"] else "case kept"
    return (
        f"encoder {encoder['name']}: {settings['pooling']} pooling ({origins['pooling']}), at most "
        f"{settings['max_length']} tokens ({origins['max_length']}), {case}; similarity: "
        f"{encoder['similarity']}"
    )
