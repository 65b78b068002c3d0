"""Recognition of formats by content."""

import gzip
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from biograft.errors import EncodingError, InputError, UnrecognisedError
from biograft.registry import Registry
from biograft.sources import Probe, find_format, look_at
from biograft.sources.format import look_into


@dataclass(frozen=True)
class Beginning:
    """Files that begin so."""

    text: str

    def recognise(self, probe: Probe) -> bool:
        return probe.text.startswith(self.text)


LONG, SHORT, NONE = Beginning("ab"), Beginning("a"), Beginning("\0")
HERE = "test_source_format"
FORMATS = Registry(
    "test format",
    {"long": (f"{HERE}:LONG", ""), "short": (f"{HERE}:SHORT", ""), "none": (f"{HERE}:NONE", "")},
)


@pytest.fixture
def folder(tmp_path, write):
    write("f/top.txt", "x")
    write("f/below/deep.xml", "x")
    write("f/below/.hidden", "x")
    return tmp_path / "f"


def test_a_folder_is_seen_from_above_or_to_its_depth(folder):
    assert look_at(folder) == Probe(folder, b"", frozenset({"top.txt", "below"}))
    assert look_into(folder) == Probe(folder, b"", frozenset({"top.txt", "below", "deep.xml"}))


@pytest.mark.parametrize("look", [look_at, look_into])
def test_of_a_file_the_beginning_is_seen(look, write):
    path = write("a.gz", gzip.compress(b"abc"))
    assert look(path) == Probe(path, b"abc")
    with pytest.raises(InputError, match="gone: does not exist"):
        look(path.with_name("gone"))
    with pytest.raises(InputError, match="cannot be read"):
        look(Path("x" * 5000))
    with pytest.raises(InputError, match="is empty"):
        look(write("empty", ""))


def test_only_the_deeper_look_opens_a_zip(tmp_path, write):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("below/deep.xml", "x")
    assert look_into(path) == Probe(path, b"", frozenset({"deep.xml"}))
    with pytest.raises(InputError, match=r"is a zip archive; unpack it first"):
        look_at(path)
    whole = path.read_bytes()
    damaged = whole.replace(b"PK\x01\x02", b"PK\x07\x07")
    with pytest.raises(InputError, match="its zip data is damaged or cut short"):
        look_into(write("b.zip", damaged))
    with pytest.raises(InputError, match="is a zip archive"):
        look_into(write("c.zip", whole[:-30]))


def test_the_first_format_that_recognises_is_returned(write):
    found = [find_format(look_at(write(text, text)), FORMATS, "unknown") for text in ("abc", "ac")]
    assert found == ["long", "short"]


def test_unrecognised_content_is_refused(write, folder):
    path = write("x", "\n\nxyz\nuvw\n")
    expected = f"{path}:1: unknown (found: 'xyz'); name the format, one of long, short, none"
    with pytest.raises(UnrecognisedError) as error:
        find_format(look_at(path), FORMATS, "unknown")
    assert str(error.value) == expected
    with pytest.raises(UnrecognisedError) as error:
        find_format(look_at(folder), FORMATS, "unknown", "or not")
    assert str(error.value) == f"{folder}: unknown; name the format, one of long, short, none" + (
        " (or not)"
    )
    with pytest.raises(EncodingError, match="is UTF-16"):
        find_format(look_at(write("y", "\ufeffab".encode("utf-16-le"))), FORMATS, "unknown")
