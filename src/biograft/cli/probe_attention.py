"""``biograft probe attention``: what encoders attend to around an entity, or inside a long one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.options import Json, OptionalKb, Overwrite, Quiet, split_languages
from biograft.cli.probe_attention_inputs import (
    different_encoders,
    drawer_of,
    read_file,
    refuse_damaged,
    refuse_unfit,
    sentence_of,
    with_names,
)
from biograft.cli.probe_attention_results import (
    look_around_entity,
    look_around_many,
    look_inside_entity,
    open_outputs,
    write_outputs,
)


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
