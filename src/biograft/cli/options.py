"""Warnings about a gold standard that several commands give, on stderr."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

import typer

from biograft.languages import language_code

_SHOWN_IDS = 3


def warn_left_out(counts: Mapping[str, int], what: str, where: str = "") -> None:
    """Say how many of what is in a gold standard could not be read, and why."""
    for reason, n in counts.items():
        typer.echo(f"warning: {where}{n:,} {what} left out: {reason}", err=True)


def warn_unknown(unknown: Collection[str], effect: str = "", where: str = "") -> None:
    """Say which gold ids the knowledge base does not know, if any, and what comes of it."""
    if not unknown:
        return
    shown = ", ".join(sorted(unknown)[:_SHOWN_IDS])
    typer.echo(
        f"warning: {where}the knowledge base does not know {len(unknown):,} gold ids "
        f"(such as {shown}){effect}",
        err=True,
    )


_KB = "Folder of the knowledge base."
_KB_OPTION = typer.Option("--kb", metavar="KB", help=_KB)

Store = Annotated[Path, typer.Argument(metavar="KB", help=_KB)]
"""The knowledge base a command is about; where it is a means, ``Kb``."""

Kb = Annotated[Path, _KB_OPTION]
OptionalKb = Annotated[Path | None, _KB_OPTION]

Index = Annotated[
    Path | None,
    typer.Option("--index", metavar="INDEX", help="Index to search; default: by letters."),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Trained linker to rank with, or a model that generates names by itself.",
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="Scores to probabilities, and when to say NIL; default: the index's, if any.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="P", help="Answer NIL below this probability (or score)."),
]
NoAbbreviations = Annotated[
    bool, typer.Option("--no-abbreviations", help="Do not expand abbreviations.")
]
NoComposites = Annotated[
    bool, typer.Option("--no-composites", help="Do not take composite mentions apart.")
]
Languages = Annotated[
    str, typer.Option("--lang", metavar="en,zh", help="Names in these languages only.")
]
"""Read by ``split_languages``."""

StopFile = Annotated[
    Path | None,
    typer.Option("--stop-file", metavar="FILE", help="Names never to look for, one a line."),
]
"""Read by ``stop_words_of``."""

Types = Annotated[
    str,
    typer.Option("--types", metavar="Disease,...", help="Gold mentions of these types only."),
]
"""Types of mentions, read by ``split_list``; those of ``kb build`` are types of concepts."""

Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the intervals.")]

Folder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Folder to make.")]
Run = Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="Folder of the run.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Change a value of the recipe."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run where it stopped.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace outputs that exist already.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def split_list(value: str | None) -> tuple[str, ...]:
    """Take apart what an option lists with commas; blanks and empty parts do not count.

    >>> split_list("Disease, Finding,")
    ('Disease', 'Finding')
    """
    return tuple(part.strip() for part in (value or "").split(",") if part.strip())


def stop_words_of(file: Path | None) -> tuple[str, ...]:
    """Read the file of an option ``StopFile``, if there is one."""
    from biograft.corpus.dictionary import read_stop_words

    return () if file is None else read_stop_words(file)


def split_languages(value: str) -> tuple[str, ...]:
    """Take languages apart that an option lists with commas, each as its code.

    >>> split_languages("ENG, zh-CN")
    ('en', 'zh')
    """
    return tuple(map(language_code, split_list(value)))
