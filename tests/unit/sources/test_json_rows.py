"""Objects of JSON lines: what stands in a line, and what is said of a line without one."""

import gzip

import pytest

from biograft.errors import EncodingError, InputError
from biograft.sources import ReadLog
from biograft.sources.json_files import JsonRow, peek_object, read_objects


@pytest.fixture
def read(write):
    def rows(content, **options):
        path = write("a.jsonl", content)
        log = ReadLog(path.with_name("another"))
        return list(read_objects(path, log, **options)), log

    return rows


def test_a_row_is_an_object_with_its_line_and_text(read):
    rows, log = read('\ufeff{"a": 1}\r\n\n \t\n{"b":"\\u75c5"}')
    assert rows == [JsonRow(1, {"a": 1}, '{"a": 1}'), JsonRow(4, {"b": "病"}, '{"b":"\\u75c5"}')]
    assert (log.n_read, log.rejected.counts) == (2, {})
    assert [path.name for path in log.files] == ["a.jsonl"]


@pytest.mark.parametrize(
    ("line", "reason", "shown"),
    [
        ("prose", "not JSON", "prose (Expecting value: line 1 column 1 (char 0))"),
        ('{"id": 5,}', "not JSON", '{"id": 5,} (Expecting property name'),
        ("[" * 100_000, "not JSON", "[" * 40 + " (maximum recursion depth"),
        ("[1]", "not a JSON object", "[1]"),
        ("null", "not a JSON object", "null"),
        ('{"id": "\\uD800"}', "holds half a surrogate pair", '{"id": "\\uD800"}'),
    ],
)
def test_a_line_without_an_object_is_rejected_with_its_place(read, line, reason, shown):
    rows, log = read('{"a": 1}\n' + line + '\n{"b": 2}\n')
    assert [row.line for row in rows] == [1, 3]
    assert (log.n_read, log.rejected.counts) == (3, {reason: 1})
    (example,) = log.rejected.examples[reason]
    assert (example.line, example.path.rpartition("/")[2]) == (2, "a.jsonl")
    assert example.text.startswith(shown)


def test_the_encoding_is_heeded(read):
    text = '{"a": "病"}\n'
    for content, options in ((text.encode("gb18030"), {"encoding": "gb18030"}), (text, {})):
        assert read(content, **options)[0][0].value == {"a": "病"}
    assert read(gzip.compress(text.encode()))[0][0].value == {"a": "病"}
    with pytest.raises(EncodingError, match=r"a\.jsonl:1: byte"):
        read(text.encode("gb18030"))
    with pytest.raises(InputError, match="is empty"):
        read("")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"id": 1}', {"id": 1}),
        ('{"id": "\\ud800"}', {"id": "\ud800"}),  # rejected when it is read, known all the same
        ("{", {}),
        ("[1]", {}),
        ("", {}),
        ("[" * 60_000, {}),
    ],
)
def test_a_glance_gives_an_object_or_nothing(text, value):
    assert peek_object(text) == value
