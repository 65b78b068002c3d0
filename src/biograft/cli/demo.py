"""``biograft demo``: build, train, link and evaluate on built-in data, or show notes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.options import open_kb
from biograft.errors import ConfigError, MissingExtraError, OutputError
from biograft.language import READER
from biograft.progress import align

if TYPE_CHECKING:
    from biograft.evaluation import AssertionDocument
    from biograft.linking import Linker

_MENTIONS = ("hart atack", "suger diabetes", "kidney failing", "老年性痴呆症")
_SETTINGS = (
    *("encoder.max_length=48", "training.steps=150", "training.learning_rate=2e-3"),
    *("training.save_every=0", "training.eval_every=0"),
)
"""Settings of the training: an encoder so small is trained in seconds."""


def demo(
    part: Annotated[str, typer.Argument(metavar="[start|notes]")] = "start",
    out: Annotated[Path, "-o", "--out", "DIR"] = Path("demo"),
    language: Annotated[str, "en|zh"] = "en",
    serve: Annotated[bool | None, "--serve/--no-serve"] = None,
) -> None:
    """Build, train, link and evaluate on built-in data, or find findings in clinical notes.

    Args:
        part: start: build, train, link and evaluate; notes: find findings in clinical notes.
        out: Folder for the files of the demo.
        language: notes: language of the notes.
        serve: start: serve the page at the end, until Ctrl-C. Default: on a terminal only.
    """
    if part == "notes":
        _show_notes(out / "notes", language)
        return
    if part != "start":
        raise ConfigError(f"demo: expected start or notes, found {part!r}")
    # so small an encoder is faster with one thread than with several
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    store, index = out / "starter", out / "index"
    _build(store, "starter")
    _run("kb", "show", store, "D009203", "-k", "3")
    for query in ("heart attack", "2型糖尿病"):
        _run("kb", "search", store, query, "-k", "3")
    encoders = _train(store, out / "encoder")
    if encoders is not None:
        trained = ("--encoder", encoders / "run" / "encoder")
        _run("index", store, *trained, "-o", index, unseen=_AGAIN)
        untrained = ("--encoder", encoders / "untrained")
        _run("index", store, *untrained, "-o", out / "index-untrained", unseen=_AGAIN)
    else:
        _run("index", store, "-o", index, unseen=_AGAIN)
    _link(store, index, out / "demo.html")
    _evaluate(store, index, out / "index-untrained" if encoders is not None else None)
    typer.echo(f"\nEverything is in {out}; open {out / 'demo.html'} in a browser.")
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    _serve(out, wanted=on_terminal if serve is None else serve)


_AGAIN = ("--overwrite", "--quiet")
"""Options of the commands that are not shown: a demo may be run again."""


def _run(*words: str | Path, unseen: Sequence[str] = ()) -> None:
    """Print a command, and run it.

    Args:
        words: The command and its arguments.
        unseen: Further options, which are not printed.
    """
    from biograft.cli import make_app

    command, *arguments = map(str, words)
    typer.echo(f"$ biograft {shlex.join([command, *arguments])}")
    make_app(command)([command, *arguments, *unseen], standalone_mode=False)
    typer.echo()


def _build(store: Path, *sources: str) -> None:
    """Build the knowledge base of a demo; one that no earlier demo has made is not replaced."""
    from biograft.kb.manifest import is_store, read_manifest

    if is_store(store) and {s["format"] for s in read_manifest(store)["sources"]} != {"jsonl"}:
        raise OutputError(f"{store}: not made by a demo; choose another folder with -o")
    _run("kb", "build", *sources, "-o", store, unseen=_AGAIN)


def _train(store: Path, folder: Path) -> Path | None:
    """Train a small encoder on the synonyms.

    Args:
        store: Folder of the knowledge base.
        folder: Folder for the encoder before training and for the run.

    Returns:
        The folder; None without torch.
    """
    try:
        from biograft.models.scratch import make_character_encoder
    except (ModuleNotFoundError, MissingExtraError):
        typer.echo(f"no trained encoder: {MissingExtraError('models', 'training an encoder')}\n")
        return None
    from biograft.artifacts import new_folder

    untrained = folder / "untrained"
    if folder.exists() and not untrained.is_dir():
        raise OutputError(f"{folder}: not made by a demo; choose another folder with -o")
    names = open_kb(store).table("names").column("text").to_pylist()
    with new_folder(folder, overwrite=True) as work:
        make_character_encoder(names, work / "untrained")
    settings = [word for setting in _SETTINGS for word in ("--set", setting)]
    command = ("pretrain", "sapbert-cpu", "--kb", str(store), "--encoder", str(untrained))
    _run(*command, *settings, "-o", folder / "run", unseen=["--quiet"])
    return folder


def _link(store: Path, index: Path, page: Path) -> None:
    """Link two texts, and terms that are spelled like no name."""
    from biograft.evaluation import read_assertions

    options = ("--kb", store, "--index", index)
    notes = [note for name in ("en", "zh") for note in read_assertions(f"notes-{name}-demo")]
    texts = [note.text for note in notes if note.id.endswith("-start")]
    for text in texts:
        _run("link", text, *options, unseen=["--quiet"])
    _run("link", *_MENTIONS, "--terms", "-k", "2", *options, unseen=["--quiet"])
    _run("link", *texts, *options, "-o", page, unseen=_AGAIN)


def _evaluate(store: Path, index: Path, untrained: Path | None) -> None:
    """Compare searches on the built-in sample, which no part was trained on."""
    from biograft.evaluation import EvaluationConfig, evaluate_linking, read_gold
    from biograft.linking import Linker

    base, config = open_kb(store), EvaluationConfig(n_resamples=1)
    typer.echo(f"$ biograft evaluate link --kb {store} --gold starter --format sample ...")
    queries = read_gold("starter", "sample").queries
    typer.echo(f"{len(queries)} mentions, percent     acc@1  acc@5")
    searches = [("lexical", index, "lexical"), ("dense", index, "dense")]
    if untrained is not None:
        searches.append(("dense, untrained", untrained, "dense"))
    for label, folder, search in (*searches, ("lexical and dense", index, None)):
        linker = Linker.open(base, folder, search=search)
        metrics = evaluate_linking(linker, base, queries, config=config).metrics
        typer.echo(f"  {label:22} {100 * metrics['acc@1']:6.1f} {100 * metrics['acc@5']:6.1f}")


def _serve(out: Path, *, wanted: bool) -> None:
    """Serve the page, or say how to; scripts that run the demo come to an end."""
    command = f"biograft serve --kb {out / 'starter'} --index {out / 'index'}"
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        typer.echo(
            f"{MissingExtraError('serve', 'The page of findings and concepts')}; then: {command}"
        )
        return
    if not wanted:
        typer.echo(f"The page of findings and concepts: {command}")
        return
    from biograft.serve.run import free_port, run_service

    port = free_port()
    typer.echo(f"\n$ {command} --port {port}")
    run_service(
        out / "starter",
        out / "index",
        port=port,
        ready=lambda address: typer.echo(f"Open {address} in a browser; Ctrl-C stops the service."),
    )


def _show_notes(store: Path, language: str) -> None:
    """Show the findings of a note, and compare those of the held-out notes with the gold standard.

    Args:
        store: Folder for the knowledge base.
        language: Language of the notes.
    """
    from biograft.evaluation import read_assertions
    from biograft.linking import Linker

    if language not in ("en", "zh"):
        raise ConfigError(f"--language: expected en or zh, found {language!r}")
    _build(store, "starter", "clinical-findings")
    shown = read_assertions(f"notes-{language}-demo")
    linker = Linker.open(open_kb(store), k=1)
    note = next(note for note in shown if note.id == f"{language}-demo")
    _print_findings(linker, note, language)
    typer.echo()
    _run("evaluate", "findings", "--kb", store, "--gold", f"notes-{language}-test")


def _print_findings(linker: Linker, note: AssertionDocument, language: str) -> None:
    """Print a note and the findings in it.

    Args:
        linker: The linker.
        note: The note.
        language: That of the names of concepts.
    """
    from biograft.text.documents import Document

    typer.echo(f"{note.text}\n")
    rows = [("finding", "concept", "status", "section", "value")]
    for mention in linker(Document(note.id, note.text)).mentions:
        if mention.concept is not None:
            values = ", ".join(each.text for each in mention.measurements)
            name = linker.kb.name_in(linker.kb.row(mention.concept), language)
            status, section = map(READER.translate, (mention.status or "", mention.section or ""))
            rows.append((mention.text, name, status, section, values))
    for line in align(rows):
        typer.echo(f"  {line}")
