"""Bytes and lines of source files: encodings, compression, damage."""

import codecs
import gzip
import os
from pathlib import Path

import pytest

from biograft.errors import EncodingError, InputError
from biograft.kb.sources import files, open_bytes, open_stored, read_head, read_lines, read_text


def lines_of(path, encoding="utf-8"):
    return list(read_lines(path, encoding))


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\n\nb\n", ["a", "", "", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (codecs.BOM_UTF8 + b"a\n", ["a"]),
        ("a\u2028b\x85c\n".encode(), ["a\u2028b\x85c"]),
    ],
)
def test_lines_are_numbered_and_lose_only_their_ends(write, pack, data, lines):
    assert lines_of(write("f", pack(data))) == list(enumerate(lines, 1))


def test_gzip_of_several_members_is_one_stream(write):
    data = gzip.compress(b"a\n") + gzip.compress(b"b\n")
    assert lines_of(write("f.gz", data)) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("data", "encoding", "message"),
    [
        ("a\nM\xe9n\n".encode("latin-1"), "utf-8", r"f:2: byte 0xe9 is not utf-8 \(found: 'M�n'\)"),
        ("糖尿病\n".encode("gb18030"), "utf-8", r"f:1: byte .*\(encoding gb18030\?\)"),
        (b"a\n", "undefined", r"f:1: is not undefined .*; name another encoding"),
    ],
)
def test_a_wrong_encoding_is_reported_with_line_and_remedy(write, data, encoding, message):
    with pytest.raises(EncodingError, match=message):
        lines_of(write("f", data), encoding)


def test_many_long_lines_are_no_endless_one(write, monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1000)
    lines = ["x" * n for n in (999, 1, 1000 - 1, 500, 999, 0, 999)] * 20
    assert [line for _, line in lines_of(write("f", "\n".join(lines)))] == lines


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-5],
        lambda data: data[:-8] + b"\0\0\0\0" + data[-4:],
        lambda data: data[:40] + b"\xff\xff\xff\xff" + data[44:],
        lambda data: data + b"more",
    ],
    ids=["no length", "checksum", "flipped", "appended"],
)
def test_damaged_gzip_is_reported(write, spoil):
    data = gzip.compress(b"".join(b"line %d\n" % (k * k) for k in range(3000)))
    path = write("f.gz", spoil(data))
    for read in (lines_of, read_text):
        with pytest.raises(InputError, match=r"f.gz: its gzip data is damaged .*fetch the file"):
            read(path)


def test_missing_empty_and_folder_are_reported(write, tmp_path):
    for read in (open_bytes, lines_of, read_text, read_head):
        with pytest.raises(InputError, match="gone: does not exist; check the path"):
            read(tmp_path / "gone")
        with pytest.raises(InputError, match="is a folder, expected a file; name a file in it"):
            read(tmp_path)
        with pytest.raises(InputError, match="empty: is empty; check that the download"):
            read(write("empty", b""))


@pytest.mark.parametrize("read", [open_bytes, read_head, lines_of, open_stored])
@pytest.mark.parametrize("kind", ["pipe", "loop"])
def test_a_pipe_without_writer_and_a_looping_link_are_refused_at_once(tmp_path, read, kind):
    """Guards: ``kb build FIFO`` waited for ever for a writer; a looping link was a traceback."""
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    with pytest.raises(InputError, match=r"pipe or device|Too many levels of symbolic links"):
        read(path)


def test_a_path_with_a_nul_does_not_exist():
    """Guards: a build file with such a path was a traceback (*embedded null byte*)."""
    with pytest.raises(InputError, match="does not exist"):
        open_bytes(Path("a\0b"))


UNREADABLE = Path("/proc/self/mem")  # whose first bytes are an input/output error


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs /proc of Linux")
@pytest.mark.parametrize("read", [open_bytes, read_head, lines_of, read_text])
def test_a_read_error_names_the_file(read):
    """Guards: the command line said *the output cannot be written (Input/output error)*."""
    with pytest.raises(InputError, match=r"mem: cannot be read \(Input/output error\)"):
        read(UNREADABLE)


def test_a_file_is_closed_when_reading_stops_early(write):
    """Warnings are errors here, so that a file left open would fail."""
    for data in (b"a\nb\n", gzip.compress(b"a\nb\n")):
        lines = read_lines(write("f", data))
        assert next(lines) == (1, "a")
        lines.close()
