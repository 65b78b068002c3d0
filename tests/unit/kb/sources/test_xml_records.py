"""The XML guard for any split of the bytes, and XML files of folders and zips."""

from __future__ import annotations

import os
import zipfile

import pytest

from biograft.errors import EncodingError, FormatError, InputError
from biograft.kb.sources.files import VALUE
from biograft.kb.sources.xml_records import MAX_ENTITY, XmlGuard, parse_file, xml_files

MIB = 1 << 20
FINE = b"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
    <!ENTITY owl "http://www.w3.org/2002/07/owl#" >
    <!ENTITY amp2 "&#38;#38;"><!ENTITY lt2 '&lt;'>
    <!ENTITY other SYSTEM "other.ent">
]>
<!-- <!ENTITY no more> --><rdf:RDF><x a="&owl;Class">A &amp; B</x><![CDATA[<!-- ]]></rdf:RDF>
"""


def feed(path, data, size):
    guard = XmlGuard(path)
    for start in range(0, len(data), size):
        guard.feed(data[start : start + size])
    return guard


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 10_000])
def test_plain_entities_are_accepted(tmp_path, size):
    guard = feed(tmp_path, FINE, size)
    assert guard.size >= len(FINE)


@pytest.mark.parametrize("size", [7, 20, 50, 10_000])
@pytest.mark.parametrize(
    "declared",
    [
        b'<!ENTITY a "b"><!ENTITY c "&a;">',
        b'<!ENTITY c "&#38;a;">',
        b'<!ENTITY % c "&a;">',
        b'<!ENTITY c "' + b"x" * (MAX_ENTITY + 1) + b'">',
        b'<!ENTITY c "' + b">" * (2 * MAX_ENTITY),
    ],
    ids=["nested", "decimal", "parameter", "long", "open"],
)
def test_nested_entities_are_refused(tmp_path, declared, size):
    """Parsers take a declaration for one within the document, too."""
    for before in (b"<!DOCTYPE x [", b"<x><y/><!DOCTYPE x ["):
        with pytest.raises(FormatError, match="the XML declares"):
            feed(tmp_path, before + declared + b"]>", size)


@pytest.mark.parametrize("size", [100, 4096, MIB])
@pytest.mark.parametrize(
    "data",
    [
        b"<x>" + b"y" * 2 * MIB,
        b'<x y="' + b"y" * 2 * MIB,
        b"<!--" + b"<y>" * MIB,
        b"<![CDATA[" + b"<y>" * MIB,
        b'<!DOCTYPE x [<!ENTITY a "' + b"y" * 4000 + b'">]><x>' + b"&a;" * 2000,
    ],
    ids=["text", "tag", "comment", "section", "entities"],
)
def test_endless_values_are_refused(tmp_path, monkeypatch, data, size):
    monkeypatch.setenv(VALUE, "1")
    with pytest.raises(FormatError, match=VALUE):
        feed(tmp_path, data, size)


@pytest.mark.parametrize("size", [100, 4096, MIB])
def test_closed_values_may_repeat(tmp_path, monkeypatch, size):
    monkeypatch.setenv(VALUE, "1")
    one = b"<!-- <b> --><x>" + b"y" * (MIB // 2) + b"</x><![CDATA[<b>]]>"
    assert feed(tmp_path, one * 5, size).size == 5 * len(one)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-le"])
def test_other_encodings_are_refused(tmp_path, encoding):
    with pytest.raises((EncodingError, FormatError), match="UTF-8"):
        feed(tmp_path, "<x/>".encode(encoding), 1000)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_entities_of_a_document_in_another_encoding_are_not_expanded(tmp_path, encoding):
    """Guards: in UTF-16 no declaration was found, and a bomb of 600 bytes took 100 MB."""
    laughs = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 9))
    bomb = f'<!DOCTYPE document [<!ENTITY l0 "ha">{laughs}]><document>&l8;</document>'
    with pytest.raises((EncodingError, FormatError), match="UTF-8"):
        parse_file(tmp_path / "a.xml", bomb.encode(encoding))


def test_a_folder_a_zip_and_a_file_give_the_same(write, tmp_path):
    written = [write("d/b.xml", "<b>22</b>"), write("d/a.xml", "<a/>"), write("d/c.txt", "no")]
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for path in written:
            archive.write(path, path.name)
    for source in (tmp_path / "d", tmp_path / "d.zip"):
        assert list(xml_files(source)) == [
            (source / "a.xml", b"<a/>"),
            (source / "b.xml", b"<b>22</b>"),
        ]
    assert list(xml_files(written[0])) == [(written[0], b"<b>22</b>")]


@pytest.mark.parametrize("kind", ["pipe", "loop"])
def test_a_folder_of_xml_with_a_pipe_or_a_looping_link_is_refused(tmp_path, kind):
    """Guards: the first hung, the second was a traceback."""
    if kind == "pipe":
        os.mkfifo(tmp_path / "a.xml")
    else:
        (tmp_path / "a.xml").symlink_to("a.xml")
    with pytest.raises(InputError, match=r"a\.xml: "):
        list(xml_files(tmp_path))


def test_an_encrypted_zip_is_refused(tmp_path):
    """Guards: Python's RuntimeError for a missing password was a traceback."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.xml", "<document/>")
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flag of encryption, at the member and in the list of members
    data[data.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.zip: a\.xml is encrypted; unpack it first"):
        list(xml_files(path))
