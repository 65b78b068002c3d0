"""BioSyn's archives, including decompression bombs."""

import io
import lzma
import tarfile

import pytest

from biograft.errors import InputError
from biograft.evaluation import read_gold
from biograft.sources.limits import EXPANSION, VALUE

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


def test_a_wrong_line_of_an_archive_is_found_again(tmp_path):
    path = make_archive(tmp_path / "a", {"test/1.concept": LINE, "test/2.concept": LINE + "bad\n"})
    [[example]] = read_gold(path, "biosyn").log.rejected.examples.values()
    assert (example.path, example.line) == (f"{tmp_path / 'a'}::test/2.concept", 2)


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
