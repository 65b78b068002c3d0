"""Status in text that none of the rules' authors wrote; its marks are given, the words are not."""

import csv
import re
from collections import Counter

import pytest

from biograft.clinical import assert_status

KIN = re.compile(r"mother|father|brother|daughter|wife|妻|妈|姐|父|母")
MARK = re.compile(r"\[\[(.*?)\]\]")
CODES = {
    "p": "present",
    "n": "absent",
    "u": "possible",
    "h": "historical",
    "f": "family",
    "o": "other_person",
    "y": "hypothetical",
    "c": "conditional",
}


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def test_probes(shared_data):
    """One finding a sentence, alone and beside the kin, who are concepts of most ontologies."""
    right = 0
    for row in read(shared_data("clinical/probes.tsv")):
        text = row["sentence"].replace("\\n", "\n").replace("\\t", "\t")
        start = text.index(row["finding"])
        span = start, start + len(row["finding"])
        kin = [each.span() for each in KIN.finditer(text) if not span[0] <= each.start() < span[1]]
        said = {assert_status(text, [span, *others], None)[0].status for others in ([], kin)}
        right += said == {row["status"]}
    assert right >= 48


def test_negex_sentences(shared_data):
    """NegEx calls "his nausea resolved" negated; here it is present, and its course resolved."""
    counts = Counter()
    for row in read(shared_data("clinical/negex_dev.tsv")):
        start = row["sentence"].find(row["finding"].upper())
        if start >= 0:
            span = start, start + len(row["finding"])
            (found,) = assert_status(row["sentence"], [span])
            counts[row["negation"] == "Negated", found.negated or found.resolved] += 1
    right = counts[True, True]
    assert 2 * right / (2 * right + counts[True, False] + counts[False, True]) >= 0.98


def marked(body):
    """Return a text without its marks, and the spans with what is said of each."""
    text, spans, end = "", [], 0
    for mark in MARK.finditer(body):
        name, *said = mark[1].split("|")
        text += body[end : mark.start()]
        spans.append((len(text), len(text) + len(name), said[0] if said else ""))
        text, end = text + name, mark.end()
    return text + body[end:], spans


@pytest.mark.parametrize(("language", "least"), [("en", 0.96), ("zh", 0.95)])
def test_notes(shared_data, language, least):
    heading = r"^@@ .*\n" if language == "en" else r"^#\d+ .*\n"
    notes = shared_data(f"clinical/notes_{language}_dev.txt").read_text("utf-8")
    right = []
    for body in re.split(heading, notes, flags=re.MULTILINE)[1:]:
        text, spans = marked(body.strip())
        found = assert_status(text, [span[:2] for span in spans], None)
        for (_, _, said), each in zip(spans, found, strict=True):
            codes = said.partition("=")[0]
            wanted = {said} if language == "en" else {CODES[c] for c in codes or "p"}
            right.append(each.status in wanted)
    assert sum(right) / len(right) >= least


