"""Text of HTML pages and Word documents, and advice for files that hold no text."""

from __future__ import annotations

import zipfile

import pytest

from biograft.errors import InputError
from biograft.text import InputConfig, Inputs, html_text

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(path, body):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
        )
    return path


def paragraph(*runs):
    return "<w:p>" + "".join(f"<w:r>{run}</w:r>" for run in runs) + "</w:p>"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>No <b>fe</b>ver.</p><p>Flu", "No fever.\nFlu"),
        ("<table><tr><td>Na<td>140</tr><tr><td>K<td>4</table>", "Na\n140\nK\n4"),
        ("a<!-- no -->b<br/>c", "ab\nc"),
        ("<head><title>x</title></head><body>text</body>", "text"),
    ],
)
def test_the_text_of_a_page(page, text):
    assert html_text(page) == text


def test_a_page_is_recognised_and_read(tmp_path):
    path = tmp_path / "note.html"
    path.write_text("<!DOCTYPE html>\n<html><body><p>No fever.</p></body></html>")
    assert [d.text for d in Inputs([path])] == ["No fever."]
    lines = Inputs([path], InputConfig(lines=True))
    assert [d.id for d in lines] == [f"{path}:1"]
    as_text = Inputs([path], InputConfig(format="text"))
    assert "<p>" in next(iter(as_text)).text
    assert as_text.notes


def test_the_text_of_a_word_document(tmp_path):
    body = paragraph("<w:t>No </w:t>", '<w:t xml:space="preserve">fever,</w:t><w:br/><w:t>no</w:t>')
    body += "<w:tbl><w:tr><w:tc>" + paragraph("<w:t>Na</w:t><w:tab/><w:t>140</w:t>")
    body += "</w:tc></w:tr></w:tbl>"
    body += "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
    path = docx(tmp_path / "note.docx", body)
    assert [d.text for d in Inputs([path])] == ["No fever,\nno\nNa\t140"]
    with pytest.raises(InputError, match="recognised as docx, which has no columns"):
        list(Inputs([path], InputConfig(column="a")))


def test_a_word_document_with_entities_or_too_much_text_is_refused(tmp_path, monkeypatch):
    bad = docx(tmp_path / "bad.docx", "<w:p>")
    with pytest.raises(InputError, match="damaged XML"):
        list(Inputs([bad]))
    monkeypatch.setenv("BIOGRAFT_MAX_VALUE", "1")
    large = docx(tmp_path / "large.docx", paragraph(f"<w:t>{'a' * (2 << 20)}</w:t>"))
    with pytest.raises(InputError, match=r"BIOGRAFT_MAX_VALUE"):
        list(Inputs([large]))


@pytest.mark.parametrize(
    ("head", "advice"),
    [
        (b"%PDF-1.7", "is a PDF; convert it to text first"),
        (b"\0" * 128 + b"DICM", "DICOM"),
        (b"\xd0\xcf\x11\xe0\xa1", "before 2007, or encrypted; save it as .docx"),
        (b"\x7fELF\x02\x01\0\0\xff\xfe", "is a binary file, no text; convert it"),
    ],
)
def test_a_file_without_text_is_refused_with_advice(tmp_path, head, advice):
    path = tmp_path / "file"
    path.write_bytes(head)
    with pytest.raises(InputError, match=advice):
        list(Inputs([path]))


@pytest.mark.parametrize(
    ("member", "what"),
    [("ppt/presentation.xml", "a PowerPoint file"), ("content.xml", "an OpenDocument file")],
)
def test_other_files_of_office_programs_are_refused(tmp_path, member, what):
    path = tmp_path / "file.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "x")
        archive.writestr(member, "<x/>")
    with pytest.raises(InputError, match=f"is {what}; save it as"):
        list(Inputs([path]))
