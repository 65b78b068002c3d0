"""Merging concepts by their ids and cross-references, against a plain union-find."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from biograft.kb.vocabularies import canonical_id


@pytest.fixture
def merged(build):
    """Build a store of sources of (id, further ids) pairs or of whole concepts."""

    def of(*sources, by):
        concepts = [
            [each if isinstance(each, dict) else concept(*each) for each in source]
            for source in sources
        ]
        built = build(*concepts, merge=by)
        ids = [each["id"] for source in concepts for each in source]
        by_row = {}
        for each in dict.fromkeys(ids):
            by_row.setdefault(built.base.row(each), []).append(each)
        return built, sorted(sorted(group) for group in by_row.values())

    return of


def concept(identifier, additional=(), *names):
    """A concept with further ids (kind and id) and names."""
    further = [{"id": other, "kind": kind} for kind, other in additional]
    return {"id": identifier, "names": list(names), "ids": further}


def n_ambiguous(built):
    found = [re.match(r"([\d,]+) links were ambiguous", each) for each in built.report.warnings]
    return sum(int(each[1].replace(",", "")) for each in found if each)


ALT, XREF = "alternate", "xref"


UTI = [concept("D1", (), "Urinary Tract Infections", "Tract Infection, Urinary")]
NAME, NEAR = "urinary tract infection", [(XREF, "MSH:D1")]


@pytest.mark.parametrize(
    ("second", "is_merged"),
    [
        (concept("DOID:2", NEAR, "acute cystitis", NAME), False),
        (concept("DOID:2", NEAR, NAME), True),
        (concept("DOID:2", NEAR, {"text": "尿路感染", "language": "zh"}), True),
        (concept("DOID:2", [(ALT, "MSH:D1")], "acute cystitis", NAME), True),
        (concept("DOID:2", [*NEAR, (XREF, "MSH:D7")]), False),
        (concept("DOID:2", [*NEAR, (XREF, "HP:7")]), True),
    ],
)
def test_cross_references_to_something_near_do_not_merge(merged, second, is_merged):
    """Urinary tract infections were merged with acute cystitis."""
    if second["names"][:1] == ["acute cystitis"]:
        second["names"][0] = {"text": "acute cystitis", "kind": "preferred"}
    first = [{**UTI[0], "name": "Urinary Tract Infections"}]
    built, groups = merged(first, [second], by="xrefs")
    assert len(groups) == (1 if is_merged else 2)
    assert [row[:2] for row in built.report.unmerged] == [("D1", "DOID:2")] * (not is_merged)
    assert n_ambiguous(built) == 0
    assert len(merged(first, [second], by="xrefs-all")[1]) == 1


def test_a_chain_that_would_join_two_concepts_of_one_source_is_left_apart(merged):
    built, groups = merged(
        [("A", [(ALT, "B")]), ("D", [])], [("B", [(ALT, "C")])], [("C", [(ALT, "D")])], by="ids"
    )
    assert groups == [["A"], ["B"], ["C"], ["D"]]
    assert n_ambiguous(built) == 1


def test_the_id_of_the_source_named_first_stays(merged):
    built, _ = merged([("Z", [])], [("A", [(ALT, "Z")])], by="ids")
    assert [each.id for each in built.base] == ["Z"]
    assert [each.id for each in built.base["Z"].ids] == ["A"]


def plain_merge(sources, by):
    """The stated rules with loops and a union-find; every concept in one source only."""
    concepts = [(c, number) for number, source in enumerate(sources) for c, _ in source]
    additional = {c: f for source in sources for c, f in source}
    primary = {c: {canonical_id(c)} for c, _ in concepts}
    alternates = {
        c: {canonical_id(i) for kind, i in f if kind == ALT} for c, f in additional.items()
    }
    claims = {
        c: {canonical_id(i) for kind, i in f if kind == ALT or by != "ids"}
        for c, f in additional.items()
    }
    links = [
        (a, b)
        for a, b in itertools.combinations(concepts, 2)
        if primary[a[0]] & primary[b[0]]
        or claims[a[0]] & (primary[b[0]] | alternates[b[0]])
        or claims[b[0]] & (primary[a[0]] | alternates[a[0]])
    ]

    def partners(one, source):
        ends = [a if b == one else b for a, b in links if one in (a, b)]
        return [end for end in ends if end[1] == source]

    certain = [
        (a, b)
        for a, b in links
        if a[1] != b[1] and len(partners(a, b[1])) == 1 and len(partners(b, a[1])) == 1
    ]
    n_ambiguous = len(links) - len(certain)
    if by == "xrefs":
        certain = [pair for pair in certain if not only_one_of_several(*pair, additional, primary)]
    leader = {c: c for c in concepts}

    def find(c):
        return c if leader[c] == c else find(leader[c])

    for a, b in certain:
        leader[find(b)] = find(a)
    merged_groups = {}
    for c in concepts:
        merged_groups.setdefault(find(c), []).append(c)
    n_clashes, result = 0, []
    for group in merged_groups.values():
        if len({source for _, source in group}) < len(group):
            n_clashes += 1
            result += [[c] for c, _ in group]
        else:
            result.append(sorted(c for c, _ in group))
    return sorted(result), n_ambiguous + n_clashes


def only_one_of_several(a, b, additional, primary):
    """Whether only cross-references link two concepts, one of them one of several."""
    several = False
    for one, other in ((a[0], b[0]), (b[0], a[0])):
        alternates = {canonical_id(i) for kind, i in additional[other] if kind == ALT}
        targets = primary[other] | alternates
        for kind, i in additional[one]:
            if canonical_id(i) not in targets:
                continue
            if kind == ALT:
                return False
            vocabulary, colon, _ = i.partition(":")
            same = {
                canonical_id(x)
                for k, x in additional[one]
                if k == XREF and colon and x.startswith(f"{vocabulary}:")
            }
            several |= len(same) > 1
    return several


def random_sources(seed, *, shared):
    """Sources whose concepts refer to each other; with ``shared`` ids may stand in several."""
    rng = random.Random(seed)
    n = rng.choice([4, 12, 30])
    prefixes = ["S0:", "S0:", "S0:"] if shared else ["S0:", "S1:", "S2:"]
    spell = (
        {p: (p, p) for p in prefixes} if shared else {"S0:": ("MSH:", ""), "S1:": ("HP:", "hp:")}
    )
    sources = []
    for prefix in prefixes[: rng.choice([2, 3])]:
        ids = [f"{rng.choice(spell.get(prefix, (prefix,)))}{prefix[:2]}{k}" for k in range(n)]
        source = []
        for concept in rng.sample(ids, n - 1):
            others = [
                f"{rng.choice(['S0', 'HP:S1', 'S2:S2', 'X:'])}{rng.randrange(2 * n)}"
                for _ in range(3)
            ]
            additional = [(rng.choice([ALT, XREF, XREF]), o) for o in others if rng.random() < 0.4]
            source.append((concept, additional))
        sources.append(source)
    return sources


@pytest.mark.parametrize("by", ["ids", "xrefs", "xrefs-all"])
@pytest.mark.parametrize("seed", range(8))
def test_merging_agrees_with_a_plain_union_find(merged, by, seed):
    sources = random_sources(seed, shared=False)
    built, groups = merged(*sources, by=by)
    assert (groups, n_ambiguous(built)) == plain_merge(sources, by)


@pytest.mark.parametrize("by", ["ids", "xrefs"])
@pytest.mark.parametrize("seed", range(4))
def test_two_concepts_of_one_source_are_never_merged(merged, by, seed):
    sources = random_sources(seed, shared=True)
    built, _ = merged(*sources, by=by)
    for source in sources:
        assert len({built.base.row(each) for each, _ in source}) == len(source)


def named(identifier, *names, types=()):
    """A concept of names: text, or text with its kind; the first is the preferred one."""
    said = [
        {"text": each, "kind": "synonym" if n else "preferred"}
        if isinstance(each, str)
        else dict(zip(("text", "kind", "language"), each, strict=False))
        for n, each in enumerate(names)
    ]
    return {"id": identifier, "names": said, "types": list(types)}


FLU = named("A:1", "Influenza", "flu", types=["disease"])
OTHER = [named("A:9", "x", types=["lab"]), named("A:8", "y", types=["disease"])]


@pytest.mark.parametrize(
    ("second", "same", "reason"),
    [
        ([named("B:1", "INFLUENZA ")], "B:1", ""),
        ([named("B:1", "flu")], "B:1", ""),
        ([named("B:1", "grippe", "influenza")], "B:1", ""),
        ([named("B:1", "Influenza", types=["Disease"])], "B:1", ""),
        ([named("B:1", "Influenza", types=["T047"])], "B:1", ""),
        ([named("B:1", "flu"), named("B:2", "influenza")], "B:2", "one of several concepts"),
        ([named("B:1", "Influenza", "flu"), named("B:2", "flu")], "B:1", "several concepts of one"),
        ([named("B:1", "x1", "influenza"), named("B:2", "flu")], "", "one of several concepts"),
        ([named("B:1", "grippe", "flu")], "", "preferred name of neither"),
        ([named("B:1", "Influenza", types=["lab"])], "", "the types differ"),
        ([named("B:1", "grippe", ("influenza", "broad"))], "", ""),
        ([named("B:1", "grippe", ("influenza", "abbreviation"))], "", ""),
        ([named("B:1", ("influenza", "preferred", "de"))], "", ""),
        ([named("B:1", "influenza +")], "", ""),
    ],
)
def test_concepts_with_an_equal_name_are_merged_unless_it_is_ambiguous(
    merged, second, same, reason
):
    built, _ = merged([FLU, *OTHER], second, by="names")
    assert [each[:3] for each in built.report.merges] == [(same, "A:1", "name")] * bool(same)
    assert [each.id for each in built.base["A:1"].ids] == [same] * bool(same)
    assert built.base["A:1"].name == "Influenza"
    assert bool(built.report.unmerged) == bool(reason)
    assert all(reason in why for *_, why, _ in built.report.unmerged)
    assert any(reason in warning for warning in ("", *built.report.warnings))


def test_names_merge_what_alternate_ids_left_and_never_concepts_of_one_source(merged):
    first = [named("A:1", "Fever"), named("A:2", "Pyrexia")]
    second = [{**named("B:1", "Hot", "Pyrexia"), "ids": [{"id": "A:1", "kind": ALT}]}]
    third = [named("C:1", "hot"), named("C:2", "fever")]
    built, groups = merged(first, second, third, by="names")
    assert groups == [["A:1", "B:1"], ["A:2"], ["C:1"], ["C:2"]]
    assert built.report.to_json()["merges"] == {
        "alternate id": {"n": 1, "examples": [{"id": "B:1", "into": "A:1", "name": ""}]}
    }
    assert merged(first, [named("B:1", "fever")], by="ids")[1] == [["A:1"], ["A:2"], ["B:1"]]


def plain_name_links(sources):
    """The rules of names with loops: ids that are merged, each with the first source's."""
    key = lambda name: (name["language"], name["text"].lower().replace("-", " "))  # noqa: E731
    exact = {
        c["id"]: {
            key(n): any(key(m) == key(n) and m["kind"] == "preferred" for m in c["names"])
            for n in c["names"]
            if n["kind"] in ("preferred", "synonym")
        }
        for source in sources
        for c in source
    }
    for source in sources:
        for c in source:
            of = exact[c["id"]]
            for language in {lang for lang, _ in of}:
                own = [k for k in of if k[0] == language]
                if not any(of[k] for k in own):
                    of[own[0]] = True
    shared = {
        k
        for source in sources
        for k in {k for c in source for k in exact[c["id"]]}
        if sum(k in exact[c["id"]] for c in source) > 1
    }
    ranks = {}
    for one, other in itertools.combinations(sources, 2):
        for a, b in itertools.product(one, other):
            keys = (exact[a["id"]].keys() & exact[b["id"]].keys()) - shared
            if keys:
                ranks[a["id"], b["id"]] = max(exact[a["id"]][k] + exact[b["id"]][k] for k in keys)
    best = lambda pair: all(  # noqa: E731
        ranks[pair] > rank
        for other, rank in ranks.items()
        if other != pair
        and (
            (other[0] == pair[0] and other[1][0] == pair[1][0])
            or (other[1] == pair[1] and other[0][0] == pair[0][0])
        )
    )
    return {pair for pair, rank in ranks.items() if rank and best(pair)}


