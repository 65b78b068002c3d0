"""An installed package with a part for every entry point group, used by ordinary commands."""

from __future__ import annotations

import configparser
import json
import sys
from pathlib import Path

import pytest

from biograft.cli import COMMANDS
from biograft.evaluation import GOLD_FORMATS
from biograft.kb.sources import FORMATS
from biograft.linking import LINKER_STEPS, MODELS, OUTPUTS
from biograft.metrics import METRICS
from biograft.models.knowledge import KNOWLEDGE_LAYERS
from biograft.models.tasks import TASKS
from biograft.text.formats import DOCUMENT_FORMATS
from biograft.text.tasks import TASK_FORMATS
from biograft.training.linkers import LINKERS
from biograft.training.objectives import OBJECTIVES
from biograft.training.pretraining import STREAMS

FOLDER = Path(__file__).parent / "example_package"
REGISTRIES = (
    *(COMMANDS, FORMATS, DOCUMENT_FORMATS, TASK_FORMATS, GOLD_FORMATS, METRICS),
    *(LINKERS, MODELS, OBJECTIVES, STREAMS, KNOWLEDGE_LAYERS, TASKS, OUTPUTS, LINKER_STEPS),
)
LINES = [
    "kb build names.ex -o KB --json",
    "kb search KB flu --json",
    "corpus convert names.ex --to jsonl -o documents.jsonl --json",
    "corpus tasks names.ex --format example --json",
    "evaluate link --kb KB --gold names.ex --format example --json",
    "link flu --kb KB --model MODEL --terms --json",
    "link flu --kb KB --to example",
    "link flu --kb KB --steps example --to example",
    "example Ann",
]


def read_entry_points_anew():
    for registry in REGISTRIES:
        registry.__dict__.pop("_entries", None)
    sys.modules.pop("example_package", None)


@pytest.fixture
def installed(monkeypatch):
    """The package, as if installed."""
    monkeypatch.syspath_prepend(FOLDER)
    read_entry_points_anew()
    yield
    read_entry_points_anew()


def test_every_group_loads(installed):
    points = configparser.ConfigParser()
    points.read(FOLDER / "example_package-0.1.dist-info" / "entry_points.txt")
    assert {registry.group for registry in REGISTRIES} == set(points.sections())
    for registry in REGISTRIES:
        for name in points[registry.group]:
            assert registry.load(name) is not None


def test_commands_use_it(installed, run, tmp_path, golden):
    (tmp_path / "names.ex").write_text("!D1!flu\n!D2!fever\n")
    (tmp_path / "MODEL").mkdir()
    manifest = {"format": "example-ranker", "version": 1}
    (tmp_path / "MODEL" / "manifest.json").write_text(json.dumps(manifest))
    for line in LINES:
        ran = run(line)
        value = ran.json if line.endswith("--json") else ran.out
        golden("example_package", line, {"status": ran.status, "out": value}, ("seconds", "bytes"))
