"""Linking experiments: sets, resumed runs, and what is trained for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tiny_models import tiny_encoder_folder
from toy_files import TOY_MENTIONS, TOY_NAMES, write_biosyn

from biograft.errors import ConfigError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft_lab.replication import Experiment, ExperimentJob, run_experiment
from biograft_lab.replication.linking import CachedEncoder
from biograft_lab.replication.linking_dictionaries import (
    chemicals_with_mentions,
    extend,
    join_ids,
    names_by_cui,
    part_of,
    write_train_dictionary,
)
from biograft_lab.replication.linking_sets import SETS
from biograft_lab.replication.protocols import LinkingTask

TEXTS = [name for group in TOY_NAMES.values() for name in group]
TEXTS += [text for mentions in TOY_MENTIONS.values() for text, _ in mentions]


@pytest.fixture
def run(write, tmp_path):
    """Run an experiment on a toy set; return the rows and what was reported."""
    write_biosyn(tmp_path / "data/entity_linking/ncbi_disease/biosyn")
    calls = iter(range(99))

    def measure(text, **changes):
        header = 'about = "A."\n'
        experiment = Experiment.load(write(f"x{next(calls)}.toml", header + text))
        messages, warnings = [], []
        out = tmp_path / "results.json"
        job = ExperimentJob(
            experiment=experiment,
            work=tmp_path / "work",
            data=tmp_path / "data",
            out=out,
            say=messages.append,
            warn=warnings.append,
            **changes,
        )
        run_experiment(job)
        found = json.loads(out.read_text("utf-8"))["rows"] if out.exists() else []
        return found, messages, warnings

    return measure


LEXICAL = """kind = "linking"
sets = ["ncbi-disease", "zh-procedures", "xlbel-en"]
[variants.lexical]
search = ["lexical"]
splits = ["dev"]
"""


def test_a_set_is_measured_once_and_missing_ones_are_skipped(run):
    rows, messages, warnings = run(LEXICAL)
    (row,) = rows
    assert (row["set"], row["split"], row["config"]) == ("ncbi-disease", "dev", "lexical")
    assert (row["n"], row["coverage"]) == (3, 100.0)
    low, high = row["intervals"]["acc@1"]
    assert low <= row["acc@1"] <= high
    assert row["command"].startswith("biograft replicate run ")
    assert messages == rows
    skipped = {line.partition(":")[0]: line for line in warnings}
    assert set(skipped) == {"zh-procedures", "xlbel-en"}
    assert "BIOGRAFT_DATA" in skipped["zh-procedures"]
    assert run(LEXICAL)[:2] == (rows, [])


def test_an_encoder_is_measured_alone_and_with_lexical_search(run, tmp_path):
    folder = tiny_encoder_folder(tmp_path / "tiny", TEXTS)
    text = """kind = "linking"
