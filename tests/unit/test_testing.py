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
from biograft.testing import check_linker, check_metric, check_output, check_source, check_step

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
