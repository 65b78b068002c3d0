"""Shared parts of commands: options, their values, JSON output, warnings on stderr."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.errors import ConfigError
from biograft.languages import language_code
from biograft.terminal import visible

if TYPE_CHECKING:
    from biograft.corpus.inputs import Inputs
    from biograft.kb import KnowledgeBase

REJECTED = 1
"""Exit status when records or files were left out and all others were read."""

_SHOWN = 20
"""Maximum lines about what was left out."""
_KB = "Folder of the knowledge base."
_KB_OPTION = typer.Option("--kb", metavar="KB", help=_KB)

Store = Annotated[Path, typer.Argument(metavar="KB", help=_KB)]
"""The knowledge base that a command is about; ``Kb`` where a command only needs one."""

Kb = Annotated[Path, _KB_OPTION]
OptionalKb = Annotated[Path | None, _KB_OPTION]

Index = Annotated[
    Path | None,
    typer.Option("--index", metavar="INDEX", help="Index to search; default: lexical search."),
]
Model = Annotated[
    Path | None,
    typer.Option(
        "--model", metavar="MODEL", help="Trained ranker or re-ranker, or a generative linker."
    ),
]
Calibration = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        metavar="FILE",
        help="Maps scores to probabilities, with the NIL threshold; default: that of the index.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="P", help="Answer NIL below this probability (or score)."),
]
Search = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="lexical|dense|lexical+dense",
        help="Kind of search; default: lexical for names found in text, all that INDEX has for "
        "terms and given mentions.",
    ),
]
LexicalWeight = Annotated[
    float | None,
    typer.Option(
        "--lexical-weight",
        metavar="W",
        help="Weight of lexical search, 0 to 1, dense search has the rest; default: as learned "
        "with the encoder, else 0.5.",
    ),
]
Similarity = Annotated[
    str | None,
    typer.Option(
        "--similarity",
        metavar="cosine|dot",
        help="Similarity of dense search: cosine, or inner product; default: that of the index.",
    ),
]
Ner = Annotated[
    Path | None,
    typer.Option(
        "--ner",
        metavar="RUN",
        help="Trained model that finds the mentions: a run of `biograft finetune ner`.",
    ),
]
Detection = Annotated[
    str | None,
    typer.Option(
        "--detection",
        metavar="names|model|both",
        help="Find mentions by the names of KB, by --ner, or by both: then names count where "
        "they overlap nothing that the model finds. Default: model with --ner, else names.",
    ),
]
MentionTypes = Annotated[
    str,
    typer.Option(
        "--mention-types",
        metavar="Disease,...",
        help="Link only mentions of these types (with --ner).",
    ),
]
"""Read by ``split_list``."""

Misspelt = Annotated[
    bool,
    typer.Option(
        "--misspelt/--no-misspelt",
        help="Also find misspelt names of KB in text; their scores are lower.",
    ),
]
NoAbbreviations = Annotated[
    bool, typer.Option("--no-abbreviations", help="Do not expand abbreviations.")
]
NoAppositions = Annotated[
    bool,
    typer.Option(
        "--no-appositions",
        help="Do not look up a mention by the name it stands beside in brackets.",
    ),
]
NoAssertions = Annotated[
    bool,
    typer.Option(
        "--no-assertions",
        help="Do not compute assertion status (absent, possible, historical, ...).",
    ),
]
NoShortForms = Annotated[
    bool,
    typer.Option(
        "--no-short-forms",
        help="Do not expand clinical short forms; accept headings and all names in capitals as "
        "mentions.",
    ),
]
NoCoordinations = Annotated[
    bool,
    typer.Option("--no-coordinations", help="Do not find coordinated names in text."),
]
ConceptTypes = Annotated[
    str,
    typer.Option(
        "--types", metavar="T,...", help="Concepts of these semantic types only (code or label)."
    ),
]
ConceptSources = Annotated[
    str,
    typer.Option(
        "--sources", metavar="S,...", help="Concepts with a name from these vocabularies only."
    ),
]
NoComposites = Annotated[
    bool, typer.Option("--no-composites", help="Do not split composite mentions.")
]
Languages = Annotated[
    str, typer.Option("--lang", metavar="en,zh", help="Names in these languages only.")
]
"""Read by ``split_languages``."""

StopFile = Annotated[
    Path | None,
    typer.Option("--stop-file", metavar="FILE", help="Names to ignore, one a line."),
]
"""Read by ``stop_words_of``."""

InputFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of the files: text, table, or one of `biograft corpus formats`; default: "
        "recognise each by its content.",
    ),
]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the files, such as gb18030, utf-16 or latin-1; XML states its own.",
    ),
]
Column = Annotated[
    str,
    typer.Option(
        "--column",
        metavar="NAME",
        help="For CSV, TSV, JSON lines, XLSX and Parquet: the column of the texts, by name or as "
        "#1; a row is a document.",
    ),
]
IdColumn = Annotated[
    str,
    typer.Option("--id-column", metavar="NAME", help="With --column: the column of the ids."),
]
Sheet = Annotated[
    str,
    typer.Option("--sheet", metavar="NAME", help="For XLSX: the sheet; default: the first."),
]
SkipErrors = Annotated[
    bool,
    typer.Option(
        "--skip-errors", help="Leave out files that cannot be read, and report them at the end."
    ),
]

Types = Annotated[
    str,
    typer.Option("--types", metavar="Disease,...", help="Gold mentions of these types only."),
]
"""Types of mentions, read by ``split_list``; those of ``kb build`` are types of concepts."""

Texts = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="FILE",
        help="Documents of gold that has only ids and offsets, such as BioSyn's; repeatable.",
    ),
]
"""Read by ``TextIndex.read``."""

Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Random seed of the confidence intervals.")
]

Folder = Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="Output folder.")]
Run = Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="Folder of the run.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", help="Override a value of the recipe."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")]

Engine = Annotated[str, typer.Option("--engine", metavar="local|ray", help="Where to run.")]

OutFile = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="File to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing outputs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def split_list(value: str | None) -> tuple[str, ...]:
    """Split a comma-separated option; whitespace and empty items are dropped.

    >>> split_list("Disease, Finding,")
    ('Disease', 'Finding')
    """
    return tuple(item.strip() for item in (value or "").split(",") if item.strip())


def split_languages(value: str) -> tuple[str, ...]:
    """Split comma-separated languages and return their codes.

    >>> split_languages("ENG, zh-CN")
    ('en', 'zh')
    """
    return tuple(map(language_code, split_list(value)))


def split_columns(value: str | None) -> dict[str, str]:
    """Parse the option ``--columns``.

    >>> split_columns("first=q1, label=#3")
    {'first': 'q1', 'label': '#3'}
    """
    columns = {}
    for item in split_list(value):
        role, equals, column = (part.strip() for part in item.partition("="))
        if not (role and equals and column):
            raise ConfigError(f"--columns: expected role=column, found {item!r}")
        columns[role] = column
    return columns


def refuse_repeated(what: str, values: Sequence[object], remedy: str = "name each once") -> None:
    """Refuse a value that is given twice."""
    for position, value in enumerate(values):
        if value in values[:position]:
            raise ConfigError(f"{what}: {value} is given twice; {remedy}")


def stop_words_of(file: Path | None) -> tuple[str, ...]:
    """Read the file of an option ``StopFile``, if there is one."""
    from biograft.corpus.name_rules import read_stop_words

    return () if file is None else read_stop_words(file)


def print_json(value: Any) -> None:
    """Print one JSON object on one line of stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False))


