"""Retired ids and what takes their place, through the store, its export and its differences."""

from __future__ import annotations

import random

import pytest

from biograft.errors import NotFoundError
from biograft.kb import (
    BuildConfig,
    Change,
    KnowledgeBase,
    Replacement,
    build_store,
    diff_stores,
    export_store,
)
from biograft.kb.sources import SourceConfig


def replaces(*ids, kind="replaced"):
    return [{"id": each, "kind": kind} for each in ids]


def test_a_retired_id_leads_to_what_takes_its_place(build):
    base = build(
        [
            {"id": "A", "name": "a", "ids": replaces("X:1", "X:2")},
            {"id": "B", "name": "b", "ids": ["B2", *replaces("X:2", kind="consider")]},
        ]
    ).base
    assert base.replacement("X:1") == Replacement("X:1", ("A",))
    assert base.replacement("X:2") == Replacement("X:2", ("A",), ("B",))
    assert [base.replacement(known) for known in ("A", "B2", "nothing")] == [None, None, None]
    assert ("X:1" in base, base.by_id("X:1"), base.by_xref("X:1")) == (False, [], [])
    with pytest.raises(NotFoundError, match="X:2 is retired: replaced by A; consider B"):
        base["X:2"]


def test_it_survives_the_export(build, contents, tmp_path):
    first = build(
        [{"id": "A", "name": "a", "ids": [*replaces("B"), *replaces("C", kind="consider")]}]
    )
    export_store(first.base, tmp_path / "a.jsonl", "jsonl")
    again = build((tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()).base
    assert contents(again) == contents(first.base)


def plainly(links, concepts):
    """Follow the successors of each retired id, one by one."""
    found = {}
    for start in {old for old, _, _ in links}:
        seen, stack = set(), [(start, "replaced")]
        while stack:
            at, how = stack.pop()
            for old, new, kind in links:
                worse = "consider" if "consider" in (how, kind) else "replaced"
                if old == at and (new, worse) not in seen:
                    seen.add((new, worse))
                    if new not in concepts:
                        stack.append((new, worse))
        ends = {
            kind: {new for new, how in seen if how == kind and new in concepts}
            for kind in ("replaced", "consider")
        }
        ends["consider"] -= ends["replaced"]
        ends = {kind: ids - {start} for kind, ids in ends.items()}
        if any(ends.values()):
            found[start] = ends
    return found


@pytest.mark.parametrize("seed", range(6))
def test_successors_that_are_retired_are_followed(tmp_path, seed):
    """Also in circles, and to nowhere."""
    rng = random.Random(seed)
    concepts = [f"C{k}" for k in range(4)]
    retired = [f"R{k}" for k in range(8)]
    links = {
        (rng.choice(retired), rng.choice([*concepts, *retired, "nowhere"]), kind)
        for kind in ("replaced", "consider")
        for _ in range(7)
    }
    terms = [f"[Term]\nid: {concept}\nname: {concept}\n" for concept in concepts]
    tags = {"replaced": "replaced_by", "consider": "consider"}
    terms += [
        f"[Term]\nid: {old}\nis_obsolete: true\n{tags[kind]}: {new}\n"
        for old, new, kind in sorted(links)
    ]
    source = tmp_path / "x.obo"
    source.write_text("format-version: 1.4\n\n" + "\n".join(terms))
    report = build_store(BuildConfig(sources=(SourceConfig(path=source),)), tmp_path / "kb")
    base = KnowledgeBase.open(tmp_path / "kb")
    found = {old: base.replacement(old) for old in retired}
    expected = plainly(links, set(concepts))
    assert {
        old: {"replaced": set(r.replaced_by), "consider": set(r.consider)}
        for old, r in found.items()
        if r is not None
    } == expected
    lost = sum(old not in expected for old, _, _ in links)
    reason = "retired id whose successor is no concept"
    assert report.sources[0].filtered.get(reason, 0) == lost
    assert not report.sources[0].rejected


def test_differences_name_the_successor(build):
    old = build([{"id": x, "name": x} for x in "ABCDE"]).base
    new = build(
        [
            {"id": "A", "name": "A", "ids": replaces("B")},
            {"id": "F", "name": "F", "ids": [*replaces("C"), *replaces("D", kind="consider")]},
        ]
    ).base
    changes = list(diff_stores(old, new).changes(["retired", "merged", "replaced"]))
    assert changes == [
        Change("retired", "D", "D", new=("F",), evidence="consider"),
        Change("retired", "E", "E"),
        Change("merged", "B", "B", new=("A",), evidence="replaced"),
        Change("replaced", "C", "C", new=("F",), evidence="replaced"),
    ]
