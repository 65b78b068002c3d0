import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from manifests import reseal

from biograft.errors import NotFoundError, StoreError
from biograft.kb import KnowledgeBase, keys, tables
from biograft.kb.names import normalise

CONCEPTS = [
    {
        "id": "D003924",
        "name": "Diabetes Mellitus, Type 2",
        "names": ["type 2 diabetes", "Type-2 Diabetes", {"text": "2型糖尿病", "language": "zh"}],
        "definitions": ["A disorder.", {"text": "Une maladie.", "language": "fr"}],
        "types": [{"type": "T047", "label": "Disease", "tree": "B2.2.1"}],
        "ids": ["C0011860", {"id": "MIM:125853", "kind": "xref"}],
        "relations": {"is-a": ["D003920"], "treated-by": ["D008687"]},
    },
    {"id": "D003920", "name": "Diabetes Mellitus", "names": ["DM"], "ids": ["C0011860"]},
    {"id": "D008687", "name": "Metformin", "ids": [{"id": "OMIM:125853", "kind": "xref"}]},
    {"id": "C0011860", "name": "dm"},
    {"id": "NAMELESS", "names": [], "relations": {"is-a": ["D003920"], "near": ["NAMELESS"]}},
]


@pytest.fixture
def base(build):
    return build(CONCEPTS).base


class TestConcepts:
    def test_a_store_without_names_can_be_queried(self, build):
        base = build([{"id": "A", "names": []}]).base
        assert (base.find("a"), base.find(""), base["A"].names) == ([], [], ())
        assert base.relations("A") == base.ancestors("A") == base.by_xref("X") == []


class TestIds:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("D003924", ["D003924"]),
            ("MSH:D003924", ["D003924"]),
            ("mesh:D003924", ["D003924"]),
            ("C0011860", ["C0011860", "D003924", "D003920"]),
            ("UMLS:C0011860", ["C0011860", "D003924", "D003920"]),
            ("OMIM:125853", []),
            ("d003924", []),
            ("", []),
            ("\ud800", []),
        ],
    )
    def test_an_id_leads_to_its_concepts_the_primary_first(self, base, query, expected):
        assert [c.id for c in base.by_id(query)] == expected
        assert (query in base) == bool(expected)
        if expected:
            assert base[query].id == expected[0]
            assert base.id_at(base.row(query)) == expected[0]
        else:
            assert base.find_row(query) is None

    def test_the_rows_of_several_ids_come_once_and_in_order(self, base):
        rows = [base.row(each) for each in ("C0011860", "D003924", "D003920")]
        assert base.rows_of(["D003924", "UMLS:C0011860", "MSH:D003924", "none"]) == (*sorted(rows),)
        assert base.rows_of([]) == ()
        assert base.ids_of(["UMLS:C0011860", "none"]) == {"C0011860", "D003924", "D003920"}

    @pytest.mark.parametrize("query", ["MIM:125853", "OMIM:125853", "mim: 125853"])
    def test_a_cross_reference_leads_to_all_that_carry_it(self, base, query):
        assert [c.id for c in base.by_xref(query)] == ["D003924", "D008687"]

    def test_every_id_of_a_larger_store_is_found(self, build, random_concepts):
        concepts = random_concepts(500, 3)
        base = build(concepts).base
        assert all(base[c["id"]].id == c["id"] for c in concepts)
        ids = [*(other.id for c in base for other in c.ids), *(c["id"] for c in concepts), "", "x"]
        assert base.find_rows(ids) == [base.find_row(each) for each in ids]
        assert base.find_rows([]) == []
        carriers = {}
        for c in base:
            for other in c.ids:
                if other.kind == "xref":
                    carriers.setdefault(other.id, []).append(c.id)
        assert all([c.id for c in base.by_xref(x)] == ids for x, ids in carriers.items())


class TestNames:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("type 2 diabetes", [("D003924", "type 2 diabetes", "exact")]),
            ("TYPE 2 DIABETES", [("D003924", "type 2 diabetes", "normalised")]),
            ("２型糖尿病", [("D003924", "2型糖尿病", "normalised")]),
            ("dm", [("C0011860", "dm", "exact"), ("D003920", "DM", "normalised")]),
            ("DM", [("D003920", "DM", "exact"), ("C0011860", "dm", "normalised")]),
            ("Dm", [("D003920", "DM", "normalised"), ("C0011860", "dm", "normalised")]),
            ("diabetes", []),
            ("", []),
        ],
    )
    def test_exactly_written_names_come_first_and_each_concept_once(self, base, text, expected):
        assert [(m.concept, m.name, m.how) for m in base.find(text)] == expected

    @pytest.mark.parametrize(("language", "n"), [("zh", 1), ("en", 0), ("fr", 0), (None, 1)])
    def test_a_language_narrows(self, base, language, n):
        assert len(base.find("2型糖尿病", language=language)) == n

    def test_finding_agrees_with_a_search_through_all_names(self, build, random_concepts):
        base = build(random_concepts(200, 5)).base
        names = [(name.text, c.id) for c in base for name in c.names]
        texts = [text for text, _ in random.Random(1).sample(names, 80)]
        for text in [*texts, *map(str.upper, texts), "acute heart none"]:
            key = normalise(text)
            exact = dict.fromkeys(c for name, c in names if name == text)
            close = dict.fromkeys(c for name, c in names if normalise(name) == key)
            assert [m.concept for m in base.find(text)] == list(exact | close)


