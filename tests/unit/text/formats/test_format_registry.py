import pytest

from biograft.errors import ConfigError, FormatError, OutputError
from biograft.kb.sources import ReadLog
from biograft.text import convert, read_documents, write_documents
from biograft.text.documents import Document, Mention, Passage, Relation

DOCUMENT = Document(
    "d",
    "Heme and free iron harm.",
    (
        Mention(0, 18, "Heme iron", ("D1",), "drug", ((0, 4), (14, 18)), id="a"),
        Mention(
            9,
            18,
            "free iron",
            ("D2",),
            "drug",
            parts=("x",),
            id="b",
            attributes=(("status", "absent"), ("rare", "")),
        ),
    ),
    "en",
    (
        Relation("with", (("l", "a"), ("r", "b")), "R1"),
        Relation("CID", (("Chemical", "D1"), ("Disease", "D2")), of="concepts"),
    ),
    (Passage(0, 24, "title"),),
)


@pytest.fixture
def own(tmp_path):
    write_documents([DOCUMENT], tmp_path / "own.jsonl")
    return tmp_path / "own.jsonl"


def test_rejected_records_are_reported_and_refused_with_strict(write, tmp_path):
    path = write("a.jsonl", '{"id": "1", "text": "a"}\n{"id": "2"}\n')
    report = convert(path, tmp_path / "out", "bioc-xml").to_json()
    (entry,) = report["rejected"].values()
    assert (entry["n"], entry["examples"][0]["line"]) == (1, 2)
    with pytest.raises(OutputError, match=r"a.jsonl: records were rejected \(1 text"):
        convert(path, tmp_path / "strict", "bioc-xml", strict=True)


def test_invalid_conversions_are_refused(own, write, tmp_path):
    with pytest.raises(ConfigError, match="cmdd"):
        convert(own, tmp_path / "out", "cmdd")
    with pytest.raises(OutputError, match="exists already"):
        convert(own, own, "jsonl")
    with pytest.raises(FormatError, match=r"holds no document of format jsonl .*\(1 not JSON\)"):
        convert(write("b", "x\n"), tmp_path / "out", "jsonl", "jsonl")
    assert not (tmp_path / "out").exists()
    document = Document("1", "a", (Mention(0, 1, "a", ("A|B",)),))
    with pytest.raises(OutputError, match=r"A\|B"):
        write_documents([document], tmp_path / "out", "bioc-json")
    for identifier in ("../x", "a//b", ""):
        with pytest.raises(OutputError, match="no file can have that name"):
            write_documents([Document(identifier, "a")], tmp_path / "out", "brat")
    with pytest.raises(OutputError, match="half a surrogate pair"):
        write_documents([Document("1", "\ud800")], tmp_path / "out")


def test_documents_with_the_same_id_get_separate_files(tmp_path):
    documents = [Document("x", text) for text in "abc"]
    assert write_documents(documents, tmp_path / "out", "brat") == {"document ids": 2}
    read = [(d.id, d.text) for d in read_documents(tmp_path / "out")]
    assert read == [("x", "a"), ("x-2", "b"), ("x-3", "c")]


def test_a_layout_of_your_own_is_a_format(tmp_path):
    """Such as the JSON lines of doccano, whose mentions are lists."""
    layout = tmp_path / "doccano.toml"
    layout.write_text(
        'id = "id"\ntext = "text"\nmentions = "label"\nstart = 0\nend = 1\ntype = 2\n'
    )
    path = tmp_path / "notes.jsonl"
    path.write_text(
        '{"id": 7, "text": "No flu.", "label": [[3, 6, "Disease"]]}\n'
        '{"id": 8, "text": "Flu.", "label": [[0, "x", "Disease"]]}\n'
    )
    log = ReadLog(path)
    (document,) = read_documents(path, str(layout), log)
    assert document == Document("7", "No flu.", (Mention(3, 6, "flu", type="Disease"),))
    assert dict(log.rejected.counts) == {"1 is missing or no whole number": 1}
    write_documents([document], tmp_path / "out.jsonl", str(layout))
    assert (tmp_path / "out.jsonl").read_text() == path.read_text().splitlines()[0].replace(
        "7", '"7"', 1
    ) + "\n"
    layout.write_text('text = "text"\nmentions = "label"\nstart = 0\n')
    with pytest.raises(ConfigError, match="end: a mention needs its end, or its text"):
        read_documents(path, str(layout))
