"""Text of HTML pages and Word documents; what other files are that hold no plain text."""

from __future__ import annotations

import codecs
import contextlib
import re
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from biograft.errors import FormatError, UnrecognisedError
from biograft.kb.sources.files import max_value, open_zip, read_members
from biograft.kb.sources.xml_records import parse_file
from biograft.text.input_config import DOCX

_PACKED = {
    "word/document.xml": DOCX,
    "xl/workbook.xml": "a workbook",
    "xl/workbook.bin": "a workbook",
    "ppt/presentation.xml": "a PowerPoint file",
    "content.xml": "an OpenDocument file",
}
"""Members by which a zip archive is known as one file of an office program."""
_BINARY = {
    b"%PDF": ("a PDF", "convert it to text first, such as with pdftotext"),
    b"\xd0\xcf\x11\xe0": (
        "an Office document of the format before 2007, or encrypted",
        "save it as .docx, .xlsx or plain text",
    ),
    b"{\\rtf": ("a document in RTF", "save it as .docx or plain text"),
    b"\x89PNG": ("an image", "recognise its text (OCR) first"),
    b"\xff\xd8\xff": ("an image", "recognise its text (OCR) first"),
    b"GIF8": ("an image", "recognise its text (OCR) first"),
    b"II*\0": ("an image", "recognise its text (OCR) first"),
    b"MM\0*": ("an image", "recognise its text (OCR) first"),
    b"SQLite format 3\0": ("a database", "export the texts as CSV"),
}
"""First bytes of files without text, what they are, and what to do."""
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!DOCTYPE\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_SKIPPED = frozenset({"script", "style", "head", "template", "noscript", "svg", "select"})
_INLINE = frozenset(
    "a abbr b bdi bdo big cite code data dfn em font i kbd label mark q s samp small span strike "
    "strong sub sup time tt u var wbr script style template noscript".split()
)
"""Elements that break no line; all others do."""


def packed_kind(path: Path) -> str:
    """Return what a zip archive is that is one file of an office program; empty for any other.

    ``docx`` can be read; anything else is a description.
    """
    if not (path.is_file() and zipfile.is_zipfile(path)):
        return ""
    with open_zip(path) as archive:
        names = set(archive.namelist())
    if "content.xml" in names and "mimetype" not in names:
        return ""
    return next((kind for name, kind in _PACKED.items() if name in names), "")


_TEXT_BYTES_PER_NUL = 100
"""A text may hold a NUL byte by mistake; a file of other content holds more."""


def refuse_binary(path: Path, head: bytes, *, is_utf8: bool = True) -> None:
    """Refuse a file that begins like one without text, and say what to do.

    Args:
        path: The file.
        head: Its first bytes.
        is_utf8: It is to be read as UTF-8, in which other bytes show what is no text.
    """
    for magic, (what, remedy) in _BINARY.items():
        if head.startswith(magic):
            raise UnrecognisedError(f"is {what}", path=path, remedy=remedy)
    if head[128:132] == b"DICM":
        raise UnrecognisedError("is a DICOM image", path=path, remedy="export its report as text")
    is_binary = head.count(0) > len(head) // _TEXT_BYTES_PER_NUL and not head.startswith(_BOMS)
    if is_utf8 and is_binary and not _is_utf8(head):
        raise UnrecognisedError(
            "is a binary file, no text",
            path=path,
            remedy="convert it to text first, or name its encoding (--encoding utf-16-le)",
        )


def _is_utf8(head: bytes) -> bool:
    """Whether bytes are UTF-8, but for a character that is cut at the end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def refuse_packed(path: Path, kind: str) -> None:
    """Refuse a file of an office program that is not read.

    Args:
        path: The file.
        kind: Kind that it was recognised as.
    """
    if kind not in (DOCX, "workbook", "parquet"):
        raise UnrecognisedError(
            f"is {kind}", path=path, remedy="save it as .docx, .xlsx, .csv or plain text"
        )


def is_html(text: str) -> bool:
    """Whether a text begins as an HTML page.

    >>> is_html("<!doctype html><p>Flu"), is_html("<p>Flu")
    (True, False)
    """
    return _HTML.match(text) is not None


def html_charset(head: bytes) -> str:
    """Return the encoding that a page states; empty if it states none of texts, such as ``hex``."""
    found = _CHARSET.search(head)
    name = found[1].decode("ascii") if found else ""
    try:
        "".encode(name or "utf-8")
    except LookupError as error:
        return "" if "not a text encoding" in str(error) else name
    return name


def html_text(page: str) -> str:
    r"""Return the text of a page, a line for each paragraph, cell or heading.

    >>> html_text("<html><body><p>No <b>fever</b>,<br>no&nbsp;cough.</p><p>Flu</body></html>")
    'No fever,\nno cough.\nFlu'
    """
    reader = _HtmlText()
    with contextlib.suppress(AssertionError):  # of html.parser, at ``<![[``: the page ends there
        reader.feed(page)
        reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).split("\n"))
    return "\n".join(line for line in lines if line)


class _HtmlText(HTMLParser):
    """Collects the text of the elements that a browser shows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._skipped = ""
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped:
            self._depth += tag == self._skipped
        elif tag in _SKIPPED:
            self._skipped, self._depth = tag, 1
        elif tag == "body":
            self.parts.clear()
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == self._skipped:
            self._depth -= 1
            if not self._depth:
                self._skipped = ""
        self._break(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.parts.append(re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if tag not in _INLINE:
            self.parts.append("\n")


_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_BREAKS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_GONE = frozenset({f"{_W}moveFrom", f"{_W}del", _FALLBACK})
"""Elements whose text was deleted, or stands twice."""


def docx_text(path: Path) -> str:
    """Return the text of a Word document, a line a paragraph; without notes and page headers."""
    with open_zip(path) as archive:
        ((_, data),) = read_members(archive, path, ["word/document.xml"], max_value() + 1)
    try:
        root = parse_file(path, data)
    except ElementTree.ParseError as error:
        raise FormatError(
            f"its document is damaged XML ({error})", path=path, remedy="save it again"
        ) from error
    lines = "".join(_docx_parts(root)).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())


def _docx_parts(element: ElementTree.Element) -> Iterator[str]:
    if element.tag in _GONE:
        return
    if element.tag == f"{_W}t":
        yield element.text or ""
    elif element.tag in _BREAKS:
        yield _BREAKS[element.tag]
    for child in element:
        yield from _docx_parts(child)
    if element.tag == f"{_W}p":
        yield "\n"
