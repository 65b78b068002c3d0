"""Candidates on disk: what is read is what was written, and damage is said."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from biograft.errors import StoreError
from biograft.linking.finetuning.candidates import (
    EpochCandidates,
    load_candidates,
    path_of,
    save_candidates,
)


@pytest.fixture
def candidates():
    return EpochCandidates(
        texts=np.array([[3, 1, -1], [0, 2, 5]]),
        lexical=np.array([[0.5, 0.25, 0], [0.1, 0, 0.9]], np.float32),
        gold=np.array([[True, False, False], [False, False, True]]),
        found=np.array([True, False]),
    )


def test_what_is_read_is_what_was_written(tmp_path, candidates):
    save_candidates(tmp_path / "c", 12, candidates)
    save_candidates(tmp_path / "c", 12, candidates)  # a resumed run writes again
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["epoch-0012.safetensors"]
    found = load_candidates(tmp_path / "c", 12, 2)
    for name in ("texts", "lexical", "gold", "found"):
        wanted = getattr(candidates, name)
        np.testing.assert_array_equal(getattr(found, name), wanted)
        assert getattr(found, name).dtype == wanted.dtype


def test_what_cannot_be_read_is_said(tmp_path, candidates):
    with pytest.raises(StoreError, match=r"epoch-0001\.safetensors: missing or damaged"):
        load_candidates(tmp_path, 1, 2)
    save_candidates(tmp_path, 1, candidates)
    with pytest.raises(StoreError, match="does not belong to these mentions"):
        load_candidates(tmp_path, 1, 3)
    path = path_of(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(StoreError, match="missing or damaged"):
        load_candidates(tmp_path, 1, 2)
    save_file({"texts": np.zeros((2, 2), np.int64)}, path)
    with pytest.raises(StoreError, match="expected 'biograft-candidates 1', found None"):
        load_candidates(tmp_path, 1, 2)
    header = {"format": "biograft-candidates 1"}
    save_file({"texts": np.zeros((2, 2), np.int64)}, path, metadata=header)
    with pytest.raises(StoreError, match="does not belong to these mentions"):
        load_candidates(tmp_path, 1, 2)
