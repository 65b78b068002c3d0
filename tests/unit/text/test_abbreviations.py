import pytest
from hypothesis import given, strategies as st

from biograft.text import LongForms, find_abbreviations


def pairs(text):
    found = find_abbreviations(text)
    for a in found:
        assert text[a.short_start : a.short_end] == a.short
        assert text[a.long_start : a.long_end] == a.long
    return [(a.short, a.long) for a in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Type 2 diabetes mellitus (DM) is.", [("DM", "diabetes mellitus")]),
        ("In DM (diabetes mellitus) we", [("DM", "diabetes mellitus")]),
        ("adenomatous polyposis coli [APC], a", [("APC", "adenomatous polyposis coli")]),
        ("heat shock protein (HSP, n = 3)", [("HSP", "heat shock protein")]),
        ("hexosaminidase A ( Hex A )", [("Hex A", "hexosaminidase A")]),
        (
            "von Hippel-Lindau (VHL) and cystic fibrosis (CF)",
            [("VHL", "von Hippel-Lindau"), ("CF", "cystic fibrosis")],
        ),
        ("with proton pump inhibitors (PPIs) or", [("PPIs", "proton pump inhibitors")]),
        ("idiopathic interstitial pneumonia (IIP)", [("IIP", "idiopathic interstitial pneumonia")]),
        (
            "International Index of Erectile Function (IIEF)",
            [("IIEF", "International Index of Erectile Function")],
        ),
        ("of 2,4,6-trinitrobenzene (TNB)", [("TNB", "2,4,6-trinitrobenzene")]),
        ("of delta-9-tetrahydrocannabinol (THC)", [("THC", "delta-9-tetrahydrocannabinol")]),
        ("is CrB negative (CrB(-)) here", [("CrB(-)", "CrB negative")]),
        ("of 45-kilobases (kb) and", [("kb", "kilobases")]),
        ('the "astigmatic intensity equation" (AIE)', [("AIE", "astigmatic intensity equation")]),
        ("患慢阻，慢性阻塞性肺疾病（COPD）", [("COPD", "慢性阻塞性肺疾病")]),
        ("患者确诊2型糖尿病（T2DM）十年", [("T2DM", "2型糖尿病")]),
        ("患者有慢性阻塞性肺疾病(慢阻肺)", [("慢阻肺", "慢性阻塞性肺疾病")]),
    ],
)
def test_definitions_are_found(text, found):
    assert pairs(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "()",
        "the patient (see below)",
        "childhood (childhood cerebral ALD)",
        "in Hex A activity (i. e. much)",
        "eleven letters (ELEVENLETTE)",
        "one to three (a b c)",
        "diabetes. Mellitus (DM)",
        "DM (DM)",
        "患者肺（在）",
        "患者有肺（lung）",
        "cmedm (DM)",
        "in the two arms, not given evenly (range 3 to 5)",
        "results: the median age was high (range)",
        "the hat is at it (that is)",
    ],
)
def test_other_brackets_define_no_abbreviation(text):
    assert pairs(text) == []


def test_a_name_is_taken_before_a_longer_form_that_is_none():
    text = "attenuated adenomatous polyposis coli (AAPC)"
    [found] = find_abbreviations(text, lambda form: form == "adenomatous polyposis coli")
    assert found.long == "adenomatous polyposis coli"
    [found] = find_abbreviations(text, lambda form: False)
    assert found.long == "attenuated adenomatous polyposis coli"


class TestLongForms:
    forms = LongForms.of(
        "Breast cancer (BC) and BC (bladder cancer); tumor (T1). diabetes mellitus (DM)"
    )

    def test_the_first_of_several_definitions_counts(self):
        assert dict(self.forms) == {"BC": "Breast cancer", "DM": "diabetes mellitus"}
        assert len(self.forms) == 2

    @pytest.mark.parametrize(
        ("mention", "long"),
        [
            ("BC", "Breast cancer"),
            ("DMs", "diabetes mellitus"),
            ("sporadic BC", "sporadic Breast cancer"),
            ("sporadic BCs", "sporadic Breast cancer"),
            ("BC gene", None),
            ("bc", None),
            ("", None),
        ],
    )
    def test_mentions_are_expanded(self, mention, long):
        assert self.forms.expand(mention) == long


@given(
    st.lists(st.sampled_from("breast cancer ( ) BC （ ） 肺癌 LC , . - é\u0301 😀".split())).map(
        " ".join
    )
)
def test_offsets_slice_to_both_forms(text):
    for short, long in pairs(text):
        assert 2 <= len(short) <= 10
        assert long not in ("", short)


def test_a_chinese_long_form_is_the_longest_name_before_the_bracket():
    names = {"心房颤动", "阵发性心房颤动"}
    text = "入院时见阵发性心房颤动(AF)"
    assert [a.long for a in find_abbreviations(text)] == ["入院时见阵发性心房颤动"]
    (found,) = find_abbreviations(text, names.__contains__)
    assert (found.long, text[found.long_start : found.long_end]) == ("阵发性心房颤动",) * 2
