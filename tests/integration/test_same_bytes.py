"""The same inputs give the same files, whatever the process: hashes, time zone, locale, threads.

What is trained is the same with the same number of threads; several sum in another order.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from biograft.artifacts import MANIFEST
from biograft.linking.annotation.runner import PLAN

STARTER = Path(__file__).parents[2] / "src" / "biograft" / "starter" / "concepts"
TEXT = "Patients with type 2 diabetes and COPD.\nHeart attack, no stroke.\n"
COMMANDS = (
    ("kb", "build", *sorted(map(str, STARTER.glob("*.jsonl"))), "-o", "KB"),
    ("index", "KB", "-o", "INDEX"),
    ("graph", "embed", "KB", "-o", "VECTORS", "--set", "training.epochs=1"),
    ("graph", "neighbours", "KB", "-o", "NEIGHBOURS"),
    ("corpus", "annotate", "KB", "text.txt", "-o", "SHARDS", "--workers", "1"),
    ("kb", "export", "KB", "-o", "names.tsv", "--format", "biosyn"),
    ("link", "text.txt", "--kb", "KB", "--index", "INDEX", "-o", "linked.jsonl", "--to", "jsonl"),
    ("map", "local.csv", "--column", "term", "--kb", "KB", "--index", "INDEX", "-o", "mapped.csv"),
)


RUN = """
import json, sys
from biograft.cli import app
for command in json.loads(sys.argv[1]):
    app([*command, "--quiet"], standalone_mode=False)
"""
MANIFESTS = {MANIFEST, PLAN.file}
"""Files that say when and from what an artefact was made."""


def run_all(
    folder: Path, commands: Sequence[Sequence[str]], **environment: str
) -> dict[str, bytes]:
    """Run commands in a folder, in one process, and return what each file holds."""
    subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(commands)],
        cwd=folder,
        env={**os.environ, **environment},
        check=True,
    )
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in MANIFESTS
    }


def begin(folder: Path) -> Path:
    """Make a folder with the files that the commands read."""
    folder.mkdir()
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    (folder / "local.csv").write_text("term\nhart attack\nstroke\nno such thing\n")
    return folder


def test_artefacts_do_not_depend_on_hashes_time_zone_locale_threads_or_place(tmp_path):
    first = run_all(
        begin(tmp_path / "a"),
        COMMANDS,
        PYTHONHASHSEED="1",
        TZ="UTC",
        LC_ALL="C.UTF-8",
        NUMBA_NUM_THREADS="1",
    )
    second = run_all(
        begin(tmp_path / "b 名"),
        COMMANDS,
        PYTHONHASHSEED="77",
        TZ="Asia/Tokyo",
        LC_ALL="C",
        NUMBA_NUM_THREADS="2",
        OMP_NUM_THREADS="2",
    )
    assert first.keys() == second.keys()
    assert len(first) > 20
    assert any(name.endswith("substitutions.json") for name in first)
    assert [name for name in first if first[name] != second[name]] == []


@pytest.mark.long
def test_what_is_trained_does_not_depend_on_hashes_time_zone_locale_or_place(tmp_path):
    small = importlib.import_module("small_artifacts")
    commands = [each.split() for each in (small.STORE, small.ALIGNMENT, small.RANKER)]
    found = []
    for place, environment in {
        "a": {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
        "b 名": {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C"},
    }.items():
        small.write_inputs(tmp_path / place, encoder=True)
        files = run_all(tmp_path / place, commands, OMP_NUM_THREADS="1", **environment)
        found.append({name: files[name] for name in files if name.endswith(".safetensors")})
    assert len(found[0]) > 3
    assert found[0] == found[1]
