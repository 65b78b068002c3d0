"""``biograft probe attention``: what encoders attend to around an entity, or inside it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace as replace_fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import (
    Json,
    OptionalKb,
    Overwrite,
    Quiet,
    print_json,
    warn_left_out,
)
from biograft.errors import ConfigError
from biograft.kb.names import language_codes
from biograft.progress import Progress
from biograft_lab.commands.options import refuse_repeated

if TYPE_CHECKING:
    from biograft_lab.probing.attention import (
        AttentionConfig,
        AttentionReader,
        ReplacedSentence,
        SubstituteConfig,
    )
    from biograft_lab.probing.attention.figures import Picture

_VARIANTS = ("entity", "synonym", "random")
_COLUMN = 10


def attention(
    text: Annotated[
        str, typer.Argument(metavar="TEXT|-", help="A sentence; -: standard input.")
    ] = "",
    encoders: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="DIR", help="Encoder, a folder or name; repeatable."),
    ] = None,
    entity: Annotated[
        str, typer.Option(metavar="NAME", help="The entity, as written in the sentence.")
    ] = "",
    at: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Character offset of the entity, from 0."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Also replace the entity by a synonym and a random name."),
    ] = False,
    synonym: Annotated[
        str, typer.Option(metavar="NAME", help="Synonym of the entity; default: sampled.")
    ] = "",
    random: Annotated[
        str, typer.Option(metavar="NAME", help="Name of another entity; default: sampled.")
    ] = "",
    kb: OptionalKb = None,
    languages: Annotated[
        str,
        typer.Option(
            "--lang", metavar="en,zh", help="Sample names in these; default: the text's language."
        ),
    ] = "",
    random_type: Annotated[
        str,
        typer.Option(metavar="any|same", help="Sample the random entity of any type, or the same."),
    ] = "any",
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --replace: summarise the sentences of this file."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format of --file; default: detect.")
    ] = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Sentences of the file, sampled; 0: all.")
    ] = 200,
    layer: Annotated[
        int, typer.Option(metavar="N", min=0, help="Layer, from 1; 0: 11 with --replace, else 10.")
    ] = 0,
    head: Annotated[
        int, typer.Option(metavar="N", min=0, help="Attention head, from 1; 0: sum of all heads.")
    ] = 0,
    direction: Annotated[
        str, typer.Option(metavar="to|from", help="With --replace: to the entity, or from it.")
    ] = "to",
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Write a picture.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with all numbers.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed of the samples.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the attention of encoders around an entity, or among its tokens.

    With --replace: curves of the attention between each other token and the entity, its synonym
    and a random entity in the same sentence, and the mean distance of the last two curves from
    the first. Without it: attention among the entity's own tokens. An encoder without layer 11
    (10) is read at its last layer but one.
    """
    from biograft_lab.probing.attention import AttentionConfig, AttentionReader, SubstituteConfig

    sentence_options = {
        "TEXT": text,
        "--entity": entity,
        "--at": at,
        "--synonym": synonym,
        "--random": random,
    }
    if file is not None:
        _refuse(sentence_options, "cannot be used with --file")
    if not replace:
        needs_replace = {"--file": file, "--synonym": synonym, "--random": random, "--kb": kb}
        _refuse(needs_replace, "needs --replace")
    _check_encoding(sentence_options)
    if not encoders:
        raise ConfigError("--encoder: expected the folder or the name of an encoder, found none")
    refuse_repeated("--encoder", encoders)
    config = AttentionConfig(layer=layer, head=head, direction=direction)
    substitutes = SubstituteConfig(
        languages=language_codes(languages), random_type=random_type, seed=seed
    )
    with _open_outputs(png, html, overwrite=overwrite) as files:
        if file is not None:
            sentences = _read_file(file, form, limit, seed)
            fill = _substitutes(kb, substitutes)
            readers = [AttentionReader.from_pretrained(name) for name in encoders]
            progress = Progress(enabled=not quiet)
            output = _summarise_sentences(readers, sentences, fill, config, progress)
        else:
            sentence = _find_sentence(text, entity, at, alone=not replace)
            if replace:
                sentence = _with_names(sentence, synonym, random, kb)
                sentence = _substitutes(kb, substitutes)(sentence)
            readers = [AttentionReader.from_pretrained(name) for name in encoders]
            compute = _around_entity if replace else _inside_entity
            output = compute(readers, sentence, config)
        _write_outputs(files, output)
    results = output.results | {"head": head or "all"}
    results |= {"direction": direction} if replace else {}
    if as_json:
        print_json(results)
    else:
        output.print(results)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    for name, value in options.items():
        if value not in ("", None):
            raise ConfigError(f"{name}: {reason}")


