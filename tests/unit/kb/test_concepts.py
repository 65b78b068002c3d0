import itertools
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from biograft.ids import canonical_id
from biograft.kb import merge_concepts
from biograft.kb.collector import CollectedRecords
from biograft.kb.concepts import (
    DROPPED,
    canonical_ids,
    close_types,
    number_concepts,
    renumber,
)
from biograft.kb.merging import MANY, OTHER_NAMES, SEVERAL
from biograft.records import ConceptRecord, IdRecord, NameRecord
from biograft.sources import ReadLog


@pytest.fixture
def collect(tmp_path):
    """Collect the records of several sources."""

    def of(*sources):
        collected = CollectedRecords(tmp_path)
        for number, records in enumerate(sources):
            log = ReadLog(Path(f"source {number}"))
            for record in records:
                collected.add(record, log)
            collected.flush()
        return collected

    return of


def rows_by_id(concepts):
    return dict(concepts.by_id.select("concept", "row").rows())


class TestNumbering:
    def test_concepts_are_numbered_by_first_appearance(self, collect):
        records = [ConceptRecord(c) for c in ("B", "A", "B", "C")]
        concepts = number_concepts(collect(records, [ConceptRecord("D"), ConceptRecord("A")]))
        assert concepts.ids.to_list() == ["B", "A", "C", "D"]
        assert rows_by_id(concepts) == {"B": 0, "A": 1, "C": 2, "D": 3}

    def test_a_name_makes_a_concept_and_an_additional_id_does_not(self, collect):
        concepts = number_concepts(collect([NameRecord("A", "a"), IdRecord("B", "X:1")]))
        assert concepts.ids.to_list() == ["A"]

    def test_a_source_comes_before_the_next_whether_it_declares_or_only_names(self, collect):
        """Concepts that the first source named were numbered with one that declared them later."""
        concepts = number_concepts(
            collect(
                [NameRecord("A", "a"), NameRecord("B", "b")],
                [ConceptRecord("C"), ConceptRecord("B")],
            )
        )
        assert concepts.ids.to_list() == ["A", "B", "C"]

    @pytest.mark.parametrize("merge", ["none", "ids", "xrefs"])
    def test_no_concepts_are_no_error_yet(self, collect, merge):
        """Merging sources without concepts raised a ValueError of polars."""
        records = collect([IdRecord("B", "X:1")])
        concepts = number_concepts(records)
        if merge != "none":
            concepts = merge_concepts(concepts, records, merge)
        assert len(concepts.ids) == 0
        assert concepts.rows_of(pl.Series(["B"])).to_list() == [None]

    @pytest.mark.parametrize("seed", range(5))
    def test_rows_are_found_as_in_a_dict(self, collect, seed):
        rng = random.Random(seed)
        ids = [f"C{k}" for k in range(20)]
        concepts = number_concepts(collect([ConceptRecord(c) for c in ids]))
        queries = [c for _ in range(50) for c in [rng.choice([*ids, "X"])] * rng.randrange(4)]
        expected = [rows_by_id(concepts).get(c) for c in queries]
        assert concepts.rows_of(pl.Series(queries, dtype=pl.String)).to_list() == expected


def test_dropped_concepts_lose_their_rows_and_the_others_close_up(collect):
    concepts = number_concepts(collect([ConceptRecord(c) for c in "ABCDE"]))
    kept = renumber(concepts, np.array([0, DROPPED, 2, 0, DROPPED], np.uint32))
    assert kept.ids.to_list() == ["A", "C"]
    assert rows_by_id(kept) == {"A": 0, "B": DROPPED, "C": 1, "D": 0, "E": DROPPED}
    assert kept.merged_ids().rows() == [(0, "D")]
    again = renumber(kept, np.array([DROPPED, 1], np.uint32))
    assert rows_by_id(again) == {"A": DROPPED, "B": DROPPED, "C": 0, "D": DROPPED, "E": DROPPED}


# ---- merging


def merged(records, by):
    return merge_concepts(number_concepts(records), records, by)


def groups(concepts):
    ids = sorted(rows_by_id(concepts).items())
    by_row = {}
    for concept, row in ids:
        by_row.setdefault(row, []).append(concept)
    return sorted(by_row.values())


ALT, XREF = "alternate", "xref"
EXAMPLES = {
    "an alternate id": ("ids", [("A", [(ALT, "B")])], [("B", [])], [["A", "B"]], 0),
    "a shared alternate id": ("ids", [("A", [(ALT, "X")])], [("B", [(ALT, "X")])], [["A", "B"]], 0),
    "two spellings": ("ids", [("MSH:D1", [])], [("D1", [])], [["D1", "MSH:D1"]], 0),
    "an xref, by ids": ("ids", [("A", [(XREF, "B")])], [("B", [])], [["A"], ["B"]], 0),
    "an xref": ("xrefs", [("A", [])], [("B", [(XREF, "A")])], [["A", "B"]], 0),
    "a third xref": ("xrefs", [("A", [(XREF, "X")])], [("B", [(XREF, "X")])], [["A"], ["B"]], 0),
    "an xref to an alternate": (
        "xrefs", [("A", [(XREF, "X")])], [("B", [(ALT, "X")])], [["A", "B"]], 0,
    ),
    "one source": ("ids", [("A", [(ALT, "B")]), ("B", [])], [], [["A"], ["B"]], 1),
    "two partners": (
        "xrefs", [("A", [(XREF, "B"), (XREF, "C")])], [("B", []), ("C", [])],
        [["A"], ["B"], ["C"]], 2,
    ),
    "two links to one": (
        "xrefs", [("A", [(XREF, "C")]), ("B", [(XREF, "C")])], [("C", [])],
        [["A"], ["B"], ["C"]], 2,
    ),
}  # fmt: skip


