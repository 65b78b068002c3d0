"""Shared parts of commands: options, their values, JSON output, warnings on stderr."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from biograft.errors import ConfigError, visible

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase, ValueSetMembers
    from biograft.linking import Linker
    from biograft.linking.config import LinkerConfig, LinkerFiles
    from biograft.text.inputs import Inputs

REJECTED = 1
"""Exit status when records or files were left out and all others were read."""

_MAX_EXAMPLES = 3
"""Printed examples of each reason."""
_SHOWN = 20
"""Maximum lines about what was left out."""
_KB = "Folder of the knowledge base, or starter: the built-in one."


def _folder_of(kb: Path | None) -> Path | None:
    """Return the folder of a knowledge base; that of the built-in one, which is built once."""
    if kb != Path("starter") or kb.exists():
        return kb
    from biograft.opening import open_starter

    return open_starter().folder


_KB_OPTION = typer.Option("--kb", metavar="KB", help=_KB, callback=_folder_of)

Store = Annotated[Path, typer.Argument(metavar="KB", help=_KB, callback=_folder_of)]
"""The knowledge base that a command is about; ``Kb`` where a command only needs one."""

Kb = Annotated[Path, _KB_OPTION]
OptionalKb = Annotated[Path | None, _KB_OPTION]


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
SET = "Override a value of the recipe; -TABLE.KEY leaves one, or a table, out."
SWEEP = "Train with each of these values, all combinations; the best by dev is named and tested."
SWEEP_VALUES = "TABLE.KEY=V,V"
Sweep = Annotated[list[str] | None, typer.Option("--sweep", metavar=SWEEP_VALUES, help=SWEEP)]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.KEY=VALUE", help=SET),
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")]

Engine = Annotated[str, typer.Option("--engine", metavar="local|ray", help="Where to run.")]

OutFile = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="File to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing outputs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def is_given(context: typer.Context, name: str) -> bool:
    """Return True if the command line gives an option, whatever its value.

    Args:
        context: Context of the command.
        name: Name of the parameter.
    """
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def refuse_given(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Refuse options that do not apply.

    Args:
        context: Context of the command.
        names: Names of their parameters.
        reason: Why, and what to do.
    """
    for parameter in context.command.params:
        if parameter.name in names and is_given(context, parameter.name):
            raise ConfigError(f"{parameter.opts[-1]}: {reason}")


def print_json(value: Any) -> None:
    """Print one JSON object on one line of stdout."""
    typer.echo(json.dumps(value, ensure_ascii=False))


_MAX_IDS = 3
_MANY_NAMES = 500_000
"""Indexing so many takes some seconds."""


def refuse_input_as_output(out: Path | None, *inputs: str | Path | None) -> None:
    """Refuse to write to a file that is read: what was in it would be gone.

    Args:
        out: File to write.
        inputs: Files that are read; None is none.
    """
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


def open_kb(folder: Path) -> KnowledgeBase:
    """Open a knowledge base.

    Args:
        folder: Its folder.
    """
    from biograft.kb import KnowledgeBase

    return KnowledgeBase.open(folder)


def note_without_index(base: KnowledgeBase, index: Path | None, *, quiet: bool = False) -> None:
    """Say that a large knowledge base without an index is indexed anew in each process.

    Args:
        base: Knowledge base.
        index: Index that was given.
        quiet: Say nothing.
    """
    if index is None and not quiet and base.n_names >= _MANY_NAMES:
        typer.echo(
            f"note: {base.n_names:,} names are being indexed in memory, which takes long; "
            "`biograft index` does it once, for --index",
            err=True,
        )


def open_linker(
    base: KnowledgeBase, files: LinkerFiles, linker: LinkerConfig, *, quiet: bool = False
) -> Linker:
    """Open a linker; note that a large knowledge base is indexed in memory without an index.

    Args:
        base: The knowledge base.
        files: The index and the trained parts.
        linker: Settings.
        quiet: Leave the note out.
    """
    from biograft.linking import Linker

    note_without_index(base, files.index, quiet=quiet)
    opened = Linker.open(base, **vars(files), config=linker)
    warn_value_set(opened.value_set)
    return opened


def warn_value_set(members: ValueSetMembers | None) -> None:
    """Warn of the ids that a value set lists and a knowledge base does not have.

    Args:
        members: The members, if a value set is given.
    """
    if members is not None and members.note:
        typer.echo(visible(f"warning: {members.note}"), err=True)