ODD_NAMES = [
    "a",
    "a   b",
    "\x7f",
    "-",
    "---",
    "- -",
    "()",
    "a-",
    "-a-",
    "a--b",
    "a - b",
    "'",
    "''",
    "-'-",
    "'a",
    "a''b",
    "a' b",
    "a '",
    "Crohn's",
    "Crohn’s",
    "CROHN`S",
    "_",
    "a_b",
    "^",
    "A" * 8,
    "A" * 9,
    "abcdefgh" * 2,
    "x" * 1000 + " " + "y" * 999,
    "a" + "-" * 500 + "b",
    "é",
    "É ",
    "-é-",
    "ß",
    "İ",
    "ﬁ",
    "２型",
    "。",
    "’",
    "病" * 300,
    "😀",
    "a\u0301",
    "\u0301",
]


@pytest.mark.parametrize("way", ["uncompiled", "dispatcher"])
@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_odd_names_are_found_whichever_way_they_were_hashed(build, way, chunk, monkeypatch):
    """A column of names and a single one have the same hashes, by numpy and compiled."""
    monkeypatch.setattr(keys, "_hash_ascii_names", getattr(keys._hash_ascii_names, way))
    monkeypatch.setattr(keys, "_CHUNK_BYTES", chunk)
    rng = random.Random(chunk)
    letters = [*map(chr, range(32, 128)), *" - '" * 9, *"éÉßİΣς病２（）。😀\u0301\u200b\u00a0ﬁ"]
    made = ["x" + "".join(rng.choices(letters, k=rng.choice([1, 7, 8, 9, 30]))) for _ in range(100)]
    base = build([{"id": "A", "name": "first", "names": [*ODD_NAMES, *made]}]).base
    for name in base["A"].names:
        assert [match.how for match in base.find(name.text)] == ["exact"], name


EDGES = [
    ("A", "is-a", "B"),
    ("A", "is-a", "C"),
    ("B", "is-a", "D"),
    ("C", "is-a", "D"),
    ("D", "is-a", "E"),
    ("E", "is-a", "B"),
    ("A", "treats", "B"),
    ("F", "is-a", "A"),
    ("B", "treats", "A"),
    ("G", "is-a", "G"),
]


class TestGraph:
    @pytest.fixture
    def graph(self, build):
        return build(
            [
                {
                    "id": node,
                    "name": node.lower(),
                    "relations": [
                        {"relation": r, "tail": t, "source": "S"} for h, r, t in EDGES if h == node
                    ],
                }
                for node in "ABCDEFG"
            ]
        ).base

    @pytest.mark.parametrize("node", "ABCDEFG")
    def test_relations_are_those_that_were_read(self, graph, node):
        def edges(**options):
            return sorted((r.head, r.relation, r.tail) for r in graph.relations(node, **options))

        out = [e for e in EDGES if e[0] == node]
        into = [e for e in EDGES if e[2] == node]
        assert edges(direction="out") == sorted(out)
        assert edges(direction="in") == sorted(into)
        assert edges() == sorted(set(out + into))
        assert edges(relation="treats") == sorted(e for e in set(out + into) if e[1] == "treats")
        assert edges(relation="unknown") == []
        assert set(graph.neighbours(node)) == {e[2] if e[0] == node else e[0] for e in out + into}
        assert set(graph.parents(node)) == {e[2] for e in out if e[1] == "is-a"}
        assert set(graph.children(node)) == {e[0] for e in into if e[1] == "is-a"}

    def test_an_unknown_direction_is_refused(self, graph):
        with pytest.raises(NotFoundError, match="direction: expected one of out, in, both"):
            graph.relations("A", direction="up")


# ---- damaged folders


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    from biograft.kb import BuildConfig, build_store
    from biograft.kb.sources import SourceConfig

    folder = tmp_path_factory.mktemp("whole")
    (folder / "a.jsonl").write_text("".join(json.dumps(c) + "\n" for c in CONCEPTS))
    config = BuildConfig(sources=(SourceConfig(path=folder / "a.jsonl"),))
    build_store(config, folder / "kb")
    return folder / "kb"


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "kb")


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path):
    path.write_bytes(path.read_bytes() + b"x")


