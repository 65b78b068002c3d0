import zipfile

import pytest

from biograft.errors import InputError
from biograft.sources.xml_records import xml_files


def test_a_folder_a_zip_and_a_file_give_the_same(write, tmp_path):
    written = [write("d/b.xml", "<b>22</b>"), write("d/a.xml", "<a/>"), write("d/c.txt", "no")]
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for path in written:
            archive.write(path, path.name)
    for place in (tmp_path / "d", tmp_path / "d.zip"):
        assert list(xml_files(place)) == [
            (place / "a.xml", b"<a/>"), (place / "b.xml", b"<b>22</b>")
        ]  # fmt: skip
    assert list(xml_files(written[0])) == [(written[0], b"<b>22</b>")]


def test_a_damaged_member_is_told(tmp_path):
    path = tmp_path / "d.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.xml", "<a>some text</a>" * 50)
    data = bytearray(path.read_bytes())
    data[40:50] = bytes(10)
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="zip data is damaged or cut short"):
        list(xml_files(path))
