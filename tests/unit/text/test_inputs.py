"""Inputs: what a file is taken for, and what is refused instead of read as plain text."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile

import pytest

from biograft.errors import BiograftError, ConfigError, InputError
from biograft.text import DOCUMENT_FORMATS, InputConfig, Inputs, read_texts, write_documents
from biograft.text.documents import Document, Mention
from biograft.text.virtual_files import working_encoding

PUBTATOR = "7|t|Flu season\n7|a|High fever.\n7\t0\t3\tFlu\tDisease\tD1\n\n"
ANNOTATED = Document("7", "嘴里起了个泡。", (Mention(0, 1, "嘴", ("D1",), "body", id="T1"),))
CHINESE = "患者有糖尿病。\n否认高血压。\n"


def documents(*paths, **config):
    return list(Inputs(paths, InputConfig(**config)))


def texts(*paths, **config):
    return [document.text for document in documents(*paths, **config)]


def refusal(*paths, **config):
    with pytest.raises(BiograftError) as caught:
        documents(*paths, **config)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def stdin(monkeypatch):
    def give(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


class TestFormats:
    @pytest.mark.parametrize(
        "form", [n for n, f in DOCUMENT_FORMATS.load_all() if f.write and n not in ("brat", "ddi")]
    )
    @pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "stdin"])
    def test_every_document_format_is_recognised_by_content(self, form, name, tmp_path, stdin):
        path = tmp_path / "written"
        write_documents([ANNOTATED], path, form)
        data = path.read_bytes()
        given = tmp_path / name
        given.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        if name == "stdin":
            stdin(data)
            given = "-"
        (document,) = documents(given, lines=True)
        assert document.text.replace(" ", "").strip() == ANNOTATED.text
        assert [mention.text for mention in document.mentions] == ["嘴"]

    def test_plain_text_is_a_document_a_file_or_a_line(self, write):
        path = write("a.txt", "\ufeffone\r\n\ntwo\n")
        assert documents(path) == [Document(str(path), "one\r\n\ntwo\n")]
        assert [(d.id, d.text) for d in documents(path, lines=True)] == [
            (f"{path}:1", "one"),
            (f"{path}:3", "two"),
        ]

    @pytest.mark.parametrize(
        "text",
        ["Hepatitis B", "Hepatitis B\nHepatitis E\n", "[Article in French]\nx", "<5 mg", "a\tb"],
    )
    def test_plain_text_that_resembles_a_format(self, write, text):
        """'Hepatitis B' has the form of a token and its tag."""
        assert texts(write("a.txt", text)) == [text]

    def test_a_named_format_must_be_that_of_the_file(self, write):
        path = write("a.txt", PUBTATOR)
        assert refusal(path, format="bioc-xml").endswith(
            "a.txt: is recognised as pubtator, not as bioc-xml; leave --format out, or give "
            "--format pubtator"
        )
        inputs = Inputs([path], InputConfig(format="text"))
        assert [document.text for document in inputs] == [PUBTATOR]
        assert inputs.notes == [
            f"{path}: looks like pubtator; read as plain text, as --format says"
        ]
        assert "did you mean 'pubtator'" in refusal(path, format="pubtater")

    @pytest.mark.parametrize(
        ("name", "data", "message"),
        [
            ("a.txt", '{"note": "flu"}\n', "no reader of documents knows"),
            ("a.txt", '<?xml version="1.0"?><x>flu</x>', "no reader of documents knows"),
            ("a.csv", "id,note\n1,flu\n", "is a table; name the column"),
            ("a.txt", b"flu\nfe\x00ver", "a.txt:2: holds a NUL byte"),
            ("a.pubtator", "flu\n", "holds no title line"),
            ("a.pdf", b"%PDF-1.4", "is a PDF; convert it"),
        ],
    )
    def test_what_is_no_plain_text_is_refused(self, write, name, data, message):
        assert message in refusal(write(name, data))

    @pytest.mark.parametrize("data", [b"", b" \n\t\n", gzip.compress(b"", mtime=0)])
    def test_empty_files_are_documents_without_text_and_no_lines(self, write, data):
        path = write("a.txt", data)
        assert [text.strip() for text in texts(path)] == [""]
        assert texts(path, lines=True) == []


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["gb18030", "utf-16", "utf-8-sig"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_named_encodings_of_text_and_documents(self, write, encoding, packed):
        pack = gzip.compress if packed else bytes
        path = write("a.txt", pack("糖尿病\n高血壓\n".encode(encoding)))
        assert texts(path, encoding=encoding) == ["糖尿病\n高血壓\n"]
        assert texts(path, encoding=encoding, lines=True) == ["糖尿病", "高血壓"]
        path = write("b.txt", pack('{"text": "糖尿病"}\n'.encode(encoding)))
        assert texts(path, encoding=encoding) == ["糖尿病"]

    @pytest.mark.parametrize(
        ("text", "encoding"),
        [
            (CHINESE, "gb18030"),
            ("fièvre élevée", "cp1252"),
            (CHINESE, "utf-16"),
        ],
    )
    def test_another_encoding_gives_one_line_with_one_that_works(self, write, text, encoding):
        path = write("a.txt", f"first\n{text}".encode(encoding))
        message = refusal(path)
        assert f"give --encoding {encoding}" in message
        assert encoding == "utf-16" or "a.txt:2: byte 0x" in message
        assert working_encoding(path) == encoding
        assert texts(path, encoding=encoding) == [f"first\n{text}"]


class TestFolders:
    @pytest.fixture
    def folder(self, write):
        write("in/b/2.txt", "two")
        write("in/a.pubtator", PUBTATOR)
        write("in/b/1.txt.gz", gzip.compress(b"one"))
        write("in/.hidden/x.txt", "hidden")
        return write("in/b/3.txt", "three").parent.parent

    def test_files_of_all_formats_sorted_by_path(self, folder):
        assert texts(folder) == ["Flu season High fever.", "one", "two", "three"]

    def test_an_empty_folder_and_wrong_options(self, tmp_path):
        (tmp_path / "empty").mkdir()
        assert "folder without files" in refusal(tmp_path / "empty")
        for wrong in ({"format": "table"}, {"id_column": "x"}, {"column": "x", "format": "brat"}):
            with pytest.raises(ConfigError):
                InputConfig(**wrong)

    def test_one_broken_file(self, folder, write):
        broken = write("in/b/2.txt", b"caf\xe9")
        assert str(broken) in refusal(folder)
        inputs = Inputs([folder], InputConfig(skip_errors=True))
        assert [d.text for d in inputs] == ["Flu season High fever.", "one", "three"]
        assert [error.path for error in inputs.skipped] == [broken]

    def test_texts_of_brat_keep_their_annotations(self, folder, write):
        write("in/b/3.ann", "T1\tDisease 0 5\tthree\n")
        found = documents(folder)
        assert [d.text for d in found] == ["one", "two", "three", "Flu season High fever."]
        assert [m.type for m in found[2].mentions] == ["Disease"]

    def test_zip_archives(self, tmp_path):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("b.txt", "two")
            archive.writestr("a.pubtator", PUBTATOR)
            archive.writestr("__MACOSX/x", "junk")
        assert [d.text for d in documents(path)] == ["Flu season High fever.", "two"]
        assert documents(path)[1].id == str(path / "b.txt")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("b.ann", "T1\tDisease 0 3\ttwo\n")
        assert "zip of brat files" in refusal(path)


def test_standard_input_of_other_content(stdin):
    stdin("糖尿病".encode("gb18030"))
    assert refusal("-").startswith("stdin:1: byte 0xcc is not utf-8")
    stdin(b"")
    assert documents("-") == [Document("stdin", "")]


def test_texts_of_a_corpus(write):
    plain, packed = write("a.txt", "一\n\n二\n"), write("b.txt.gz", gzip.compress("三\n".encode()))
    assert list(read_texts([plain, packed, write("c", PUBTATOR)])) == [
        *("一", "二", "三"),
        "Flu season High fever.",
    ]
    with pytest.raises(InputError, match="holds no text"):
        list(read_texts([write("c.txt", "\n \n")]))
