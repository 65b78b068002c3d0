"""``biograft verify``: the ids and labels in files against a knowledge base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.fields import Offered
from biograft.cli.options import Json, Kb, Overwrite, Quiet, warn_value_set
from biograft.errors import ConfigError
from biograft.kb.verify.config import VerifyConfig
from biograft.language import READER
from biograft.progress import Progress

if TYPE_CHECKING:
    from biograft.kb.verify import FileVerifier, IdFinding


def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    kb: Kb,
    config: Annotated[VerifyConfig, Offered()],
    fix: bool = False,
    strict: bool = False,
    to: Annotated[str, "text|json|junit|sarif"] = "text",
    out: Annotated[Path | None, "-o", "--out", "OUT"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Verify the ids in files: that they exist, and that their labels are those of the concepts.

    Tables, workbooks, JSON, YAML, OBO, Turtle, Markdown and any text are read. The exit status is
    1 if there is an error: an unknown or retired id, the label of another concept, a misspelt
    label, an id of another vocabulary, branch or value set than asked for.

    Args:
        files: Files, or folders with some.
        fix: Correct in the files what is certain: retired ids with one successor, misspelt labels.
        strict: Count warnings as errors.
        to: Format of the report.
        out: File to write the report to; default: stdout.
    """
    from biograft.artifacts import new_file
    from biograft.kb import KnowledgeBase
    from biograft.kb.verify import REPORTS, FileVerifier, files_of, write_report

    form = "json" if as_json else to
    if form not in REPORTS:
        raise ConfigError(f"--to: expected one of {', '.join(REPORTS)}, found {form!r}")
    paths = files_of(files)
    progress = Progress(enabled=not quiet)
    if form == "text" and out is None and not config.name_language:
        config = replace(config, name_language=READER.language)
    verifier = FileVerifier(KnowledgeBase.open(kb), config)
    warn_value_set(verifier.value_set)
    lines = write_report(form, _findings(verifier, paths, fix, progress), paths)
    if out is None:
        for line in lines:
            typer.echo(line)
    else:
        with new_file(out, overwrite=overwrite) as file:
            for line in lines:
                file.write(f"{line}\n".encode())
    progress.finish()
    done = verifier.done
    n_errors, n_warnings = done.n("error"), done.n("warning")
    if not done.n_pairs:
        known = ", ".join(verifier.vocabularies) or "this knowledge base"
        typer.echo(f"warning: no id of {known} was found, so nothing was verified", err=True)
    if not quiet:
        fixed = f", {done.n_fixed:,} corrected" if fix else ""
        typer.echo(
            f"{done.n_pairs:,} ids in {done.n_files:,} files: {n_errors:,} errors, "
            f"{n_warnings:,} warnings{fixed}",
            err=True,
        )
    if n_errors - done.n_fixed + (n_warnings if strict else 0) > 0:
        raise typer.Exit(1)


def _findings(
    verifier: FileVerifier, paths: list[Path], fix: bool, progress: Progress
) -> Iterator[IdFinding]:
    for path in paths:
        progress.start(f"verifying {path.name}")
        yield from verifier.verify(path, fix=fix)
