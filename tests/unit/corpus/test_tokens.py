import unicodedata

import pytest
from hypothesis import given, strategies as st

from biograft.corpus.tokens import WORD_ENDS, WORD_STARTS, mark, mark_names, simplify

ANY = st.text(
    st.one_of(
        st.sampled_from("abs1 '’-,.\0\n肺癌かﬁßİ㎎⑴é\u0301\u200b\ufe0f❤😀กุ\ud800"),
        st.characters(exclude_categories=[]),
    ),
    max_size=30,
)


def shown(text, **options):
    return mark(text, **options).text.replace(WORD_STARTS, "<").replace(WORD_ENDS, ">")


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("", ""),
        (" -\n", ""),
        ("Breast-Cancer", "<breast><cancer>"),
        ("tumors gas ass As", "<tumor>s<ga>s<ass><as>"),
        ("Crohn’s 'quoted' 5'-x", "<crohn>s<quoted><5><x>"),
        ("2型糖", "<2>型糖"),
        ("(a)", "(<a>)"),
        ("ﬁx İ ㎎", "<fix><i\u0307><mg>"),
        ("can\u00adcer\u200b❤\ufe0f", "<cancer>❤"),
        ("e\u0301 か\u3099x \u0301", "<e\u0301>か\u3099<x><\u0301>"),
        ("a\0b\ud800c", "<a><b><c>"),
    ],
)
def test_text_is_marked(text, marked):
    assert shown(text) == marked


def test_plurals_are_marked_on_request():
    assert shown("tumors", plurals=False) == "<tumors>"


@given(ANY)
def test_every_token_knows_its_place(text):
    tokens = mark(text)
    before = 0
    for start, stem, end, first, last in zip(
        tokens.starts, tokens.stems, tokens.ends, tokens.first, tokens.last, strict=True
    ):
        assert start == before < stem <= end
        assert 0 <= first < last <= len(text)
        piece = tokens.data[start:end].tobytes().decode("utf-8", "surrogatepass")
        piece = piece.replace(WORD_STARTS, "").replace(WORD_ENDS, "")
        folded = unicodedata.normalize("NFKD", text[first:last]).casefold()
        assert set(piece) <= set(simplify(unicodedata.normalize("NFKD", folded)))
        before = end
    assert before == len(tokens.data)


@given(st.lists(ANY, max_size=5), st.booleans())
def test_names_marked_together_are_as_if_alone(names, plurals):
    alone = [mark(name, plurals=plurals).data.tobytes() for name in names]
    assert mark_names(names, plurals=plurals) == alone


@given(st.lists(st.sampled_from(["e\u0301", "Å", "ñ", "a", " ", "한", "が", "ẞ", "ǆ", "'"])))
def test_canonically_equal_texts_are_marked_alike(pieces):
    text = "".join(pieces)
    composed, parted = (mark(unicodedata.normalize(form, text)).text for form in ("NFC", "NFD"))
    assert composed == parted