_MAX_IDS = 3
_MANY_NAMES = 500_000
"""Indexing so many takes some seconds."""


def refuse_input_as_output(out: Path | None, *inputs: str | Path | None) -> None:
    """Refuse to write to a file that is read: what was in it would be gone."""
    for given in inputs:
        if out is None or given is None or not (out.is_file() and Path(given).is_file()):
            continue
        if out.samefile(given):
            raise ConfigError(f"{out}: is an input, too; choose another file for the output")


def report_left_out(left_out: Sequence[tuple[str, str]]) -> None:
    """Say on stderr what an output could not hold.

    Args:
        left_out: What was left out, such as a term, and why.
    """
    for what, why in left_out[:_SHOWN]:
        typer.echo(visible(f"not written: {what}: {why}"), err=True)
    if len(left_out) > _SHOWN:
        typer.echo(f"not written: {len(left_out) - _SHOWN:,} more", err=True)


def note_without_index(
    kb: KnowledgeBase | Path, index: Path | None, *, quiet: bool = False
) -> None:
    """Say that a large knowledge base without an index is indexed anew in each process."""
    if index is not None or quiet:
        return
    from biograft.kb import KnowledgeBase

    base = kb if isinstance(kb, KnowledgeBase) else KnowledgeBase.open(kb)
    if base.n_names >= _MANY_NAMES:
        typer.echo(
            f"note: {base.n_names:,} names are being indexed in memory, which takes long; "
            "`biograft index` does it once, for --index",
            err=True,
        )


def warn_left_out(counts: Mapping[str, int], what: str, where: str = "") -> None:
    """Warn how many rows of a file were left out, by reason."""
    for reason, n in counts.items():
        typer.echo(f"warning: {where}{n:,} {what} left out: {reason}", err=True)


def report_inputs(inputs: Inputs) -> bool:
    """Report on stderr what was left out of inputs; return whether anything was."""
    for note in inputs.notes:
        typer.echo(f"warning: {note}", err=True)
    for what, faults in (("left out", inputs.log.rejected), ("corrected", inputs.log.doubtful)):
        for reason, n in faults.counts.items():
            typer.echo(f"warning: {n:,} records {what}: {reason}", err=True)
            for example in faults.examples[reason][:1]:
                line = f"  {example.path}:{example.line}: {example.text}"
                typer.echo(visible(line), err=True)
    for error in inputs.skipped:
        typer.echo(visible(f"skipped: {error}"), err=True)
    return bool(inputs.log.rejected.counts or inputs.skipped)


def warn_without_text(n: int, n_queries: int, where: str = "") -> None:
    """Warn how many gold mentions have no match in the documents of ``--text``."""
    if n:
        typer.echo(
            f"warning: {where}{n:,} of {n_queries:,} mentions are not in the documents of --text, "
            "and stand alone",
            err=True,
        )


def warn_unknown(unknown: Collection[str], effect: str = "", where: str = "") -> None:
    """Warn which gold ids are not in the knowledge base, and what follows from that."""
    if not unknown:
        return
    examples = ", ".join(sorted(unknown)[:_MAX_IDS])
    typer.echo(
        f"warning: {where}the knowledge base does not know {len(unknown):,} gold ids "
        f"(such as {examples}){effect}",
        err=True,
    )
