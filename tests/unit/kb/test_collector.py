import functools
from pathlib import Path

import polars as pl
import pytest

from biograft.errors import FormatError
from biograft.kb import collector
from biograft.kb.collector import CollectedRecords, LabelEncoder, load_frame, save_frame
from biograft.records import ConceptRecord, IdRecord, NameRecord, RelationRecord, TypeRecord
from biograft.sources import Block, ReadLog


class TestLabelEncoder:
    def test_as_many_labels_as_16_bits_hold(self):
        encoder, labels = LabelEncoder("sources"), pl.Series(map(str, range(1 << 16)))
        assert encoder.encode(labels, pl.UInt16, Path("x"))[-1] == 65535
        with pytest.raises(FormatError, match="over 65,536 different sources"):
            encoder.encode(pl.Series(["one more"]), pl.UInt16, Path("x"))

    def test_labels_are_encoded_by_first_appearance(self):
        encoder = LabelEncoder("languages", ("en",))
        series = pl.Series("language", ["zh", "en", "de", "zh"])
        assert encoder.encode(series, pl.UInt16, Path()).to_list() == [1, 0, 2, 1]
        assert (
            encoder.encode(pl.Series("language", ["de"] * 3), pl.UInt16, Path()).to_list()
            == [2] * 3
        )
        assert encoder.labels == ["en", "zh", "de"]
        assert [encoder.code(word) for word in ("de", "fr")] == [2, 3]
        assert len(encoder) == 4

    def test_too_many_labels_are_refused_with_the_file(self):
        encoder = LabelEncoder("languages", limit=2)
        encoder.encode(pl.Series(["a", "b"]), pl.UInt16, Path("x.csv"))
        with pytest.raises(FormatError, match=r"x.csv: gives over 2 different languages .*'c'"):
            encoder.encode(pl.Series(["a", "c"]), pl.UInt16, Path("x.csv"))


@pytest.fixture
def collect(tmp_path):
    """Collect items of sources: ``collect({"a.obo": [items]}, memory_budget=0)``."""

    def of(sources, **options):
        records = CollectedRecords(tmp_path, **options)
        for name, items in sources.items():
            log = ReadLog(Path(name))
            log.opened(log.path)
            for item in items:
                records.add(item, log)
            records.flush()
        return records

    return of


def rows(records, table):
    return [row for frame in records.frames(table) for row in frame.rows()]


def block(*records):
    kind = type(records[0])
    columns = {name: [getattr(record, name) for record in records] for name in kind.__slots__}
    return Block(kind, pl.DataFrame(columns))


NAMES = [
    NameRecord("C1", "a", "en", "preferred", "MSH", 1),
    NameRecord("C1", "b", "zh", "synonym", "", 2),
    NameRecord("C2", "c", "en", "related", "ICD", 3),
]


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (NameRecord(7, "a", line=2), "concept"),
        (NameRecord("C1", None, line=2), "text"),
        (IdRecord("C1", 3.5, line=2), "id"),
    ],
)
def test_a_value_that_is_no_text_is_refused_with_file_and_row(collect, record, field):
    """Guards: a reader that gave numbers as ids ended in a traceback of polars."""
    with pytest.raises(FormatError, match=rf"^a\.obo:2: .* as {field} of a ") as refused:
        collect({"a.obo": [type(record)("C0", "x", line=1), record]})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("items", [NAMES, [block(*NAMES)], [NAMES[0], block(*NAMES[1:])]])
@pytest.mark.parametrize("flushed_at", [1, 2, 100])
def test_single_records_and_blocks_give_the_same_rows(collect, items, flushed_at, monkeypatch):
    monkeypatch.setattr(collector, "FLUSH_RECORDS", flushed_at)
    records = collect({"a.obo": items})
    assert sorted(rows(records, "names")) == [
        ("C1", "a", 0, 0, 0, 0, 1),
        ("C1", "b", 1, 1, 1, 0, 2),
        ("C2", "c", 0, 4, 2, 0, 3),
    ]
    assert records.vocabularies["language"].labels == ["en", "zh"]
    assert records.vocabularies["source"].labels == ["MSH", "a.obo", "ICD"]
    assert records.n_rows["names"] == 3


def test_every_row_knows_its_file_and_line(collect):
    records = collect(
        {
            "a": [ConceptRecord("C1", 4), RelationRecord("C1", "is-a", "C2", "", 5)],
            "b": [ConceptRecord("C1", 6), IdRecord("C1", "X:1", "xref", 7)],
        }
    )
    assert rows(records, "concepts") == [("C1", 0, 4), ("C1", 1, 6)]
    assert rows(records, "relations") == [("C1", 0, "C2", 0, 0, 5)]
    assert rows(records, "ids") == [("C1", "X:1", 2, 1, 7)]
    assert records.files == [Path("a"), Path("b")]


