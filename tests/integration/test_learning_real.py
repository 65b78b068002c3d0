"""Learning from one half of the messy terms does not make the answers to the other half worse."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker, build_index
from biograft.mapping import Decision, learn, map_terms


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learning") / "KB"
    sources = tuple(SourceConfig(path=name) for name in ("starter", "clinical-findings"))
    build_store(BuildConfig(sources=sources), folder)
    return KnowledgeBase.open(folder)


def read_english(path):
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            yield row["term"], row["concept names"].replace(" + ", "|")


def read_chinese(path):
    for line in path.read_text("utf-8").splitlines():
        term, is_mapped, names = line.strip().rpartition("=")
        if is_mapped:
            yield term, names.replace("##", "|")


def with_concepts(kb, rows):
    """Return terms with the ids that their names have, None for a term without a concept."""
    found = []
    for term, names in rows:
        ids = {match.concept for name in names.split("|") for match in kb.find(name.strip())}
        if ids or names == "NIL":
            found.append((term, ids))
    return found


def f1(linker, data):
    found = list(map_terms(linker, [term for term, _ in data]))
    given = sum(each.concept is not None for each in found)
    wanted = dict(data)
    right = sum(each.concept in wanted[each.term.text] for each in found)
    return 2 * right / (given + sum(bool(ids) for _, ids in data))


@pytest.mark.parametrize(
    ("name", "read"),
    [("messy_terms_en_dev.tsv", read_english), ("messy_terms_zh_dev.txt", read_chinese)],
)
def test_the_other_half_is_answered_no_worse(shared_data, kb, tmp_path, name, read):
    """It was answered worse in four of four halves, before what is learned was measured first."""
    data = with_concepts(kb, read(shared_data(f"mapping/{name}")))
    order = np.random.default_rng(0).permutation(len(data))
    halves = [[data[n] for n in order[start::2]] for start in (0, 1)]
    for reviewed, other in (halves, halves[::-1]):
        index = tmp_path / f"index-{len(list(tmp_path.iterdir()))}"
        build_index(kb, index)
        before = f1(Linker.open(kb, index), other)
        decisions = [
            Decision(term=term, concept=min(ids), verdict="approved")
            if ids
            else Decision(term=term, verdict="nil")
            for term, ids in reviewed
        ]
        report = learn(kb, index, decisions)
        assert f1(Linker.open(kb, index), other) >= before
        assert report.f1_after >= report.f1_before
