"""The commands of lab/docs/reproducing.md, run on toy data with tiny encoders and a few steps.

All commands run; that of ``torchrun ... -m biograft`` as one process: the processes of a
job are tested in ``training/test_processes.py``.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command_runs import runner_of
from tiny_masked_lm import tiny_masked_lm_folder

from biograft.cli import make_app
from biograft.models.scratch_configs import NewSeq2Seq
from biograft.recipe import shipped_recipes

PAGE = Path(__file__).parents[1] / "docs" / "reproducing.md"
ENGLISH = (
    ("heart attack", "myocardial infarction"),
    ("chronic kidney disease", "kidney failure"),
    ("asthma", "bronchial asthma"),
    ("type 2 diabetes", "adult diabetes"),
    ("migraine", "sick headache"),
    ("stroke", "brain attack"),
    ("influenza", "the flu"),
    ("high fever", "pyrexia"),
)
CHINESE = (
    ("慢性浅表性胃炎", "慢性胃炎"),
    ("慢性支气管炎", "老年慢性支气管炎"),
    ("急性支气管炎", "急性气管炎"),
    ("高血压病", "原发性高血压病"),
    ("急性心肌梗死", "心肌梗死"),
    ("急性胃肠炎", "胃肠炎"),
)
SYMPTOMS = ("发热", "咳嗽", "乏力", "头痛", "恶心", "腹泻", "胸闷", "心悸")
IDS = [f"C{number:07d}" for number in range(1, len(ENGLISH) + 1)]
TRAINING = ("steps=2", "batch_size=4", "device_batch_size=0", "save_every=2", "workers=0")
TINY_TEXT = ("stream.max_length=48",)
LAYERS = {
    "kebiolm": (*TINY_TEXT, "training.warmup_steps=0", "knowledge.layers.entity_memory.after=1"),
    "smedbert": TINY_TEXT,
    "ernie": (*TINY_TEXT, "knowledge.layers.entity_fusion.after=1"),
    "embert": TINY_TEXT,
    "embert-corruption-7.5": TINY_TEXT,
    "embert-corruption-25": TINY_TEXT,
    "mlm-zh": TINY_TEXT,
    "knowbert": (*TINY_TEXT, "knowledge.layers.entity_memory.after=1"),
    "genbioel-pretrain": ("encoder.max_length=48", "training.warmup_steps=0"),
}
TASK = (
    "search.learning_rates=[]",
    "search.seeds=[1, 2]",
    "encoder.max_length=48",
    "config.training.epochs=1",
)
SHORT = {
    ("probe", "cloze"): ("--limit", "4", "--lengths", "1-2", "--beam", "2"),
    ("probe", "similarity"): ("--negatives", "1", "--jaro-winkler", "0"),
    ("corpus", "annotate"): ("--workers", "1"),
    ("corpus", "segment"): (
        "--min-count",
        "2",
        "--word-segmenter",
        "unigram",
        "--min-quality",
        "0",
    ),
    ("probe", "attention"): ("--limit", "2", "--layer", "1"),
    ("graph", "embed"): ("--set", "training.epochs=1"),
}


def sections() -> dict[str, str]:
    """Return the sections of the page that have commands."""
    found = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    parts = {text.partition("\n")[0]: text for text in found}
    return {title: text for title, text in parts.items() if "```sh" in text}


def commands(title: str) -> list[str]:
    """Return the commands of a section, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", sections()[title], re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def shrunk(line: str) -> list[str]:
    """Return the arguments of a command, as one process, of a few steps, with a tiny encoder."""
    words = shlex.split(line)
    words = ["BERT" if word.startswith("microsoft/") else word for word in words]
    words = [word.replace("after=12", "after=2") for word in words]  # behind all layers
    words = words[words.index("biograft") + 1 :]
    return [*words, *SHORT.get(tuple(words[:2]), ()), *_of_recipe(words)]