def test_a_source_of_several_files_numbers_them_under_one_log(tmp_path):
    records, log = CollectedRecords(tmp_path), ReadLog(Path("folder"))
    for line, name in enumerate(("a", "b"), 1):
        log.opened(Path(name))
        records.add(ConceptRecord(f"C{line}", line), log)
    records.flush()
    assert rows(records, "concepts") == [("C1", 0, 1), ("C2", 1, 2)]
    assert records.logs == [log, log]


def test_a_file_that_is_read_twice_counts_as_two(tmp_path):
    records, path = CollectedRecords(tmp_path), Path("a")
    for _ in range(2):
        log = ReadLog(path)
        log.opened(path)
        records.add(ConceptRecord("C1", 1), log)
        records.flush()
    assert rows(records, "concepts") == [("C1", 0, 1), ("C1", 1, 1)]


def test_a_kind_that_does_not_exist_is_refused(collect):
    with pytest.raises(FormatError, match="kinds"):
        collect({"a": [NameRecord("C1", "a", "en", "nickname")]})


@pytest.mark.parametrize("make", [lambda *records: records, lambda *records: [block(*records)]])
def test_the_first_label_of_a_type_stays(collect, make):
    """Which of two labels won was left to chance, so builds differed."""
    types = [
        TypeRecord("C1", "T1"),
        *(TypeRecord("C1", "T1", f"label {k}", "A") for k in range(50)),
    ]
    assert collect({"a": make(*types)}).labels == {"T1": ("label 0", "A")}


def test_frames_beyond_the_budget_wait_on_disk_and_come_back_in_order(collect, tmp_path):
    blocks = [
        block(*(ConceptRecord(f"C{k}", k) for k in range(start, start + 50)))
        for start in range(0, 500, 50)
    ]
    budget = 2000
    here, there = collect({"a": blocks}), collect({"a": blocks}, memory_budget=budget)
    spilled = sorted(tmp_path.glob("concepts-*.arrow"))
    assert 0 < len(spilled) < len(blocks)
    assert rows(there, "concepts") == rows(here, "concepts")
    there.drop("concepts")
    assert list(tmp_path.iterdir()) == []
    assert rows(there, "concepts") == []


def test_a_frame_comes_back_from_disk_as_it_went(tmp_path):
    frame = pl.DataFrame({"a": ["x", "病", ""], "b": [1, 2, 3]}, {"a": pl.String, "b": pl.UInt8})
    save_frame(frame, tmp_path / "x")
    assert load_frame(tmp_path / "x").equals(frame)
    assert load_frame(tmp_path / "x").schema == frame.schema


def test_a_store_built_through_the_disk_is_the_same_to_the_byte(
    build, random_concepts, monkeypatch
):
    """Declared concepts stayed on disk, and the build failed on removing its working folder."""
    concepts = random_concepts(300, 1), random_concepts(200, 2, "D")
    here = build(*concepts, merge="xrefs")
    monkeypatch.setattr(collector, "FLUSH_RECORDS", 50)
    monkeypatch.setattr(
        "biograft.kb.build.CollectedRecords",
        functools.partial(CollectedRecords, memory_budget=5000),
    )
    there = build(*concepts, merge="xrefs")
    for path in here.folder.glob("*.arrow"):
        assert path.read_bytes() == (there.folder / path.name).read_bytes(), path.name


def test_ids_with_control_characters_are_rejected_and_counted():
    """Guards: a line break in an id made false rows in ``kb export --format biosyn``."""
    log = ReadLog(Path("a"))
    records = CollectedRecords(Path())
    for broken in ("A\nB||C", "A\u2028B", "A\rB", "A\tB", "A\x85B", "A\x00B"):
        for item in (
            ConceptRecord(broken, 1),
            NameRecord(broken, "flu", line=2),
            IdRecord("A", broken, line=3),
            TypeRecord("A", broken, line=4),
            RelationRecord("A", "is-a", broken, line=5),
            RelationRecord("A", broken, "A", line=6),
        ):
            records.add(item, log)
    records.add(ConceptRecord("A"), log)
    records.flush()
    assert {table: n for table, n in records.n_rows.items() if n} == {"concepts": 1}
    assert log.rejected.counts.total() == 36
    assert log.rejected.counts["concept: holds a control character"] == 12
    assert len(records.vocabularies["relation"]) + len(records.vocabularies["type"]) == 0
