import random

import numpy as np
import pyarrow as pa
import pytest

from biograft.kb import keys
from biograft.kb.keys import find_entries, hash_name, hash_names, hash_text, hash_texts, make_index
from biograft.text import APOSTROPHES

EDGES = [
    "", " ", "   ", "a", " a", "a ", "  a  b  ", "a   b", "\t\na\r\n", "\x00", "a\x00", "\x7f",
    "-", "---", "- -", "()", "a-", "-a", "-a-", "a--b", "a - b", "'", "''", " ' ", "-'-", "a'",
    "'a", "a''b", "a' b", "a '", "Crohn's", "Crohn’s", "CROHN`S", "_", "a_b", "^", "A" * 8,
    "A" * 9, "abcdefgh" * 2, "x" * 1000 + " " + "y" * 999, " " * 1000, "a" + "-" * 500 + "b",
    "é", "É ", "-é-", "ß", "İ", "ﬁ", "２型", "。", "’", "a’", "病" * 300, "😀", "a\u0301", "\u0301",
]  # fmt: skip
ALPHABET = [
    *map(chr, range(128)), *" - '" * 9, *APOSTROPHES, *"aBc12éÉßİΣς病２（）。😀\u0301\u200b\u00a0ﬁ",
]  # fmt: skip


def column(texts):
    return pa.array(texts, pa.large_string())


def random_texts(n, seed):
    rng = random.Random(seed)
    return ["".join(rng.choices(ALPHABET, k=rng.choice([0, 1, 2, 7, 8, 9, 30]))) for _ in range(n)]


_LOOP = keys._hash_ascii_names


def hash_names_by(way):
    """Hash names by numpy (``uncompiled``) or by the compiled loop (``dispatcher``)."""

    def of_column(texts):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keys, "_hash_ascii_names", getattr(_LOOP, way))
            return hash_names(texts)

    return of_column


@pytest.mark.parametrize(
    ("of_column", "of_one"),
    [
        (hash_texts, hash_text),
        (hash_names_by("uncompiled"), hash_name),
        (hash_names_by("dispatcher"), hash_name),
    ],
    ids=["texts", "names-numpy", "names-compiled"],
)
class TestColumnsAgreeWithSingleTexts:
    @pytest.mark.parametrize("text", EDGES)
    def test_alone_and_between_others(self, of_column, of_one, text):
        assert of_column(column([text])).tolist() == [of_one(text)]
        texts = ["ab", text, "", text, "-c"]
        assert of_column(column(texts)).tolist() == [of_one(t) for t in texts]

    def test_for_random_texts(self, of_column, of_one):
        texts = EDGES + random_texts(5000, 1)
        assert of_column(column(texts)).tolist() == [of_one(t) for t in texts]

    @pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
    def test_when_cut_into_many_chunks(self, of_column, of_one, chunk, monkeypatch):
        monkeypatch.setattr(keys, "_CHUNK_BYTES", chunk)
        texts = EDGES + random_texts(200, chunk)
        assert of_column(column(texts)).tolist() == [of_one(t) for t in texts]

    def test_for_a_slice_of_a_column(self, of_column, of_one):
        texts = random_texts(50, 2)
        assert of_column(column(texts)[7:31]).tolist() == [of_one(t) for t in texts[7:31]]

    @pytest.mark.parametrize("texts", [[], [""], ["", "", ""]])
    def test_for_columns_without_bytes(self, of_column, of_one, texts):
        hashes = of_column(column(texts))
        assert hashes.dtype == np.uint64
        assert hashes.tolist() == [of_one(t) for t in texts]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 0x2971C9EBFB09C2CA),
        ("diabetes", 0xEE106C2D6FB869FB),
        ("2型糖尿病", 0xB2685E780C567BD0),
    ],
)
def test_the_hash_is_part_of_the_format(text, value):
    """Stores on disk hold these values: whoever changes them must raise the version."""
    assert hash_text(text) == value


def test_texts_that_differ_a_little_hash_apart():
    words = ["aaaaaaaa", "bbbbbbbb", "cccccccc"]
    texts = [a + b + c for a in words for b in words for c in words]
    texts += ["a" * n for n in range(100)] + ["a" + "\0" * n for n in range(1, 20)]
    texts += [f"C{n:07d}" for n in range(50_000)]
    assert len(set(hash_texts(column(texts)).tolist())) == len(set(texts))


def test_an_index_gives_the_rows_that_brute_force_finds():
    rng = np.random.default_rng(5)
    halves = np.array([0, 1, 2, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF], np.uint64)
    hashes = rng.choice(halves, 500) << np.uint64(32) | rng.integers(0, 1 << 32, 500, np.uint64)
    index = make_index(hashes)
    for half in [*halves.tolist(), 3, 0x80000000]:
        key = half << 32 | 12345
        assert find_entries(index, key) == np.flatnonzero(hashes >> np.uint64(32) == half).tolist()


def test_an_empty_index_finds_nothing():
    assert find_entries(make_index(np.zeros(0, np.uint64)), 7) == []


def test_a_text_that_no_utf8_can_hold_hashes_like_any_other():
    """A stray surrogate, as the command line makes of a wrong byte, raised UnicodeEncodeError."""
    assert len({hash_name("\ud800"), hash_name("\udfff"), hash_name("a")}) == 3
