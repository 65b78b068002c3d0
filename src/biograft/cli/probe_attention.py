"""What ``biograft probe attention`` prints for people."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from biograft.cli.options import Json, OptionalKb, Overwrite, Quiet, split_languages, warn_left_out
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.probing.attention import (
        AttentionConfig,
        AttentionReader,
        ReplacedSentence,
        SubstituteConfig,
    )
    from biograft.probing.attention.figures import Picture
    from biograft.progress import Progress

_VARIANTS = ("entity", "synonym", "random")
_COLUMN = 10


def print_curves(told: Mapping[str, Any]) -> None:
    """Print the three curves of each encoder, a token a line."""
    for variant in _VARIANTS:
        typer.echo(f"{variant:8} {told[variant]}")
    for model in told["models"]:
        typer.echo(f"{_described(model, told)}, {told['direction']} the entity")
        width = max(map(_width, model["tokens"]))
        typer.echo(f"  {'':{width}}" + "".join(f"{name:>{_COLUMN}}" for name in _VARIANTS))
        for place, token in enumerate(model["tokens"]):
            if place == model["entity_place"]:
                typer.echo("  ...")
            values = [model["curves"][name][place] for name in _VARIANTS]
            typer.echo(f"  {_padded(token, width)}{_columns(values)}")
        far = model["differences"]
        typer.echo(
            "  mean absolute difference to the entity: "
            f"synonym {far['synonym']:.4f}, random {far['random']:.4f}"
        )


def print_insides(told: Mapping[str, Any]) -> None:
    """Print the attention among the tokens of an entity, a row a token that attends."""
    typer.echo(f"entity {told['entity']}")
    for model in told["models"]:
        typer.echo(_described(model, told))
        width = max(map(_width, model["tokens"]))
        heads = "".join(_padded(token, _COLUMN, right=True) for token in model["tokens"])
        typer.echo(f"  {'':{width}}{heads}")
        for token, row in zip(model["tokens"], model["weights"], strict=True):
            typer.echo(f"  {_padded(token, width)}{_columns(row)}")
        typer.echo(f"  a token to the others, in the mean: {model['to_others']:.4f}")


def print_summary(told: Mapping[str, Any]) -> None:
    """Print how far the curves of synonyms and of other entities lie from those of entities."""
    typer.echo(f"{told['n_sentences']:,} sentences, attention {told['direction']} the entity")
    for reason, n in told["left_out"].items():
        typer.echo(f"  left out {n:,}: {reason}")
    for model in told["models"]:
        typer.echo(_described(model, told))
        for name in ("synonym", "random"):
            mean, deviation = model[name]["mean"], model[name]["deviation"]
            spread = "" if deviation is None else f"  deviation {deviation:.4f}"
            typer.echo(f"  {name:8} mean absolute difference {mean:.4f}{spread}")
        typer.echo(
            f"  the synonym is nearer in {model['n_synonym_nearer']:,} of {told['n_sentences']:,}"
        )


def _described(model: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    heads = f"all {model['n_heads']} heads" if told["head"] == "all" else f"head {told['head']}"
    return f"{model['encoder']}  layer {model['layer']} of {model['n_layers']}, {heads}"


def _columns(values: Sequence[float]) -> str:
    return "".join(f"{value:>{_COLUMN}.4f}" for value in values)


def _padded(text: str, width: int, *, right: bool = False) -> str:
    """Fill up with blanks; Chinese signs are two columns wide."""
    blanks = " " * max(width - _width(text), 1 if right else 0)
    return f"{blanks}{text}" if right else f"{text}{blanks}"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def refuse_unfit(alone: Mapping[str, object], replacing: Mapping[str, object]) -> None:
    """Refuse options that another one leaves without a meaning."""
    for name, value in alone.items():
        if value not in ("", None):
            raise ConfigError(f"{name}: goes with a single sentence, not with --file")
    for name, value in replacing.items():
        if value not in ("", None):
            raise ConfigError(f"{name}: goes with --replace")


def refuse_damaged(given: Mapping[str, object]) -> None:
    """Refuse texts that came with bytes of another encoding."""
    for name, value in given.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"{name}: is not UTF-8; write it so, or give a file") from error


def different_encoders(encoders: Sequence[str]) -> Sequence[str]:
    """Give the encoders; there must be one, and none twice."""
    if not encoders:
        raise ConfigError("--encoder: expected the folder or the name of an encoder, found none")
    for place, name in enumerate(encoders):
        if name in encoders[:place]:
            raise ConfigError(f"--encoder: {name} stands there twice")
    return encoders


def sentence_of(given: str, entity: str, at: int | None, *, alone: bool) -> ReplacedSentence:
    """Find the entity in the sentence; without any sentence it stands alone."""
    from biograft.probing.attention import ReplacedSentence, find_entity
    from biograft.sources.files import decode

    if not entity:
        raise ConfigError("--entity: expected the entity as it stands in TEXT, found none")
    text = given
    if given == "-":
        text = decode(sys.stdin.buffer.read(), Path("stdin"), 1, "utf-8").strip()
    elif not given and alone:
        text = entity
    return ReplacedSentence(text, *find_entity(text, entity, at))


def with_names(
    sentence: ReplacedSentence, synonym: str, random: str, kb: Path | None
) -> ReplacedSentence:
    """Put in the names that were given; what is missing must come from a store."""
    if kb is None and not (synonym and random):
        raise ConfigError("--replace needs --synonym and --random, or --kb to draw them from")
    return replace(sentence, synonym=synonym, random=random)


def read_file(path: Path, form: str, limit: int, seed: int) -> list[ReplacedSentence]:
    """Read the sentences of a file, and warn of what could not be read."""
    from biograft.probing.attention import read_sentences
    from biograft.sources.log import ReadLog

    log = ReadLog(path)
    sentences = read_sentences(path, form, limit=limit, seed=seed, log=log)
    warn_left_out(log.rejected.counts, "rows", f"{path}: ")
    return sentences


def drawer_of(
    kb: Path | None, config: SubstituteConfig
) -> Callable[[ReplacedSentence], ReplacedSentence]:
    """Give what fills in the names that a sentence lacks; without a store, nothing does."""
    if kb is None:
        return lambda sentence: sentence
    from biograft.kb import KnowledgeBase
    from biograft.probing.attention import Substitutes

    return Substitutes(KnowledgeBase.open(kb), config).fill


@dataclass(frozen=True, slots=True)
class Shown:
    """What was found, and the ways of showing it."""

    told: dict[str, Any]
    tell: Callable[[dict[str, Any]], None]
    picture: Callable[[], Picture]
    page: Callable[[], str]


def look_inside_entity(
    readers: Sequence[AttentionReader], sentence: ReplacedSentence, config: AttentionConfig
) -> Shown:
    """Look at the attention among the tokens of an entity."""
    from biograft.probing.attention import insides_page, look_inside

    span = (sentence.start, sentence.end)
    found = [look_inside(reader, sentence.text, span, config) for reader in readers]
    told = {"text": sentence.text, "entity": sentence.entity, "start": span[0], "end": span[1]}
    return Shown(
        told | {"models": _told(readers, found)},
        print_insides,
        lambda: _figures().draw_insides(found),
        lambda: insides_page(found, sentence.entity, config.inside),
    )


def look_around_entity(
    readers: Sequence[AttentionReader], sentence: ReplacedSentence, config: AttentionConfig
) -> Shown:
    """Look at the attention around an entity under its three names."""
    from biograft.probing.attention import compare_names, curves_page

    found = [compare_names(reader, sentence, config) for reader in readers]
    told = {key: getattr(sentence, key) for key in ("text", "entity", "start", "end")}
    told |= {"synonym": sentence.synonym, "random": sentence.random}
    told |= {"concepts": list(sentence.concepts)} if sentence.concepts else {}
    return Shown(
        told | {"models": _told(readers, found)},
        print_curves,
        lambda: _figures().draw_curves(found, sentence, config.around),
        lambda: curves_page(found, sentence, config.around),
    )


def look_around_many(
    readers: Sequence[AttentionReader],
    sentences: Sequence[ReplacedSentence],
    fill: Callable[[ReplacedSentence], ReplacedSentence],
    config: AttentionConfig,
    progress: Progress,
) -> Shown:
    """Look at the attention around the entities of many sentences."""
    from biograft.probing.attention import compare_many, summary_page

    progress.start("read sentences")
    found = compare_many(readers, sentences, config, fill, progress)
    progress.finish()
    told = found.to_json()
    return Shown(
        told | {"models": _told(readers, found.encoders)},
        print_summary,
        lambda: _figures().draw_summary(found),
        lambda: summary_page(found, config.around),
    )


def _told(readers: Sequence[AttentionReader], found: Sequence[Any]) -> list[dict[str, Any]]:
    """Give the numbers of each encoder, with how many layers and heads it has."""
    return [
        each.to_json() | {"n_layers": reader.n_layers, "n_heads": reader.n_heads}
        for reader, each in zip(readers, found, strict=True)
    ]


def _figures() -> Any:
    from biograft.probing.attention import figures

    return figures


@contextmanager
def open_outputs(
    png: Path | None, html: Path | None, *, overwrite: bool
) -> Iterator[dict[str, IO[bytes]]]:
    """Open what is to be written, so that what is in the way is told before the work."""
    from biograft.artifacts import new_file

    if png is not None:
        _figures()  # say what is missing before the work
        if html is not None and png.absolute() == html.absolute():
            raise ConfigError(f"--png and --html: both name {png}")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(new_file(path, overwrite=overwrite))
            for name, path in (("png", png), ("html", html))
            if path is not None
        }


def write_outputs(files: Mapping[str, IO[bytes]], shown: Shown) -> None:
    """Draw and write what was asked for; say what a picture could not show."""
    if "png" in files:
        picture = shown.picture()
        files["png"].write(picture.png)
        if not picture.has_texts:
            typer.echo(
                "warning: no installed font has all signs of the text, so the PNG shows the "
                "numbers of tokens; install one with Chinese signs, such as Noto Sans CJK",
                err=True,
            )
    if "html" in files:
        files["html"].write(shown.page().encode())


def attention(
    text: Annotated[
        str, typer.Argument(metavar="TEXT|-", help="A sentence; -: standard input.")
    ] = "",
    encoders: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="DIR", help="Encoder, folder or name; may come again."),
    ] = None,
    entity: Annotated[
        str, typer.Option(metavar="NAME", help="The entity, as the sentence has it.")
    ] = "",
    at: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Character at which the entity begins, from 0."),
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Read the sentence with other names in its place, too."),
    ] = False,
    synonym: Annotated[
        str, typer.Option(metavar="NAME", help="Another name of the entity; else drawn.")
    ] = "",
    random: Annotated[
        str, typer.Option(metavar="NAME", help="A name of another entity; else drawn.")
    ] = "",
    kb: OptionalKb = None,
    languages: Annotated[
        str,
        typer.Option("--lang", metavar="en,zh", help="Draw names in these; default: the text's."),
    ] = "",
    random_type: Annotated[
        str,
        typer.Option(metavar="any|same", help="Draw the other entity of any type, or the same."),
    ] = "any",
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --replace: sum up the sentences of this file."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="Format of the file, if not recognised.")
    ] = "",
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Sentences of the file, drawn; 0: all.")
    ] = 200,
    layer: Annotated[
        int, typer.Option(metavar="N", min=0, help="Layer, from 1; 0: 11 with --replace, else 10.")
    ] = 0,
    head: Annotated[
        int, typer.Option(metavar="N", min=0, help="Head, from 1; 0: all of them, summed.")
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
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of what is drawn.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """See what encoders attend to around an entity, or inside it.

    With --replace a sentence is read with its entity, a synonym and another entity: curves of
    the attention between each other token and all tokens in the entity's place, and how far, in
    the mean, the other two lie from the entity's. Without it: attention among the entity's own
    tokens. An encoder without layer 11 (10) is looked at in its last layer but one.
    """
    from biograft.probing.attention import AttentionConfig, AttentionReader, SubstituteConfig
    from biograft.progress import Progress

    alone = {"TEXT": text, "--entity": entity, "--at": at, "--synonym": synonym, "--random": random}
    refuse_unfit(
        alone if file else {},
        {} if replace else {"--file": file, "--synonym": synonym, "--random": random, "--kb": kb},
    )
    refuse_damaged(alone)
    names = different_encoders(encoders or [])
    config = AttentionConfig(layer=layer, head=head, direction=direction)
    drawing = SubstituteConfig(
        languages=split_languages(languages), random_type=random_type, seed=seed
    )
    with open_outputs(png, html, overwrite=overwrite) as files:
        if file is not None:
            sentences, fill = read_file(file, form, limit, seed), drawer_of(kb, drawing)
            readers = [AttentionReader.from_pretrained(name) for name in names]
            progress = Progress(enabled=not quiet)
            shown = look_around_many(readers, sentences, fill, config, progress)
        else:
            sentence = sentence_of(text, entity, at, alone=not replace)
            if replace:
                sentence = drawer_of(kb, drawing)(with_names(sentence, synonym, random, kb))
            readers = [AttentionReader.from_pretrained(name) for name in names]
            look = look_around_entity if replace else look_inside_entity
            shown = look(readers, sentence, config)
        write_outputs(files, shown)
    told = shown.told | {"head": head or "all"} | ({"direction": direction} if replace else {})
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False))
    else:
        shown.tell(told)