def _check_encoding(options: Mapping[str, object]) -> None:
    """Refuse texts with bytes of another encoding than UTF-8."""
    for name, value in options.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"{name}: is not UTF-8; write it so, or give a file") from error


def _find_sentence(given: str, entity: str, at: int | None, *, alone: bool) -> ReplacedSentence:
    """Locate the entity in the sentence; with ``alone`` it may be its own sentence."""
    from biograft.kb.sources.files import decode
    from biograft_lab.probing.attention import ReplacedSentence, find_entity

    if not entity:
        raise ConfigError("--entity: expected the entity as written in TEXT, found none")
    text = given
    if given == "-":
        text = decode(sys.stdin.buffer.read(), Path("stdin"), 1, "utf-8").strip()
    elif not given and alone:
        text = entity
    return ReplacedSentence(text, *find_entity(text, entity, at))


def _with_names(
    sentence: ReplacedSentence, synonym: str, random: str, kb: Path | None
) -> ReplacedSentence:
    """Set the given names; missing ones are sampled from a knowledge base later."""
    if kb is None and not (synonym and random):
        raise ConfigError("--replace needs --synonym and --random, or --kb to sample them from")
    return replace_fields(sentence, synonym=synonym, random=random)


def _read_file(path: Path, form: str, limit: int, seed: int) -> list[ReplacedSentence]:
    from biograft.kb.sources.log import ReadLog
    from biograft_lab.probing.attention import read_sentences

    log = ReadLog(path)
    sentences = read_sentences(path, form, limit=limit, seed=seed, log=log)
    warn_left_out(log.rejected.counts, "rows", f"{path}: ")
    return sentences


def _substitutes(
    kb: Path | None, config: SubstituteConfig
) -> Callable[[ReplacedSentence], ReplacedSentence]:
    """Return a function that samples the missing names; without a store it does nothing."""
    if kb is None:
        return lambda sentence: sentence
    from biograft.kb import KnowledgeBase
    from biograft_lab.probing.attention import Substitutes

    return Substitutes(KnowledgeBase.open(kb), config).fill


@dataclass(frozen=True, slots=True)
class _Output:
    """The results, and the ways to present them."""

    results: dict[str, Any]
    print: Callable[[dict[str, Any]], None]
    picture: Callable[[], Picture]
    page: Callable[[], str]


def _inside_entity(
    readers: Sequence[AttentionReader], sentence: ReplacedSentence, config: AttentionConfig
) -> _Output:
    """Compute the attention among the tokens of an entity."""
    from biograft_lab.probing.attention import insides_page, look_inside

    start, end = sentence.start, sentence.end
    maps = [look_inside(reader, sentence.text, (start, end), config) for reader in readers]
    results = {"text": sentence.text, "entity": sentence.entity, "start": start, "end": end}
    return _Output(
        results | {"models": _models_json(readers, maps)},
        _print_inside,
        lambda: _figures().draw_insides(maps),
        lambda: insides_page(maps, sentence.entity, config.inside),
    )


def _around_entity(
    readers: Sequence[AttentionReader], sentence: ReplacedSentence, config: AttentionConfig
) -> _Output:
    """Compute the attention around an entity under its three names."""
    from biograft_lab.probing.attention import compare_names, curves_page

    curves = [compare_names(reader, sentence, config) for reader in readers]
    keys = ("text", "entity", "start", "end", "synonym", "random")
    results: dict[str, Any] = {key: getattr(sentence, key) for key in keys}
    results |= {"concepts": list(sentence.concepts)} if sentence.concepts else {}
    return _Output(
        results | {"models": _models_json(readers, curves)},
        _print_curves,
        lambda: _figures().draw_curves(curves, sentence, config.around),
        lambda: curves_page(curves, sentence, config.around),
    )


def _summarise_sentences(
    readers: Sequence[AttentionReader],
    sentences: Sequence[ReplacedSentence],
    fill: Callable[[ReplacedSentence], ReplacedSentence],
    config: AttentionConfig,
    progress: Progress,
) -> _Output:
    """Summarise the attention around the entities of many sentences."""
    from biograft_lab.probing.attention import compare_many, summary_page

    progress.start("read sentences")
    summary = compare_many(readers, sentences, config, fill, progress)
    progress.finish()
    return _Output(
        summary.to_json() | {"models": _models_json(readers, summary.encoders)},
        _print_summary,
        lambda: _figures().draw_summary(summary),
        lambda: summary_page(summary, config.around),
    )


