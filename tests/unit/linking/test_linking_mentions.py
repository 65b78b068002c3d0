from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from biograft.linking import Linker, MentionForms, split_composite, split_composites
from biograft.text import find_appositions
from biograft.text.documents import Document, Mention


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("A|B", ["A", "B"]),
        ("HIV + HCV", ["HIV", "HCV"]),
        ("HIV+HCV", ["HIV", "HCV"]),
        ("ovarian and breast cancer", ["ovarian cancer", "breast cancer"]),
        ("both ovarian and breast cancer", ["ovarian cancer", "breast cancer"]),
        ("ovarian and/or breast cancer", ["ovarian cancer", "breast cancer"]),
        (
            "breast, ovarian, and prostate cancer",
            ["breast cancer", "ovarian cancer", "prostate cancer"],
        ),
        ("cancer of the breast and ovary", ["cancer of the breast", "cancer of the ovary"]),
        ("cancer of the breast and diabetes", ["cancer of the breast", "diabetes"]),
        ("impairments in learning or memory", ["impairments in learning", "impairments in memory"]),
        ("colon/rectal cancer", ["colon cancer", "rectal cancer"]),
        ("HIV/AIDS", ["HIV", "AIDS"]),
        ("type 1 and 2 diabetes", ["type 1 diabetes", "type 2 diabetes"]),
        ("Types I, II and III CMT", ["Type I CMT", "Type II CMT", "Type III CMT"]),
        ("classes 1 & 2", ["class 1", "class 2"]),
        ("hepatitis B and C", ["hepatitis B", "hepatitis C"]),
        ("MERRF and MELAS", ["MERRF", "MELAS"]),
        ("asthma and heart disease", ["asthma", "heart disease"]),
        ("全膀胱切除术＋阑尾切除术", ["全膀胱切除术", "阑尾切除术"]),
        ("甲状腺癌和肺癌", ["甲状腺癌", "肺癌"]),
        ("乳腺、卵巢以及肺癌", ["乳腺癌", "卵巢癌", "肺癌"]),
    ],
)
def test_composites_are_taken_apart(text, parts):
    assert split_composite(text) == tuple(parts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        " and ",
        "and",
        "breast cancer",
        "diabetes mellitus, type 2",
        "K+ channel",
        "Ca2+",
        "5/6",
        "android",
        "和",
        "a |",
        "cancer, and ",
    ],
)
def test_what_is_no_composite_stays_whole(text):
    assert split_composite(text) == (text,)


def known(names):
    """A similarity of 1 for names and 0 for other texts."""
    return lambda texts: [float(text in names) for text in texts]


class TestWithDictionary:
    def test_a_name_is_never_taken_apart(self):
        names = {"head and neck cancer", "head cancer", "neck cancer"}
        text = "head and neck cancer"
        assert split_composite(text, known(names)) == (text,)
        names.remove(text)
        assert split_composite(text, known(names)) == ("head cancer", "neck cancer")

    def test_a_text_without_known_parts_stays_whole(self):
        text = "ovarian and breast cancer"
        assert split_composite(text, known({"lung cancer"})) == (text,)
        assert len(split_composite(text, known({"breast cancer"}))) == 2

    @pytest.mark.parametrize(
        ("text", "names"),
        [
            ("femoral and left sinus clot", ["femoral sinus clot", "left sinus clot"]),
            ("femoral and left sinus clot", ["femoral clot", "left sinus clot"]),
            ("uterine hyperplasia or cancer", ["uterine hyperplasia", "uterine cancer"]),
            ("fits and heart block", ["fits", "heart block"]),
            ("乳腺和卵巢", ["乳腺", "卵巢"]),
        ],
    )
    def test_the_reading_with_the_most_names_wins(self, text, names):
        assert split_composite(text, known(names)) == tuple(names)


@pytest.mark.parametrize(
    ("whole", "parts", "is_split"),
    [(0.59, (1.0, 0.3), True), (0.62, (1.0, 0.3), False), (0.7, (1.0, 0.3), False)],
)
def test_parts_must_be_more_similar_to_names_than_the_whole(whole, parts, is_split):
    similarity = {"脾切除+胆囊切除": whole, "脾切除": parts[0], "胆囊切除": parts[1]}
    (found,) = split_composites(["脾切除+胆囊切除"], lambda texts: [similarity[t] for t in texts])
    assert found == (("脾切除", "胆囊切除") if is_split else ("脾切除+胆囊切除",))


