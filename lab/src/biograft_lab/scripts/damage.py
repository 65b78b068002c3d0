"""Effects of damaged files: refused, found by `biograft check`, without effect, or silent.

Each file of each kind of artefact has a bit flipped, is cut short, or changes places with the same
file of another artefact. Then the artefact is used, in a process of its own, and checked:

- refused: it does not open, or its use ends, with one clear line;
- found by check: it is used, and `biograft check` names it (`changed`: the answers were others);
- no effect: the answers are the same bytes, and `check` finds nothing;
- silent: the answers are others, and `check` finds nothing (must be 0);
- crashed: a traceback, an error of several lines, a signal, or no end (must be 0).

    python -m biograft_lab.scripts.damage --quick --json      a few files of each
    python -m biograft_lab.scripts.damage --keep lab/src/biograft_lab/results/damage.json
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit, keep_part
from script_options import start_parser
from small_artifacts import (
    ALIGNMENT,
    GENERATION,
    IMPORT,
    INDEX,
    NEIGHBOURS,
    OTHER_STORE,
    RANKER,
    SHARDS,
    STATIC_INDEX,
    STORE,
    VECTORS,
    find_damage,
    write_inputs,
)

from biograft.compute import describe_machine
from biograft.errors import BiograftError

TEXTS = ["A heart attack, no stroke.", "Heart disease and hart atack", "fever, cerebral stroke"]
OUTCOMES = ("refused", "found by check", "no effect", "silent", "crashed")
_TIMEOUT = 300
_QUICK = 3
_BITS, _BITS_OF_SOLE_FILE = 2, 40
"""Flipped, one at a time, in each file of an artefact, and in one that is its only file."""
_STOPPED = f"{ALIGNMENT} --set training.max_minutes=1e-9"


@dataclass(frozen=True)
class Artefact:
    """Something on disk, the commands that make it, and what is done with it."""

    path: str
    use: Callable[[Path], Any]
    """Answers of the artefact in a folder, which must be equal from run to run."""
    commands: tuple[str, ...] = (STORE,)
    changes: str = ""
    """Additional arguments of the command for the other artefact of this kind."""
    trains: bool = False
    writes: bool = False
    """Whether its use changes it, so that it is copied first."""


def use_store(folder: Path) -> Any:
    """Return all concepts of a store, and what is linked with it."""
    from biograft.kb import KnowledgeBase

    kb = KnowledgeBase.open(folder / "KB")
    ids = [kb.id_at(row) for row in range(len(kb))]
    related = [[*kb.relations(each), *kb.parents(each), *kb.children(each)] for each in ids]
    return list(kb), related, [kb.find(text) for text in ("stroke", "nothing")]


def use_index(folder: Path) -> Any:
    """Return what is linked with an index."""
    from biograft.linking import Linker

    linker = Linker.open(folder / "KB", folder / "I")
    notes = [repr(linker(text).mentions) for text in TEXTS]
    return notes, [repr(found) for found in linker.link_mentions(TEXTS)]


def use_encoder(place: str) -> Callable[[Path], Any]:
    """Return a function that encodes some texts."""

    def use(folder: Path) -> Any:
        from biograft.linking.dense.encoders import load_encoder

        vectors = load_encoder(folder / place).encode(TEXTS)
        return hashlib.sha256(vectors.tobytes()).hexdigest()

    return use


def use_shards(folder: Path) -> Any:
    """Return all annotated documents."""
    from biograft.text.shards import Shards

    return [repr(document) for document in Shards.open(folder / "A")]


def use_neighbours(folder: Path) -> Any:
    """Return the neighbours of all entities."""
    import numpy as np

    from biograft.graph.neighbours import NeighbourTable
    from biograft.kb import KnowledgeBase

    kb = KnowledgeBase.open(folder / "KB")
    table = NeighbourTable.open(folder / "N", kb)
    return [repr(table[row]) for row in range(len(kb))], repr(table.gather(np.arange(len(kb))))


def use_vectors(folder: Path) -> Any:
    """Return all vectors of a graph, and of what they are."""
    from biograft.graph.embedding import Embeddings

    found = Embeddings.open(folder / "V")
    tables = {name: value.tobytes().hex() for name, value in found.tables._asdict().items()}
    return found.entity_ids, found.relation_names, tables


def use_command(command: str, result: str = "") -> Callable[[Path], Any]:
    """Return a function that runs a command; its answer is what it prints, or a file it makes."""

    def use(folder: Path) -> Any:
        printed = run_biograft(folder, command)
        return (folder / result).read_bytes().hex() if result else printed

    return use


ARTEFACTS = {
    "store": Artefact("KB", use_store),
    "index (names, lexical)": Artefact("I", use_index, (STORE, INDEX)),
    "index (with vectors)": Artefact("I", use_index, (STORE, STATIC_INDEX)),
    "static encoder": Artefact(
        "I/dense/encoder", use_encoder("I/dense/encoder"), (STORE, STATIC_INDEX)
    ),
    "trained encoder": Artefact(
        "P/encoder",
        use_encoder("P/encoder"),
        (STORE, ALIGNMENT),
        "--set training.seed=9",
        trains=True,
    ),
    "training checkpoint": Artefact(
        "P",
        use_command(
            f"{_STOPPED} --resume --set training.max_minutes=0", "P/encoder/model.safetensors"
        ),
        (STORE, _STOPPED),
        "--set training.seed=9",
        trains=True,
        writes=True,
    ),
    "generative linker, trie": Artefact(
        "F/model",
        use_command("link notes.txt --kb KB --model F/model --json"),
        (STORE, GENERATION),
        "--set config.training.seed=9",
        trains=True,
    ),
    "trained ranker": Artefact(
        "F/model",
        use_command("link notes.txt --kb KB --index F/index --model F/model --json"),
        (STORE, RANKER),
        "--set config.seed=9",
        trains=True,
    ),
    "annotated text": Artefact("A", use_shards, (STORE, SHARDS)),
    "neighbours": Artefact("N", use_neighbours, (STORE, NEIGHBOURS)),
    "graph vectors": Artefact("V", use_vectors, (STORE, VECTORS)),
    "review": Artefact("R.db", use_command("review list --review R.db --json"), (IMPORT,)),
}


@dataclass
class Outcome:
    """Results of all damages to one kind of artefact."""

    files: int = 0
    damages: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    changed: int = 0
    """Damages found only by ``check`` that changed the answers."""
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the counts and problems as plain values."""
        return dict(vars(self))


