"""``biograft cblue``: tasks, predict, score, pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biograft.cli.fields import CommandGroup
from biograft.cli.options import (
    Json,
    OptionalKb,
    OutFile,
    Overwrite,
    Quiet,
    open_kb,
    open_linker,
    print_json,
    refuse_input_as_output,
)
from biograft.linking.config import LinkerConfig, LinkerFiles

app = CommandGroup("CBLUE: predict and score its tasks in the official layouts.")

_Task = Annotated[str, typer.Argument(metavar="TASK", help="Task, such as CMeEE-V2.")]


@app.command()
def tasks(as_json: Json = False) -> None:
    """List the tasks, with the file of a submission, the metric and the recipe."""
    from biograft.evaluation import CBLUE
    from biograft.progress import align

    rows = [
        {"task": t.name, "file": t.file, "metric": t.metric, "recipe": t.recipe, "about": t.about}
        for t in CBLUE.values()
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    typer.echo("\n".join(align([tuple(row.values()) for row in rows])))


@app.command()
def predict(
    task: _Task,
    file: Annotated[Path, typer.Argument(metavar="FILE")],
    out: OutFile,
    model: Annotated[Path | None, "MODEL"] = None,
    kb: OptionalKb = None,
    index: Annotated[Path | None, "INDEX"] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the answers of a file and write them in the official layout.

    Args:
        file: File of the benchmark, such as CMeEE-V2_test.json; of IMCS-V2 the one with the
            dialogues.
        model: Model that the recipe of the task has trained; of CHIP-CDN a trained ranker.
        index: For CHIP-CDN: index of KB; default: lexical search.
    """
    from biograft.evaluation import write_submission

    refuse_input_as_output(out, file)
    linker = None
    if kb is not None:
        files = LinkerFiles(index=index, model=model)
        linker = open_linker(open_kb(kb), files, LinkerConfig(), quiet=quiet)
    n = write_submission(task, file, out, model=model, linker=linker, overwrite=overwrite)
    if as_json:
        print_json({"task": task, "n": n, "out": str(out)})
    else:
        typer.echo(f"{n:,} answers written to {out}")


@app.command()
def score(
    task: _Task,
    gold: Annotated[Path, typer.Argument(metavar="GOLD")],
    submission: Annotated[Path, typer.Argument(metavar="SUBMISSION")],
    as_json: Json = False,
) -> None:
    """Score a submission by the official metric of its task.

    Args:
        gold: File with the right answers, such as CMeEE-V2_dev.json.
        submission: Predictions for it in the official layout.
    """
    from biograft.evaluation import score_submission

    metrics = score_submission(task, gold, submission)
    if as_json:
        print_json(metrics)
        return
    for name, value in metrics.items():
        typer.echo(f"  {name:12} {value}")


@app.command()
def pack(
    files: Annotated[list[Path], typer.Argument(metavar="FILE")],
    out: OutFile,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Check submissions as the benchmark does, and pack them into a zip archive.

    Args:
        files: Submissions with their official names, such as CMeEE-V2_test.json.
    """
    from biograft.evaluation import pack_submissions

    names = pack_submissions(files, out, overwrite=overwrite)
    if as_json:
        print_json({"tasks": names, "out": str(out)})
    else:
        typer.echo(f"{', '.join(names)}: {out}")
