"""Short forms in capitals: headings, clinical abbreviations, and names that need support."""

import pytest

from biograft.clinical import AssertionRules
from biograft.linking import Linker, StoreLexicon, clinical_lexicon
from biograft.linking.composites import composite_readings
from biograft.linking.lexicon import is_short
from biograft.text.documents import Document, Mention

STORE = [
    {"id": "RA", "name": "Arthritis, Rheumatoid", "names": ["rheumatoid arthritis", "RA"]},
    {"id": "HT", "name": "Hypertension"},
    {"id": "HD", "name": "Huntington Disease", "names": ["HD"]},
    {"id": "HE", "name": "Hemodialysis"},
    {"id": "T2", "name": "Diabetes Mellitus, Type 2", "names": {"zh": ["2型糖尿病"]}},
    {"id": "T1", "name": "Diabetes Mellitus, Type 1", "names": {"zh": ["1型糖尿病"]}},
    {"id": "DI", "name": "diabetes mellitus", "names": {"en": ["DM"], "zh": ["糖尿病"]}},
    {"id": "MI", "name": "Myocardial Infarction", "names": ["MI"]},
    {"id": "DN", "name": "DNA"},
    {"id": "HI", "name": "History"},
    {"id": "FA", "name": "Family"},
    {"id": "BP", "name": "Prostatic Hyperplasia", "names": {"zh": ["前列腺增生"]}},
    {"id": "LA", "name": "left atrial enlargement"},
    {"id": "RI", "name": "Right Atrial Enlargement"},
    {"id": "OV", "name": "ovarian cancer", "names": {"zh": ["卵巢癌"]}},
    {"id": "BR", "name": "breast cancer", "names": {"zh": ["乳腺癌"]}},
    {"id": "NA", "name": "Sodium", "names": ["Natrium"]},
]


@pytest.fixture(scope="module")
def linker(tmp_path_factory):
    import json

    from biograft.kb import BuildConfig, KnowledgeBase, build_store
    from biograft.kb.sources import SourceConfig

    folder = tmp_path_factory.mktemp("short")
    path = folder / "a.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in STORE))
    source = SourceConfig(path=path, format="jsonl")
    build_store(BuildConfig(sources=(source,)), folder / "kb")
    return Linker.open(KnowledgeBase.open(folder / "kb"), assertions=False)


def linked(linker, text):
    return [(m.text, m.concept) for m in linker(text).mentions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTN and T2DM.", [("HTN", "HT"), ("T2DM", "T2")]),
        ("Two MIs, one MI.", [("MIs", "MI"), ("MI", "MI")]),
        ("HD was seen.", [("HD", None)]),
        ("Huntington disease. HD", [("Huntington disease", "HD"), ("HD", "HD")]),
        ("hemodialysis: HD", [("hemodialysis", "HE"), ("HD", "HE")]),
        ("RA, 96% RA, 96 % on RA", [("RA", None)]),
        ("Rheumatoid arthritis; 96% RA", [("Rheumatoid arthritis", "RA")]),
        ("DNA was extracted", [("DNA", "DN")]),
        ("FAMILY HISTORY: HTN", [("HTN", "HT")]),
        ("Family and history", [("Family", "FA"), ("history", "HI")]),
        ("诊断为前列腺增生(BPH)，BPH患者", [("前列腺增生", "BP"), ("BPH", "BP"), ("BPH", "BP")]),
        ("有2型DM和二型ＤＭ", [("2型DM", "T2"), ("二型ＤＭ", "T2")]),
    ],
)
def test_short_forms_need_support(linker, text, expected):
    """RA in *96% RA*, HD and heading words were linked with a score of 1."""
    assert linked(linker, text) == expected


def test_a_threshold_of_zero_gives_short_forms_and_their_score(linker):
    forced = Linker(linker.kb, linker.search, config=_with(linker, threshold=0.0))
    (mention,) = forced("HD was seen.").mentions
    assert (mention.concept, mention.candidates[0].score) == ("HD", 0.5)
    plain = Linker(linker.kb, linker.search, config=_with(linker, short_forms=False))
    assert linked(plain, "HD. HISTORY. T2DM") == [("HD", "HD"), ("HISTORY", "HI")]


def _with(linker, **changes):
    from dataclasses import replace

    return replace(linker.config, **changes)


@pytest.mark.parametrize(
    ("text", "form", "concept"),
    [
        ("2型DM", "2型糖尿病", "T2"),
        ("T2DM", "diabetes mellitus, type 2", "T2"),
        ("htn", "hypertension", "HT"),
        ("n/a", "n/a", None),
        ("大姨妈不来", "大姨妈不来", None),
        ("hipertension", "hipertension", "HT"),
    ],
)
def test_given_mentions_are_expanded_or_nil(linker, text, form, concept):
    """``n/a`` was a drug, 2型DM type 1 diabetes."""
    document = Document("", text, (Mention(0, len(text), text),))
    (mention,) = linker(document).mentions
    assert (mention.form, mention.concept) == (form, concept)
    assert concept is not None or mention.candidates == () or mention.candidates[0].score < 0.55


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("left and right atrial enlargement", {"LA", "RI"}),
        ("ovarian and breast cancers", {"OV", "BR"}),
        ("breast or ovarian cancer", {"OV", "BR"}),
        ("乳腺和卵巢癌", {"OV", "BR"}),
        ("ovarian cancer and hypertension", {"OV", "HT"}),
        ("swollen and breast cancer", {"BR"}),
    ],
)
def test_coordinated_names_are_found_in_text(linker, text, expected):
    """*left and right atrial enlargement* gave the right one only."""
    found = linker(f"{text}.").mentions
    assert {mention.concept for mention in found} == expected
    whole = any(part not in text for of in composite_readings(text) for part in of)
    assert (len({(m.start, m.end) for m in found}) == 1) is (whole and "hyper" not in text)
    for blank in ("  ", "\u00a0", "\n"):
        wrapped = linker(f"{text}.".replace(" ", blank)).mentions
        assert {mention.concept for mention in wrapped} == expected


def test_coordinations_can_be_switched_off(linker):
    plain = Linker(linker.kb, linker.search, config=_with(linker, coordinations=False))
    assert linked(plain, "ovarian and breast cancer") == [("breast cancer", "BR")]


def test_the_lexicon_is_well_formed():
    lexicon = clinical_lexicon()
    sections = {name for name, *_ in AssertionRules.shipped("en").sections.values()}
    places = sections | set(lexicon.kinds) | {"*"}
    for forms in lexicon.short_forms.values():
        for short, meanings in forms.items():
            assert short == short.upper()
            assert all(meaning.wordings for meaning in meanings)
            assert all(meaning.places <= places for meaning in meanings), short
            assert not any(meaning.wordings == (short,) for meaning in meanings)
    for words in lexicon.words.values():
        assert all(word == word.lower() for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RA", True),
        ("CD4", True),
        ("DMs", True),
        ("Hip", False),
        ("HNPCC", False),
        ("A", False),
    ],
)
def test_what_is_short(text, expected):
    assert is_short(text) is expected


def test_several_meanings_are_no_support(linker):
    known = StoreLexicon(linker.kb)
    assert known.agrees("MI", linker.kb.row("MI"))
    assert not known.agrees("RA", linker.kb.row("RA"))
    assert not known.agrees("XYZ", linker.kb.row("RA"))
