"""What ``biograft probe attention`` found, and the ways of showing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from biograft.cli.probe_attention_text import print_curves, print_insides, print_summary
from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.probing.attention import AttentionConfig, AttentionReader, ReplacedSentence
    from biograft.probing.attention.figures import Picture
    from biograft.progress import Progress


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
    from biograft.runs import new_file

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