def _of_recipe(words: Sequence[str]) -> list[str]:
    command, recipe, encoder = words[0], words[1], "--encoder" not in words
    if command == "pretrain":
        changes = (*(f"training.{each}" for each in TRAINING), *LAYERS.get(recipe, ()))
        if recipe == "smedbert" and not {"BIOBERT-ZH", "SMEDBERT-WITHOUT-HYBRID"} & {*words}:
            changes += ("knowledge.layers.neighbour_attention.after=1",)
        name = "BART" if recipe.startswith("genbioel") else "BERT"
    elif command == "finetune" and recipe in shipped_recipes("task"):
        changes = (*TASK, "config.overlap=8") if recipe.startswith("ner") else TASK
        name = "BERT"
    elif command == "finetune":
        changes = tuple(f"config.training.{each}" for each in TRAINING)
        generative = ("config.beam.beams=2", "config.training.warmup_steps=0")
        changes += generative if recipe.startswith("genbioel") else ()
        name = "BART"
    else:
        return []
    sets = [word for change in changes for word in ("--set", change)]
    return [*sets, *(("--encoder", name) if encoder else ())]


def write(path: str, lines: Sequence[str]) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def sentence(number: int) -> tuple[str, str, int]:
    """Return a sentence, its mention, and where it begins."""
    name = ENGLISH[number % len(ENGLISH)][number % 2]
    start = "She has had "
    return f"{start}{name} for {number + 2} years.", name, len(start)


def write_umls(folder: str) -> None:
    rows = [(cui, name) for cui, names in zip(IDS, ENGLISH, strict=True) for name in names]
    conso = "{}|ENG|P|L1|PF|S1|Y|A1||M1|D1|MSH|MH|D1|{}|0|N||"
    write(f"{folder}/MRCONSO.RRF", [conso.format(*row) for row in rows])
    types = [f"{cui}|T033|A2.2|Finding|AT1|256|" for cui in IDS]
    listed = re.search(r"--types (\S+)", PAGE.read_text("utf-8"))
    assert listed
    for row, code in enumerate(listed[1].split(",")):  # a type that no concept has is refused
        types += [f"{IDS[0]}|{code}|B{row}|Type {row}|AT1|256|"] * (code != "T033")
    write(f"{folder}/MRSTY.RRF", types)
    write(f"{folder}/MRDEF.RRF", [f"{cui}|A1|AT1||MSH|A common disease.|N||" for cui in IDS[:4]])
    rel = "{}|A1|AUI|RO|{}|A2|AUI|{}|R1||MSH|MSH|||N||"
    pairs = pairwise(IDS)
    kinds = ("cause_of", "due_to")
    write(f"{folder}/MRREL.RRF", [rel.format(*pair, kinds[k % 2]) for k, pair in enumerate(pairs)])


def write_linking() -> None:
    """Write dictionaries and gold of linking, in the format of each set."""
    names = [f"{cui}||{name}" for cui, names in zip(IDS, ENGLISH, strict=True) for name in names]
    for path in (
        "NCBI/test_dictionary.txt",
        "NCBI/train_dictionary.txt",
        "AAP/dictionary.txt",
        "BC5D/test_dictionary.txt",
        "BC5C/test_dictionary.txt",
        "COMETA/dictionary.txt",
        "MESH/dictionary.txt",
        "MEDIC/dictionary.txt",
        "SNOMED/dictionary.txt",
    ):
        write(path, names)
    found = [(*sentence(number), IDS[number % len(IDS)]) for number in range(10)]
    pubtator, concepts = [], []
    for number, (text, name, start, cui) in enumerate(found):
        end = start + len(name)
        pubtator += [f"{number}|t|{text}", f"{number}|a|"]
        pubtator += [f"{number}\t{start}\t{end}\t{name}\tDisease\t{cui}", ""]
        concepts.append(f"{number}||{start}|{end}||Disease||{name}||{cui}")
    for folder in ("NCBI", "BC5D", "BC5C"):
        for part in ("processed_traindev", "processed_test"):
            write(f"{folder}/{part}/all.concept", concepts)
    write("NCBI/texts.txt", pubtator)
    cometa = [f"{name}\t{cui}\t{cui}\t{text}" for text, name, _, cui in found]
    header = "Term\tGeneral SNOMED ID\tSpecific SNOMED ID\tExample"
    for part in ("train", "dev", "test"):
        for folder in ("BC5CDR", "MEDMENTIONS"):
            write(f"{folder}/{part}.txt", pubtator)
        write(f"AAP/{part}.txt", [f"{cui}\t{name}\t{name}" for _, name, _, cui in found])
        write(f"COMETA/{part}.csv", [header, *cometa])
    write("XLBEL/zh.txt", [f"{cui}||{name}||A <tgt> {name} </tgt>." for _, name, _, cui in found])
    write("en_zh.txt", [f"{k}||{a}||{b}" for k, (a, b) in enumerate(ENGLISH)])


