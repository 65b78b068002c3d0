"""CBLUE's metrics against plain implementations; what a submission may not be."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cblue_files import DIALOGUE, RECORDS, REPORT, write_records

from biograft.errors import BiograftError, ConfigError, FormatError
from biograft.evaluation import CBLUE, pack_submissions, read_gold, score_submission
from biograft.metrics import rouge_scores

SUBMITTED = {
    "IMCS-V2-NER": lambda turn: turn["BIO_label"],
    "IMCS-V2-DAC": lambda turn: turn["dialogue_act"],
    "IMCS-V2-SR": lambda turn: turn["local_implicit_info"],
}


def submission(name: str) -> Any:
    """Return the right answers in the layout of a submission."""
    records = json.loads(json.dumps(RECORDS[name]))
    if name == "IMCS-V2-MRG":
        return {key: value["report"][0] for key, value in records.items()}
    if name in SUBMITTED:
        return {
            key: {
                **{turn["sentence_id"]: SUBMITTED[name](turn) for turn in value["dialogue"]},
                **({"global": value["implicit_info"]["Symptom"]} if name.endswith("SR") else {}),
            }
            for key, value in records.items()
        }
    return records


@pytest.fixture
def scored(tmp_path: Path):
    def score(name: str, given: Any) -> dict[str, Any]:
        suffix = Path(CBLUE[name].file).suffix
        gold = write_records(tmp_path / f"gold{suffix}", RECORDS[name])
        return score_submission(name, gold, write_records(tmp_path / CBLUE[name].file, given))

    return score


@pytest.mark.parametrize("name", [name for name in CBLUE if name != "IMCS-V2-MRG"])
def test_the_right_answers_score_one(scored, name):
    assert scored(name, submission(name))["score"] == 1


def f1(right: set[Any], given: set[Any]) -> float:
    both = sum(each in right for each in given)
    return 2 * both / (len(right) + len(given))


def test_entities_are_scored_by_span_and_type(scored):
    given = submission("CMeEE-V2")
    given[0]["entities"][0]["type"] = "sym"
    given[1]["entities"].append({"start_idx": 2, "end_idx": 3, "type": "ite"})
    right, found = (
        {
            (n, e["start_idx"], e["end_idx"], e["type"])
            for n, r in enumerate(rs)
            for e in r["entities"]
        }
        for rs in (RECORDS["CMeEE-V2"], given)
    )
    assert scored("CMeEE-V2", given)["score"] == pytest.approx(f1(right, found))


def test_triples_are_scored_without_the_types_of_their_names(scored):
    given = submission("CMeIE-V2")
    keys = ("subject", "predicate", "object")
    one, two = ({key: each[key] for key in keys} for each in given[0]["spo_list"])
    two = {**two, "object": {"@value": "利福"}}
    given[0]["spo_list"] = [one, one, two]
    assert scored("CMeIE-V2", given)["score"] == pytest.approx(0.5)


def test_an_event_counts_if_all_four_parts_are_right_in_any_order(scored):
    given = submission("CHIP-CDEE")
    given[0]["event"][1]["tendency"] = "不确定"
    assert scored("CHIP-CDEE", given)["score"] == pytest.approx(0.5)
    given[0]["event"].reverse()
    assert scored("CHIP-CDEE", given)["score"] == pytest.approx(0.5)


def test_standard_names_are_scored_as_pairs_with_their_term(scored):
    given = submission("CHIP-CDN")
    given[1]["normalized_result"] = "糖尿病##高脂血症##高血压"
    found = scored("CHIP-CDN", given)
    assert (found["right"], found["wrong"], found["missed"]) == (3, 1, 0)
    assert found["score"] == pytest.approx(6 / 7)


@pytest.mark.parametrize("name", ["CHIP-STS", "CHIP-CTC", "KUAKE-QIC", "CHIP-MDCFNPC"])
def test_labels_are_scored_by_accuracy_and_macro_f1(scored, name):
    given = submission(name)
    if name == "CHIP-MDCFNPC":
        given[0]["dialog_info"][0]["ner"][0]["attr"] = "其他"
        right, found = ["阳性", "阴性"] * 2, ["其他", "阴性", "阳性", "阴性"]
    else:
        right = [record["label"] for record in given]
        given[0]["label"] = right[1]
        found = [right[1]] * 2
    labels = {*right, *found}
    by_label = [
        2
        * sum(r == g == x for r, g in zip(right, found, strict=True))
        / (right.count(x) + found.count(x))
        for x in labels
    ]
    accuracy = sum(r == g for r, g in zip(right, found, strict=True)) / len(right)
    values = scored(name, given)
    assert values["accuracy"] == pytest.approx(accuracy)
    assert values["macro_f1"] == pytest.approx(sum(by_label) / len(labels))
    assert values["score"] == values[CBLUE[name].metric]


def test_symptoms_are_scored_by_turns_and_by_dialogues(scored):
    given = submission("IMCS-V2-SR")
    given["10000001"]["global"] = {"发热": "1", "咳嗽": "2"}
    given["10000001"]["3"] = {}
    found = scored("IMCS-V2-SR", given)
    assert found["dialogues"]["f1"] == pytest.approx(3 / 4)
    assert found["turns"]["f1"] == pytest.approx(6 / 7)
    assert found["score"] == pytest.approx((3 / 4 + 6 / 7) / 2)


def test_tags_are_read_as_the_benchmark_reads_them(scored):
    """An I without a B is no entity, one of another type is passed over."""
    given = submission("IMCS-V2-NER")
    given["10000001"]["1"] = "O I-Symptom B-Symptom I-Drug"
    found = scored("IMCS-V2-NER", given)
    assert (found["right"], found["wrong"], found["missed"]) == (3, 1, 1)


def plain_rouge(text: str, reference: str) -> dict[str, float]:
    """ROUGE as the package of the benchmark computes it, with loops."""

    def value(common: int, one: int, two: int) -> float:
        return 2 * common / (one + two)

    def subsequence(x: str, y: str) -> set[str]:
        table = [[0] * (len(y) + 1) for _ in range(len(x) + 1)]
        for i, a in enumerate(x, 1):
            for j, b in enumerate(y, 1):
                above, left = table[i - 1][j], table[i][j - 1]
                table[i][j] = table[i - 1][j - 1] + 1 if a == b else max(above, left)
        i, j, found = len(x), len(y), set()
        while i and j:
            if x[i - 1] == y[j - 1]:
                found.add(x[i - 1])
                i, j = i - 1, j - 1
            elif table[i - 1][j] > table[i][j - 1]:
                i -= 1
            else:
                j -= 1
        return found

    sentences = [["".join(s.split()) for s in each.split(".") if s] for each in (text, reference)]
    one, two = ("".join(each) for each in sentences)
    common = set()
    for a in sentences[1]:
        for b in sentences[0]:
            common |= subsequence(a, b)
    pairs, others = set(pairwise(one)), set(pairwise(two))
    return {
        "rouge-1": value(len(set(one) & set(two)), len(set(one)), len(set(two))),
        "rouge-2": value(len(pairs & others), len(pairs), len(others)),
        "rouge-l": value(len(common), len(set(one)), len(set(two))),
    }


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("主诉：发热两天", "主诉：发热三天，咳嗽"),
        ("体温39.5度 发热", "发热，体温38.5度。"),
        ("感冒", "腹泻"),
        ("咳咳咳嗽嗽", "嗽咳嗽咳"),
    ],
)
def test_rouge_equals_a_plain_implementation(text, reference):
    assert rouge_scores(text, [reference]) == pytest.approx(plain_rouge(text, reference))
    both = rouge_scores(text, [reference, text])
    assert both["rouge-1"] == pytest.approx((rouge_scores(text, [reference])["rouge-1"] + 1) / 2)


def test_an_empty_text_has_a_rouge_of_zero():
    assert set(rouge_scores("", ["发热"]).values()) == {0.0}


def test_reports_are_scored_by_the_mean_of_rouge_over_both_references(scored):
    given = {key: {**REPORT, "诊断": "感冒"} for key in RECORDS["IMCS-V2-MRG"]}

    def whole(report: dict[str, str]) -> str:
        return "".join(f"{name}：{text}" for name, text in report.items())

    plain = [plain_rouge(whole(given["10000001"]), whole(each)) for each in DIALOGUE["report"]]
    mean = sum(sum(each.values()) / 3 for each in plain) / 2
    assert scored("IMCS-V2-MRG", given)["score"] == pytest.approx(mean)


WRONG: list[tuple[str, Any, str]] = [
    ("CMeEE-V2", lambda s: s[0].pop("entities"), "the key 'entities' is missing"),
    ("CMeEE-V2", lambda s: s[0]["entities"][0].pop("start_idx"), "the key 'start_idx' is missing"),
    ("CMeEE-V2", lambda s: s[0]["entities"][0].update(type="disease"), "unknown label 'disease'"),
    ("CMeIE-V2", lambda s: s[0]["spo_list"][0].update(predicate="治"), "unknown label '治'"),
    ("CHIP-CDEE", lambda s: s[0]["event"][0].update(tendency="无"), "unknown label '无'"),
    ("CHIP-STS", lambda s: s[0].pop("label"), "the key 'label' is missing"),
    ("CHIP-STS", lambda s: s.pop(), "1 records are only in one of both files"),
    (
        "CHIP-MDCFNPC",
        lambda s: s[0]["dialog_info"][0]["ner"][0].update(attr=""),
        "unknown label ''",
    ),
    ("IMCS-V2-DAC", lambda s: s["10000001"].update({"1": "Ask"}), "unknown label 'Ask'"),
    ("IMCS-V2-DAC", lambda s: s.pop("10000002"), "4 records are only in one of both files"),
    ("IMCS-V2-SR", lambda s: s["10000001"]["1"].update({"咳嗽": "3"}), "unknown label '3'"),
    ("IMCS-V2-NER", lambda s: s["10000001"].update({"1": "O B-Sign O O"}), "unknown label 'Sign'"),
]


@pytest.mark.parametrize(("name", "change", "message"), WRONG)
def test_a_submission_that_the_benchmark_refuses_is_refused(scored, name, change, message):
    given = submission(name)
    change(given)
    with pytest.raises(FormatError, match=message):
        scored(name, given)


def test_only_checked_files_with_official_names_are_packed(tmp_path):
    good = write_records(tmp_path / "CHIP-STS_test.json", submission("CHIP-STS"))
    wrong = write_records(tmp_path / "CHIP-STS_dev.json", submission("CHIP-STS"))
    with pytest.raises(ConfigError, match="did you mean 'CHIP-STS_test"):
        pack_submissions([good, wrong], tmp_path / "out.zip", overwrite=False)
    write_records(good, [{"id": "1"}])
    with pytest.raises(BiograftError, match="the key 'label' is missing"):
        pack_submissions([good], tmp_path / "out.zip", overwrite=False)
    assert not (tmp_path / "out.zip").exists()


def test_a_task_that_is_not_known_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'KUAKE-QIC'"):
        score_submission("KUAKE-QIX", tmp_path, tmp_path)


def test_terms_are_gold_of_a_linker(tmp_path):
    records = [*RECORDS["CHIP-CDN"], {"text": "咳嗽"}]
    gold = read_gold(write_records(tmp_path / "a.json", records), "procedures")
    assert [(query.mention, query.gold_names) for query in gold.queries] == [
        ("左膝关节炎", ("膝关节炎",)),
        ("高血压伴糖尿病", ("高血压", "糖尿病")),
    ]
    assert gold.log.rejected.counts == {"not a term with its standard names": 1}
