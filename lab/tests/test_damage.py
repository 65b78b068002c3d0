"""Damaged files of every kind of artefact are refused, found by `biograft check`, or do no harm.

Files have a bit flipped, are cut short, or change places with the same file of another artefact.
Then the artefact is used, in a process of its own, and checked. What must not happen: other answers
that `check` does not explain, a traceback, an error of several lines, a signal.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import small_artifacts as small

from biograft.errors import BiograftError

TEXTS = ["A heart attack, no stroke.", "Heart disease and hart atack", "fever, cerebral stroke"]
N_FILES, N_BITS, N_BITS_OF_SOLE_FILE = 4, 2, 20
STOPPED = f"{small.ALIGNMENT} --set training.max_minutes=1e-9"
RESUMED = f"{STOPPED} --resume --set training.max_minutes=0"


@dataclass(frozen=True)
class Artefact:
    """Something on disk, the commands that make it, and what is done with it."""

    path: str
    use: Callable[[Path], Any]
    """Answers of the artefact in a folder, which must be equal from run to run."""
    commands: tuple[str, ...] = ()
    changes: str = ""
    """Additional arguments of the last command for the other artefact of this kind."""


def use_store(folder: Path) -> Any:
    from biograft.kb import KnowledgeBase

    kb = KnowledgeBase.open(folder / "KB")
    ids = [kb.id_at(row) for row in range(len(kb))]
    related = [[*kb.relations(each), *kb.parents(each), *kb.children(each)] for each in ids]
    return list(kb), related, [kb.find(text) for text in ("stroke", "nothing")]


def use_index(folder: Path) -> Any:
    from biograft.linking import Linker

    linker = Linker.open(folder / "KB", folder / "I")
    notes = [repr(linker(text).mentions) for text in TEXTS]
    return notes, [repr(found) for found in linker.link_mentions(TEXTS)]


def use_encoder(place: str) -> Callable[[Path], Any]:
    def use(folder: Path) -> Any:
        from biograft.linking.dense.encoders import load_encoder

        vectors = load_encoder(folder / place).encode(TEXTS)
        return hashlib.sha256(vectors.tobytes()).hexdigest()

    return use


def use_shards(folder: Path) -> Any:
    from biograft.text.shards import Shards

    return [repr(document) for document in Shards.open(folder / "A")]


def use_neighbours(folder: Path) -> Any:
    from biograft.graph.neighbours import NeighbourTable
    from biograft.kb import KnowledgeBase

    kb = KnowledgeBase.open(folder / "KB")
    table = NeighbourTable.open(folder / "N", kb)
    return [repr(table[row]) for row in range(len(kb))]


def use_vectors(folder: Path) -> Any:
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


def linked_by(model: str) -> Callable[[Path], Any]:
    return use_command(f"link notes.txt --kb KB {model} --model F/model --json")


STORE = small.STORE
ARTEFACTS = {
    "store": Artefact("KB", use_store, (STORE,)),
    "annotated text": Artefact("A", use_shards, (STORE, small.SHARDS)),
    "index (names, lexical)": Artefact("I", use_index, (STORE, small.INDEX)),
    "index (with vectors)": Artefact("I", use_index, (STORE, small.STATIC_INDEX)),
    "static encoder": Artefact(
        "I/dense/encoder", use_encoder("I/dense/encoder"), (STORE, small.STATIC_INDEX)
    ),
    "trained encoder": Artefact(
        "P/encoder", use_encoder("P/encoder"), (STORE, small.ALIGNMENT), "--set training.seed=9"
    ),
    "training checkpoint": Artefact(
        "P",
        use_command(RESUMED, "P/encoder/model.safetensors"),
        (STORE, STOPPED),
        "--set training.seed=9",
    ),
    "generative linker, trie": Artefact(
        "F/model", linked_by(""), (STORE, small.GENERATION), "--set config.training.seed=9"
    ),
    "trained ranker": Artefact(
        "F/model", linked_by("--index F/index"), (STORE, small.RANKER), "--set config.seed=9"
    ),
    "neighbours": Artefact("N", use_neighbours, (STORE, small.NEIGHBOURS)),
    "graph vectors": Artefact("V", use_vectors, (STORE, small.VECTORS)),
    "review": Artefact("R.db", use_command("review list --review R.db --json"), (small.IMPORT,)),
}
SHORT = ("store", "annotated text")
"""Those that every run of the tests damages."""


def run_biograft(folder: Path, command: str) -> str:
    """Run a command in a folder, in this process; errors are raised; return what it printed."""
    from biograft.cli import app

    with chdir(folder), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        app(command.split(), standalone_mode=False)
    return out.getvalue()


def make(artefact: Artefact, folder: Path, *, other: bool) -> None:
    """Make an artefact, or another of its kind."""
    small.write_inputs(folder, encoder=True)
    for command in artefact.commands:
        changed = small.OTHER_STORE if command == STORE else f"{command} {artefact.changes}"
        run_biograft(folder, changed if other else command)


def in_child(use: Callable[[Path], Any], folder: Path) -> tuple[str, str]:
    """Use a folder in a forked process: how it ended, and what it said."""
    said = folder.with_name("said.json")
    said.write_text('["crashed", "the process died"]', encoding="utf-8")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        said.write_text(json.dumps(answer(use, folder)), encoding="utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    kind, what = json.loads(said.read_text(encoding="utf-8"))
    return kind, what


def used(artefact: Artefact, folder: Path) -> tuple[str, str]:
    """Use a copy of a folder, since the use may change it."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return in_child(artefact.use, copy)


