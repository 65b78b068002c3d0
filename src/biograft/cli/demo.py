"""``biograft demo``: the whole way on the knowledge base that ships with the package."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biograft.cli.kb import print_concept, print_matches, print_report
from biograft.errors import MissingExtraError, OutputError

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.linking import FusedSearch, Linker

_QUERIES = ("heart attack", "2型糖尿病")
_TEXTS = (
    "72-year-old man with high blood pressure and atrial fibrillation (AF). For his AF he takes "
    "warfarin; a heart attack was ruled out. No fever, no SOB.",
    "患者女，58岁，2型糖尿病10年，高血压5年，口服二甲双胍，近日头痛、发热。",
)
_MENTIONS = ("hart atack", "suger diabetes", "kidney failing", "老年性痴呆症")
_STEPS, _RATE, _LONGEST = 150, 2e-3, 48


def demo(
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for what the demo makes.")
    ] = Path("demo"),
) -> None:
    """Build the starter knowledge base, train a small encoder on it, link text, measure."""
    # threads of so small an encoder wait for one another longer than they work
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    base = _build(out / "starter")
    _show(base, out / "starter")
    encoders = _align(base, out / "encoder")
    linkers = list(_index(base, out, encoders))
    _link(linkers[-1][1], out)
    _measure(base, linkers)
    typer.echo(f"\nEverything is in {out}; look at {out / 'demo.html'} in a browser.")


def _build(store: Path) -> KnowledgeBase:
    from biograft.kb import KnowledgeBase, build_starter

    _refuse_other(store)
    typer.echo(f"$ biograft kb build starter -o {store}")
    print_report(build_starter(store, overwrite=True))
    start = time.perf_counter()
    base = KnowledgeBase.open(store)
    typer.echo(f"opened in {(time.perf_counter() - start) * 1e3:.1f} ms")
    return base


def _refuse_other(store: Path) -> None:
    """Replace what an earlier demo made, and nothing else."""
    from biograft.kb.manifest import is_store, read_manifest

    if is_store(store) and [s["format"] for s in read_manifest(store)["sources"]] != ["jsonl"]:
        raise OutputError(f"{store}: is a knowledge base of yours; choose another place with -o")


def _show(base: KnowledgeBase, store: Path) -> None:
    from biograft.kb import search

    typer.echo(f"\n$ biograft kb show {store} D009203")
    concept = base["D009203"]
    print_concept(concept, base.relations(concept.id), 3)
    for query in _QUERIES:
        typer.echo(f"\n$ biograft kb search {store} '{query}' -k 3")
        print_matches(search(base, query, limit=3), query)


def _align(base: KnowledgeBase, folder: Path) -> dict[str, Path]:
    """Train a small encoder on the synonyms; give it before and after, or nothing without torch."""
    try:
        from biograft.nn.scratch import make_character_encoder
        from biograft.pretraining.recipe import Recipe
        from biograft.pretraining.run import pretrain
    except (ModuleNotFoundError, MissingExtraError):
        missing = MissingExtraError("models", "training an encoder")
        typer.echo(f"\nno search by vectors: {missing}")
        return {}
    from biograft.artifacts import new_folder

    if folder.exists() and not (folder / "untrained").is_dir():
        raise OutputError(f"{folder}: is a folder of yours; choose another place with -o")
    changes = {
        "encoder.max_length": _LONGEST, "training.steps": _STEPS,
        "training.learning_rate": _RATE, "training.save_every": 0, "training.eval_every": 0,
    }  # fmt: skip
    settings = [f"{key}={value}" for key, value in changes.items()]
    options = "".join(f" --set {setting}" for setting in settings)
    typer.echo(
        f"\n$ biograft pretrain sapbert-cpu --kb {base.folder} --encoder {folder / 'untrained'}"
        f"{options} -o {folder / 'run'}"
    )
    with new_folder(folder, overwrite=True) as work:
        make_character_encoder(base.table("names").column("text").to_pylist(), work / "untrained")
        named = f"encoder.name={json.dumps(str(work / 'untrained'))}"
        recipe = Recipe.load("sapbert-cpu", [named, *settings])
        trained = pretrain(recipe, base, work / "run").training
    typer.echo(f"{trained.step:,} steps on synonyms of the store in {trained.seconds:.1f} s")
    return {"untrained": folder / "untrained", "trained": folder / "run" / "encoder"}


def _index(
    base: KnowledgeBase, out: Path, encoders: dict[str, Path]
) -> Iterator[tuple[str, Linker]]:
    """Make an index with each encoder, or one by letters; the best linker comes last."""
    from biograft.linking import FusedSearch, Linker

    search = _open_new(base, out / "index")
    yield "letters", Linker(base, FusedSearch(search.generators[:1]))
    for state, encoder in encoders.items():
        place = out / ("index" if state == "trained" else f"index-{state}")
        search = _open_new(base, place, encoder)
        yield f"vectors, {state}", Linker(base, FusedSearch(search.generators[1:]))
    if encoders:
        yield "letters and vectors", Linker(base, search)


def _open_new(base: KnowledgeBase, place: Path, encoder: Path | None = None) -> FusedSearch:
    from biograft.linking import build_index, open_index

    named = f" --encoder {encoder}" if encoder else ""
    typer.echo(f"\n$ biograft index {base.folder}{named} -o {place}")
    start = time.perf_counter()
    loaded = None
    if encoder is not None:
        from biograft.nn import TextEncoder

        loaded = TextEncoder.from_pretrained(encoder)
    manifest = build_index(base, place, loaded, overwrite=True)
    seconds = time.perf_counter() - start
    typer.echo(f"{manifest['n_names']:,} names, {' and '.join(manifest['parts'])}: {seconds:.1f} s")
    return open_index(base, place).search


def _link(linker: Linker, out: Path) -> None:
    """Link two texts and some mentions that no name is exactly like."""
    from biograft.documents import Document, Mention
    from biograft.linking import write_html
    from biograft.linking.output import candidates_table, table

    place = f"--kb {linker.kb.folder} --index {out / 'index'}"
    documents = [Document(f"text {n}", text) for n, text in enumerate(_TEXTS, 1)]
    linked = list(linker.pipe(documents))
    for each in linked:
        typer.echo(f"\n$ biograft link '{each.document.text}' {place}")
        typer.echo("\n".join(table(each)))
    lines = r"\n".join(_MENTIONS)
    typer.echo(f"\n$ printf '{lines}' | biograft link - --mentions -k 2 {place}")
    asked = [Document(f"{n}", m, (Mention(0, len(m), m),)) for n, m in enumerate(_MENTIONS, 1)]
    typer.echo("\n".join(candidates_table(linker.pipe(asked), 2)))
    write_html(linked, linker.kb, out / "demo.html", overwrite=True)


def _measure(base: KnowledgeBase, linkers: list[tuple[str, Linker]]) -> None:
    """Say how often the first answer is right on the sample, which nothing was trained on."""
    from biograft.evaluation import EvaluationConfig, evaluate_linking, read_gold

    typer.echo(f"\n$ biograft evaluate link --kb {base.folder} --gold starter --format sample ...")
    queries = read_gold("starter", "sample").queries
    typer.echo(f"{len(queries)} mentions of the sample, percent right: first answer, first five")
    for label, linker in linkers:
        result = evaluate_linking(linker, base, queries, config=EvaluationConfig(n_resamples=1))
        first, five = (100 * result.metrics[name] for name in ("acc@1", "acc@5"))
        typer.echo(f"  {label:20} {first:6.1f} {five:6.1f}")