sets = ["ncbi-disease"]
[inputs]
tiny = "a folder"
[variants.Tiny]
search = ["dense", "lexical+dense"]
encoder = "tiny"
"""
    rows, _, _ = run(text, inputs={"tiny": folder})
    assert [row["config"] for row in rows] == ["dense:Tiny", "lexical+dense:Tiny"]
    assert all(len(row["encoder"]["fingerprint"]) == 64 for row in rows)


TRANSLATIONS = """kind = "linking"
sets = ["hpo-es", "hpo-zh"]
[inputs]
tiny = "a folder"
[settings]
aligned_on = "hpo-zh"
alignment = [
    "stream.cross_language=true", "encoder.max_length=16", "training.steps=2",
    "training.batch_size=2", "training.precision=fp32",
]
[variants.lexical]
search = ["lexical"]
splits = ["dev", "test"]
[variants.aligned]
search = ["dense", "lexical+dense"]
encoder = "tiny"
aligned = true
lexical_weight = 0.25
"""


@pytest.fixture
def translations(tmp_path):
    """HPO in small: an ontology of English names, and translations of more concepts than it has."""
    folder = tmp_path / "data" / "ontologies"
    for path in ("obo", "translations"):
        (folder / path).mkdir(parents=True)
    ids = [f"HP:{n:07}" for n in range(40)]
    terms = [f"[Term]\nid: {c}\nname: disorder {c[-2:]}\n" for c in ids[:30]]
    obo = "format-version: 1.2\n\n" + "\n".join(terms)
    (folder / "obo/hp.obo.gz").write_bytes(gzip.compress(obo.encode()))
    for language, word in (("zh", "病"), ("es", "trastorno ")):
        rows = ["subject_id\tpredicate_id\ttranslation_language\ttranslation_value"]
        rows += [f"{c}\trdfs:label\t{language}\t{word}{c[-2:]}" for c in ids]
        path = folder / f"translations/hp-{language}.babelon.tsv.gz"
        path.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode()))
    return ids


def test_an_encoder_is_aligned_on_translations_of_other_concepts(run, translations, tmp_path):
    texts = [f"{word}{n:02}" for n in range(40) for word in ("disorder ", "trastorno ", "病")]
    inputs = {"tiny": tiny_encoder_folder(tmp_path / "tiny", texts)}
    rows, _, warnings = run(TRANSLATIONS, inputs=inputs)
    assert warnings == []
    configs = ["lexical", "lexical", "dense:aligned", "lexical+dense:aligned"]
    assert [row["config"] for row in rows] == 2 * configs
    splits = {split: {c for c in translations if part_of(c) == split} for split in TOY_MENTIONS}
    known = set(translations[:30])
    for row in rows:
        assert row["n"] == len(splits[row["split"]] & known)
        assert row["left_out"]["with an id that the knowledge base does not have"] > 0
        assert (row["coverage"], row["reachable"]["n"]) == (100.0, row["n"])
        assert row["reachable"]["acc@1"] == row["acc@1"]
    assert rows[3]["lexical_weight"] == 0.25
    trained = KnowledgeBase.open(tmp_path / "work/hpo-published+translations/kb")
    translated = {each.id for each in trained if {"es", "zh"} & {n.language for n in each.names}}
    assert translated == splits["train"] & known
    # both sets search one index
    indexes = [path.name for path in (tmp_path / "work/hpo").glob("dense-*")]
    assert indexes == ["dense-aligned-hpo-zh"]


def test_an_aligned_variant_needs_an_encoder_and_names_to_align_on(run):
    with pytest.raises(ConfigError, match=r"needs settings\.aligned_on"):
        run(TRANSLATIONS.replace('aligned_on = "hpo-zh"', ""))
    with pytest.raises(ConfigError, match="no 'tinny'"):
        run(TRANSLATIONS.replace('encoder = "tiny"', 'encoder = "tinny"'))
    with pytest.raises(ConfigError, match=r"aligned_on: .*'zh-procedure'"):
        run(TRANSLATIONS.replace('aligned_on = "hpo-zh"', 'aligned_on = "zh-procedure"'))


def test_a_text_is_encoded_once_by_a_cached_encoder():
    class Lengths:
        dim, calls = 1, 0

        def encode(self, texts, **options):
            self.calls += len(texts)
            return np.array([[len(text)] for text in texts], np.float32)

    encoder = CachedEncoder(Lengths())
    assert encoder.encode(["a", "bb", "a"]).tolist() == [[1], [2], [1]]
    assert encoder.encode(["bb", "ccc"], normalize=True).tolist() == [[2], [3]]
    assert (encoder.calls, encoder.encode([]).shape) == (3, (0, 1))


PROTOCOLS = """kind = "linking"
sets = ["ncbi-disease"]
[inputs]
tiny = "a folder"
[settings]
protocols = ["ontology", "published", "strict"]
[variants.lexical]
search = ["lexical"]
[variants.Tiny]
search = ["dense"]
encoder = "tiny"
[variants.beside]
search = ["lexical"]
appositions = true
[variants.ids]
search = ["lexical"]
added = "+names+ids"
"""


@pytest.fixture
def texts(tmp_path):
    """The mentions of the toy set in their texts, in PubTator files; one has a homonym."""
    for split, path in SETS["ncbi-disease-text"].gold.items():
        blocks = []
        for n, (mention, concept) in enumerate(TOY_MENTIONS[split]):
            lines = [f"{n}|t|{mention} seen", f"{n}|a|"]
            lines.append(f"{n}\t0\t{len(mention)}\t{mention}\tDisease\t{concept}|D9")
            blocks.append("\n".join(lines))
        content = ("\n\n".join(blocks) + "\n").encode()
        file = tmp_path / "data" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


@pytest.mark.usefixtures("texts")
def test_every_protocol_has_its_dictionary_and_a_test_against_lexical_search(run, tmp_path):
    inputs = {"tiny": tiny_encoder_folder(tmp_path / "tiny", TEXTS)}
    rows, _, warnings = run(PROTOCOLS, inputs=inputs)
    assert warnings == []
    found = {(row["protocol"], row["config"]): row for row in rows}
    # the set has no dictionary with more ids
    assert {config for _, config in found} == {"lexical", "dense:Tiny", "lexical + appositions"}
    assert len(found) == 9
    sizes = {key[0]: row["n_names"] for key, row in found.items()}
    assert sizes["ontology"] == sizes["strict"] < sizes["published"]
    assert {row["scorer"] for row in rows if row["protocol"] == "strict"} == {"strict"}
    # one answer is enough for a mention of two concepts
    assert found["strict", "lexical"]["acc@1"] > 0
    for (_, config), row in found.items():
        assert ("against_lexical" in row) == (config != "lexical")
        assert sum(row["causes"].values()) >= row["n"] * (1 - row["acc@1"] / 100) - 1e-6
    dense = found["published", "dense:Tiny"]
    test = dense["against_lexical"]["acc@1"]
    assert test["difference"] == pytest.approx(
        dense["acc@1"] - found["published", "lexical"]["acc@1"], abs=1e-3
    )
    assert test["interval"][0] <= test["difference"] <= test["interval"][1]
    assert 0 < test["randomisation_p"] <= 1


@pytest.mark.usefixtures("texts")
def test_a_linker_of_another_experiment_gets_a_row_of_the_same_form(run, tmp_path):
    data, work = tmp_path / "data", tmp_path / "work"
    write_biosyn(data / "entity_linking/ncbi_disease/biosyn")
    task = LinkingTask(set="ncbi-disease", protocol="text")
    row = task.measure(task.open_lexical(data, work), data, work)
    assert row["n"] == row["levels"]["spans"]["right"] + row["levels"]["spans"]["missed"]
    assert row["against_lexical"]["f1"]["difference"] == 0
    low, high = row["intervals"]["f1"]
    assert low <= row["f1"] <= high
    with pytest.raises(ConfigError, match="zh-procedures"):
        LinkingTask(set="zh-procedures", protocol="text")
    with pytest.raises(ConfigError, match="dictionary"):
        LinkingTask(set="zh-procedures", dictionary="ontology+names")


def test_names_of_other_ontologies_are_added_to_one_concept_each():
    lines = [("D1", "fever"), ("D2|7", "cold"), ("D3|7", "chill"), ("D2", "common cold")]
    more = [
        (("D1",), "Pyrexia"),
        (("D1",), "FEVER"),  # is there
        (("D9",), "unknown"),
        (("D1", "D3"), "both"),
        (("7",), "shared id"),  # of two concepts
        (("D2",), "Colds, Common"),
        (("D1",), "of two"),
        (("D3",), "of two"),
        (("D3",), "Chills"),
    ]
    assert extend(lines, more) == [("D1", "pyrexia"), ("D2", "colds common"), ("D3|7", "chills")]


def test_ids_that_only_mentions_have_are_joined_to_the_concept_they_name():
    lines = [("D1", "Sorafenib"), ("D1", "nexavar"), ("D2", "LPO"), ("D3", "aspirin")]
    mentions = [("C1", "sorafenib"), ("C1", "SFB"), ("C2", "LPO"), ("C2", "aspirin")]
    mentions += [("C3", "new drug"), ("D3", "LPO")]
    assert join_ids(lines, mentions) == [
        ("D1|C1", "Sorafenib"),
        ("D1|C1", "nexavar"),
        ("D2", "LPO"),
        ("D3", "aspirin"),
        ("D1|C1", "sorafenib"),
        ("D1|C1", "SFB"),
        ("C2", "LPO"),  # its mentions name two concepts
        ("C2", "aspirin"),
        ("C3", "new drug"),  # its mentions name none
        ("D3", "LPO"),  # known already
    ]


def test_chemicals_have_the_mentions_of_earlier_splits(write, tmp_path):
    folder = tmp_path / "entity_linking/mesh"
    folder.mkdir(parents=True)
    table = b"mesh_id\tname\tsource\nD1\taspirin\tx\n"
    (folder / "mesh_chemical_names_derived.tsv.gz").write_bytes(gzip.compress(table))
    for split, mention, concept in (
        ("train", "ASA", "D1"),
        ("dev", "aspirins", "D1"),
        ("test", "salts", "D2|D3"),
    ):
        text = f"1|t|{mention}\n1|a|\n1\t0\t{len(mention)}\t{mention}\tChemical\t{concept}\n"
        (tmp_path / f"{split}.txt").write_text(text, encoding="utf-8")
    source = chemicals_with_mentions(lambda split: f"{split}.txt")
    names = {}
    for split in TOY_MENTIONS:
        work = tmp_path / split
        work.mkdir()
        path = source(tmp_path, split, work).path
        names[split] = path.read_text(encoding="utf-8").split()
    assert names == {
        "train": ["D1||aspirin"],
        "dev": ["D1||aspirin", "D1||ASA"],
        "test": ["D1||aspirin", "D1||ASA", "D1||aspirins"],
    }


@pytest.mark.long
def test_every_base_is_aligned_on_the_ontology_alone(smoke_rows, smoke_work):
    """What an encoder is aligned on has no mention of a split: neither of train nor of dev."""
    rows, work = smoke_rows("alignment-losses"), smoke_work / "smoke" / "alignment-losses"
    seeds = {}
    for row in rows:
        if row["set"] != "ncbi-disease":
            continue
        seeds.setdefault(row["config"], []).append(row.get("seed"))
    aligned = [name for name, of in seeds.items() if of == [1, 2]]
    assert len(aligned) == 7  # three bases, three other losses, and one without mining
    assert {name for name in seeds if name not in aligned} == {
        *("lexical", "dense:MiniLM", "dense:e5", "dense:char-encoder")
    }
    assert {row["dictionary"] for row in rows} == {"ontology"}
    trained = KnowledgeBase.open(work / "bc5cdr-disease-ontology/kb")
    names = {name.text for concept in trained for name in concept.names}
    assert names == {name for group in TOY_NAMES.values() for name in group}
    losses = {
        path.parent.parent.name: json.loads(path.read_text("utf-8"))["config"]["objective"]
        for path in (work / "aligned").glob("*/run/run.json")
    }
    circle = losses["MiniLM-circle-bc5cdr-disease-1"]["synonym_alignment"]
    assert (circle["loss"], circle["parameters"]) == ("circle", {})
    assert losses["MiniLM-unmined-bc5cdr-disease-2"]["synonym_alignment"]["miner"] == "none"
    assert len(losses) == 20  # and three bases on chemicals


def test_mentions_that_are_no_names_are_a_part_of_their_own(tmp_path):
    write_biosyn(tmp_path / "data/entity_linking/ncbi_disease/biosyn")
    task = LinkingTask(set="ncbi-disease", protocol="ontology", split="dev")
    data, work = tmp_path / "data", tmp_path / "work"
    row = task.measure(task.open_lexical(data, work), data, work)
    assert row["parts"] == {"not a name": "111"}  # "breast cancers", "colds", "stomach pain"
    task = LinkingTask(set="ncbi-disease", protocol="published", split="test")
    row = task.measure(task.open_lexical(data, work), data, work)
    assert row["parts"] == {"not a name": "111"}


def test_the_dictionary_of_a_fold_holds_its_train_split(write, tmp_path):
    lines = "7\tFever\thot\n8\tMénière's disease\tspinning\n7\tFever\thot\n"
    lines += "7\tFever\tburning up\n\nbad\n"
    train = write("train.txt", lines.encode("cp1252"))
    write_train_dictionary(train, tmp_path / "dictionary.txt")
    written = (tmp_path / "dictionary.txt").read_text(encoding="utf-8").splitlines()
    assert written == [
        *("7||Fever", "8||Ménière's disease"),
        *("7||hot", "8||spinning", "7||burning up"),
    ]
    write_train_dictionary(train, tmp_path / "names.txt", phrases=False)
    assert (tmp_path / "names.txt").read_text(encoding="utf-8").splitlines() == written[:2]


def test_names_get_the_umls_ids_that_concepts_refer_to(write, tmp_path):
    terms = (
        "format-version: 1.2\n\n[Term]\nid: HP:1\nname: Fever\nxref: UMLS:C0015967\n"
        'synonym: "Pyrexia" EXACT []\n\n[Term]\nid: HP:2\nname: Cough\nxref: SNOMEDCT_US:49727002\n'
    )
    translated = write("zh.tsv", "subject\tname\nHP:1\t发热\n")
    sources = (
        SourceConfig(path=write("a.obo", terms), format="obo"),
        SourceConfig(
            path=translated,
            format="table",
            language="zh",
            columns={"id": "subject", "name": "name"},
        ),
    )
    build_store(BuildConfig(sources=sources), tmp_path / "kb")
    names = {("Fever", "en"), ("Pyrexia", "en"), ("发热", "zh")}
    found = set(names_by_cui(KnowledgeBase.open(tmp_path / "kb")))
    assert found == {("C0015967", *name) for name in names}


def test_every_set_reads_its_real_files(shared_data):
    data = shared_data("entity_linking").parent
    assert {name for name, each in SETS.items() if "dev" not in each.gold} == {
        *("xlbel-en", "xlbel-es", "xlbel-zh")
    }
    sizes = {
        name: len(SETS[name].read_gold(data, split).queries)
        for name, split in (("bc5cdr-chemical", "dev"), ("askapatient-3", "dev"))
    }
    phrases = (data / SETS["askapatient-3"].gold["dev"]).read_bytes().splitlines()
    assert sizes["askapatient-3"] == len([line for line in phrases if line.strip()])
    assert 5000 < sizes["bc5cdr-chemical"] <= 5347


GENERATIVE = """kind = "generative_linking"
sets = ["ncbi-disease"]
seeds = [0]
[settings]
changes = [
    "config.training.steps=2", "config.training.batch_size=2", "config.training.precision=fp32",
    "config.new.width=16", "config.new.layers=1", "config.new.heads=2",
    "config.new.feed_forward=32", "config.new.n_tokens=400",
]
[variants.alone]
start = "new"
[variants."in their texts"]
start = "new"
text = true
"""


def test_generation_is_measured_alone_and_in_texts(run, tmp_path):
    for split, path in SETS["ncbi-disease"].texts.items():
        file = tmp_path / "data" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        mentions = enumerate(TOY_MENTIONS[split])
        text = "".join(f"{n}|t|Seen: {mention}.\n\n" for n, (mention, _) in mentions).encode()
        file.write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)
    rows, _, warnings = run(GENERATIVE)
    assert warnings == []
    alone, read = rows
    assert [row["n"] for row in rows] == [3, 3]
    assert "n_without_text" not in alone
    assert read["n_without_text"] == 0
    for folder, words in (("", 0), ("-text", 24)):
        model = tmp_path / f"work/ncbi-disease/new-similar-all-prompt{folder}/seed-0/model"
        config = json.loads((model / "manifest.json").read_text("utf-8"))["config"]
        assert config["context_words"] == words


@pytest.mark.parametrize("name", ["ncbi-disease", "bc5cdr-disease"])
def test_every_mention_of_biosyn_is_found_in_its_text(name, shared_data):
    chosen = SETS[name]
    for split, path in chosen.texts.items():
        root = str(shared_data(path)).removesuffix(path)
        shared_data(chosen.gold[split].partition("::")[0])
        gold = chosen.read_gold(Path(root), split, with_texts=True)
        assert gold.n_without_text == 0
