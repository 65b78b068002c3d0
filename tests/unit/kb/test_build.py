from __future__ import annotations

import functools
import itertools
import json
import os
import random
import re
import select

import polars as pl
import pytest

from biograft.errors import FormatError, InputError, OutputError
from biograft.kb import (
    BuildConfig,
    KnowledgeBase,
    NameRules,
    build as kb_build,
    build_store,
    collector,
    concepts as kb_concepts,
)
from biograft.kb.records import NameRecord
from biograft.kb.sources import ReadLog, SourceConfig


def concept(identifier, *names, parents=(), **fields):
    return {"id": identifier, "names": list(names), "relations": {"is-a": list(parents)}, **fields}


def names_of(base, identifier):
    return [(name.text, name.language) for name in base[identifier].names]


def rejected(report, number=0):
    """What was rejected of a source: reason, count and where."""
    return {
        reason: (entry["n"], [(e["file"], e["line"], e["text"]) for e in entry["examples"]])
        for reason, entry in report.sources[number].rejected.items()
    }


class TestAccounts:
    def test_every_repeat_is_merged_and_counted(self, build):
        repeated = {
            "id": "A",
            "names": ["a", "a", "b", {"text": "a", "language": "de"}],
            "definitions": ["d", "d"],
            "types": ["T1", "T1"],
            "ids": ["X:1", "X:1", "A"],
            "relations": [{"relation": "is-a", "tail": "B"}] * 3,
        }
        built = build([repeated, {"id": "B", "name": "b"}])
        assert built.report.merged == {
            "concepts": 0,
            "names": 1,
            "definitions": 1,
            "types": 1,
            "ids": 2,
            "relations": 2,
        }
        assert names_of(built.base, "A") == [("a", "en"), ("b", "en"), ("a", "de")]
        assert [i.id for i in built.base["A"].ids] == ["X:1"]


class TestSources:
    def test_several_sources_make_one_store_and_equal_ids_one_concept(self, build):
        built = build(
            [concept("A", "a"), concept("B", "b")],
            [concept("B", "b", "beta", parents=["A"]), concept("C", "c", parents=["B"])],
        )
        base = built.base
        assert [c.id for c in base] == ["A", "B", "C"]
        assert [(n.text, n.source) for n in base["B"].names] == [
            ("b", "one.jsonl"),
            ("beta", "two.jsonl"),
        ]
        assert base.ancestors("C") == ["B", "A"]
        assert [r.source for r in base.relations("B", direction="out")] == ["two.jsonl"]
        assert built.report.merged["names"] == 1

    @pytest.mark.parametrize(
        ("merge", "n"), [("none", 2), ("ids", 2), ("xrefs", 2), ("xrefs-all", 1)]
    )
    def test_merged_concepts_share_all_facts_and_are_found_by_either_id(self, build, merge, n):
        built = build(
            [concept("A", "a", parents=["P"]), concept("P", "p")],
            [
                concept("B", "b", parents=["Q"], ids=[{"id": "A", "kind": "xref"}]),
                concept("Q", "q"),
            ],
            merge=merge,
        )
        assert len(built.base) == n + 2
        assert built.report.merged["concepts"] == 2 - n
        if n == 1:
            assert built.base["B"] == built.base["A"]
            assert names_of(built.base, "B") == [("a", "en"), ("b", "en")]
            assert [(i.id, i.kind) for i in built.base["A"].ids] == [("B", "alternate")]
            assert set(built.base.parents("A")) == {"P", "Q"}

    @pytest.mark.parametrize("merge", ["none", "ids", "xrefs"])
    def test_sources_without_a_concept_are_refused(self, build, merge, tmp_path):
        """Merging sources without concepts raised a ValueError of polars."""
        with pytest.raises(
            InputError, match=r"one.jsonl: contains no concept \(2 rows were read; 2 rejected"
        ):
            build(["{}", '{"name": "x"}'], merge=merge)
        assert [path.name for path in tmp_path.iterdir()] == ["one.jsonl"]


