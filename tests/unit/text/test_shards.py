import pyarrow.parquet as pq
import pytest

from biograft.artifacts import describe_files
from biograft.errors import StoreError
from biograft.text import (
    SHARDS,
    AnnotatedDocument,
    LinkedSpan,
    Shards,
    read_shard,
    shard_path,
    write_shard,
)
from biograft.text.shards import read_report, to_table

SPANS = (LinkedSpan(0, 11, "D1", 1.0), LinkedSpan(12, 14, "D1", 0.5))
DOCUMENTS = [
    AnnotatedDocument("1", "lung cancer 肺癌", SPANS, "en"),
    AnnotatedDocument("2", ""),
    AnnotatedDocument("3", "no span"),
]


def finished(folder):
    write_shard(shard_path(folder, 0), DOCUMENTS[:2], {"n": 2})
    write_shard(shard_path(folder, 1), DOCUMENTS[2:], {"n": 1})
    content = {"n_shards": 2, "n_documents": 3, "files": describe_files(folder)}
    SHARDS.write(folder, content)
    return folder


def test_documents_round_trip(tmp_path):
    shards = Shards.open(finished(tmp_path / "a"))
    assert list(shards) == DOCUMENTS
    assert len(shards) == 3
    assert [path.name for path in shards.paths] == ["part-00000.parquet", "part-00001.parquet"]


def test_an_unfinished_folder_is_refused(tmp_path):
    write_shard(shard_path(tmp_path, 0), DOCUMENTS, {})
    with pytest.raises(StoreError, match=r"--resume"):
        Shards.open(tmp_path)


def test_a_truncated_or_missing_shard_is_reported(tmp_path):
    folder = finished(tmp_path / "a")
    shard = folder / "part-00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(StoreError, match=r"part-00001.parquet: damaged"):
        Shards.open(folder)
    with pytest.raises(StoreError, match=r"part-00001.parquet: damaged"):
        list(read_shard(shard))
    with pytest.raises(StoreError, match=r"part-00001.parquet: damaged"):
        read_report(shard)


def test_another_table_is_refused(tmp_path):
    pq.write_table(to_table(DOCUMENTS).drop(["language"]), tmp_path / "x.parquet")
    with pytest.raises(StoreError, match="other columns"):
        list(read_shard(tmp_path / "x.parquet"))
