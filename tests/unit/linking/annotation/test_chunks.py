import gzip
import json

import pytest

from biograft.errors import BiograftError, ConfigError, InputError
from biograft.kb.sources.files import MAX_LINE_BYTES
from biograft.linking.annotation import AnnotationReport, find_files
from biograft.linking.annotation.chunks import read_chunks, read_records
from biograft.text import InputConfig, Inputs
from biograft.text.documents import Document


def files_of(paths, **reading):
    return find_files(Inputs(paths, InputConfig(lines=True, **reading)))


def read(paths, size=1 << 20, **reading):
    report = AnnotationReport()
    chunks = list(read_chunks(files_of(paths, **reading), size))
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    return [d for chunk in chunks for d in read_records(chunk, report)], report


class TestLines:
    @pytest.mark.parametrize("size", [1, 7, 40, 1 << 20])
    def test_each_line_is_a_document_for_any_chunk_size(self, write, size):
        path = write("a.txt", "\ufeffone\r\n\n 肺癌 two\nlast")
        documents, report = read([path], size)
        assert documents == [
            Document("a.txt:1", "one"),
            Document("a.txt:3", " 肺癌 two"),
            Document("a.txt:4", "last"),
        ]
        assert report.counts["records"] == 3

    def test_gzip_and_folders_sorted_by_name(self, write):
        write("in/b.txt", "b")
        folder = write("in/a.txt.gz", gzip.compress(b"a1\na2\n")).parent
        write("in/.hidden", "x")
        write("in/c.txt", "")
        assert [d.text for d in read([folder])[0]] == ["a1", "a2", "b"]

    @pytest.mark.parametrize("line", [b"x\xff", b"x\x00", b"x" * (MAX_LINE_BYTES + 1)])
    @pytest.mark.parametrize("size", [5, 1 << 20])
    def test_an_invalid_line_is_reported_and_the_rest_is_read(self, write, line, size):
        path = write("a.txt", b"first\n" + line + b"\nthird\n")
        documents, report = read([path], size)
        assert [d.id for d in documents] == ["a.txt:1", "a.txt:3"]
        assert report.n_rejected == 1
        ((example,),) = report.rejected.examples.values()
        assert (example.path, example.line) == (str(path), 2)
        assert example.text.startswith("x")

    def test_a_too_long_line_is_not_kept_in_memory(self, write):
        path = write("a.txt", b"x" * (4 * MAX_LINE_BYTES) + b"\nlast")
        chunks = list(read_chunks(files_of([path]), 1000))
        assert max(len(chunk.data) for chunk in chunks) < 2 * MAX_LINE_BYTES
        assert [d.text for d in read([path], 1000)[0]] == ["last"]


class TestJson:
    def test_ids_and_languages(self, write):
        records = [
            {"text": "a"},
            {"text": "b", "id": 7},
            {"id": "x", "text": "c", "language": "ENG"},
        ]
        path = write("a.jsonl", "\n".join(map(json.dumps, records)))
        assert read([path])[0] == [
            Document("a.jsonl:1", "a"),
            Document("7", "b"),
            Document("x", "c", language="en"),
        ]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("{", "is not JSON"),
            ("[" * 100_000, "is not JSON"),
            ("[1]", "is no JSON object"),
            ("{}", "has no text"),
            ('{"text": 3}', "has no text"),
            ('{"text": "a", "id": []}', "has an id or a language that is no text"),
            ('{"text": "\\ud800"}', "holds half a surrogate pair"),
        ],
    )
    def test_invalid_records_are_rejected(self, write, line, reason):
        path = write("a.jsonl", f'{line}\n{{"text": "good"}}\n')
        documents, report = read([path])
        assert [d.text for d in documents] == ["good"]
        assert list(report.rejected.counts.items()) == [(reason, 1)]


def test_unreadable_inputs_are_refused(write, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        files_of([tmp_path / "none.txt"])
    with pytest.raises(ConfigError, match="--format"):
        files_of([write("a.txt", "x")], format="xml")
    with pytest.raises(BiograftError, match=r"UTF-16; give --encoding utf-16"):
        files_of([write("b.txt", "x".encode("utf-16"))])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="without files"):
        files_of([tmp_path / "empty"])
    with pytest.raises(InputError, match="zip archive"):
        files_of([write("c.txt", b"PK\x03\x04xxxx")])


PUBTATOR = "7|t|Flu season\n7|a|High fever.\n7\t0\t3\tFlu\tDisease\tD1\n\n8|t|Cold\n8|a|\n\n"


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_annotated_documents_give_their_texts_and_no_annotation(write, size):
    """PubTator files were read as plain lines, annotations included."""
    documents, report = read([write("a.txt", PUBTATOR)], size)
    assert documents == [Document("7", "Flu season High fever."), Document("8", "Cold")]
    assert report.counts["records"] == 2


def test_what_the_reader_of_documents_rejects_is_in_the_report(write):
    path = write("a.pubtator", PUBTATOR + "nonsense\n")
    inputs = Inputs([path], InputConfig(lines=True))
    chunks = list(read_chunks(find_files(inputs), 1 << 20))
    ((reason, entry),) = chunks[-1].rejected.items()
    assert "another document" in reason
    assert entry["examples"][0]["line"] == 8


def test_other_encodings(write):
    path = write("a.txt", "肺癌\n流感\n".encode("gb18030"))
    assert [d.text for d in read([path], encoding="gb18030")[0]] == ["肺癌", "流感"]
    with pytest.raises(BiograftError, match="give --encoding gb18030"):
        files_of([path])


def test_a_file_that_breaks_off_is_skipped_on_demand(write):
    packed = gzip.compress(b"".join(b"line %d\n" % i for i in range(3000)))
    paths = [write("a.txt.gz", packed[:-20]), write("b.txt", "good\n")]
    with pytest.raises(InputError, match="cut short"):
        read(paths)
    documents, _ = read(paths, skip_errors=True)
    assert documents[-1].text == "good"