TYPED = [
    concept("A", "a", types=[{"type": "T1", "label": "one", "tree": "B1"}], parents=["C"]),
    concept("B", "b", types=[{"type": "T2", "label": "two", "tree": "B1.2"}], parents=["A"]),
    concept("C", "c", types=[{"type": "T3", "label": "three", "tree": "B12"}]),
    concept("D", "d", parents=["B", "C"]),
    concept("E", "e", types=["T3", "T2"], parents=["nowhere"]),
]


class TestTypes:
    @pytest.mark.parametrize(
        ("types", "expected"),
        [(("T1",), "ABE"), (("T2",), "BE"), (("B",), "ABCE"), (("T3",), "CE"), ((), "ABCDE")],
    )
    def test_types_keep_their_concepts_and_those_below(self, build, types, expected):
        built = build(TYPED, types=types)
        assert [c.id for c in built.base] == list(expected)
        assert set(built.base.types[0].tree) <= set("B12.")

    def test_what_is_left_out_is_filtered_and_not_rejected(self, build):
        built = build(TYPED, types=("T1",))
        # names of C, D; type of C; relations A -> C, D -> B, D -> C
        assert built.report.sources[0].filtered == {"concept left out": 6}
        assert list(built.report.sources[0].rejected) == ["relations: tail is no concept"]
        assert built.base.relations("B") == built.base.relations("A", direction="in")

    def test_a_type_may_be_named_by_its_label(self, build):
        labelled = {"id": "A", "name": "a", "types": [{"type": "T1", "label": "Sign or Symptom"}]}
        built = build([labelled, concept("B", "b")], types=("sign or symptom",))
        assert [c.id for c in built.base] == ["A"]


def named(*names):
    keys = ("text", "language", "kind")
    return {"id": "A", "names": [dict(zip(keys, name, strict=True)) for name in names]}


EN, DE, ZH = ("e", "en", "preferred"), ("d", "de", "preferred"), ("z", "zh", "preferred")


class TestNames:
    @pytest.mark.parametrize(
        ("languages", "names", "own"),
        [
            ((), [DE, EN, ZH], "e"),
            (("zh",), [DE, EN, ZH], "z"),
            (("fr", "zh"), [DE, EN, ZH], "z"),
            (("zh", "de"), [EN, DE], "d"),
            ((), [("s", "en", "synonym"), DE], "d"),
            ((), [("x", "de", "synonym"), ("s", "en", "synonym")], "s"),
        ],
    )
    def test_the_preferred_name_is_in_the_first_language_that_has_one(
        self, build, languages, names, own
    ):
        """Of several main languages only the first was looked at."""
        assert build([named(*names)], languages=languages).base["A"].name == own

    def test_the_main_language_of_a_source_counts_where_the_build_names_none(self, build):
        built = build([named(EN, ZH, DE)], source_options={"languages": ("zh", "en")})
        assert built.base["A"].name == "z"
        assert names_of(built.base, "A") == [("z", "zh"), ("e", "en")]
        assert built.report.sources[0].filtered == {"language": 1}

    def test_rules_change_names_and_drop_what_is_empty_then(self, build, tmp_path):
        rules = NameRules(lowercase=True, strip_symbols=True)
        built = build([concept("A", "Type-2", "TYPE 2", "(+)", "x")], names=rules)
        assert names_of(built.base, "A") == [("type 2", "en"), ("x", "en")]
        assert rejected(built.report) == {
            "name is empty or only symbols": (1, [(str(tmp_path / "one.jsonl"), 1, "(+)")])
        }
        assert built.report.merged["names"] == 1

    def test_shared_names_are_dropped_in_every_partition(self, build, monkeypatch):
        monkeypatch.setattr(kb_build, "PARTITION_ROWS", 2)
        shared = [concept(f"C{k}", f"own {k}", "shared") for k in range(5)]
        built = build([*shared, concept("D", "a", "b")], names=NameRules(resolve_shared=True))
        names = [[name.text for name in each.names] for each in built.base]
        assert names == [["own 0", "shared"], *([f"own {k}"] for k in range(1, 5)), ["a", "b"]]