def _models_json(readers: Sequence[AttentionReader], results: Sequence[Any]) -> list[Any]:
    """Return the numbers of each encoder, with its numbers of layers and heads."""
    return [
        each.to_json() | {"n_layers": reader.n_layers, "n_heads": reader.n_heads}
        for reader, each in zip(readers, results, strict=True)
    ]


def _figures() -> Any:
    from biograft_lab.probing.attention import figures

    return figures


@contextmanager
def _open_outputs(
    png: Path | None, html: Path | None, *, overwrite: bool
) -> Iterator[dict[str, IO[bytes]]]:
    """Open the output files, so that a problem with them is found before the work."""
    from biograft.artifacts import new_file

    if png is not None:
        _figures()  # a missing extra fails here
        if html is not None and png.absolute() == html.absolute():
            raise ConfigError(f"--png and --html: both name {png}")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(new_file(path, overwrite=overwrite))
            for name, path in (("png", png), ("html", html))
            if path is not None
        }


def _write_outputs(files: Mapping[str, IO[bytes]], output: _Output) -> None:
    if "png" in files:
        picture = output.picture()
        files["png"].write(picture.png)
        if not picture.has_texts:
            typer.echo(
                "warning: no installed font has all characters of the text, so the PNG shows "
                "token numbers; install a Chinese font such as Noto Sans CJK",
                err=True,
            )
    if "html" in files:
        files["html"].write(output.page().encode())


def _print_curves(results: Mapping[str, Any]) -> None:
    """Print the three curves of each encoder, one token a line."""
    for variant in _VARIANTS:
        typer.echo(f"{variant:8} {results[variant]}")
    for model in results["models"]:
        typer.echo(f"{_heading(model, results)}, {results['direction']} the entity")
        width = max(map(_width, model["tokens"]))
        typer.echo(f"  {'':{width}}" + "".join(f"{name:>{_COLUMN}}" for name in _VARIANTS))
        for position, token in enumerate(model["tokens"]):
            if position == model["entity_position"]:
                typer.echo("  ...")
            values = [model["curves"][name][position] for name in _VARIANTS]
            typer.echo(f"  {_pad(token, width)}{_columns(values)}")
        distances = model["differences"]
        typer.echo(
            "  mean absolute difference from the entity: "
            f"synonym {distances['synonym']:.4f}, random {distances['random']:.4f}"
        )


def _print_inside(results: Mapping[str, Any]) -> None:
    """Print the attention among the tokens of an entity, one row per attending token."""
    typer.echo(f"entity {results['entity']}")
    for model in results["models"]:
        typer.echo(_heading(model, results))
        width = max(map(_width, model["tokens"]))
        heads = "".join(_pad(token, _COLUMN, right=True) for token in model["tokens"])
        typer.echo(f"  {'':{width}}{heads}")
        for token, row in zip(model["tokens"], model["weights"], strict=True):
            typer.echo(f"  {_pad(token, width)}{_columns(row)}")
        typer.echo(f"  mean attention of a token to the others: {model['to_others']:.4f}")


def _print_summary(results: Mapping[str, Any]) -> None:
    """Print the mean distance of the synonym and random curves from those of the entities."""
    n_sentences = results["n_sentences"]
    typer.echo(f"{n_sentences:,} sentences, attention {results['direction']} the entity")
    for reason, n in results["left_out"].items():
        typer.echo(f"  left out {n:,}: {reason}")
    for model in results["models"]:
        typer.echo(_heading(model, results))
        for name in ("synonym", "random"):
            mean, deviation = model[name]["mean"], model[name]["deviation"]
            spread = "" if deviation is None else f"  deviation {deviation:.4f}"
            typer.echo(f"  {name:8} mean absolute difference {mean:.4f}{spread}")
        typer.echo(f"  the synonym is closer in {model['n_synonym_nearer']:,} of {n_sentences:,}")


def _heading(model: Mapping[str, Any], results: Mapping[str, Any]) -> str:
    head = results["head"]
    heads = f"all {model['n_heads']} heads" if head == "all" else f"head {head}"
    return f"{model['encoder']}  layer {model['layer']} of {model['n_layers']}, {heads}"


def _columns(values: Sequence[float]) -> str:
    return "".join(f"{value:>{_COLUMN}.4f}" for value in values)


def _pad(text: str, width: int, *, right: bool = False) -> str:
    """Pad with spaces; Chinese characters are two columns wide."""
    spaces = " " * max(width - _width(text), 1 if right else 0)
    return f"{spaces}{text}" if right else f"{text}{spaces}"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