@pytest.mark.parametrize(
    ("text", "finding", "status"),
    [
        ("FH: MI (father)\nHeadache since Monday", "Headache", "present"),
        ("Family history: stroke, gout,\nasthma", "asthma", "family"),
        ("PMH:\n- gout\n- asthma\n", "asthma", "historical"),
        ("FINDINGS: None IMPRESSION: 1) pneumonia", "pneumonia", "present"),
        ("[x] gout [ ] asthma", "asthma", "absent"),
        ("gout [x] asthma [ ]", "asthma", "absent"),
        ("gout [ ] asthma [x]", "asthma", "present"),
        ("Neagtive for influenza.", "influenza", "absent"),
        ("Her sister, who is well, denies it. Deneis vertigo.", "vertigo", "absent"),
        ("Gout is unlikely.", "Gout", "possible"),
        ("無發熱、咳嗽", "咳嗽", "absent"),
        ("无多饮、多尿、口干", "口干", "absent"),
        ("非感染性腹泻", "腹泻", "present"),
        ("拟行胆囊切除术", "胆囊切除术", "hypothetical"),
        ("Scheduled for colonoscopy.", "colonoscopy", "hypothetical"),
        ("Colonoscopy scheduled to evaluate anemia.", "anemia", "present"),
        ("Planned for surgery to treat hydrocephalus.", "hydrocephalus", "present"),
        ("58M w/ h/o HTN, gout, asthma p/w cough", "asthma", "historical"),
        ("History of HTN, gout, asthma presented to clinic", "asthma", "historical"),
        ("A man with a history of gout and asthma who comes in today", "asthma", "historical"),
        ("Safety net advice re vertigo, rash.", "rash", "hypothetical"),
        ("Family history: no history of gout.", "gout", "family"),
        ("FAMILY HISTORY: Significant for stroke.", "stroke", "family"),
        ("PAST MEDICAL HISTORY: Significant for gout, asthma", "asthma", "historical"),
        ("s/p lung transplant for emphysema", "emphysema", "historical"),
        ("History of gout complicated by neuropathy.", "neuropathy", "historical"),
        ("1) esophagitis s/p biopsy 2) hernia 3) gout", "gout", "present"),
        ("Denies: 1) vertigo 2) gout", "gout", "absent"),
        ("Psoriasis is high on the differential.", "Psoriasis", "possible"),
        ("Hydrocele was repaired at 18 months.", "Hydrocele", "historical"),
        ("Melanoma of arm (excised 2015)", "Melanoma", "historical"),
        ("Tried statins, stopped because of myalgia.", "myalgia", "historical"),
        ("Risks including infection and stroke were explained.", "stroke", "hypothetical"),
        ("POH: cataract surgery, glaucoma", "glaucoma", "historical"),
        ("His daughter herself has asthma.", "asthma", "family"),
        ("PMH of gout and new diagnosis of asthma", "asthma", "present"),
        ("青霉素过敏（皮疹）", "皮疹", "conditional"),
        ("其妻亦为乙肝携带者", "乙肝携带者", "family"),
        ("|Gout |Active |2009|\n|Psoriasis |No |2010|", "Gout", "present"),
        ("|Gout |Active |2009|\n|Psoriasis |No |2010|", "Psoriasis", "absent"),
        ("| Vertigo | no | Rash | yes |", "Rash", "present"),
        ("| PMH | gout, asthma |\n| Plan | rest |", "asthma", "historical"),
        ("|发热|无|\n|咳嗽|有|", "发热", "absent"),
        ("\u3000\u3000家族史：父亲患痛风，一兄患哮喘。", "哮喘", "family"),
        ("no&nbsp;fever", "fever", "absent"),
        ("No \u200bevi\u00addence =\nof fever", "fever", "absent"),
        ("No\u00a0fever.\u2009Gout.", "Gout", "present"),
        ("Xray of chest shows no fracture. Denies falls. Hx\nasthma. ", "asthma", "historical"),
        ("1 child, no edema, no\nvertigo. Plan: rest", "vertigo", "absent"),
        ("双侧胸腔未见明显异常，心影不大，腹腔未见\n积液。", "积液", "absent"),
        ("无黑矇、晕厥。既往\n高血压病10年，血压控制不佳，2型糖尿病", "2型糖尿病", "present"),
        ("双下肢肌力正常，双侧病理征阴性，无大\n小便失禁。", "小便失禁", "absent"),
        ("ｈｘ ｏｆ asthma", "asthma", "historical"),
        ("Her unccle has gout.", "gout", "family"),
        ("Rikss of gout were explained.", "gout", "hypothetical"),
        ("Findings are suspiciogs for gout", "gout", "possible"),
    ],
)
def test_kinds(text, finding, status):
    start = text.index(finding)
    assert assert_status(text, [(start, start + len(finding))], None)[0].status == status


@pytest.mark.parametrize(
    ("text", "finding", "other", "status"),
    [
        ("A six month history of vertigo", "vertigo", "month", "present"),
        ("Found by daughter w/ vertigo", "vertigo", "daughter", "present"),
        ("Dyspnea on exertion.", "Dyspnea", "exertion", "conditional"),
        ("PMH of gout, difficulty with ambulation, asthma", "asthma", "ambulation", "historical"),
        ("No signs or symptoms of gout", "gout", "symptoms", "absent"),
        ("No filling defect to suggest gout", "filling defect", "gout", "absent"),
        ("肺结核可能性大", "肺结核", "可能", "possible"),
        ("梅毒筛查阴性", "梅毒", "筛查", "absent"),
        ("否认家族性痛风", "痛风", "家族", "absent"),
        ("否认外伤史", "外伤", "外伤史", "absent"),
    ],
)
def test_another_concept_beside_it_changes_nothing(text, finding, other, status):
    spans = [(text.index(each), text.index(each) + len(each)) for each in (finding, other)]
    alone = assert_status(text, spans[:1], None)[0].flags
    assert {assert_status(text, s, None)[0].flags for s in (spans, [*spans, *spans])} == {alone}
    assert status in (assert_status(text, spans, None)[0].status, *alone) or "negated" in alone