def records_of(concepts):
    for concept, additional in concepts:
        yield ConceptRecord(concept)
        yield from (IdRecord(concept, other, kind) for kind, other in additional)


@pytest.mark.parametrize(
    ("by", "first", "second", "merged_groups", "n_ambiguous"), EXAMPLES.values(), ids=EXAMPLES
)
def test_ids_and_xrefs_merge_concepts(collect, by, first, second, merged_groups, n_ambiguous):
    concepts = merged(collect(records_of(first), records_of(second)), by)
    assert groups(concepts) == merged_groups
    assert concepts.n_ambiguous == n_ambiguous
    assert concepts.n_merged == len(first) + len(second) - len(merged_groups)


UTI = [
    ConceptRecord("D1"),
    NameRecord("D1", "Urinary Tract Infections", kind="preferred"),
    NameRecord("D1", "Tract Infection, Urinary"),
]
CYSTITIS = [
    NameRecord("DOID:2", "acute cystitis", kind="preferred"),
    NameRecord("DOID:2", "urinary tract infection"),
]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ([*CYSTITIS, IdRecord("DOID:2", "MSH:D1", XREF)], OTHER_NAMES),
        ([NameRecord("DOID:2", "urinary tract infection"), IdRecord("DOID:2", "MSH:D1", XREF)], ""),
        ([CYSTITIS[1], NameRecord("DOID:2", "UTI"), IdRecord("DOID:2", "MSH:D1", XREF)], ""),
        ([NameRecord("DOID:2", "尿路感染", "zh"), IdRecord("DOID:2", "MSH:D1", XREF)], ""),
        ([*CYSTITIS, IdRecord("DOID:2", "MSH:D1", ALT)], ""),
        ([IdRecord("DOID:2", "MSH:D1", XREF), IdRecord("DOID:2", "MSH:D7", XREF)], SEVERAL),
        ([IdRecord("DOID:2", "MSH:D1", XREF), IdRecord("DOID:2", "HP:7", XREF)], ""),
    ],
)
def test_cross_references_to_something_near_do_not_merge(collect, second, reason):
    """Urinary tract infections were merged with acute cystitis."""
    second = [ConceptRecord("DOID:2"), *second]
    concepts = merged(collect(UTI, second), "xrefs")
    assert concepts.n_merged == (not reason)
    assert concepts.unmerged.rows() == ([("D1", "DOID:2", reason)] if reason else [])
    assert concepts.n_ambiguous == 0
    assert merged(collect(UTI, second), "xrefs-all").n_merged == 1


def test_links_that_are_not_one_to_one_are_listed(collect):
    concepts = merged(
        collect(
            records_of([("A", [(XREF, "B"), (XREF, "C")])]), records_of([("B", []), ("C", [])])
        ),
        "xrefs-all",
    )
    assert sorted(concepts.unmerged.rows()) == [("A", "B", MANY), ("A", "C", MANY)]


def test_a_chain_that_would_join_two_concepts_of_one_source_is_left_apart(collect):
    concepts = merged(
        collect(
            records_of([("A", [(ALT, "B")]), ("D", [])]),
            records_of([("B", [(ALT, "C")])]),
            records_of([("C", [(ALT, "D")])]),
        ),
        "ids",
    )
    assert groups(concepts) == [["A"], ["B"], ["C"], ["D"]]
    assert concepts.n_ambiguous == 1


def test_the_id_of_the_source_named_first_stays(collect):
    concepts = merged(collect(records_of([("Z", [])]), records_of([("A", [(ALT, "Z")])])), "ids")
    assert concepts.ids.to_list() == ["Z"]
    assert concepts.merged_ids().rows() == [(0, "A")]


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
@pytest.mark.parametrize("seed", range(25))
def test_merging_agrees_with_a_plain_union_find(collect, by, seed):
    sources = random_sources(seed, shared=False)
    concepts = merged(collect(*map(records_of, sources)), by)
    assert (groups(concepts), concepts.n_ambiguous) == plain_merge(sources, by)


@pytest.mark.parametrize("by", ["ids", "xrefs"])
@pytest.mark.parametrize("seed", range(25))
def test_two_concepts_of_one_source_are_never_merged(collect, by, seed):
    sources = random_sources(seed, shared=True)
    rows = rows_by_id(merged(collect(*map(records_of, sources)), by))
    for source in sources:
        assert len({rows[concept] for concept, _ in source}) == len(source)


def test_a_column_of_ids_is_spelled_as_single_ids_are():
    ids = ["MSH:D1", "D1", "MIM:1", "MSH:D1", "a:b:c", "", "plain", "SCTID:1"]
    for some in (ids, ["plain", "D1"], []):
        column = canonical_ids(pl.Series(some, dtype=pl.String))
        assert column.to_list() == [canonical_id(i) for i in some]


TREES = {"T1": "A1", "T2": "A1.2", "T3": "A1.2.3", "T4": "A12", "T5": "B2", "T6": "", "T7": "C04"}


@pytest.mark.parametrize(
    ("types", "closed"),
    [
        (("T3",), "T3"),
        (("T2",), "T2 T3"),
        (("T1",), "T1 T2 T3"),
        (("T1", "T5"), "T1 T2 T3 T5"),
        (("A",), "A T1 T2 T3 T4"),
        (("C",), "C T7"),
        (("T6",), "T6"),
        (("T99",), "T99"),
        (("A1.2",), "A1.2 T2 T3"),
        (("D",), "D"),
    ],
)
def test_types_are_closed_downward(types, closed):
    assert close_types({**TREES, "Drug": ""}, types) == set(closed.split())
