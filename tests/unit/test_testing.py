"""The public conformance suites: the parts of biograft pass them, broken ones do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from snippets import SNIPPETS

from biograft.kb import KnowledgeBase, build_starter
from biograft.kb.sources import FORMATS, NameRecord
from biograft.linking import OUTPUTS, Linker, Output
from biograft.metrics import METRICS, Measure
from biograft.testing import (
    check_document_format,
    check_linker,
    check_metric,
    check_objective,
    check_output,
    check_source,
    check_step,
    check_task_format,
)
from biograft.text.formats import DOCUMENT_FORMATS
from biograft.text.tasks import TASK_FORMATS
from biograft.training.objectives import OBJECTIVES

FOLDERS = ("umls", "snomed")
"""Formats of several files; their first alone is read here."""
FILES = [(form, name) for form, files in SNIPPETS.items() for name in files]
FILES = [(f, n) for f, n in FILES if f not in FOLDERS or n == next(iter(SNIPPETS[f]))]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("testing") / "KB"
    build_starter(folder)
    return KnowledgeBase.open(folder)


@pytest.mark.parametrize(("form", "name"), FILES)
def test_sources(tmp_path, form, name):
    (tmp_path / name).write_text(SNIPPETS[form][name])
    check_source(FORMATS.load(form), tmp_path / name, tmp_path)


@pytest.mark.parametrize("name", list(OUTPUTS))
def test_outputs(tmp_path, kb, name):
    check_output(OUTPUTS.load(name), kb, tmp_path)


@pytest.mark.parametrize("name", [n for n, form in DOCUMENT_FORMATS.load_all() if form.write])
def test_document_formats(tmp_path, name):
    check_document_format(DOCUMENT_FORMATS.load(name), tmp_path)


TASK_FILES = {
    "cmedqq": "1\t流感\t感冒\n0\tflu\tasthma\n",
    "cmedqa": '0\tq1\t"say ""no"""\n1\tq1\ty\n',
    "webmedqa": "7\t1\t内科\tq\ta\n7\t0\t内科\tq\tb\n",
    "cmedir": '{"query": "q", "documents": [{"label": "2", "title": "t", "url": "u"}]}\n',
    "cmedtc": "Age\t年龄\nSex\t男\n",
    "hoc": "labels\tsentence\tindex\n0_1,1_0\tTumours grow .\t11\n",
    "bioasq": "b1\tIs it?\tIt is.\tyes\nb2\tIs it?\t\tno\n",
    "gad": "0\tIn @DISEASE$ we saw @GENE$.\t1\n",
    "chemprot": '{"text": "We saw << A >> and [[ C d ]].", "label": "AGONIST"}\n',
    "jsonl": '{"first": "a", "second": "b", "label": "1"}\n',
}


@pytest.mark.parametrize("name", TASK_FILES)
def test_task_formats(tmp_path, name):
    (tmp_path / "file.txt").write_text(TASK_FILES[name], encoding="utf-8")
    check_task_format(TASK_FORMATS.load(name), tmp_path / "file.txt", tmp_path)


OBJECTIVES_OF_TEXT = [
    name
    for name, each in OBJECTIVES.load_all()
    if each.stream_kind == "annotated_text" and name != "name_geometry"  # needs an encoder
]


@pytest.mark.parametrize("name", OBJECTIVES_OF_TEXT)
def test_objectives(name):
    pytest.importorskip("torch")
    check_objective(OBJECTIVES.load(name)())


def test_an_objective_without_its_weight_is_found():
    pytest.importorskip("torch")

    @dataclass(frozen=True)
    class Unweighted:
        weight: float = 1.0

        def build(self, setting):
            return OBJECTIVES.load("masked_tokens")().build(setting)

    with pytest.raises(AssertionError, match="the loss is not weighted"):
        check_objective(Unweighted())


@pytest.mark.parametrize("name", list(METRICS))
def test_metrics(name):
    check_metric(METRICS.load(name))


@pytest.mark.parametrize("settings", [{}, {"misspelt": False, "assertions": False}])
def test_a_linker_and_its_steps(kb, settings):
    linker = Linker.open(kb, **settings)
    check_linker(linker)
    for step in linker.steps[2:]:  # the first two make the mentions
        check_step(step, kb)


@dataclass
class Broken:
    name: str
    act: Callable

    def __call__(self, batch):
        for number, state in enumerate(batch):
            self.act(number, state)


def test_broken_parts_are_found(tmp_path, kb):
    path = tmp_path / "a.txt"
    path.write_text("D1||flu\n")
    source = FORMATS.load("biosyn")
    blind = replace(
        source, read=lambda config, log: iter([NameRecord("D1", config.path.read_text("latin-1"))])
    )
    with pytest.raises(AssertionError, match="other records from the variant"):
        check_source(blind, path, tmp_path)
    with pytest.raises(AssertionError, match="a chunk is no text"):
        check_output(Output(chunks=lambda documents, run: [b"x"]), kb, tmp_path)
    with pytest.raises(AssertionError, match="the order of the queries matters"):
        check_metric(Measure(of_all=lambda judged, k: float(judged.probability[0])))
    silent = Broken("silent", lambda number, state: state.mentions.clear())
    with pytest.raises(AssertionError, match="gone without a reason"):
        check_step(silent, kb)
    first = Broken("first", lambda number, state: number and state.mentions.clear())
    with pytest.raises(AssertionError, match="a document alone has other mentions"):
        check_step(first, kb)