def write_english_tasks() -> None:
    write("PUBMED.txt", [sentence(k)[0] + " " + sentence(k + 3)[0] for k in range(40)])
    tagged = ["She\tO", "has\tO", "asthma\tB", ".\tO", "", "High\tB", "fever\tI", "again\tO", ""]
    for part in ("train", "devel", "test"):
        write(f"BLURB/NCBI/{part}.tsv", tagged * 2)
    labels = {"GAD": ("0", "1"), "ChemProt": ("false", "CPR:3"), "DDI": ("DDI-false", "DDI-int")}
    for name, of in labels.items():
        for part in ("train", "dev", "test"):
            rows = [f"{k}\t@GENE$ may cause @DISEASE$ {k}.\t{of[k % 2]}" for k in range(6)]
            write(f"BLURB/{name}/{part}.tsv", rows)


def write_chinese() -> None:
    """Write the graph, the text, and the tasks."""
    rows = ["head\trelation\ttail\thead_type\ttail_type"]
    for number, (name, alias) in enumerate(CHINESE):
        other = CHINESE[(number + 1) % len(CHINESE)][0]
        rows += [f"{name}\talias\t{alias}\tdisease\tdisease"]
        for each in (name, alias):
            rows += [f"{each}\tcomplication\t{other}\tdisease\tdisease"]
            rows += [f"{each}\tsymptom\t{symptom}\tdisease\tsymptom" for symptom in SYMPTOMS]
    write("GRAPH.tsv", rows)
    clauses = [f"患者{k + 1}天前因{a}就诊，医生说可能是{b}。" for k, (a, b) in enumerate(CHINESE)]
    texts = ["".join(clauses[(k + j) % len(clauses)] for j in range(14)) for k in range(16)]
    write("FORUM.txt", texts)
    mention = {"mention": CHINESE[0][0], "type": "disease", "offset": "2"}
    ner = json.dumps({"text": f"患有{CHINESE[0][0]}", "mention_data": [mention]})
    entity = {"start_idx": 2, "end_idx": 8, "type": "dis", "entity": CHINESE[0][0]}
    inner = {"start_idx": 7, "end_idx": 8, "type": "dis", "entity": CHINESE[0][0][-2:]}
    nested = {"text": f"患有{CHINESE[0][0]}", "entities": [entity, inner]}
    spo = {"predicate": "并发症", "subject": "胃炎", "subject_type": "疾病"}
    spo |= {"object": {"@value": "发热"}, "object_type": {"@value": "症状"}}
    cause = spo | {"predicate": "病因"}
    schema = [
        {
            k: s["object_type"]["@value"] if k == "object_type" else s[k]
            for k in ("subject_type", "predicate", "object_type")
        }
        for s in (spo, cause)
    ]
    write("CMeIE/53_schemas.json", [json.dumps(row) for row in schema])
    relations = [json.dumps({"text": "胃炎可引起发热。", "spo_list": [s]}) for s in (spo, cause)]
    for part in ("train", "dev", "test"):
        write(f"cMedQANER/{part}.json", [ner] * 6)
        write(f"cNNER/{part}.json", [json.dumps([nested] * 4)])
        for name in ("cMedQQ", "cMedQNLI"):
            write(f"{name}/{part}.txt", [f"{k % 2}\t胃炎怎么办\t发热怎么办" for k in range(6)])
        answers = [(f"胃炎第{k // 2}天怎么办", k % 2, f"回答{k}") for k in range(8)]
        write(f"cMedQA/{part}.txt", [f"{y}\t{q}\t{a}" for q, y, a in answers])
        web = [f"{k // 2}\t{y}\t内科\t{q}\t{a}" for k, (q, y, a) in enumerate(answers)]
        write(f"WebMedQA/{part}.txt", web)
        write(f"CMeIE/{part}.json", relations * 3)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of a BERT and a BART that stand for the published models."""
    folder = tmp_path_factory.mktemp("models")
    words = [sentence(k)[0] for k in range(16)] + [name for pair in CHINESE for name in pair]
    words += ["患者天前因就诊，医生说可能是。怎么办回答第可引起发热 may cause again common"]
    bert = tiny_masked_lm_folder(folder / "BERT", words, positions=64)
    size: dict[str, Any] = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32}
    made = NewSeq2Seq(n_tokens=400, max_length=96, **size).create(words, 0)
    made.model.save_pretrained(folder / "BART")
    made.tokenizer.save_pretrained(folder / "BART")
    return {"BERT": bert, "MC-BERT": bert, "BART": folder / "BART"}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: dict[str, Path]) -> Path:
    """The working directory, with a toy file for each that the page names."""
    monkeypatch.chdir(tmp_path)
    write_umls("META")
    write_umls("META2017")
    write_linking()
    write_english_tasks()
    write_chinese()
    for name, folder in models.items():
        Path(name).symlink_to(folder)
    return tmp_path


@pytest.mark.parametrize("title", list(sections()))
def test_every_command_of_a_section_runs(title, toy):
    for line in commands(title):
        words = shrunk(line)
        printed = runner_of(make_app(words[0]))(*words).output
        if "evaluate link" in line:
            assert printed.startswith("10 queries"), line  # none was left out
        if "probe similarity" in line:
            assert "D2 is empty" not in printed
    rows = [row for path in toy.rglob("metrics.jsonl") for row in path.read_text().splitlines()]
    losses = [row["loss"] for row in map(json.loads, rows) if row.get("loss") is not None]
    assert losses
    assert all(map(math.isfinite, losses))


def test_a_row_and_its_control_start_from_one_encoder():
    """SMedBERT's table from BERT-base, EMBERT's from MC-BERT; controls read the same text."""
    starts: dict[str, tuple[str, str]] = {}
    for line in commands("EMBERT and SMedBERT"):
        words = shlex.split(line)
        given = {flag: words[row + 1] for row, flag in enumerate(words[:-1]) if flag[0] == "-"}
        if "pretrain" in words:
            starts[given["-o"]] = (given.get("--encoder", ""), given["--corpus"])
        elif "similarity" in words:
            compared = [words[row + 1] for row, word in enumerate(words) if word == "--encoder"]
            found = {starts[name.removesuffix("/encoder")] for name in compared}
            assert found == {("", "GRAPH-CORPUS")}
    assert {start for name, start in starts.items() if name.startswith("EMBERT")} == {starts["MLM"]}


def test_the_page_names_the_published_recipe_of_every_paper():
    named = set(re.findall(r"biograft (?:pretrain|finetune) (\S+)", PAGE.read_text("utf-8")))
    kinds = ("pretrain", "task", "linker")
    assert named <= {name for kind in kinds for name in shipped_recipes(kind)}
    assert {
        "sapbert",
        "sapbert-xlmr",
        "kebiolm",
        "genbioel-pretrain",
        "embert",
        "smedbert",
    } <= named
