"""The lexical index of a store: what is found first, on disk and in memory, and its refusals."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from array_damage import DAMAGES, damage, put, retell

from biograft.errors import ConfigError, OutputError, StoreError
from biograft.linking import LexicalConfig, LexicalIndex, build_index
from biograft.linking.lexical import ngrams


@pytest.fixture
def index(kb):
    return LexicalIndex.build(kb)


def names(kb, hits, line=0):
    return [kb.name(int(row)).text for row in hits.rows[line] if row >= 0]


def concepts(kb, hits, line=0):
    column = kb.table("names").column("concept").to_pylist()
    return [kb.id_at(column[row]) for row in hits.rows[line] if row >= 0]


def test_a_name_as_written_comes_before_one_of_the_same_form(kb, index):
    hits = index.search(["Type 2 Diabetes", "type-2 diabetes", "type ii diabetes"], 3)
    assert [names(kb, hits, line)[0] for line in range(3)] == ["type 2 diabetes"] * 3
    assert hits.scores[:, 0].tolist() == [1.0, pytest.approx(0.99), pytest.approx(0.99)]


def test_names_of_one_form_are_in_the_order_of_rows(kb, index):
    hits = index.search(["COLD"], 2)
    assert concepts(kb, hits) == ["D6", "D7"]
    assert hits.scores[0].tolist() == [1.0, 1.0]


def test_what_is_only_alike_scores_below_what_is_the_same(kb, index):
    hits = index.search(["hart attack"], 1)
    assert names(kb, hits) == ["heart attack"]
    assert 0.3 < hits.scores[0, 0] < 0.98


def test_letters_in_another_order_are_not_the_same_name(store_of):
    kb = store_of([{"id": "A", "name": "abab ab"}, {"id": "B", "name": "xyz"}])
    scores = LexicalIndex.build(kb).search(["ab abab", "abab ab"], 1).scores[:, 0]
    assert scores[0] < 0.99
    assert scores[1] == 1


def test_chinese_and_other_scripts(kb, index):
    hits = index.search(["二型糖尿病", "Ⅱ型糖尿病", "метформин"], 2)
    assert names(kb, hits, 0)[0] == names(kb, hits, 1)[0] == "2型糖尿病"
    assert names(kb, hits, 2) == []
    assert np.isneginf(hits.scores[2]).all()


@pytest.mark.parametrize("text", ["", " ", "😀", "e\u0301", "\x00", "\ud800"])
def test_any_text_is_searched(kb, index, text):
    hits = index.search([text, "cold"], 1)
    assert concepts(kb, hits, 1) == ["D6"]
    assert hits.rows.shape == (2, 1)


def test_a_very_long_text_is_cut(kb, index):
    assert names(kb, index.search(["heart attack " * 5000], 1)) == ["heart attack"]


def test_repeated_texts_have_equal_answers(kb, index):
    hits = index.search(["cold", "heart", "cold"] * 400, 4)
    for line in range(0, 1200, 3):
        assert hits.rows[line].tolist() == hits.rows[line + 2].tolist() == hits.rows[0].tolist()
        assert hits.scores[line + 1].tolist() == hits.scores[1].tolist()


def test_scoring_chosen_names_gives_what_a_search_gives(kb, index):
    texts = ["type-2 diabetes", "COLD", "cancer of the breast", "糖尿病", "", "zzz"]
    hits = index.search(texts, 40)
    rows = np.tile(np.arange(kb.n_names), (len(texts), 1))
    scores = index.score(texts, rows)
    for line in range(len(texts)):
        for row, score in zip(hits.rows[line], hits.scores[line], strict=True):
            if row >= 0:
                assert scores[line, row] == score
        unfound = np.setdiff1d(rows[line], hits.rows[line])
        assert (scores[line, unfound] == 0).all()
    assert np.isneginf(index.score(["cold"], np.array([[-1]]))).all()


def test_only_names_of_some_languages(kb):
    index = LexicalIndex.build(kb, LexicalConfig(languages=("zh",)))
    hits = index.search(["2型糖尿病", "heart attack"], 3)
    assert names(kb, hits, 0) == ["2型糖尿病"]
    assert names(kb, hits, 1) == []
    english = kb.find("heart attack")[0]
    row = kb.table("names").column("text").to_pylist().index(english.name)
    assert np.isneginf(index.score(["heart attack"], np.array([[row]]))).all()


def test_what_is_saved_is_opened(kb, index, tmp_path):
    index.save(tmp_path / "L")
    opened = LexicalIndex.open(tmp_path / "L", kb)
    texts = ["diabetes type", "cancer", "colds", "糖尿"]
    for mine, theirs in zip(index.search(texts, 5), opened.search(texts, 5), strict=True):
        assert mine.tolist() == theirs.tolist()
    assert LexicalIndex.config_of(tmp_path / "L") == index.config
    with pytest.raises(OutputError, match="exists already"):
        index.save(tmp_path / "L")


def test_steps_are_part_of_the_index(kb, tmp_path):
    LexicalIndex.build(kb, LexicalConfig(steps="case")).save(tmp_path / "L")
    hits = LexicalIndex.open(tmp_path / "L", kb).search(["Heart Attack", "heart-attack"], 1)
    assert hits.scores[0, 0] == 1
    assert hits.scores[1, 0] < 0.98


def test_what_cannot_be_opened(kb, index, store_of, tmp_path):
    folder = tmp_path / "L"
    with pytest.raises(StoreError, match="no such lexical index; make one with `biograft index`"):
        LexicalIndex.open(folder, kb)
    index.save(folder)
    other = store_of([{"id": "X", "name": "other"}], "other")
    with pytest.raises(StoreError, match="from another store"):
        LexicalIndex.open(folder, other)
    (folder / "rarity.npy").write_bytes(b"cut")
    with pytest.raises(
        StoreError, match=r"rarity\.npy: damaged \(expected \d+ bytes, found 3 bytes\)"
    ):
        LexicalIndex.open(folder, kb)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(StoreError, match="version 99"):
        LexicalIndex.open(folder, kb)
    (folder / "manifest.json").write_text("[1]")
    with pytest.raises(StoreError, match="states no format, so it is no lexical index"):
        LexicalIndex.open(folder, kb)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        LexicalIndex.open(folder, kb)


def test_wrong_queries_are_refused(kb, index):
    with pytest.raises(ConfigError, match="k: expected at least 1, found 0"):
        index.search(["a"], 0)
    with pytest.raises(ConfigError, match="no names in 'xx'"):
        LexicalIndex.build(kb, LexicalConfig(languages=("xx",)))
    with pytest.raises(ConfigError, match="no step is called"):
        LexicalConfig(steps="nope")


def test_no_query_and_no_name(store_of, index):
    assert index.search([], 3).rows.shape == (0, 3)
    empty = LexicalIndex.build(store_of([{"id": "A"}], "empty"))
    assert empty.n_forms == 0
    assert empty.search(["cold"], 2).rows.tolist() == [[-1, -1]]


def test_a_store_of_one_concept(store_of):
    kb = store_of([{"id": "A", "name": "flu"}], "one")
    hits = LexicalIndex.build(kb).search(["flu", "influenza", "x"], 4)
    assert hits.rows[0].tolist() == [0, -1, -1, -1]
    assert hits.rows[1].tolist() == [0, -1, -1, -1]
    assert hits.rows[2].tolist() == [-1, -1, -1, -1]


ARRAYS = (
    *("keys", "numbers", "grams", "gram_ends", "rarity", "inverse_norm", "ranks"),
    *("block_starts", "largest", "table_rows", "table"),
    *("list_starts", "list_blocks", "list_impacts"),
    *("rows", "row_starts", "bag_keys", "bag_forms"),
)


@pytest.fixture
def folder(kb, tmp_path, monkeypatch):
    monkeypatch.setattr(ngrams, "_BLOCK", 3)  # so that some n-grams have lists
    monkeypatch.setattr(ngrams, "_IN_MANY", 0.3)
    LexicalIndex.build(kb).save(tmp_path / "L")
    return tmp_path / "L"


def search_all(folder, kb):
    """Open an index, and search for each name of its store."""
    texts = kb.table("names").column("text").to_pylist()
    return LexicalIndex.open(folder, kb).search([*texts, "hart atack"], kb.n_names)


def refused(folder, kb):
    with pytest.raises(StoreError, match="damaged") as caught:
        search_all(folder, kb)
    assert "\n" not in str(caught.value)


HARMLESS = {"ranks", "table", "list_impacts", "bag_keys"}
"""Arrays whose numbers no compiled loop indexes with: a wrong one may hide names or order them
wrongly."""


def test_every_array_is_damaged_below(folder):
    assert {path.stem for path in folder.glob("*.npy")} == set(ARRAYS)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", ARRAYS)
def test_damaged_arrays_are_refused(kb, folder, name, how):
    """Guards: compiled loops read and wrote where numbers out of range sent them (SIGSEGV)."""
    if how == "in narrower numbers" and np.load(folder / f"{name}.npy").dtype == np.uint8:
        return  # they are
    damage(folder, name, how)
    if how in ("beyond", "below") and (name in HARMLESS or (name, how) == ("table_rows", "below")):
        rows = search_all(folder, kb).rows
        assert ((rows >= -1) & (rows < kb.n_names)).all()
    else:
        refused(folder, kb)


def change(name, position, value):
    """Set one number."""

    def damage(folder):
        array = np.load(folder / f"{name}.npy")
        array.flat[position] = value
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


@pytest.mark.parametrize(
    "change",
    [
        change("grams", -1, 1 << 20),
        change("numbers", -1, 1 << 20),
        change("rows", -1, 1 << 20),
        change("bag_forms", -1, 1 << 20),
        change("table_rows", 0, 1 << 20),
        *(change("rarity", 3, value) for value in (0, -1, 1e-30, 0.99, np.nan, np.inf, 1e9)),
        *(change("inverse_norm", 3, value) for value in (-1, np.nan, np.inf, 7)),
        *(change("largest", 0, value) for value in (-1, np.nan, np.inf)),
        *map(fall, ("gram_ends", "row_starts", "block_starts", "list_starts")),
        fill_keys,  # a search for one that is not there would never end
        empty_keys,
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
def test_invalid_substitutions_are_refused(kb, folder, content):
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
    put(lexical, "grams", np.full_like(np.load(lexical / "grams.npy"), (1 << 32) - 1))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "biograft",
            "link",
            "--kb",
            kb.folder,
            "--index",
            tmp_path / "I",
            "--terms",
            "-",
        ],
        input="breast cancr\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"biograft: {lexical}")
    assert done.stderr.count("\n") == 1
    assert json.loads((lexical / "manifest.json").read_text())["n_forms"]
