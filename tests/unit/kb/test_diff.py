"""Differences between stores, against plain loops over the concepts."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict

import pytest

from biograft.errors import ConfigError
from biograft.kb import CHANGES, Change, diff_stores
from biograft.kb.vocabularies import canonical_id

OLD = [
    {"id": "A", "name": "Flu", "names": ["grippe"], "type": "T1"},
    {"id": "B", "name": "Cold", "relations": {"is-a": ["A"]}},
    {"id": "C", "name": "Fever", "relations": {"is-a": ["A", "B"]}},
    {"id": "D", "name": "Ache", "ids": ["D2"]},
    {"id": "E", "name": "Rash"},
    {"id": "F", "name": "Cough", "names": {"de": ["Husten"]}},
]
NEW = [
    {"id": "A", "name": "Influenza", "names": ["Flu", "grippe"], "type": "T2", "ids": ["B"]},
    {"id": "C", "name": "Fever", "relations": {"is-a": ["A", "D"]}},
    {"id": "D", "name": "Ache"},
    {"id": "D2", "name": "Pain"},
    {"id": "F2", "name": "Cough", "names": {"en": ["Husten"]}, "ids": ["F"]},
]


def test_each_kind_of_change(build):
    diff = diff_stores(build(OLD).base, build(NEW).base)
    assert list(diff.changes()) == [
        Change("added", "D2", "Pain", old=("D",), evidence="alternate"),
        Change("retired", "E", "Rash"),
        Change("merged", "B", "Cold", new=("A",), evidence="alternate"),
        Change("replaced", "F", "Cough", new=("F2",), evidence="alternate"),
        Change("renamed", "A", "Influenza", ("Flu",), ("Influenza",)),
        Change("name-added", "A", "Influenza", new=("Influenza",), language="en"),
        Change("name-added", "F2", "Cough", new=("Husten",), language="en"),
        Change("name-removed", "F2", "Cough", old=("Husten",), language="de"),
        Change("moved", "C", "Fever", new=("D",)),  # B is A now, so that C has not left it
        Change("types-changed", "A", "Influenza", ("T1",), ("T2",)),
    ]


def test_equal_stores_have_no_differences(build):
    diff = diff_stores(build(OLD).base, build(OLD[::-1]).base)
    assert not diff
    assert diff.counts == dict.fromkeys(CHANGES, 0)
    assert diff.notes == ()


def test_languages_of_two_names_exchanged_is_a_difference(build):
    """Sums of hashes must not confuse it with no change."""
    old = build([{"id": "A", "names": {"en": ["x", "a"], "de": ["b"]}}]).base
    new = build([{"id": "A", "names": {"en": ["x", "b"], "de": ["a"]}}]).base
    assert diff_stores(old, new).counts["name-added"] == 2


def test_cross_references_tell_where_alternate_ids_do_not(build):
    old = build([{"id": "A", "name": "a"}, {"id": "B", "name": "b"}]).base
    refer = [{"id": "A", "kind": "xref"}, {"id": "B", "kind": "xref"}]
    new = build([{"id": "X", "name": "x", "ids": ["B", *refer]}, {"id": "Y", "ids": refer}]).base
    assert [(c.id, c.new, c.evidence) for c in diff_stores(old, new).changes(["replaced"])] == [
        ("A", ("X", "Y"), "xref"),
        ("B", ("X",), "alternate"),
    ]


def test_only_some_kinds_and_an_unknown_one(build):
    old, new = build(OLD).base, build(NEW).base
    assert diff_stores(old, new, only=["moved", "added"]).counts == {"added": 1, "moved": 1}
    with pytest.raises(ConfigError, match=r"only: no change is called 'add'; did you mean 'added'"):
        diff_stores(old, new, only=["add"])


def test_written_as_tsv(build, tmp_path):
    diff = diff_stores(build(OLD).base, build(NEW).base, only=["merged", "moved"])
    assert diff.write(tmp_path / "d.tsv") == 2
    assert (tmp_path / "d.tsv").read_text().splitlines() == [
        "change\tid\tname\told\tnew\tlanguage\tevidence",
        "merged\tB\tCold\t\tA\t\talternate",
        "moved\tC\tFever\t\tD\t\t",
    ]
    with pytest.raises(ConfigError, match=r"ends in \.tsv"):
        diff.write(tmp_path / "d.csv")


def plain_owners(base):
    """The concepts by each kind of further id."""
    owners = {"alternate": defaultdict(set), "xref": defaultdict(set)}
    for concept in base:
        for each in concept.ids:
            owners[each.kind][canonical_id(each.id)].add(concept.id)
    return owners


def plain_diff(old, new):
    """The same changes as sets, from the concepts one by one."""
    ids = [{canonical_id(c.id): c.id for c in base} for base in (old, new)]
    owners = [plain_owners(base) for base in (old, new)]
    pairs = {ids[0][key]: ids[1][key] for key in ids[0] if key in ids[1]}
    existed = set(pairs.values())
    takers = {
        ids[0][key]: owners[1]["alternate"][key] or owners[1]["xref"][key]
        for key in ids[0]
        if key not in ids[1]
    }
    heirs = {gone: min(others) for gone, others in takers.items() if len(others) == 1}
    counts = Counter(other for others in takers.values() for other in others)
    pairs |= {g: o for g, o in heirs.items() if o not in existed and counts[o] == 1}
    changes = {
        ("added", c.id, frozenset(owners[0]["alternate"][canonical_id(c.id)]), frozenset())
        for c in new
        if c.id not in pairs.values()
    }
    for gone, others in takers.items():
        kind = "merged" if others & existed else "replaced" if others else "retired"
        changes.add((kind, gone, frozenset(), frozenset(others)))
    for before, after in pairs.items():
        parents = {(heirs | pairs).get(p, p) for p in old.parents(before)} - {after}
        changes |= facts_changed(old[before], new[after], parents, set(new.parents(after)))
    return changes


def facts_changed(before, after, old_parents, new_parents):
    changes = set()
    if before.name != after.name:
        changes.add(("renamed", after.id, frozenset([before.name]), frozenset([after.name])))
    names = [{(n.language, n.text) for n in c.names} for c in (before, after)]
    changes |= {("name-added", after.id, *name) for name in names[1] - names[0]}
    changes |= {("name-removed", after.id, *name) for name in names[0] - names[1]}
    types = [{t.code for t in c.types} for c in (before, after)]
    for kind, (x, y) in {"moved": (old_parents, new_parents), "types-changed": types}.items():
        if x != y:
            changes.add((kind, after.id, frozenset(x - y), frozenset(y - x)))
    return changes


def changed(concepts, rng):
    """A later release: concepts dropped, renamed and merged, facts added and removed."""
    later = []
    for concept in json.loads(json.dumps(concepts)):
        if rng.random() < 0.2:
            continue
        if rng.random() < 0.1:
            concept["ids"].append({"id": concept["id"], "kind": rng.choice(["alternate", "xref"])})
            concept["id"] = f"{concept['id']}-new"
        for key in ("names", "types", "relations"):
            if concept[key] and rng.random() < 0.3:
                concept[key].pop(rng.randrange(len(concept[key])))
        if rng.random() < 0.3:
            gone = rng.choice(concepts)["id"]
            concept["ids"].append({"id": gone, "kind": rng.choice(["alternate", "xref"])})
        if rng.random() < 0.2:
            concept["names"].append({"text": f"new {rng.random()}", "language": "en"})
        later.append(concept)
    return later


@pytest.mark.parametrize("seed", range(6))
def test_equals_plain_loops_on_random_releases(build, random_concepts, seed):
    rng = random.Random(seed)
    concepts = random_concepts(40, seed)
    old, new = build(concepts).base, build(changed(concepts, rng)).base
    found = list(diff_stores(old, new).changes())
    as_set = {
        (c.change, c.id, c.language, (c.old or c.new)[0])
        if c.change.startswith("name-")
        else (c.change, c.id, frozenset(c.old), frozenset(c.new))
        for c in found
    }
    assert as_set == plain_diff(old, new)
    assert len(as_set) == len(found)