def run_biograft(folder: Path, command: str) -> str:
    """Run a command in a folder, in this process; errors are raised; return what it printed."""
    from biograft.cli import app

    before = Path.cwd()
    os.chdir(folder)
    try:
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
            app(command.split(), standalone_mode=False)
    finally:
        os.chdir(before)
    return printed.getvalue()


def make(artefact: Artefact, folder: Path, *, other: bool) -> None:
    """Make an artefact, or another of its kind."""
    write_inputs(folder, encoder=artefact.trains)
    for command in artefact.commands:
        changed = command
        if other:
            changed = OTHER_STORE if command == STORE else f"{command} {artefact.changes}"
        run_biograft(folder, changed)


def answer_in_child(use: Callable[[Path], Any], folder: Path) -> tuple[str, str]:
    """Use an artefact in a forked process: ("answer" | "refused" | "crashed", what it said)."""
    said = folder.parent / "said.json"
    said.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 2)
        said.write_text(json.dumps(_answer(use, folder)))
        os._exit(0)
    end = time.monotonic() + _TIMEOUT
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.002)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "crashed", "does not end"
    if not said.exists():
        return "crashed", "the process died"
    kind, what = json.loads(said.read_text())
    return kind, what


def _answer(use: Callable[[Path], Any], folder: Path) -> tuple[str, str]:
    try:
        return "answer", repr(use(folder))
    except BiograftError as error:
        message = str(error)
        return ("refused", message) if "\n" not in message else ("crashed", message)
    except BaseException as error:
        return "crashed", f"{type(error).__name__}: {error}"[:300]