def test_all_mentions_are_searched_at_once_and_those_of_one_reading_not_at_all():
    asked = []

    def similarity(texts):
        asked.append(list(texts))
        return [1.0] * len(texts)

    mentions = ["HIV+HCV", "flu", "HIV；HCV"]
    assert split_composites(mentions, similarity) == [(text,) for text in mentions]
    assert asked == [["HIV+HCV", "HIV", "HCV", "HIV；HCV"]]


@given(
    st.lists(st.sampled_from("and or of in , / + | type 1 II C a breast cancer 和 癌 ,".split()))
)
def test_any_text_gives_parts_that_are_not_empty(words):
    text = " ".join(words)
    parts = split_composite(text)
    assert parts == (text,) or (
        len(parts) > 1 and all(part.strip() == part != "" for part in parts)
    )
    assert split_composite(text, known(())) == (text,)


def forms_of(kb, text, *mentions, **options):
    """The long forms of a document, found by its mentions."""
    spans = [(text.index(m), text.index(m) + len(m)) for m in mentions]
    options = {"abbreviations": True, "composites": False, **options}
    return dict(MentionForms(kb, **options).long_forms(text, mentions, spans))


class TestAppositions:
    def test_a_mention_that_is_no_name_is_looked_up_by_the_name_before_its_bracket(self, kb):
        text = "heart attack (Q7: two years ago), Q7"
        assert forms_of(kb, text, "heart attack", "Q7") == {"Q7": "heart attack"}
        assert forms_of(kb, text, "heart attack", "Q7", appositions=False) == {}
        alone = forms_of(kb, text, "heart attack", "Q7", abbreviations=False)
        assert alone == {"Q7": "heart attack"}

    def test_a_word_that_is_no_name_is_looked_up_by_the_name_in_the_bracket(self, kb):
        assert forms_of(kb, "Xarto (metformin)", "Xarto", "metformin") == {"Xarto": "metformin"}
        # several words often say more than the name in the bracket
        assert forms_of(kb, "bad habit (cold)", "bad habit", "cold") == {}

    @pytest.mark.parametrize(
        ("text", "mentions"),
        [
            ("heart attack Q7", ("heart attack", "Q7")),  # no bracket
            ("heart attack (as Q7)", ("heart attack", "Q7")),
            ("heart attack (Q7 type)", ("heart attack", "Q7")),
            ("heart attack of old (Q7)", ("heart attack", "Q7")),
            ("heart attack (severe)", ("heart attack", "severe")),  # a word like any other
            ("heart attack (cold)", ("heart attack", "cold")),  # both are names
            ("Q8 (Q7)", ("Q8", "Q7")),  # neither is a name
        ],
    )
    def test_other_mentions_stay_what_they_are(self, kb, text, mentions):
        assert forms_of(kb, text, *mentions) == {}

    def test_the_mention_before_the_bracket_bounds_what_letters_find(self, kb):
        """'CsA' was taken for 'conversion with a cold': its letters reach too far back."""
        text = "conversion with a cold (Ca2), a really common cold (COC)"
        mentions = ("cold", "Ca2")
        assert forms_of(kb, text, *mentions)["Ca2"] == "cold"
        longer = forms_of(kb, "a common cold (CCL)", "common cold", "CCL")
        assert longer == {"CCL": "common cold"}

    def test_a_more_precise_long_form_is_kept(self, kb):
        text = "drug-induced cold (DIC)"
        assert forms_of(kb, text, "cold", "DIC") == {"DIC": "drug-induced cold"}


def test_appositions_are_found_in_a_long_text_in_linear_time():
    """Each span copied the text before it: ten megabytes took five minutes."""
    text = "heart attack (Q7), " * 50_000
    starts = range(0, len(text), 19)
    spans = [span for n in starts for span in ((n, n + 12), (n + 14, n + 16))]
    started = time.process_time()
    found = find_appositions(text, spans)
    assert time.process_time() - started < 5
    assert len(found) == 50_000
    assert (found[-1].short, found[-1].long) == ("Q7", "heart attack")


def test_a_name_that_ends_in_a_short_form_is_kept(store_of):
    kb = store_of([{"id": "1", "name": "vitamin E"}, {"id": "2", "name": "etodolac"}])
    text = "etodolac (E), vitamin E, plasma E"
    words = ("etodolac", "E", "vitamin E", "plasma E")
    starts = (0, 10, 14, 25)
    mentions = tuple(Mention(s, s + len(w), w) for s, w in zip(starts, words, strict=True))
    linked = Linker.open(kb)(Document("1", text, mentions))
    assert [m.form for m in linked.mentions] == [
        "etodolac",
        "etodolac",
        "vitamin E",
        "plasma etodolac",
    ]
