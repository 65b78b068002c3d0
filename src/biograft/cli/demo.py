"""``biograft demo``: build, train, link and evaluate on built-in data, or show notes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.evaluate import FINDING_TYPES, print_findings
from biograft.cli.kb import print_concept, print_matches, print_report
from biograft.config import split_list
from biograft.errors import ConfigError, MissingExtraError, OutputError

if TYPE_CHECKING:
    from biograft.evaluation import AssertionDocument
    from biograft.kb import KnowledgeBase
    from biograft.linking import FusedSearch, Linker

_QUERIES = ("heart attack", "2型糖尿病")
_MENTIONS = ("hart atack", "suger diabetes", "kidney failing", "老年性痴呆症")
_STEPS, _LEARNING_RATE, _MAX_LENGTH = 150, 2e-3, 48


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
        _check_store(out / "notes")
        demo_notes(out / "notes", language)
        return
    if part != "start":
        raise ConfigError(f"demo: expected start or notes, found {part!r}")
    # so small an encoder is faster with one thread than with several
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    base = _build(out / "starter")
    _show(base, out / "starter")
    encoders = _train(base, out / "encoder")
    linkers = list(_index(base, out, encoders))
    _link(linkers[-1][1], out)
    _evaluate(base, linkers)
    typer.echo(f"\nEverything is in {out}; open {out / 'demo.html'} in a browser.")
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    _serve(out, wanted=on_terminal if serve is None else serve)


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


def _build(store: Path) -> KnowledgeBase:
    from biograft.kb import KnowledgeBase, build_starter

    _check_store(store)
    typer.echo(f"$ biograft kb build starter -o {store}")
    print_report(build_starter(store, overwrite=True))
    start = time.perf_counter()
    base = KnowledgeBase.open(store)
    typer.echo(f"opened in {(time.perf_counter() - start) * 1e3:.1f} ms")
    return base


def _check_store(store: Path) -> None:
    """Refuse to replace a store that no earlier demo has made."""
    from biograft.kb.manifest import is_store, read_manifest

    if is_store(store) and {s["format"] for s in read_manifest(store)["sources"]} != {"jsonl"}:
        raise OutputError(f"{store}: not made by a demo; choose another folder with -o")


def _show(base: KnowledgeBase, store: Path) -> None:
    from biograft.kb import search_names

    typer.echo(f"\n$ biograft kb show {store} D009203 -k 3")
    concept = base["D009203"]
    relations = base.relations(concept.id, limit=3)
    print_concept(concept, relations, base.count_relations(concept.id), 3)
    for query in _QUERIES:
        typer.echo(f"\n$ biograft kb search {store} '{query}' -k 3")
        print_matches(search_names(base, query, limit=3), query)


def _train(base: KnowledgeBase, folder: Path) -> dict[str, Path]:
    """Train a small encoder on the synonyms.

    Returns the encoder before and after training; nothing without torch.
    """
    try:
        from biograft.models.scratch import make_character_encoder
        from biograft.training.pretraining.recipe import PretrainingRecipe
        from biograft.training.pretraining.run import pretrain
    except (ModuleNotFoundError, MissingExtraError):
        typer.echo(f"\nno dense search: {MissingExtraError('models', 'training an encoder')}")
        return {}
    from biograft.artifacts import new_folder

    if folder.exists() and not (folder / "untrained").is_dir():
        raise OutputError(f"{folder}: not made by a demo; choose another folder with -o")
    overrides = [
        f"encoder.max_length={_MAX_LENGTH}",
        f"training.steps={_STEPS}",
        f"training.learning_rate={_LEARNING_RATE}",
        "training.save_every=0",
        "training.eval_every=0",
    ]
    options = "".join(f" --set {override}" for override in overrides)
    typer.echo(
        f"\n$ biograft pretrain sapbert-cpu --kb {base.folder} --encoder {folder / 'untrained'}"
        f"{options} -o {folder / 'run'}"
    )
    with new_folder(folder, overwrite=True) as work:
        make_character_encoder(base.table("names").column("text").to_pylist(), work / "untrained")
        encoder = f"encoder.name={json.dumps(str(work / 'untrained'))}"
        recipe = PretrainingRecipe.load("sapbert-cpu", [encoder, *overrides])
        training = pretrain(recipe, base, work / "run").training
    typer.echo(f"{training.step:,} steps on the synonyms in {training.seconds:.1f} s")
    return {"untrained": folder / "untrained", "trained": folder / "run" / "encoder"}


def _index(
    base: KnowledgeBase, out: Path, encoders: dict[str, Path]
) -> Iterator[tuple[str, Linker]]:
    """Build a lexical index, and one with each encoder; the best linker comes last."""
    from biograft.linking import FusedSearch, Linker

    search = _build_index(base, out / ("index-lexical" if encoders else "index"))
    yield "lexical", Linker(base, FusedSearch(search.generators[:1]))
    for state, encoder in encoders.items():
        folder = out / ("index" if state == "trained" else f"index-{state}")
        search = _build_index(base, folder, encoder)
        yield f"dense, {state}", Linker(base, FusedSearch(search.generators[1:]))
    if encoders:
        yield "lexical and dense", Linker(base, search)


def _build_index(base: KnowledgeBase, folder: Path, encoder: Path | None = None) -> FusedSearch:
    from biograft.linking import build_index, open_index

    option = f" --encoder {encoder}" if encoder else ""
    typer.echo(f"\n$ biograft index {base.folder}{option} -o {folder}")
    start = time.perf_counter()
    loaded = None
    if encoder is not None:
        from biograft.linking.dense.encoders import load_encoder

        loaded = load_encoder(encoder)
    manifest = build_index(base, folder, loaded, overwrite=True)
    seconds, parts = time.perf_counter() - start, " and ".join(manifest["parts"])
    typer.echo(f"{manifest['n_names']:,} names indexed ({parts}) in {seconds:.1f} s: {folder}")
    return open_index(base, folder).search


def _link(linker: Linker, out: Path) -> None:
    """Link two texts, and mentions that are spelled like no name."""
    from biograft.evaluation import read_assertions
    from biograft.linking import write_linked
    from biograft.linking.outputs.lines import candidates_table, table
    from biograft.text.documents import Document, Mention

    options = f"--kb {linker.kb.folder} --index {out / 'index'}"
    notes = [n for name in ("en", "zh") for n in read_assertions(f"notes-{name}-demo")]
    texts = [note.text for note in notes if note.id.endswith("-start")]
    documents = [Document(f"text {n}", text) for n, text in enumerate(texts, 1)]
    linked = list(linker.pipe(documents))
    for document in linked:
        typer.echo(f"\n$ biograft link '{document.document.text}' {options}")
        typer.echo("\n".join(table(document)))
    lines = r"\n".join(_MENTIONS)
    typer.echo(f"\n$ printf '{lines}' | biograft link - --terms -k 2 {options}")
    mentions = [
        Document(f"stdin:{n}", m, (Mention(0, len(m), m),)) for n, m in enumerate(_MENTIONS, 1)
    ]
    typer.echo("\n".join(candidates_table(linker.pipe(mentions), 2)))
    write_linked(linked, out / "demo.html", "html", linker.kb, overwrite=True)


def _evaluate(base: KnowledgeBase, linkers: list[tuple[str, Linker]]) -> None:
    """Evaluate each linker on the built-in sample, which no part was trained on."""
    from biograft.evaluation import EvaluationConfig, evaluate_linking, read_gold

    typer.echo(f"\n$ biograft evaluate link --kb {base.folder} --gold starter --format sample ...")
    queries = read_gold("starter", "sample").queries
    typer.echo(f"{len(queries)} mentions, percent     acc@1  acc@5")
    for label, linker in linkers:
        result = evaluate_linking(linker, base, queries, config=EvaluationConfig(n_resamples=1))
        acc1, acc5 = (100 * result.metrics[name] for name in ("acc@1", "acc@5"))
        typer.echo(f"  {label:22} {acc1:6.1f} {acc5:6.1f}")


def demo_notes(store: Path, language: str) -> None:
    """Link the held-out notes of a language, and compare the findings with the gold standard."""
    from biograft.evaluation import evaluate_findings, read_assertions
    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.sources import SourceConfig
    from biograft.linking import Linker

    if language not in ("en", "zh"):
        raise ConfigError(f"--language: expected en or zh, found {language!r}")
    typer.echo(f"$ biograft kb build starter clinical-findings -o {store}")
    sources = tuple(SourceConfig(path=Path(name)) for name in ("starter", "clinical-findings"))
    print_report(build_store(BuildConfig(sources=sources), store, overwrite=True))
    linker = Linker.open(KnowledgeBase.open(store), k=1)
    name = f"notes-{language}-test"
    notes = list(read_assertions(name))
    shown = read_assertions(f"notes-{language}-demo")
    _print_findings(linker, next(note for note in shown if note.id == f"{language}-demo"))
    typer.echo(f"\n$ biograft evaluate findings --kb {store} --gold {name}")
    start = time.perf_counter()
    result = evaluate_findings(linker, notes, split_list(FINDING_TYPES))
    seconds = time.perf_counter() - start
    print_findings(result)
    typer.echo(f"\n{len(notes)} notes linked and compared in {seconds:.1f} s.")


def _print_findings(linker: Linker, note: AssertionDocument) -> None:
    """Print a note and the findings in it."""
    from biograft.text.documents import Document

    typer.echo(f"\n{note.text}\n")
    rows = [("finding", "concept", "status", "section", "value")]
    for mention in linker(Document(note.id, note.text)).mentions:
        if mention.concept is not None:
            values = ", ".join(each.text for each in mention.measurements)
            name = linker.kb[mention.concept].name
            rows.append((mention.text, name, mention.status or "", mention.section or "", values))
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        )
        typer.echo("  " + "  ".join(cells).rstrip())


def _width(text: str) -> int:
    """Return how many columns a text takes; a Chinese character takes two."""
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