def tables(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.arrow")}


@pytest.mark.parametrize(
    "options", [{}, {"merge": "xrefs", "names": NameRules(resolve_shared=True)}]
)
class TestSameness:
    @pytest.mark.parametrize("partition_rows", [11, 100])
    def test_tables_made_in_partitions_hold_the_same(
        self, build, random_concepts, contents, options, partition_rows, monkeypatch
    ):
        concepts = random_concepts(120, 1), random_concepts(30, 2, "D")
        single = build(*concepts, **options)
        monkeypatch.setattr(kb_build, "PARTITION_ROWS", partition_rows)
        monkeypatch.setattr(kb_concepts, "MIN_ROWS", 0 if partition_rows == 11 else 1 << 30)
        partitioned = build(*concepts, **options)
        assert partitioned.base.table("names").column("text").num_chunks > 1
        assert contents(partitioned.base) == contents(single.base)
        assert partitioned.report.counts == single.report.counts
        assert partitioned.report.merged == single.report.merged
        assert [s.n_rejected for s in partitioned.report.sources] == [
            s.n_rejected for s in single.report.sources
        ]
        for c in single.base:
            for name in c.names:
                assert partitioned.base.find(name.text) == single.base.find(name.text)
            assert partitioned.base.relations(c.id) == single.base.relations(c.id)
            assert partitioned.base.descendants(c.id) == single.base.descendants(c.id)


def test_facts_of_several_sources_keep_their_order(build):
    many = [
        [
            {
                "id": f"C{k}",
                "name": f"{k}",
                "definitions": [{"text": f"{file} {n}"} for n in "abcd"],
            }
            for k in range(500)
        ]
        for file in "xy"
    ]
    expected = [f"{file} {n}" for file in "xy" for n in "abcd"]
    for each in build(*many, merge="ids").base:
        assert [definition.text for definition in each.definitions] == expected


class TestSpellings:
    def test_one_id_in_two_spellings_is_one_concept_and_found_by_both(self, build):
        """Guards a bug: looking up an id gave a concept whose id was only spelt alike."""
        built = build([concept("MESH:D1", "T2D")], [concept("D1", "diabetes")])
        assert [c.id for c in built.base] == ["MESH:D1"]
        assert names_of(built.base, "D1") == [("T2D", "en"), ("diabetes", "en")]
        assert [i.id for i in built.base["D1"].ids] == ["D1"]

    def test_relations_find_concepts_by_another_spelling_or_an_alternate_id(self, build):
        built = build(
            [
                concept("D1", "a", ids=["OLD:1", "BOTH:1"]),
                concept("D2", "b", ids=["BOTH:1"], parents=["MSH:D1"]),
                concept("D3", "c", parents=["OLD:1"]),
                concept("D4", "d", parents=["BOTH:1"]),
            ]
        )
        assert built.base.children("D1") == ["D2", "D3"]
        assert rejected(built.report)["relations: tail is no concept"][0] == 1


def test_a_build_that_takes_long_does_not_replace_what_another_made_meanwhile(tmp_path):
    """Guards a bug: of two builds into one place the slower one deleted the other's store."""
    from biograft.artifacts import new_folder

    target = tmp_path / "kb"

    def build_slowly():
        with new_folder(target) as work:
            (work / "slow").touch()
            with new_folder(target) as other:
                (other / "fast").touch()

    with pytest.raises(OutputError, match="exists already"):
        build_slowly()
    assert [path.name for path in target.iterdir()] == ["fast"]
    assert [path.name for path in tmp_path.iterdir()] == ["kb"]


def test_a_folder_that_only_looks_like_a_store_is_not_overwritten(build, tmp_path):
    """Guards a bug: any folder with a manifest.json was taken for a store and deleted."""
    built = build([concept("A", "a")])
    (built.folder / "thesis.txt").write_text("years of work")
    config = BuildConfig(sources=(SourceConfig(path=tmp_path / "one.jsonl"),))
    with pytest.raises(OutputError, match="not overwritten"):
        build_store(config, built.folder, overwrite=True)
    assert (built.folder / "thesis.txt").exists()


def reached(starts, edges):
    """Everything that a depth-first walk reaches from some nodes, themselves included."""
    seen, stack = set(), list(starts)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += edges.get(node, ())
    return seen


def caught_in_cycles(pairs):
    """The nodes on a cycle, or between two, by plain search."""
    up, down = {}, {}
    for child, parent in pairs:
        up.setdefault(child, []).append(parent)
        down.setdefault(parent, []).append(child)
    on_cycle = {node for node in up if node in reached(up[node], up)}
    return reached(on_cycle, up) & reached(on_cycle, down)


@pytest.mark.parametrize("seed", range(12))
def test_cycles_are_those_of_a_depth_first_search(build, seed):
    rng = random.Random(seed)
    n = rng.choice([3, 8, 30])
    pairs = {(rng.randrange(n), rng.randrange(n)) for _ in range(rng.choice([2, n // 2, n]))}
    if seed % 3 == 0:
        pairs = {(max(pair), min(pair)) for pair in pairs}
    pairs = {(child, parent) for child, parent in pairs if child != parent}
    parents = {k: [f"C{b}" for a, b in sorted(pairs) if a == k] for k in range(n)}
    report = build([concept(f"C{k}", f"n{k}", parents=parents[k]) for k in range(n)]).report
    caught = caught_in_cycles(pairs)
    assert len(report.warnings) == bool(caught)
    for warning in report.warnings:
        count, cycle = re.search(r"cycles: (\d+) concepts.*such as ([C\d >-]+);", warning).groups()
        assert int(count) == len(caught)
        steps = [int(each[1:]) for each in cycle.split(" -> ")]
        assert steps[0] == steps[-1]
        assert all(step in pairs for step in itertools.pairwise(steps))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_the_threads_of_its_parent(tmp_path):
    """Guards: a build in a process that was forked after one in its parent hung for ever."""
    (tmp_path / "a.csv").write_text("id,name\n1,flu\n")
    config = BuildConfig(sources=(SourceConfig(path=tmp_path / "a.csv"),))
    build_store(config, tmp_path / "parent")
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            build_store(config, tmp_path / "child")
        except OutputError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        ready, _, _ = select.select([answer], [], [], 30)
        assert ready
        assert "start it with the method spawn" in answer.read()
    os.wait()
    assert not (tmp_path / "child").exists()
    build_store(config, tmp_path / "parent", overwrite=True)


LAB, VENDOR = "http://hospital-a.org/lab/C_0001", "http://vendor-b.com/codes#C_0001"


class TestIris:
    """Two IRIs with the same last part were one concept with the names of both."""

    @staticmethod
    def graph(path, *nodes, edges=()):
        """Write nodes (IRI and label) and is-a edges as OBO Graphs JSON."""
        content = {
            "nodes": [{"id": iri, "lbl": label, "type": "CLASS"} for iri, label in nodes],
            "edges": [{"sub": a, "pred": "is_a", "obj": b} for a, b in edges],
        }
        path.write_text(json.dumps({"graphs": [content]}))
        return path

    @staticmethod
    def turtle(path, *nodes, edges=()):
        """Write the same in Turtle."""
        pytest.importorskip("pyoxigraph")
        rdfs = "http://www.w3.org/2000/01/rdf-schema#"
        lines = [
            f'<{iri}> a <http://www.w3.org/2002/07/owl#Class> ; <{rdfs}label> "{label}" .'
            for iri, label in nodes
        ]
        lines += [f"<{a}> <{rdfs}subClassOf> <{b}> ." for a, b in edges]
        path.write_text("\n".join([f"@prefix rdfs: <{rdfs}> .", *lines, ""]))
        return path

    @staticmethod
    def base(tmp_path, *paths):
        config = BuildConfig(sources=tuple(SourceConfig(path=path) for path in paths))
        report = build_store(config, tmp_path / "kb", overwrite=True)
        return KnowledgeBase.open(tmp_path / "kb"), report

    @pytest.mark.parametrize("write", ["graph", "turtle"])
    def test_one_file(self, tmp_path, write):
        nodes = [(LAB, "Influenza"), (VENDOR, "Broken leg")]
        base, report = self.base(tmp_path, getattr(self, write)(tmp_path / "x", *nodes))
        assert names_of(base, "C:0001") == [("Influenza", "en")]
        assert names_of(base, VENDOR) == [("Broken leg", "en")]
        first, second = report.warnings
        assert (LAB in first, VENDOR in second) == (True, True)
        assert base[LAB].iri == LAB

    @pytest.mark.parametrize("write", ["graph", "turtle"])
    def test_reference_alone(self, tmp_path, write):
        lab = [(LAB, "Influenza"), ("http://hospital-a.org/lab/C_2", "Flu of type A")]
        first = getattr(self, write)(tmp_path / "a", *lab, edges=[(lab[1][0], VENDOR)])
        base, _ = self.base(tmp_path, first)
        assert base.parents("C:2") == []
        second = self.graph(tmp_path / "b.json", (VENDOR, "Broken leg"))
        base, _ = self.base(tmp_path, first, second)
        assert base.parents("C:2") == [VENDOR]

    def test_spellings_of_one_namespace(self, tmp_path):
        iris = ["http://purl.obolibrary.org/obo/HP_1", "https://purl.obolibrary.org/obo/HP_2"]
        iris.append("http://purl.org/obo/owl/HP#HP_3")
        iris += ["http://www.orpha.net/ORDO/Orphanet_4", "https://orpha.net/ORDO/Orphanet_5"]
        nodes = [(iri, iri[-1]) for iri in iris]
        base, report = self.base(tmp_path, self.graph(tmp_path / "x", *nodes))
        assert [c.id for c in base] == ["HP:1", "HP:2", "HP:3", "ORPHA:4", "ORPHA:5"]
        assert not report.warnings

    def test_obo_owns_its_prefixes(self, tmp_path):
        """An IRI of another namespace that comes first does not take HP from its registry."""
        other, phenotype = "http://vendor-b.com/hp_1", "http://purl.obolibrary.org/obo/HP_1"
        base, report = self.base(
            tmp_path, self.graph(tmp_path / "x", (other, "Pump"), (phenotype, "All"))
        )
        assert (base[other].name, base["HP:1"].name) == ("Pump", "All")
        assert len(report.warnings) == 1


def test_names_are_folded_to_one_line_or_rejected(tmp_path):
    """A name with a line end was stored, and later blocked the export of what mapped to it."""
    path = tmp_path / "x.csv"
    path.write_text(
        'id,name,synonyms\n1,"Myocardial\n\tinfarction",heart  attack\n2,\u200b\ufeff,flu\n'
        "id,name,synonyms\n3,\u2800,cold\x07\n",
        "utf-8",
    )
    config = BuildConfig(sources=(SourceConfig(path=path),))
    report = build_store(config, tmp_path / "kb")
    base = KnowledgeBase.open(tmp_path / "kb")
    assert [[name.text for name in each.names] for each in base] == [
        ["Myocardial infarction", "heart  attack"],
        ["flu"],
        ["cold"],
    ]
    assert {why: n for why, (n, _) in rejected(report).items()} == {
        "name: has no visible character": 2,
        "the header again": 1,
    }
    (doubt,) = report.sources[0].doubtful.values()
    assert doubt["n"] == 2


def test_a_store_built_through_the_disk_is_the_same_to_the_byte(
    build, random_concepts, monkeypatch
):
    """Declared concepts stayed on disk, and the build failed on removing its working folder."""
    concepts = random_concepts(120, 1), random_concepts(80, 2, "D")
    here = build(*concepts, merge="xrefs")
    monkeypatch.setattr(collector, "FLUSH_RECORDS", 50)
    little = functools.partial(collector.CollectedRecords, memory_budget=5000)
    monkeypatch.setattr("biograft.kb.build.CollectedRecords", little)
    assert tables(build(*concepts, merge="xrefs").folder) == tables(here.folder)


def test_ids_with_control_characters_are_rejected_and_counted(build):
    """Guards: a line break in an id made false rows in ``kb export --format biosyn``."""
    faulty = []
    for broken in ("A\nB||C", "A\u2028B", "A\rB", "A\tB", "A\x85B", "A\x00B"):
        faulty += [
            {"id": broken, "name": "flu"},
            {"id": "A", "ids": [broken]},
            {"id": "A", "type": broken},
            {"id": "A", "relations": {"is-a": [broken], broken: ["A"]}},
        ]
    built = build([{"id": "A", "name": "a"}, *faulty])
    assert built.report.counts | {"concepts": 1, "names": 1} == dict.fromkeys(
        built.report.counts, 0
    ) | {"concepts": 1, "names": 1}
    assert rejected(built.report)["concept: holds a control character"][0] == 12
    assert (list(built.base.types), built.base.n_relations) == ([], 0)


def test_the_first_label_of_a_type_stays(build):
    """Which of two labels won was left to chance, so builds differed."""
    types = [{"type": "T1"}, *({"type": "T1", "label": f"label {k}"} for k in range(50))]
    built = build([{"id": "C1", "name": "c", "types": types}])
    assert [each.label for each in built.base.types] == ["label 0"]


def test_too_many_labels_are_refused(tmp_path):
    encoder, labels = collector.LabelEncoder("sources"), pl.Series(map(str, range(1 << 16)))
    assert encoder.encode(labels, pl.UInt16, tmp_path)[-1] == 65535
    with pytest.raises(FormatError, match="over 65,536 different sources"):
        encoder.encode(pl.Series(["one more"]), pl.UInt16, tmp_path)


def test_a_value_that_is_no_text_is_refused_with_file_and_row(tmp_path):
    """Guards: a reader that gave numbers as ids ended in a traceback of polars."""
    records, log = collector.CollectedRecords(tmp_path), ReadLog(tmp_path / "a.obo")
    log.opened(log.path)
    for record in (NameRecord("C0", "x", line=1), NameRecord(7, "a", line=2)):
        records.add(record, log)
    with pytest.raises(FormatError, match=r"a\.obo:2: .* as concept of a ") as refused:
        records.flush()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, ["Crohn's  DISEASE (acute), type-2", "α:β（成）#1 & y"]),
        ({"lowercase": True}, ["crohn's  disease (acute), type-2", "α:β（成）#1 & y"]),
        ({"strip_symbols": True}, ["Crohn s DISEASE acute type 2", "α:β（成）#1 & y"]),
    ],
)
def test_texts_change_only_by_the_rules(build, rules, expected):
    names = ["Crohn's  DISEASE (acute), type-2", "α:β（成）#1 & y"]
    built = build([concept("A", *names)], names=NameRules(**rules))
    assert [name.text for name in built.base["A"].names] == expected


def test_every_symbol_becomes_a_space(build):
    names = [f"{k}{symbol}b" for k, symbol in enumerate(",.;{}[]()+-_*/?!\\\"'`=%<>")]
    base = build([concept("A", *names)], names=NameRules(strip_symbols=True)).base
    assert [name.text for name in base["A"].names] == [f"{k} b" for k in range(len(names))]


def plain_drop(names):
    """The names that stay by GenBioEL's rule, by plain loops."""
    order = sorted(names, key=lambda each: (len(set(names[each])), list(names).index(each)))
    owner = {}
    for each in order:
        for name in names[each]:
            owner.setdefault(name, each)
    kept = {each: [name for name in names[each] if owner[name] == each] for each in names}
    return {each: kept[each] or names[each][:1] for each in names}


@pytest.mark.parametrize("seed", range(8))
def test_shared_names_are_dropped_as_by_plain_loops(build, seed):
    rng = random.Random(seed)
    n_names, n_concepts, n_keys = rng.choice([(5, 2, 2), (40, 10, 12), (100, 8, 60), (60, 50, 9)])
    names = {f"C{k}": [] for k in range(n_concepts)}
    for _ in range(n_names):
        names[f"C{rng.randrange(n_concepts)}"].append(f"n{rng.randrange(n_keys)}")
    names = {each: list(dict.fromkeys(own)) for each, own in names.items() if own}
    concepts = [concept(each, *own) for each, own in names.items()]
    base = build(concepts, names=NameRules(resolve_shared=True)).base
    assert {c.id: [name.text for name in c.names] for c in base} == plain_drop(names)
