"""Parts of installed packages: found by name through entry points, in the ordinary commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = """
from dataclasses import dataclass
from typing import ClassVar

from biograft.kb.records import NameRecord
from biograft.kb.sources.files import read_lines
from biograft.kb.sources.format import Format


def recognise(probe):
    return probe.head.startswith(b"#toy")


def read(config, log):
    log.opened(config.path)
    for number, line in read_lines(config.path, config.encoding):
        if not line.startswith("#"):
            log.read()
            concept, name = line.split("=")
            yield NameRecord(concept.strip(), name.strip(), line=number)


LINES = Format(recognise, read)
"""
PARTS = """
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from biograft.config import AtLeast
from biograft.metrics.linking import Measure
from biograft.training.objectives.configs import SynonymAlignmentConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyConfig(SynonymAlignmentConfig):
    toy: Annotated[int, AtLeast(1)] = 1


HITS = Measure(of_each=lambda judged, k: np.ones(len(judged)), has_cutoff=True)
"""
ENTRIES = """
[biograft.sources]
toy-lines = toy_source:LINES
broken = toy_source:NOTHING
gone = no_such_module_of_toy:THING

[biograft.objectives]
toy_alignment = toy_parts:ToyConfig

[biograft.metrics]
toy_hits = toy_parts:HITS

"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an installed package."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, text in (("source", SOURCE), ("parts", PARTS)):
        (folder / f"toy_{name}.py").write_text(text, encoding="utf-8")
    _install(folder, "toy-biograft", ENTRIES)
    return folder


def _install(folder: Path, name: str, entries: str) -> None:
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


def run(site: Path, *arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    what = ["-c", code] if code else ["-m", "biograft"]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *what, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_listing_names_imports_no_package(site):
    code = """
import sys
import biograft.kb.sources
from biograft.training.objectives import OBJECTIVES
read = {"toy_source", "toy_parts"} & set(sys.modules)
print(read, "toy_alignment" in OBJECTIVES, "toy_parts" in sys.modules)
"""
    assert run(site, code=code).stdout == "set() True False\n"


@pytest.mark.parametrize("name", ["broken", "gone"])
def test_a_part_that_does_not_load_is_one_line_and_breaks_no_other(site, tmp_path, name):
    (tmp_path / "x.toy").write_text("#toy\nT1 = heart attack\n")
    done = run(site, "kb", "build", f"{tmp_path}/x.toy", "-o", f"{tmp_path}/kb", "--format", name)
    assert done.returncode == 2
    assert f"package toy-biograft: its source format '{name}' cannot be loaded" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_name_that_is_taken_is_refused(site, tmp_path):
    _install(site, "other-toy", "[biograft.sources]\numls = toy_source:LINES\n")
    (tmp_path / "x.toy").write_text("#toy\nT1 = heart attack\n")
    done = run(site, "kb", "build", f"{tmp_path}/x.toy", "-o", f"{tmp_path}/kb")
    assert done.returncode == 2
    assert done.stderr.startswith("biograft: package other-toy: its source format 'umls'")
    assert len(done.stderr.splitlines()) == 1


def test_two_packages_with_one_name(site):
    _install(site, "other-toy", "[biograft.metrics]\ntoy_hits = toy_source:LINES\n")
    done = run(site, code="from biograft.metrics import METRICS; METRICS.load('toy_hits')")
    assert "package " in done.stderr
    assert "has the name of one of" in done.stderr