def blank(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("table", tables.SCHEMAS)
@pytest.mark.parametrize("damage", [lambda p: p.unlink(), cut, lengthen, blank])
def test_a_damaged_table_is_named_on_opening(copy, table, damage):
    damage(copy / f"{table}.arrow")
    with pytest.raises(
        StoreError, match=f"^{copy}/{table}.arrow: .*damaged.*build the store again"
    ):
        KnowledgeBase.open(copy)


@pytest.mark.parametrize("position", [0, 3, -1])
@pytest.mark.parametrize("value", [-1, 1 << 40])
def test_texts_out_of_their_file_are_refused(copy, position, value):
    """Guards: Arrow read texts wherever their offsets sent it (SIGSEGV)."""
    path = copy / "names.arrow"
    _, offsets, _ = pa.ipc.open_file(path).get_batch(0).column("text").buffers()
    changed = np.frombuffer(offsets, np.int64)[: len(offsets) // 8].copy()
    changed[position] = value
    content = path.read_bytes()
    assert content.count(offsets.to_pybytes()) == 1
    path.write_bytes(content.replace(offsets.to_pybytes(), changed.tobytes()))
    with pytest.raises(StoreError, match=r"names\.arrow: .*damaged.*build the store again"):
        KnowledgeBase.open(copy).table("names")


def change_manifest(folder, **changes):
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text()) | changes
    path.write_text(
        json.dumps({key: value for key, value in manifest.items() if value is not None})
    )
    if "files" not in changes:
        reseal(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"version": 2},
            "knowledge base of version 2, this biograft reads version 1; update biograft, or build",
        ),
        ({"format": None}, "states no format, so it is no knowledge base"),
        ({"format": "other"}, "no knowledge base but 'other'; build one"),
        ({"files": None}, "damaged"),
        ({"vocabularies": None}, "damaged"),
        (b"", "damaged"),
        (b'{"format": "biograft-kb", ', "damaged"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(copy, changes, message):
    """A manifest without its parts raised a KeyError."""
    if isinstance(changes, bytes):
        (copy / "manifest.json").write_bytes(changes)
    else:
        change_manifest(copy, **changes)
    with pytest.raises(StoreError, match=message):
        KnowledgeBase.open(copy)


def test_folders_that_are_no_store_are_refused(copy):
    (copy / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"holds no manifest\.json, so it is no knowledge base"):
        KnowledgeBase.open(copy)
    with pytest.raises(StoreError, match="no such knowledge base; build one"):
        KnowledgeBase.open(copy / "none")
    with pytest.raises(StoreError, match="no such knowledge base; build one"):
        KnowledgeBase.open(copy / "names.arrow")


def test_a_table_of_other_columns_is_refused(copy):
    path = copy / "types.arrow"
    shutil.copy(copy / "incoming.arrow", path)
    reseal(copy / "manifest.json")
    with pytest.raises(StoreError, match=r"types\.arrow: unexpected columns"):
        KnowledgeBase.open(copy)


def test_a_changed_byte_in_a_store_that_is_only_opened_crashes_nothing(copy):
    """What is read lies within the files, or the store is refused."""
    path = copy / "names.arrow"
    content, rng = path.read_bytes(), random.Random(1)
    for _ in range(100):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(changed)
        try:
            base = KnowledgeBase.open(copy)
            base.find("dm")
            assert len([name.text for each in base for name in each.names]) <= len(content)
        except (StoreError, UnicodeDecodeError):
            continue


@pytest.mark.parametrize("table", tables.SCHEMAS)
def test_any_changed_byte_is_found(copy, table):
    """Some changes to what Arrow notes about a table came out as errors of Arrow or numpy."""
    path = copy / f"{table}.arrow"
    content = path.read_bytes()
    rng = random.Random(table)
    for position in rng.sample(range(len(content)), 30):
        changed = bytearray(content)
        changed[position] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(StoreError, match=str(copy)):
            KnowledgeBase.open(copy).verify()
    path.write_bytes(content)
    KnowledgeBase.open(copy).verify()


def test_a_store_can_be_read_by_any_arrow_tool_and_after_it_was_moved(copy, tmp_path):
    moved = copy.rename(tmp_path / "moved")
    assert KnowledgeBase.open(str(moved))["D003920"].name == "Diabetes Mellitus"
    with pa.OSFile(str(moved / "concepts.arrow")) as file:
        assert pa.ipc.open_file(file).read_all().column("id")[0].as_py() == "D003924"


def test_looking_things_up_loads_nothing_that_only_builds_need(build):
    """Guards the time `kb show` takes: polars alone is half of it."""
    folder = build([{"id": "A", "name": "a"}]).folder
    script = f"""
import sys
from biograft.kb import KnowledgeBase
assert KnowledgeBase.open({str(folder)!r})["A"].name == "a"
print([name for name in ("polars", "pyoxigraph") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