def answer(use: Callable[[Path], Any], folder: Path) -> tuple[str, str]:
    try:
        return "answer", repr(use(folder))
    except BiograftError as error:
        return ("crashed" if "\n" in str(error) else "refused"), str(error)
    except BaseException as error:
        return "crashed", f"{type(error).__name__}: {error}"[:300]


def damages(
    content: bytes, other: bytes | None, rng: random.Random, n_bits: int
) -> Iterator[tuple[str, bytes]]:
    """Yield damaged contents of a file, by what was done."""
    for _ in range(n_bits if content else 0):
        bit = rng.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit} flipped", bytes(flipped)
    yield "cut", content[: rng.randrange(len(content))] if content else b""
    if other is not None:
        yield "swapped", other


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")
@pytest.mark.parametrize(
    "name",
    [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in ARTEFACTS],
)
def test_damage_is_never_silent_after_check(name, tmp_path):
    artefact, rng = ARTEFACTS[name], random.Random(name)
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):  # by a process of its own, whose threads the forked ones lack
        command = [sys.executable, __file__, name, str(folder), *["other"] * (folder == other)]
        paths = os.pathsep.join(filter(None, sys.path))
        subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": paths})
    expected = used(artefact, own)
    assert expected[0] == "answer", expected
    root, outcomes = own / artefact.path, []
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    for file in rng.sample(files, min(N_FILES, len(files))):
        twin, content = other / file.relative_to(own), file.read_bytes()
        swapped = twin.read_bytes() if twin.is_file() and len(files) > 1 else None
        n_bits = N_BITS if len(files) > 1 else N_BITS_OF_SOLE_FILE
        for what, damaged in damages(content, swapped, rng, n_bits):
            if damaged == content:
                continue
            file.write_bytes(damaged)
            found = used(artefact, own)
            outcomes.append(found[0])
            assert found[0] != "crashed", (file, what, found)
            assert found[0] == "refused" or found == expected or small.find_damage(root), what
        file.write_bytes(content)
    assert "refused" in outcomes


if __name__ == "__main__":
    make(ARTEFACTS[sys.argv[1]], Path(sys.argv[2]), other=len(sys.argv) > 3)
