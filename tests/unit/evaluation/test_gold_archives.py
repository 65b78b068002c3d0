"""BioSyn's archives, including decompression bombs."""

import io
import lzma
import tarfile

import pytest

from biograft.errors import InputError
from biograft.evaluation import read_gold
from biograft.kb.sources.files import EXPANSION, VALUE

MIB = 1 << 20
LINE = "100||0|3||Disease||flu||D1\n"


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setenv(EXPANSION, "2")
    monkeypatch.setenv(VALUE, "1")


def make_archive(path, files, mode="w:gz", **headers):
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = len(text), headers
            tar.addfile(member, io.BytesIO(text.encode()))
    return f"{path}::test"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_archives_are_read_in_every_compression(tmp_path, mode):
    files = {"test/1.concept": LINE * 600, "test/2.concept": "", "test/3.concept": LINE}
    path = make_archive(tmp_path / "a", files | {"other/1.concept": "x" * MIB}, mode)
    assert len(read_gold(path, "biosyn").queries) == 601


@pytest.mark.parametrize(
    "files",
    [
        {"test/1.concept": LINE * 50_000},
        {"other/1.concept": "x" * 8 * MIB, "test/1.concept": LINE},
        {f"test/{k}.concept": " " * (MIB - 1) for k in range(8)},
    ],
    ids=["wanted", "passed over", "many"],
)
@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_an_archive_that_would_become_large_is_refused(tmp_path, files, mode):
    """An archive of 3 MB became more than 3 GB in memory."""
    path = make_archive(tmp_path / "a", files, mode)
    with pytest.raises(InputError, match="BIOGRAFT_MAX_") as error:
        read_gold(path, "biosyn")
    assert error.value.path == tmp_path / "a"


def test_the_total_size_of_files_is_bounded(tmp_path):
    path = make_archive(
        tmp_path / "a", {f"test/{k}.concept": " " * (MIB - 1) for k in range(3)}, "w"
    )
    with pytest.raises(InputError, match=EXPANSION):
        read_gold(path, "biosyn")


def test_the_size_of_headers_is_bounded(tmp_path):
    path = make_archive(tmp_path / "a", {"test/1.concept": LINE}, "w:xz", comment="x" * 2 * MIB)
    assert len(lzma.compress(b"")) < (tmp_path / "a").stat().st_size < 10_000
    with pytest.raises(InputError, match=VALUE):
        read_gold(path, "biosyn")


def test_lines_of_an_archive_are_those_of_its_folder(tmp_path):
    """Guards: in the archive a line separator (U+2028) or form feed in a mention ended the line."""
    text = "1||0|3||Disease||flu\u2028x||D1\r\n1||0|3||Disease||a\x0cb\x85c||D2\n"
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "1.concept").write_bytes(text.encode())
    archive, folder = tmp_path / "a.tar", tmp_path / "test"
    with tarfile.open(archive, "w") as tar:
        tar.add(folder / "1.concept", "test/1.concept")
    queries = read_gold(str(folder), "biosyn").queries
    assert [query.mention for query in queries] == ["flu\u2028x", "a\x0cb\x85c"]
    assert read_gold(f"{archive}::test", "biosyn").queries == queries