def damages(
    content: bytes, other: bytes | None, rng: random.Random, n_bits: int
) -> Iterator[tuple[str, bytes]]:
    """Yield damaged contents of a file, by what was done."""
    for _ in range(n_bits):
        bit = rng.randrange(8 * len(content)) if content else 0
        flipped = bytearray(content)
        if content:
            flipped[bit // 8] ^= 1 << bit % 8
            yield f"bit {bit} flipped", bytes(flipped)
    yield "cut", content[: rng.randrange(len(content))] if content else b""
    if other is not None and other != content:
        yield "swapped", other


def examine(name: str, place: Path, *, quick: bool) -> Outcome:
    """Damage all files of an artefact, or a few, one after the other."""
    artefact, outcome, rng = ARTEFACTS[name], Outcome(), random.Random(name)
    own, other = place / "own", place / "other"
    for folder in (own, other):  # in a process of its own, whose threads the forked ones lack
        made = answer_in_child(lambda place: make(artefact, place, other=place == other), folder)
        if made[0] != "answer":
            raise SystemExit(f"error: {name}: {made[1]}")
    if not artefact.writes:
        artefact.use(own)  # what it loads is shared by the forked processes
    expected = _use(artefact, own)
    if expected[0] != "answer":
        raise SystemExit(f"error: {name}: {expected[1]}")
    root = own / artefact.path
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    chosen = rng.sample(files, min(_QUICK, len(files))) if quick else files
    outcome.files = len(chosen)
    for file in chosen:
        twin = other / file.relative_to(own)
        content = file.read_bytes()
        swapped = twin.read_bytes() if twin.is_file() and len(files) > 1 else None
        n_bits = _BITS if len(files) > 1 else _BITS_OF_SOLE_FILE
        for what, damaged in damages(content, swapped, rng, n_bits):
            if damaged == content:
                continue
            file.write_bytes(damaged)
            _judge(artefact, own, (f"{file.relative_to(own)}, {what}", expected[1]), outcome)
        file.write_bytes(content)
    return outcome


def _use(artefact: Artefact, folder: Path) -> tuple[str, str]:
    if not artefact.writes:
        return answer_in_child(artefact.use, folder)
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    try:
        return answer_in_child(artefact.use, copy)
    finally:
        shutil.rmtree(copy)


def _judge(artefact: Artefact, folder: Path, told: tuple[str, str], outcome: Outcome) -> None:
    what, expected = told
    kind, said = _use(artefact, folder)
    problems = find_damage(folder / artefact.path)
    if kind == "answer":
        same = said == expected
        kind = "found by check" if problems else "no effect" if same else "silent"
        outcome.changed += bool(problems) and not same
    outcome.damages += 1
    outcome.counts[kind] += 1
    if kind in ("silent", "crashed"):
        outcome.problems.append(f"{what}: {kind}: {said[:200]}")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Damage the chosen artefacts; return the counts."""
    import biograft.models  # noqa: F401  shared by the forked processes

    facts = {
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("-m biograft_lab.scripts.damage", ["--json"]),
    }
    outcomes = {}
    for name in options.artefacts:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            outcome = examine(name, Path(folder).resolve(), quick=options.quick)
        outcomes[name] = outcome.to_json()
        keep_part(options.keep, "artefacts", {**facts, "artefacts": {name: outcomes[name]}})
        if not options.json:
            print(name, json.dumps(outcomes[name], indent=1), flush=True)
    return {**facts, "artefacts": outcomes}


def main() -> None:
    """Measure, and print one JSON object."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK} files of each")
    parser.add_argument(
        "--artefacts", type=lambda text: text.split(";"), help="some, with ; between"
    )
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    parser.add_argument("--folder", help="where to work")
    parser.add_argument("--keep", type=Path, help="put the result of each into this file")
    options = parser.parse_args()
    options.artefacts = options.artefacts or list(ARTEFACTS)
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
