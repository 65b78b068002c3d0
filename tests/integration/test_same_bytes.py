"""The same inputs give the same files, whatever the process: hashes, time zone, locale, threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from biograft.annotation.runner import PLAN
from biograft.artifacts import MANIFEST

STARTER = Path(__file__).parents[2] / "src" / "biograft" / "starter" / "concepts"
TEXT = "Patients with type 2 diabetes and COPD.\nHeart attack, no stroke.\n"
COMMANDS = (
    ("kb", "build", *sorted(map(str, STARTER.glob("*.jsonl"))), "-o", "KB"),
    ("index", "KB", "-o", "INDEX"),
    ("graph", "embed", "KB", "-o", "VECTORS", "--set", "training.epochs=1"),
    ("graph", "neighbours", "KB", "-o", "NEIGHBOURS"),
    ("corpus", "annotate", "KB", "text.txt", "-o", "SHARDS", "--workers", "1"),
)


RUN = """
import json, sys
from biograft.cli import app
for command in json.loads(sys.argv[1]):
    app([*command, "--quiet"], standalone_mode=False)
"""
MANIFESTS = {MANIFEST, PLAN.file}
"""Files that say when and from what an artefact was made."""


def run_all(folder: Path, **environment: str) -> dict[str, bytes]:
    """Run the commands in a folder, in one process, and return what each file holds."""
    folder.mkdir()
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(COMMANDS)],
        cwd=folder,
        env={**os.environ, **environment},
        check=True,
    )
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in MANIFESTS
    }


def test_artefacts_do_not_depend_on_hashes_time_zone_locale_threads_or_place(tmp_path):
    home = tmp_path / "home"
    home.write_text("a file: nothing can be written below it")
    first = run_all(
        tmp_path / "a", PYTHONHASHSEED="1", TZ="UTC", LC_ALL="C.UTF-8", NUMBA_NUM_THREADS="1"
    )
    second = run_all(
        tmp_path / "b 名",
        PYTHONHASHSEED="77",
        TZ="Asia/Tokyo",
        LC_ALL="C",
        NUMBA_NUM_THREADS="2",
        OMP_NUM_THREADS="2",
        HOME=str(home),
    )
    assert first.keys() == second.keys()
    assert len(first) > 20
    assert any(name.endswith("substitutions.json") for name in first)
    assert [name for name in first if first[name] != second[name]] == []
