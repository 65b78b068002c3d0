"""A lexical index whose arrays are not in order is refused when it is opened."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from array_damage import DAMAGES, damage, put, retell

from biograft.errors import StoreError
from biograft.linking.index import build_index
from biograft.linking.lexical import LexicalConfig, LexicalIndex

ARRAYS = (
    *("keys", "numbers", "postings", "posting_starts", "grams", "gram_ends", "rarity"),
    *("inverse_norm", "ranks", "block_starts", "shortest", "longest", "repeats"),
    *("rows", "row_starts", "bag_keys", "bag_forms"),
)


@pytest.fixture
def folder(kb, tmp_path):
    LexicalIndex.build(kb).save(tmp_path / "L")
    return tmp_path / "L"


def refused(folder, kb):
    with pytest.raises(StoreError, match="damaged") as caught:
        LexicalIndex.open(folder, kb)
    assert "\n" not in str(caught.value)


def test_every_array_is_damaged_below(folder):
    assert {path.stem for path in folder.glob("*.npy")} == set(ARRAYS)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_arrays_are_refused(kb, folder, name, how):
    """Guards: compiled loops read and wrote where numbers out of range sent them (SIGSEGV)."""
    damage(folder, name, how)
    refused(folder, kb)


def change(name, place, value):
    """Set one number."""

    def damage(folder):
        array = np.load(folder / f"{name}.npy")
        array.flat[place] = value
        put(folder, name, array)

    return damage


def fall(name):
    """Let places go back and forth between their two ends."""

    def damage(folder):
        array = np.load(folder / f"{name}.npy")
        array.flat[1] = array.flat[-1] + 1
        put(folder, name, array)

    return damage


def fill_keys(folder):
    put(folder, "keys", np.maximum(np.load(folder / "keys.npy"), 1))


def empty_keys(folder):
    put(folder, "keys", np.zeros_like(np.load(folder / "keys.npy")))


def two_blocks(folder):
    """Say of two blocks of texts what each list has of them; postings lie in the wrong ones."""
    starts = np.load(folder / "posting_starts.npy")
    n_texts = np.load(folder / "block_starts.npy")[-1]
    put(folder, "block_starts", np.array([0, n_texts // 2, n_texts], np.int64))
    put(folder, "posting_starts", starts[:, [0, 1, 1]])
    for name in ("shortest", "longest", "repeats"):
        put(folder, name, np.repeat(np.load(folder / f"{name}.npy")[:1], 2))


@pytest.mark.parametrize(
    "change",
    [
        change("postings", -1, 1 << 20),
        change("grams", -1, 1 << 20),
        change("numbers", -1, 1 << 20),
        change("rows", -1, 1 << 20),
        change("bag_forms", -1, 1 << 20),
        change("ranks", -1, 1 << 20),
        *(change("rarity", 3, value) for value in (0, -1, 1e-30, 0.99, np.nan, np.inf, 1e9)),
        *(change("inverse_norm", 3, value) for value in (-1, np.nan, np.inf, 7)),
        *(change("shortest", 0, value) for value in (0, -1, np.nan, np.inf)),
        *(change("longest", 0, value) for value in (-1, np.nan, np.inf)),
        *(change("repeats", 0, value) for value in (0, -1)),
        *map(fall, ("gram_ends", "row_starts", "posting_starts")),
        fill_keys,  # a search for one that is not there would never end
        empty_keys,
        two_blocks,
    ],
)
def test_numbers_out_of_range_are_refused(kb, folder, change):
    """Guards: the loops' own assumptions, such as that a share is never nothing."""
    change(folder)
    refused(folder, kb)


@pytest.mark.parametrize(
    "content",
    ["[]", "7", '{"a": 1}', '{"a": [1]}', '{"a": [["x", "y"]]}', "{", "[" * 100_000],
)
def test_exchanges_that_are_none_are_refused(kb, folder, content):
    """Guards: lists of words that are no lists were a traceback."""
    (folder / "substitutions.json").write_text(content)
    retell(folder)
    refused(folder, kb)


@pytest.mark.parametrize(
    "concepts",
    [
        [{"id": "A"}],
        [{"id": "A", "name": "-"}],
        [{"id": "A", "name": "-"}, {"id": "B", "name": "flu"}],
        [{"id": "A", "name": "a"}],
        [{"id": str(n), "name": "病" * (n + 1)} for n in range(9)],
        [{"id": str(n), "name": "ab " * 40 + str(n)} for n in range(9)],
    ],
)
@pytest.mark.parametrize("synonym_substitution", [True, False])
def test_whole_indexes_of_unusual_stores_are_opened(
    store_of, tmp_path, concepts, synonym_substitution
):
    kb = store_of(concepts)
    LexicalIndex.build(kb, LexicalConfig(synonym_substitution=synonym_substitution)).save(
        tmp_path / "L"
    )
    opened = LexicalIndex.open(tmp_path / "L", kb)
    assert opened.search(["flu", "病", "ab"], 2).rows.shape == (3, 2)


def test_linking_with_a_damaged_index_is_refused_and_does_not_crash(kb, tmp_path):
    """Guards: ``biograft link`` died of SIGSEGV."""
    build_index(kb, tmp_path / "I")
    lexical = tmp_path / "I" / "lexical"
    put(lexical, "postings", np.full_like(np.load(lexical / "postings.npy"), (1 << 32) - 1))
    done = subprocess.run(
        [sys.executable, "-m", "biograft", "link", "--kb", kb.folder, "--index", tmp_path / "I",
         "--mentions", "-"],
        input="breast cancr\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"biograft: {lexical}")
    assert done.stderr.count("\n") == 1
    assert json.loads((lexical / "manifest.json").read_text())["n_forms"]