def warn_left_out(counts: Mapping[str, int], what: str, where: str = "") -> None:
    """Warn how many rows of a file were left out, by reason.

    Args:
        counts: Number of rows by reason.
        what: What a row is called.
        where: Text before the number, such as the name of the file.
    """
    for reason, n in counts.items():
        typer.echo(f"warning: {where}{n:,} {what} left out: {reason}", err=True)


def print_sweep(
    recipe: str | Path, out: Path, values: Sequence[str], *, as_json: bool, **options: Any
) -> None:
    """Train with each combination of values, and print the dev scores and the best.

    Args:
        recipe: Name or file of the recipe.
        out: Folder of the sweep.
        values: The values, as ``table.key=value,value``.
        as_json: Print JSON.
        options: Options of ``sweep``.
    """
    from biograft.progress import align
    from biograft.training.sweeps import read_grid, sweep

    result = sweep(recipe, out, read_grid(values), **options)
    if as_json:
        print_json(result.to_json())
        return
    for line in align(result.lines()):
        typer.echo(f"  {line}")
    test = "" if result.test is None else f"; test {result.metric} {result.test:.4f}"
    typer.echo(f"best: {out / result.best['run']}{test}")


def print_log(log: Mapping[str, Any]) -> None:
    """Print what a reader filtered, rejected and doubted, with examples, and its notes.

    Args:
        log: The log of a source, as plain values.
    """
    for reason, n in log["filtered"].items():
        typer.echo(f"  filtered  {n:,}  {reason}")
    for what in ("rejected", "doubtful"):
        for reason, entry in log[what].items():
            typer.echo(f"  {what}  {entry['n']:,}  {reason}")
            for example in entry["examples"][:_MAX_EXAMPLES]:
                typer.echo(
                    visible(f"{'':12}{example['file']}:{example['line']}: {example['text']}")
                )
    for note in log.get("notes", ()):
        typer.echo(f"  note      {note}")


def warn_faulty(what: str, faults: Mapping[str, Any]) -> None:
    """Warn of faulty records, with an example of each reason.

    Args:
        what: The records, and what was done with them.
        faults: Counts and examples by reason, as plain values.
    """
    for reason, entry in faults.items():
        typer.echo(f"warning: {entry['n']:,} {what}: {reason}", err=True)
        for example in entry["examples"][:1]:
            line = f"  {example['file']}:{example['line']}: {example['text']}"
            typer.echo(visible(line), err=True)


def report_inputs(inputs: Inputs) -> bool:
    """Report on stderr what was left out of inputs; return whether anything was."""
    for note in inputs.notes:
        typer.echo(f"warning: {note}", err=True)
    warn_faulty("records left out", inputs.log.rejected.to_json())
    warn_faulty("records corrected", inputs.log.doubtful.to_json())
    for error in inputs.skipped:
        typer.echo(visible(f"skipped: {error}"), err=True)
    return bool(inputs.log.rejected.counts or inputs.skipped)


def report_encoding(path: Path, encoding: str = "utf-8") -> None:
    """Report on stderr if a file is read in another encoding than the one configured.

    Args:
        path: File that is read.
        encoding: Name of the configured encoding.
    """
    from biograft.text.virtual_files import GB18030, READ_AS_GB18030, text_encoding

    if text_encoding(path, encoding) == GB18030 != encoding:
        typer.echo(f"warning: {path}: {READ_AS_GB18030}", err=True)


def warn_without_text(n: int, n_queries: int, where: str = "") -> None:
    """Warn how many gold mentions have no match in the documents of ``--text``.

    Args:
        n: Number of mentions without a match.
        n_queries: Number of all mentions.
        where: Text before the number.
    """
    if n:
        typer.echo(
            f"warning: {where}{n:,} of {n_queries:,} mentions are not in the documents of --text, "
            "and stand alone",
            err=True,
        )


def warn_unknown(unknown: Collection[str], effect: str = "", where: str = "") -> None:
    """Warn which gold ids are not in the knowledge base, and what follows from that.

    Args:
        unknown: The ids.
        effect: What follows, as the end of the sentence.
        where: Text before the sentence.
    """
    if not unknown:
        return
    examples = ", ".join(sorted(unknown)[:_MAX_IDS])
    typer.echo(
        f"warning: {where}the knowledge base does not know {len(unknown):,} gold ids "
        f"(such as {examples}){effect}",
        err=True,
    )
