"""Names that are a part of a longer word or term say so, score under 1, or are no finding."""

import pytest

from biograft.linking import Linker
from biograft.linking.longer_terms import longer_term


def term(text, name):
    start = text.index(name)
    return longer_term(text, start, start + len(name))


@pytest.mark.parametrize(
    ("text", "name", "longer"),
    [
        ("Fragile X syndrome.", "syndrome", "Fragile X syndrome"),
        ("She has valvular disease.", "disease", "valvular disease"),
        ("a storage disorder", "disorder", "storage disorder"),
        ("complement deficiencies", "deficiencies", "complement deficiencies"),
        ("Fragile  X\n\tSyndrome", "Syndrome", "Fragile  X\n\tSyndrome"),
        ("levels of 5-HT", "HT", "5-HT"),
        ("non-diabetic rats", "diabetic", "non-diabetic"),
        ("诊断：上呼吸道感染。", "感染", "上呼吸道感染"),
        ("HPV感染", "感染", "HPV感染"),
        ("拟行甲状腺癌根治术", "甲状腺癌", "甲状腺癌根治术"),
        ("行子宫肌瘤剔除术", "子宫肌瘤", "子宫肌瘤剔除术"),
        ("肺炎链球菌阳性", "肺炎", "肺炎链球菌"),
        ("流感病毒", "流感", "流感病毒"),
        ("感染性休克", "感染", "感染性休克"),
        ("息肉样新生物", "息肉", "息肉样"),
        ("泌尿系統感染", "感染", "泌尿系統感染"),
    ],
)
def test_no_finding(text, name, longer):
    assert term(text, name) == (longer, 0)


@pytest.mark.parametrize(
    ("text", "name", "longer"),
    [
        ("metastatic carcinoma", "carcinoma", "metastatic carcinoma"),
        ("breast cancer", "cancer", "breast cancer"),
        ("bacterial pneumonia", "pneumonia", "bacterial pneumonia"),
        ("HIV infection", "infection", "HIV infection"),
        ("post-stroke epilepsy", "stroke", "post-stroke"),
        ("seizure-like activity", "seizure", "seizure-like"),
        ("双下肢水肿", "水肿", "双下肢水肿"),
        ("糖尿病性肾病", "糖尿病", "糖尿病性肾病"),
        ("肾炎综合征", "肾炎", "肾炎综合征"),
        ("胃癌根治术后3月", "胃癌", "胃癌根治术"),
    ],
)
def test_broader_finding(text, name, longer):
    assert term(text, name) == (longer, 0.9)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The syndrome was described.", "syndrome"),
        ("no evidence of disease", "disease"),
        ("severe pain", "pain"),
        ("She denies pain", "pain"),
        ("worsening infection", "infection"),
        ("Cough, fever", "fever"),
        ("thyroid\n\ndisease", "disease"),
        ("双下肢无水肿", "水肿"),
        ("患者感染", "感染"),
        ("女性感染", "感染"),
        ("阑尾炎术后", "阑尾炎"),
        ("轻度水肿", "水肿"),
        ("急性胰腺炎", "胰腺炎"),
        ("水肿性质不明", "水肿"),
        ("感染病毒", "感染"),
        ("肺结核是结核杆菌引起的", "肺结核"),
        ("慢性感染或病毒携带", "慢性感染"),
        ("发热伴肺炎链球菌", "发热"),
        ("糖尿病。", "糖尿病"),
    ],
)
def test_whole_terms(text, name):
    assert term(text, name) is None


CONCEPTS = [
    {"id": "X:1", "names": ["传染病", "感染"]},
    {"id": "X:2", "names": ["carcinoma"]},
    {"id": "X:3", "names": ["水肿"]},
]


def test_mentions_say_it(store_of):
    linker = Linker.open(store_of(CONCEPTS), explain=True)
    text = "上呼吸道感染，双下肢水肿，水肿。 Metastatic carcinoma."
    linked = linker(text)
    found = {each.text: each for each in linked.mentions[::-1]}
    assert [each.text for each in linked.mentions] == ["水肿", "水肿", "carcinoma"]
    part, whole = linked.mentions[:2]
    assert (part.part_of, part.score) == ("双下肢水肿", 0.9)
    assert (whole.part_of, whole.score) == ("", 1.0)
    assert found["carcinoma"].to_json()["part_of"] == "Metastatic carcinoma"
    assert "part_of" not in whole.to_json()
    assert "in the document: part of 双下肢水肿" in list(part.explanation.lines())
    assert [(each.text, reason) for each, reason in linked.dropped] == [
        ("感染", "a part of another term")
    ]


def test_given_mentions_and_terms_are_whole(store_of):
    linker = Linker.open(store_of(CONCEPTS))
    assert linker.link_mentions(["感染"])[0][0].score == 1.0


def test_a_concept_of_the_longer_term_takes_its_place(store_of):
    more = [*CONCEPTS, {"id": "X:4", "names": ["上呼吸道感染"]}]
    linked = Linker.open(store_of(more))("上呼吸道感染")
    assert [(each.concept, each.score, each.part_of) for each in linked.mentions] == [
        ("X:4", 1.0, "")
    ]


def answer(mention):
    return mention.text, mention.concept, mention.score, mention.status, mention.part_of


@pytest.mark.parametrize("name", ["性病", "道感", "部器", "肢水", "症状", "呼吸"])
def test_unknown_neighbours_change_nothing(store_of, name):
    text = "肺部器质性病变，上呼吸道感染，双下肢水肿，低血糖症状。"
    few = Linker.open(store_of(CONCEPTS))(text)
    more = Linker.open(store_of([*CONCEPTS, {"id": "X:9", "names": [name]}], "more"))(text)
    assert [each for each in map(answer, more.mentions) if each[1] != "X:9"] == [
        answer(each) for each in few.mentions
    ]


@pytest.mark.parametrize("text", ["ＣＯＰＤ，水肿（＋）", "双下肢水腫", "COPD,水肿(+)"])
def test_widths_and_traditional_characters(store_of, text):
    kb = store_of([*CONCEPTS, {"id": "X:5", "names": ["COPD"]}])
    found = {each.concept: each.status for each in Linker.open(kb)(text).mentions}
    assert found["X:3"] == "present"
    assert "腫" in text or found["X:5"] == "present"
