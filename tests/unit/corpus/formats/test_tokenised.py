import pytest
from hypothesis import given, strategies as st

from biograft.corpus.formats.tokenised import Scheme, decode, encode, is_tag

SPANS = [(0, 1, "X"), (1, 3, "X"), (3, 4, "Y"), (5, 7, "")]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("iob1", "I-X B-X I-X I-Y O I I"),
        ("iob2", "B-X B-X I-X B-Y O B I"),
        ("iobes", "S-X B-X E-X S-Y O B E"),
    ],
)
def test_encode_and_decode_of_each_scheme(scheme, tags):
    assert encode(7, SPANS, Scheme(scheme)) == tags.split()
    assert decode(tags.split()) == SPANS


def test_decode_reads_the_prefixes_of_other_schemes():
    assert decode(["B_x", "M_x", "L_x", "U_x", "I_y"]) == [(0, 3, "x"), (3, 4, "x"), (4, 5, "y")]


def test_is_tag():
    assert all(map(is_tag, ["O", "B", "B-cell_type", "I_疾病", "S-"]))
    assert not any(map(is_tag, ["", "o", "X-a", "Bx", "OO"]))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from("XY")), max_size=6),
       st.sampled_from(list(Scheme)))  # fmt: skip
def test_decode_inverts_encode(parts, scheme):
    spans, end = [], 0
    for gap, length, kind in parts:
        spans.append((end + gap, end + gap + length, kind))
        end += gap + length
    assert decode(encode(end + 1, spans, scheme)) == spans
