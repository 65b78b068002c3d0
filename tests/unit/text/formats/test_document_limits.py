"""Limits on decompressed size, XML entities and value sizes of BioC and DDI files."""

import gzip
import zipfile

import pytest

from biograft.errors import InputError
from biograft.kb.sources import ReadLog
from biograft.kb.sources.files import EXPANSION, VALUE
from biograft.kb.sources.xml_records import xml_files
from biograft.text import read_documents

MIB = 1 << 20
DDI = '<document id="d"><sentence id="d.s0" text="{}"/></document>'
BIOC = "<collection><document><id>1</id><passage><text>{}</text></passage></document></collection>"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setenv(EXPANSION, "1")
    monkeypatch.setenv(VALUE, "1")


def zipped(path, *texts, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"{number}.xml", text)
    return path


def test_unpacking_of_a_zip_member_is_bounded(tmp_path):
    """A zip of 3 MB became more than 3 GB in memory."""
    path = zipped(tmp_path / "a.zip", DDI.format("x" * 8 * MIB), DDI.format("x"))
    log = ReadLog(path)
    assert [document.text for document in read_documents(path, "ddi", log=log)] == ["x"]
    (reason,) = log.rejected.counts
    assert "1 MiB" in reason
    assert len(next(xml_files(path))[1]) == MIB + 1


def test_unpacking_of_all_zip_members_is_bounded(tmp_path):
    path = zipped(tmp_path / "a.zip", *[DDI.format("x" * (MIB - 100))] * 4)
    with pytest.raises(InputError, match=EXPANSION):
        list(read_documents(path, "ddi", log=ReadLog(path)))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zip_methods_without_incremental_unpacking_are_refused(tmp_path, method):
    """Python unpacks a step of these whole, however much comes out."""
    path = zipped(tmp_path / "a.zip", DDI.format("x"), method=method)
    with pytest.raises(InputError, match="deflate"):
        list(read_documents(path, "ddi", log=ReadLog(path)))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("bioc-xml", BIOC.format("x" * 8 * MIB)),
        ("bioc-xml", BIOC.format("<x/>" * 2 * MIB)),
        ("bioc-xml", BIOC.format("x") + " " * 8 * MIB),
        ("bioc-json", '{"documents": [{"id": "%s", "passages": []}]}' % ("x" * 8 * MIB)),
        ("bioc-json", '{"documents": []' + " " * 8 * MIB + "}"),
        ("ddi", DDI.format("x" * 8 * MIB)),
    ],
    ids=["xml text", "xml elements", "xml whitespace", "json text", "json whitespace", "ddi"],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_large_document_is_refused(write, form, text, pack):
    """A gzipped file of 3 MB became more than 3 GB in memory."""
    path, log = write("a", pack(text.encode())), ReadLog("a")
    if pack is bytes and form == "bioc-json" and "  " in text:
        assert list(read_documents(path, form, log=log)) == []
    elif pack is bytes and form == "ddi":
        assert list(read_documents(path, form, log=log)) == []
        assert "1 MiB" in next(iter(log.rejected.counts))
    else:
        with pytest.raises(InputError, match="BIOGRAFT_MAX_") as error:
            list(read_documents(path, form, log=log))
        assert error.value.path == path


def test_entities_far_into_the_file_are_bounded(write):
    """Entities were searched only in the first 64 KiB."""
    laughs = '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">'
    padding = "<!-- x -->" * 10_000
    path = write("a", f"<!DOCTYPE collection [{padding}{laughs}]>{BIOC.format('&b;')}")
    with pytest.raises(InputError, match="stand for other entities"):
        list(read_documents(path, "bioc-xml", log=ReadLog(path)))


@pytest.mark.parametrize(("form", "line"), [("conll-iob1", "a\tO\n"), ("char-tags", "a O\n")])
def test_a_sentence_without_end_is_refused(write, form, line):
    with pytest.raises(InputError, match="more than 4 MiB of memory"):
        list(read_documents(write("a", line * 50_000), form, log=ReadLog("a")))
