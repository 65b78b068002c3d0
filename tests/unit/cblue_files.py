"""Files of CBLUE in their published layouts, with texts of ours: every record with its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def triple(subject: str, predicate: str, other: str, kinds: tuple[str, str]) -> dict[str, Any]:
    return {
        "Combined": False,
        "predicate": predicate,
        "subject": subject,
        "subject_type": kinds[0],
        "object": {"@value": other},
        "object_type": {"@value": kinds[1]},
    }


def entity(text: str, name: str, kind: str) -> dict[str, Any]:
    start = text.index(name)
    return {"start_idx": start, "end_idx": start + len(name) - 1, "type": kind, "entity": name}


def event(core: str, tendency: str, character: list[str], anatomy: list[str]) -> dict[str, Any]:
    return {
        "core_name": core,
        "tendency": tendency,
        "character": character,
        "anatomy_list": anatomy,
    }


def turn(number: int, speaker: str, sentence: str, act: str, tags: str, info: dict[str, str]):
    return {
        "sentence_id": str(number),
        "speaker": speaker,
        "sentence": sentence,
        "dialogue_act": act,
        "BIO_label": tags,
        "symptom_norm": list(info),
        "symptom_type": list(info.values()),
        "local_implicit_info": info,
    }


REPORT = {
    "主诉": "宝宝发热两天",
    "现病史": "发热，没有咳嗽",
    "辅助检查": "血常规",
    "既往史": "暂无",
    "诊断": "小儿感冒",
    "建议": "口服退热药",
}
DIALOGUE = {
    "diagnosis": "小儿感冒",
    "self-report": "宝宝发热两天，怎么办？",
    "dialogue": [
        turn(1, "医生", "有咳嗽吗", "Request-Symptom", "O B-Symptom I-Symptom O", {"咳嗽": "0"}),
        turn(2, "患者", "没有", "Inform-Symptom", "O O", {}),
        turn(3, "患者", "发热", "Inform-Symptom", "B-Symptom I-Symptom", {"发热": "1"}),
        turn(4, "医生", "考虑小儿感冒", "Diagnose", "O O O O O O", {}),
    ],
    "report": [REPORT, {**REPORT, "建议": "退热药，多喝水"}],
    "explicit_info": {"Symptom": ["发热"]},
    "implicit_info": {"Symptom": {"咳嗽": "0", "发热": "1"}},
}
DIALOGUES = {"10000001": DIALOGUE, "10000002": DIALOGUE}
NESTED = "患者急性肺炎两天"
EVENTS = "左侧胸部剧烈疼痛，无咳嗽。"
FINDINGS = {
    "dialog_id": 7,
    "dialog_info": [
        {
            "sentence_id": "1",
            "sender": "患者",
            "text": "我发热两天",
            "ner": [
                {
                    "mention": "发热",
                    "range": [1, 3],
                    "type": "临床发现",
                    "name": "发热",
                    "attr": "阳性",
                }
            ],
        },
        {
            "sentence_id": "2",
            "sender": "医生",
            "text": "有咳嗽吗",
            "ner": [{"mention": "咳嗽", "range": [1, 3], "name": "undefined", "attr": "阴性"}],
        },
        {"sentence_id": "3", "sender": "患者", "text": "没有", "ner": []},
    ],
}
RECORDS: dict[str, Any] = {
    "CMeEE-V2": [
        {
            "text": NESTED,
            "entities": [entity(NESTED, "急性肺炎", "dis"), entity(NESTED, "肺", "bod")],
        },
        {"text": "咳嗽一周", "entities": [entity("咳嗽一周", "咳嗽", "sym")]},
    ],
    "CMeIE-V2": [
        {
            "text": "利福平预防麻风病，也治结核。",
            "spo_list": [
                triple("麻风病", "预防", "利福平", ("疾病", "药物")),
                triple("结核", "药物治疗", "利福平", ("疾病", "药物")),
            ],
        },
        {"text": "无关的话", "spo_list": []},
    ],
    "CHIP-CDEE": [
        {
            "id": "e1",
            "text": EVENTS,
            "event": [event("疼痛", "", ["剧烈"], ["左侧胸部"]), event("咳嗽", "否定", [], [])],
        }
    ],
    "CHIP-CDN": [
        {"text": "左膝关节炎", "normalized_result": "膝关节炎"},
        {"text": "高血压伴糖尿病", "normalized_result": "高血压##糖尿病"},
    ],
    "CHIP-CTC": [
        {"id": "s1", "label": "Disease", "text": "脱水者"},
        {"id": "s2", "label": "Age", "text": "十八岁"},
    ],
    "CHIP-STS": [
        {
            "id": "1",
            "text1": "糖尿病吃什么",
            "text2": "糖尿病饮食",
            "label": "1",
            "category": "diabetes",
        },
        {
            "id": "2",
            "text1": "糖尿病吃什么",
            "text2": "高血压",
            "label": "0",
            "category": "diabetes",
        },
    ],
    "CHIP-MDCFNPC": [FINDINGS, {**FINDINGS, "dialog_id": 8}],
    "KUAKE-QIC": [
        {"id": "s1", "query": "感冒怎么治", "label": "治疗方案"},
        {"id": "s2", "query": "感冒的原因", "label": "病因分析"},
    ],
    "KUAKE-QTR": [
        {"id": "s1", "query": "感冒", "title": "感冒怎么治", "label": "3"},
        {"id": "s2", "query": "感冒", "title": "高血压", "label": "0"},
    ],
    "KUAKE-QQR": [
        {"id": "s1", "query1": "感冒", "query2": "感冒怎么治", "label": "1"},
        {"id": "s2", "query1": "感冒", "query2": "高血压", "label": "0"},
    ],
    **{f"IMCS-V2-{name}": DIALOGUES for name in ("NER", "DAC", "SR", "MRG")},
}
"""The records of each task with their answers, as in its training file."""
ANSWERS = {
    "CMeEE-V2": "entities",
    "CMeIE-V2": "spo_list",
    "CHIP-CDEE": "event",
    "CHIP-CDN": "normalized_result",
}
"""The key of the answers; of other lists it is ``label``."""
OF_DIALOGUES = ("diagnosis", "report", "explicit_info", "implicit_info")
SPOKEN = ("sentence_id", "speaker", "sentence")


def without_answers(task: str) -> Any:
    """Return the records as the test file has them."""
    records = json.loads(json.dumps(RECORDS[task]))
    if task.startswith("IMCS"):
        for dialogue in records.values():
            for key in OF_DIALOGUES:
                del dialogue[key]
            dialogue["dialogue"] = [{k: said[k] for k in SPOKEN} for said in dialogue["dialogue"]]
        return records
    for record in records:
        record.pop(ANSWERS.get(task, "label"), None)
        for said in record.get("dialog_info", ()):
            for finding in said["ner"]:
                finding["attr"] = ""
    return records


def write_records(path: Path, records: Any) -> Path:
    """Write records: JSON lines where the name ends so, else JSON."""
    if path.suffix == ".jsonl":
        lines = (json.dumps(record, ensure_ascii=False) for record in records)
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    else:
        path.write_text(json.dumps(records, ensure_ascii=False, indent=1), "utf-8")
    return path


def texts() -> list[str]:
    """Return all texts, for a tokenizer."""
    return [json.dumps(RECORDS, ensure_ascii=False), "【】："]