@pytest.mark.parametrize("seed", range(12))
def test_merging_by_name_agrees_with_plain_loops(merged, seed):
    rng = random.Random(seed)
    words = [f"{letter}{sign}{digit}" for letter in "ab" for digit in "1234" for sign in " -"]
    sources = [
        [
            named(
                f"{prefix}:{k}",
                *(
                    (
                        rng.choice(words),
                        rng.choice(["preferred", "synonym", "synonym", "narrow"]),
                        rng.choice(["en", "en", "zh"]),
                    )
                    for _ in range(rng.randint(1, 3))
                ),
            )
            for k in range(rng.randint(1, 6))
        ]
        for prefix in "AB"
    ]
    built, _ = merged(*sources, by="names")
    assert {(to, id_) for id_, to, *_ in built.report.merges} == plain_name_links(sources)


def test_concepts_of_the_first_source_alone_with_the_names_of_others(build):
    medic = [concept("D1", (), "Hypertension"), concept("D2", (), "Fever")]
    umls = [
        concept("C1", [(XREF, "MSH:D1")], "high blood pressure"),
        concept("C2", [(XREF, "MSH:D9")], "another thing"),
    ]
    built = build(medic, umls, merge="xrefs-all", concepts="first")
    names = {each.id: [name.text for name in each.names] for each in built.base}
    assert names == {"D1": ["Hypertension", "high blood pressure"], "D2": ["Fever"]}
    assert built.report.dropped["concepts of other sources"] == 1
    assert len(build(medic, umls, merge="xrefs-all").base) == 3
