from __future__ import annotations

import pickle
import unicodedata

import pytest
from hypothesis import given, strategies as st

from biograft.errors import ConfigError
from biograft.linking import DEFAULT_STEPS, STEPS, Steps

LIKELY = st.text(
    st.one_of(
        st.sampled_from("aeiosuvxTI '’-/(),.αβ´一二十型期Ⅱ（）、ßİæ\u200b\u0301"), st.characters()
    ),
    max_size=30,
)


def step(name, text):
    return Steps([name])(text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("unicode", "Ｔype–２ “x” `y´", "Type-2 \"x\" 'y'"),
        ("unicode", "can\u00adcer e\u0301", "cancer é"),
        ("unicode", "\u200b", "\u200b"),
        ("simplified", "糖尿病腎病 α", "糖尿病肾病 α"),
        ("case", "Straße DM", "strasse dm"),
        ("greek", "TNFα, β-2 and Γ3 µg", "TNF alpha, beta-2 and gamma 3 mu g"),
        ("greek", "καρκίνος", "καρκίνος"),
        ("hyphens", "IL-2/IL-4 (x, y) Crohn's", "IL 2 IL 4 x y Crohns"),
        ("hyphens", "α–2、型", "α 2 型"),
        ("hyphens", "--", "--"),
        ("possessive", "Crohn's and Graves' disease", "Crohn and Graves disease"),
        ("possessive", "5'-nucleotidase O'Brien '70s", "5'-nucleotidase O'Brien '70s"),
        ("stopwords", "cancer of the breast NOS", "cancer breast"),
        ("stopwords", "of the", "of the"),
        ("sorted_words", "mellitus  diabetes", "diabetes mellitus"),
        ("roman", "type II, stage iv; factor X", "type 2, stage 4; factor 10"),
        ("roman", "vitamin X, Iv, factor-V, ivy, IIA", "vitamin X, Iv, factor-5, ivy, IIA"),
        ("chinese", "二型糖尿病（第十二期）", "2型糖尿病(第12期)"),
        ("chinese", "Ⅱ型、II 型 ii型 二十三级", "2型,2型2型23级"),
        ("chinese", "维生素 D 缺乏\u3000症 of type 2", "维生素D缺乏症of type 2"),
        ("chinese", "十二指肠、ABI型、ivi型、二二型", "十二指肠,ABI型,ivi型,二二型"),
    ],
)
def test_a_step_does_what_it_says(name, text, expected):
    assert step(name, text) == expected


PLURALS = """
    tumors tumor, biopsies biopsy, diagnoses diagnosis, metastases metastasis, thromboses
    thrombosis, diseases disease, kinases kinase, abscesses abscess, reflexes reflex,
    headaches headache,
    viruses virus, causes cause, arthritides arthritis, paralyses paralysis, overdoses overdose,
    dies die, HIVs HIV
"""


@pytest.mark.parametrize("pair", [pair.split() for pair in PLURALS.split(",")])
def test_plurals_become_singulars(pair):
    assert step("plural", pair[0]) == pair[1]


@pytest.mark.parametrize(
    "word",
    [
        "diabetes",
        "herpes",
        "pus",
        "virus",
        "axis",
        "abscess",
        "gas",
        "pancreas",
        "AIDS",
        "Miß's",
        "s",
        "",
        "species",
        "2s3s",
    ],
)
def test_words_that_only_look_like_plurals_stay(word):
    assert step("plural", word) == word


BRITISH = """
    anaemia anemia, ischaemic ischemic, Paediatric Pediatric, oesophagus esophagus, oedema edema,
    lymphoedema lymphedema, foetal fetal, coeliac celiac, diarrhoea diarrhea, dyspnoea dyspnea,
    amoebiasis amebiasis, homoeopathy homeopathy, tumours tumors, fibre fiber, centres centers,
    catheterisation catheterization, sulphate sulfate, leucocyte leukocyte, leukaemia leukemia,
    phaeochromocytoma pheochromocytoma, Œdema Edema, cæcum cecum, aluminium aluminum
"""


@pytest.mark.parametrize("pair", [pair.split() for pair in BRITISH.split(",")])
def test_british_words_become_american(pair):
    assert step("british", pair[0]) == pair[1]


@pytest.mark.parametrize(
    "word",
    [
        "gastroenteritis",
        "leukoencephalopathy",
        "neuroendocrine",
        "aerobic",
        "anaerobic",
        "Michaelis",
        "vertebrae",
        "coenzyme",
        "does",
        "four",
        "hour",
        "leucovorin",
        "acre",
        "poet",
    ],
)
def test_other_words_with_the_same_letters_stay(word):
    assert step("british", word) == word


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Crohn’s Disease", "crohn disease"),
        ("TNF-α", "tnf alpha"),
        ("TNFα", "TNF alpha"),
        ("Type-II Tumours of Oesophagus", "type 2 tumor of esophagus"),
        ("二型糖尿病", "2型糖尿病"),
    ],
)
def test_default_steps_let_spellings_meet(a, b):
    assert DEFAULT_STEPS(a) == DEFAULT_STEPS(b)


def test_different_names_stay_apart():
    names = ["type 1", "type 2", "hepatitis a", "hepatitis b", "ace", "ache", "hypo", "hyper"]
    assert len({DEFAULT_STEPS(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", STEPS)
@given(text=LIKELY)
def test_a_step_never_empties_a_text_and_says_the_same_twice(name, text):
    once = step(name, text)
    assert once.strip() or not text.strip()
    assert step(name, once) == once
    assert STEPS[name].help


@given(text=LIKELY)
def test_default_steps_never_empty_a_text(text):
    assert DEFAULT_STEPS(text).strip() or not text.strip()


@given(text=st.text("abcdefgstuvxi Ü'-α2", max_size=40))
def test_default_steps_say_the_same_of_another_case_and_width(text):
    wide = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in text)
    assert DEFAULT_STEPS(wide) == DEFAULT_STEPS(unicodedata.normalize("NFKC", text))


class TestSteps:
    def test_the_text_form_reads_back(self):
        steps = Steps.parse(" unicode, case,greek")
        assert str(steps) == "unicode,case,greek"
        assert Steps.parse(str(steps)) == steps == Steps(["unicode", "case", "greek"])
        assert steps != Steps.parse("case,unicode,greek")
        assert len({steps, Steps.parse(str(steps))}) == 1

    def test_no_steps_change_nothing(self):
        assert Steps.parse("")("A–b") == "A–b"

    def test_steps_are_applied_in_order(self):
        assert Steps.parse("hyphens,stopwords,sorted_words")("Pain (of) Head") == "Head Pain"
        assert Steps.parse("british,plural")("tumours anaemias") == "tumor anemia"

    def test_an_unknown_step_is_refused_with_the_nearest(self):
        with pytest.raises(ConfigError, match="no step is called 'unicod'; did you mean 'unicode'"):
            Steps.parse("case,unicod")

    def test_steps_can_be_sent_to_another_process(self):
        copy = pickle.loads(pickle.dumps(DEFAULT_STEPS))  # noqa: S301
        assert copy == DEFAULT_STEPS
        assert copy("Tumours") == "tumor"

    def test_the_cache_of_words_is_bounded(self, monkeypatch):
        monkeypatch.setattr("biograft.linking.normalisation._CACHE_SIZE", 3)
        steps = Steps.parse("plural")
        assert [steps(f"tumor{k}s biopsies") for k in range(9)] == [
            f"tumor{k}s biopsy" for k in range(9)
        ]
        assert steps("a b c d e fevers") == "a b c d e fever"
