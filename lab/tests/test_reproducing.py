"""The commands of lab/docs/reproducing.md, run on toy data with tiny encoders and a few steps.

All commands run; that of ``torchrun ... -m biograft`` as one process: the processes of a
job are tested in ``training/test_processes.py``. Of a loop with more than two values the first and
the last are run, of a loop inside another the last. Each base is another model, so that a run that
starts from another than its command names is seen, and test mentions are no name of any dictionary.
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
import torch
from command_runs import runner_of
from safetensors.torch import load_file
from tiny_masked_lm import tiny_masked_lm_folder

from biograft.cli import make_app
from biograft.kb import KnowledgeBase
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
MESH = [f"D{number:06d}" for number in range(1, len(ENGLISH) + 1)]
SNOMED = ("22298006", "709044004", "195967001", "44054006", "37796009", "230690007")
SNOMED += ("6142004", "386661006")
UNSEEN = "abrupt cardiac event"
"""A mention of test sets, which no dictionary may have."""
LEARNED = "worn out kidneys"
"""A mention of training sets, which only BioSyn's test dictionaries have."""
TRAINING = ("steps=2", "batch_size=4", "device_batch_size=0", "save_every=2", "workers=0")
TINY_TEXT = ("stream.max_length=48",)
LAYERS = {
    "kebiolm": (*TINY_TEXT, "training.warmup_steps=0", "knowledge.layers.entity_memory.after=1"),
    "smedbert": TINY_TEXT,
    "ernie": (*TINY_TEXT, "knowledge.layers.entity_fusion={after=1, n_heads=2}"),
    "embert": TINY_TEXT,
    "embert-corruption-7.5": TINY_TEXT,
    "embert-corruption-25": TINY_TEXT,
    "mlm-zh": TINY_TEXT,
    "knowbert": (*TINY_TEXT, "knowledge.layers.entity_memory.after=1"),
    "genbioel-pretrain": ("encoder.max_length=48", "training.warmup_steps=0"),
}
TASK = (
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
    """Return the commands of a section, in order, loops written out."""
    blocks = re.findall(r"```sh\n(.*?)```", sections()[title], re.DOTALL)
    return [line for block in blocks for line in unrolled(block.splitlines())]


def unrolled(lines: Sequence[str], *, inner: bool = False) -> list[str]:
    """Write loops out, with their first and last value; inside another with the last alone."""
    found: list[str] = []
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        loop = re.fullmatch(r"for (\w+) in (.+); do", line)
        if loop is None:
            assert line.startswith(("biograft ", "torchrun ")), line
            found.append(line)
            continue
        depth, end = 1, 0
        while depth:
            depth += rest[end].startswith("for ") - (rest[end] == "done")
            end += 1
        values = loop[2].split()
        chosen = values if len(values) == 2 else values[-1:] if inner else [values[0], values[-1]]
        for value in chosen:
            body = [each.replace(f"${loop[1]}", value) for each in rest[: end - 1]]
            found += unrolled(body, inner=True)
        rest = rest[end:]
    assert not any("$" in line for line in found)
    return found


def shrunk(line: str) -> list[str]:
    """Return the arguments of a command, as one process, of a few steps, with a tiny encoder."""
    words = shlex.split(line)
    words = [re.sub("after=(4|8|12)$", "after=2", word) for word in words]  # behind all layers
    words = [re.sub("steps=20000,.*", "steps=2,3", word) for word in words]
    words = [re.sub("^(training.learning_rate=[^,]+),.*", r"\1", word) for word in words]
    words = words[words.index("biograft") + 1 :]
    return [*words, *SHORT.get(tuple(words[:2]), ()), *_of_recipe(words)]


def _of_recipe(words: Sequence[str]) -> list[str]:
    command, recipe, encoder = words[0], words[1], "--encoder" not in words
    memory = any("entity_memory.after=" in word for word in words)
    if command == "pretrain":
        changes = (*(f"training.{each}" for each in TRAINING), *LAYERS.get(recipe, ()))
        changes = changes[: -1 if memory else None]
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


def sentence(number: int, split: str = "") -> tuple[str, str, int]:
    """Return a sentence, its mention, and where it begins."""
    name = ENGLISH[number % len(ENGLISH)][number % 2]
    name = {("test", 0): UNSEEN, ("train", 1): LEARNED}.get((split, number), name)
    start = "She has had "
    return f"{start}{name} for {number + 2} years.", name, len(start)


def write_umls(folder: str) -> None:
    conso = "{}|ENG|P|L1|PF|S1|Y|A{}||{}|{}|{}|PT|{}|{}|0|N||"
    rows = [("C9999999", "dry skin", "MSH", "D999999")]  # in no dictionary
    for codes in zip(IDS, ENGLISH, MESH, SNOMED, strict=True):
        rows += [(codes[0], name, "MSH", codes[2]) for name in codes[1]]
        rows += [(codes[0], name, "SNOMEDCT_US", codes[3]) for name in codes[1]]
    lines = [(cui, k, code, code, sab, code, name) for k, (cui, name, sab, code) in enumerate(rows)]
    write(f"{folder}/MRCONSO.RRF", [conso.format(*line) for line in lines])
    types = ["C9999999|T033|A2.2|Finding|AT1|256|"]
    types += [f"{cui}|T033|A2.2|Finding|AT1|256|" for cui in IDS]
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


def write_vocabularies() -> None:
    """Write MeSH and SNOMED CT as published, with the first name of each concept."""
    records, concepts, terms = [], [], []
    for ui, sctid, (name, _) in zip(MESH, SNOMED, ENGLISH, strict=True):
        term = f"<Term><TermUI>T{ui}</TermUI><String>{name}</String></Term>"
        records.append(
            f'<DescriptorRecord DescriptorClass="1"><DescriptorUI>{ui}</DescriptorUI>'
            f"<DescriptorName><String>{name}</String></DescriptorName><ConceptList>"
            f'<Concept PreferredConceptYN="Y"><ConceptUI>M{ui}</ConceptUI><TermList>{term}'
            "</TermList></Concept></ConceptList></DescriptorRecord>"
        )
        state = "20170101\t1\t900000000000207008"
        concepts.append(f"{sctid}\t{state}\t900000000000074008")
        described = f"{sctid}\ten\t900000000000013009\t{name}\t900000000000448009"
        terms.append(f"1{sctid}\t{state}\t{described}")
    head = '<?xml version="1.0"?>'
    write("MESH/desc2017.xml", [head, "<DescriptorRecordSet>", *records, "</DescriptorRecordSet>"])
    state = "id effectiveTime active moduleId"
    of_term = "conceptId languageCode typeId term caseSignificanceId"
    for file, columns_of, rows in (
        ("Concept_Snapshot", f"{state} definitionStatusId", concepts),
        ("Description_Snapshot-en", f"{state} {of_term}", terms),
    ):
        header = columns_of.replace(" ", "\t")
        write(f"SNOMED/Terminology/sct2_{file}_INT_20170131.txt", [header, *rows])


def write_linking() -> None:
    """Write dictionaries and gold of linking, in the format of each set."""
    for split in ("test", "train"):
        ids = zip(MESH, ENGLISH, strict=True)
        names = [f"{ui}||{name}" for ui, own in ids for name in own]
        names += [f"{MESH[1]}||{LEARNED}"] * (split == "test")
        for folder in ("NCBI", "BC5D", "BC5C"):
            write(f"{folder}/{split}_dictionary.txt", names)
    own = [f"{sctid}||{name}" for sctid, (name, _) in zip(SNOMED, ENGLISH, strict=True)]
    write("AAP/dictionary.txt", own)
    with_umls = [re.sub(r"^(\d+)", r"\1|SNOMEDCT_US:\1", line) for line in own]
    write("AAP/umls_dictionary.txt", with_umls)
    write("SNOMED/dictionary.txt", with_umls)
    with_umls = [f"{ui}|MSH:{ui}||{name}" for ui, (name, _) in zip(MESH, ENGLISH, strict=True)]
    write("NCBI/umls_dictionary.txt", with_umls)
    texts = []
    for part in ("train", "dev", "test"):
        found = [(*sentence(k, part), k % len(IDS)) for k in range(10)]
        for folder, ids_of in (("BC5CDR", MESH), ("MEDMENTIONS", IDS)):
            pubtator = []
            for number, (text, name, start, row) in enumerate(found):
                pubtator += [f"{part}{number}|t|{text}", f"{part}{number}|a|"]
                span = f"{start}\t{start + len(name)}\t{name}\tDisease\t{ids_of[row]}"
                pubtator += [f"{part}{number}\t{span}", ""]
            write(f"{folder}/{part}.txt", pubtator)
            texts += pubtator if folder == "BC5CDR" else []
        for folder in ("NCBI", "BC5D", "BC5C"):
            spans = [
                f"{part}{k}||{start}|{start + len(name)}||Disease||{name}||{MESH[row]}"
                for k, (_, name, start, row) in enumerate(found)
            ]
            for name in (part, "traindev") if part == "train" else (part,):
                write(f"{folder}/processed_{name}/all.concept", spans)
        for fold in range(10):
            rows = [f"{SNOMED[row]}\t{name}\t{name}" for _, name, _, row in found]
            write(f"AAP/{part}-{fold}.txt", rows)
        header = "Term\tGeneral SNOMED ID\tSpecific SNOMED ID\tExample"
        cometa = [f"{name}\t{SNOMED[row]}\t{SNOMED[row]}\t{text}" for text, name, _, row in found]
        write(f"COMETA/{part}.csv", [header, *cometa])
    write("NCBI/texts.txt", texts)
    xlbel = [f"{IDS[row]}||{name}||A <tgt> {name} </tgt>." for _, name, _, row in found]
    write("XLBEL/zh.txt", xlbel)
    write("en_zh.txt", [f"{k}||{a}||{b}" for k, (a, b) in enumerate(ENGLISH)])


def write_english_tasks() -> None:
    lines = []
    for k in range(40):
        (first, name, start), (second, *_) = sentence(k), sentence(k + 3)
        span = {"start": start, "end": start + len(name), "text": name}
        span |= {"concepts": [IDS[k % len(IDS)]]}
        lines.append({"id": str(k), "text": f"{first} {second}", "mentions": [span]})
    write("SCISPACY.jsonl", [json.dumps(line) for line in lines])
    tagged = ["She\tO", "has\tO", "asthma\tB", ".\tO", "", "High\tB", "fever\tI", "again\tO", ""]
    for part in ("train", "devel", "test"):
        for name in ("BC5CDR-chem", "BC5CDR-disease", "BC2GM", "JNLPBA", "NCBI-disease"):
            write(f"BLURB/{name}/{part}.tsv", tagged * 2)
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


BERTS = ("BERT", "MC-BERT", "BIOBERT", "PUBMEDBERT", "SCIBERT", "CLINICALBERT", "BLUEBERT")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of models that stand for the published ones, each with other weights."""
    folder = tmp_path_factory.mktemp("models")
    words = [sentence(k)[0] for k in range(16)] + [name for pair in CHINESE for name in pair]
    words += ["患者天前因就诊，医生说可能是。怎么办回答第可引起发热 may cause again common"]
    made = {
        name: tiny_masked_lm_folder(folder / name, words, positions=64, seed=seed)
        for seed, name in enumerate((*BERTS, "BIO-LM"))
    }
    size: dict[str, Any] = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32}
    for seed, name in enumerate(("BART", "GENRE")):
        bart = NewSeq2Seq(n_tokens=400, max_length=96, **size).create(words, seed)
        made[name] = folder / name
        bart.model.save_pretrained(made[name])
        bart.tokenizer.save_pretrained(made[name])
    return made


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: dict[str, Path]) -> Path:
    """The working directory, with a toy file for each that the page names."""
    monkeypatch.chdir(tmp_path)
    write_umls("META")
    write_umls("META2017")
    write_vocabularies()
    write_linking()
    write_english_tasks()
    write_chinese()
    for name, folder in models.items():
        Path(name).symlink_to(folder)
    return tmp_path


class Starts:
    """What each kind of run records of the encoder that its command names."""

    def __init__(self) -> None:
        self.recorded: dict[tuple[str, str, str], str] = {}

    def check(self, words: Sequence[str]) -> None:
        """Check that runs of a kind that start from other encoders record others."""
        given, out = (words[words.index(option) + 1] for option in ("--encoder", "-o"))
        runs = [path for path in Path(out).rglob("run.json") if "runs" not in path.parts]
        recorded = [json.loads(path.read_text())["provenance"] for path in runs]
        found = {each.get("encoder") or each.get("model") for each in recorded}
        for manifest in Path(out).glob("dense/manifest.json"):
            found.add(json.loads(manifest.read_text())["encoder"]["fingerprint"])
        (one,) = found
        kind = (words[0], words[1] if words[0] != "index" else "")
        self.recorded[(*kind, given)] = one
        for (*other, folder), value in self.recorded.items():
            if tuple(other) == kind and value == one:  # else another was read than was named
                equal = torch.equal(*(embeddings_of(Path(each)) for each in (folder, given)))
                assert equal, (words, folder)
        for made in [*Path(out).glob("encoder"), *Path(out).glob("seed-0/model/model")]:
            old, new = (embeddings_of(Path(folder)) for folder in (given, made))
            assert not torch.equal(old, new), words  # it has learned


def embeddings_of(folder: Path) -> torch.Tensor:
    """Return the vectors of tokens of a saved model."""
    tensors = load_file(folder / "model.safetensors")
    (name,) = [n for n in tensors if n.endswith(("word_embeddings.weight", "shared.weight"))]
    return tensors[name]


@pytest.mark.parametrize("title", list(sections()))
def test_every_command_of_a_section_runs(title, toy):
    """Guards: a run from another encoder, a leak, or an empty result went unseen."""
    starts = Starts()
    for whole in commands(title):
        line, _, file = whole.partition(" > ")
        words = shrunk(line)
        words = [
            path for w in words for path in (sorted(map(str, toy.glob(w))) if "?" in w else [w])
        ]
        printed = runner_of(make_app(words[0]))(*words).output
        if file:
            Path(file).write_text(printed[printed.index("{") :], "utf-8")
        if "evaluate link" in line:  # none was left out
            assert ('"n": 10,' if file else "10 queries, ") in printed, line
        if "probe similarity" in line:
            assert "D2 is empty" not in printed
        if "corpus annotate" in line:
            assert "spans       0" not in printed, line
        if "corpus coverage" in line:
            assert "in_table   0" not in printed, line
        if "--test" in words and "--seeds" in words:
            assert '"test.n": {"mean": 10.0' in printed or "test.n.mean" in printed, line
        if words[0] in ("pretrain", "finetune", "index") and {"--encoder", "-o"} <= {*words}:
            starts.check(words)
    check_dictionaries(title)
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


def check_dictionaries(title: str) -> None:
    """Check that no dictionary has a test mention, nor those of training sets a training one."""
    stores = {path.name: KnowledgeBase.open(path) for path in Path().iterdir() if is_store(path)}
    assert stores
    for name, kb in stores.items():
        assert not kb.find(UNSEEN), name
        is_test = title == "SapBERT" and name in ("NCBI-KB", "BC5D-KB", "BC5C-KB")
        assert bool(kb.find(LEARNED)) == is_test, name
    if title != "GenBioEL":
        return
    for name, ids in (("BC5CDR", MESH), ("NCBI", MESH), ("COMETA", SNOMED), ("AAP", SNOMED)):
        kb = stores[f"{name}-KB"]  # has the names of UMLS, and none of its other concepts
        assert len(kb) == len(ENGLISH), name
        assert all(
            kb.ids_of([i]) == {m.concept for m in kb.find(own[1])}
            for i, own in zip(ids, ENGLISH, strict=True)
        ), name


def is_store(path: Path) -> bool:
    return (path / "names.arrow").is_file()


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
