"""Toy data: a few concepts, and a small file in place of each file of the real data.

Smoke runs read them instead of real data, by the same paths and in the same formats. Everything is
the same each time.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SPLITS = ("train", "dev", "test")
TOY_NAMES = {
    "D1": ("breast cancer", "breast neoplasm", "mammary carcinoma"),
    "D2": ("ovarian cancer", "cancer of the ovary"),
    "D3": ("common cold", "acute coryza", "acute nasopharyngitis"),
    "D4": ("stomach ache", "gastric pain", "gastralgia"),
}
"""The dictionary of the linking sets."""
TOY_MENTIONS = {
    "train": (("breast tumour", "D1"), ("a cold", "D3"), ("ovary cancer", "D2")),
    "dev": (("breast cancers", "D1"), ("colds", "D3"), ("stomach pain", "D4")),
    "test": (("breast tumours", "D1"), ("cold", "D3"), ("aching stomach", "D4")),
}
_CHEMICAL = ("aspirin", "C1")
"""Stands beside each mention in its text."""
IDS_IN_SETS = {
    "T-breast-cancer": "D1",
    "T-ovary-cancer": "D2",
    "T-stomach-pain": "D4",
    "T-aspirin": "C1",
}
"""The ids of toy concepts in the linking sets."""

_ORGANS = {
    "breast": "乳腺",
    "ovary": "卵巢",
    "stomach": "胃部",
    "liver": "肝脏",
    "lung": "肺部",
    "skin": "皮肤",
}
_CONDITIONS = {"cancer": "癌", "pain": "疼痛", "ulcer": "溃疡", "swelling": "肿胀"}
_DRUGS = (
    ("aspirin", "acetylsalicylic acid", "阿司匹林", "乙酰水杨酸"),
    ("paracetamol", "acetaminophen", "扑热息痛", "对乙酰氨基酚"),
    ("salbutamol", "albuterol", "沙丁胺醇", "舒喘灵"),
    ("adrenaline", "epinephrine", "肾上腺素", "副肾素"),
)
RELATIONS = ("treats", "causes", "T", "Pr", "Sa", "E", "U", "Rg", "B")
"""Relations of the toy graph: two words, and codes of PharmKG."""
ALIAS = "T-breast-cancer\talias\tT-liver-cancer"
"""A triple of the toy graph that joins two names of one entity."""


@dataclass(frozen=True, slots=True)
class ToyConcept:
    """A concept with two names in either language."""

    id: str
    type: str
    english: tuple[str, str]
    chinese: tuple[str, str]

    def names(self, language: str) -> tuple[str, str]:
        """Return the names in a language."""
        return self.chinese if language == "zh" else self.english


def _concepts() -> Iterator[ToyConcept]:
    for organ, organ_zh in _ORGANS.items():
        for condition, condition_zh in _CONDITIONS.items():
            english = (f"{organ} {condition}", f"{condition} of the {organ}")
            chinese = (f"{organ_zh}{condition_zh}", f"{organ_zh}急性{condition_zh}")
            yield ToyConcept(f"T-{organ}-{condition}", "disease", english, chinese)
    for first, second, first_zh, second_zh in _DRUGS:
        yield ToyConcept(f"T-{first}", "drug", (first, second), (first_zh, second_zh))


TOY_CONCEPTS = tuple(_concepts())
_FILLERS = {
    "en": ("patients with", "we saw", "a high dose for", "the history of", "no"),
    "zh": ("患者有", "检查发现", "长期服用", "既往有", "否认"),
}


@dataclass(frozen=True, slots=True)
class ToySentence:
    """A sentence with two mentions: start, end and concept of each."""

    text: str
    mentions: tuple[tuple[int, int, ToyConcept], ...]

    def mentioned(self, number: int) -> str:
        """Return the text of a mention."""
        start, end, _ = self.mentions[number]
        return self.text[start:end]


class ToyWriter:
    """Samples sentences, and writes files under a folder, compressed if their name says so."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._rng = folder, np.random.default_rng(0)

    def sentence(self, language: str = "en") -> ToySentence:
        """Sample a sentence; its words stand apart in English."""
        space = " " if language == "en" else ""
        text, mentions = "", []
        for number in self._rng.choice(len(TOY_CONCEPTS), 2, replace=False).tolist():
            filler = _FILLERS[language][int(self._rng.integers(len(_FILLERS[language])))]
            name = TOY_CONCEPTS[number].names(language)[int(self._rng.integers(2))]
            text += f"{filler}{space}"
            mentions.append((len(text), len(text) + len(name), TOY_CONCEPTS[number]))
            text += f"{name}{space}" if space else f"{name}，"
        text = f"{text}." if space else f"{text[:-1]}。"
        return ToySentence(text, tuple(mentions))

    def documents(self, n: int, n_sentences: int) -> list[str]:
        """Sample documents, by turns English and Chinese."""
        languages = [("en", "zh")[number % 2] for number in range(n)]
        return [" ".join(self.sentence(of).text for _ in range(n_sentences)) for of in languages]

    def triples(self, n: int) -> list[str]:
        """Sample triples of the toy graph, each once."""
        ends = self._rng.integers(0, len(TOY_CONCEPTS), (n, 2)).tolist()
        rows = [(TOY_CONCEPTS[a].id, TOY_CONCEPTS[b].id) for a, b in ends if a != b]
        lines = [f"{a}\t{RELATIONS[k % len(RELATIONS)]}\t{b}" for k, (a, b) in enumerate(rows)]
        return list(dict.fromkeys(lines))

    def write(self, path: str, lines: Iterable[str], encoding: str = "utf-8") -> None:
        """Write a file of lines."""
        content = "".join(f"{line}\n" for line in lines).encode(encoding)
        self.write_bytes(path, gzip.compress(content) if path.endswith(".gz") else content)

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a file."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def write_toy_files(folder: Path) -> None:
    """Write all files, unless that is done."""
    done = folder / "done"
    if done.exists():
        return
    writer = ToyWriter(folder)
    _write_linking(writer)
    _write_ontologies(writer)
    done.touch()


# ---- sets of entity linking


def write_biosyn(folder: Path) -> None:
    """Write a set in the layout of BioSyn: a dictionary for each split, mentions in an archive."""
    writer = ToyWriter(folder)
    names = [f"{concept}||{name}" for concept, group in TOY_NAMES.items() for name in group]
    known = [f"{concept}||{text}" for s in ("train", "dev") for text, concept in TOY_MENTIONS[s]]
    for split in TOY_MENTIONS:
        lines = [*names, *(known if split == "test" else ())]
        writer.write(f"{split}_dictionary.txt.gz", lines)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for split, mentions in TOY_MENTIONS.items():
            for row, (text, concept) in enumerate(mentions):
                span = f"{len(_BEFORE)}|{len(_BEFORE) + len(text)}"
                line = f"{row}||{span}||Disease||{text}||{concept}\n".encode()
                member = tarfile.TarInfo(f"processed_{split}/{row}.concept")
                member.size = len(line)
                archive.addfile(member, io.BytesIO(line))
    writer.write_bytes("concept_files.tar.gz", packed.getvalue())


_BEFORE = "Seen: "


def pubtator_lines(split: str) -> Iterator[str]:
    """Return the mentions of a split in their texts, each with a chemical beside it."""
    for row, (mention, concept) in enumerate(TOY_MENTIONS[split]):
        text = f"{_BEFORE}{mention} after {_CHEMICAL[0]}."
        yield from (f"{row}|t|{text}", f"{row}|a|")
        for name, kind, identifier in (
            (mention, "Disease", concept),
            (_CHEMICAL[0], "Chemical", _CHEMICAL[1]),
        ):
            start = text.index(name)
            yield f"{row}\t{start}\t{start + len(name)}\t{name}\t{kind}\t{identifier}"
        yield ""


def _write_linking(writer: ToyWriter) -> None:
    linking = "entity_linking"
    for folder in ("ncbi_disease/biosyn", "bc5cdr/biosyn_disease"):
        write_biosyn(writer.folder / linking / folder)
    ncbi, cdr = f"{linking}/ncbi_disease/original", f"{linking}/bc5cdr/pubtator"
    for split, path, name in zip(
        SPLITS, ("train", "develop", "test"), ("Training", "Development", "Test"), strict=True
    ):
        packed = ".gz" if split == "train" else ""
        writer.write(f"{ncbi}/NCBI{path}set_corpus.txt{packed}", pubtator_lines(split))
        writer.write(f"{cdr}/CDR_{name}Set.PubTator.txt.gz", pubtator_lines(split))
    chemicals = [f"C{n}\t{name}\ttoy" for n, group in enumerate(_DRUGS, 1) for name in group[:2]]
    writer.write(
        f"{linking}/mesh/mesh_chemical_names_derived.tsv.gz", ["mesh_id\tname\tsource", *chemicals]
    )
    terms = ["C1\taspirin\tASA|asper", "D1\tbreast cancer\tmalignant tumour of the breast"]
    writer.write(f"{linking}/mesh/mesh_descriptors_2019_entry_terms.tsv.gz", terms)
    for split, name in zip(SPLITS, ("train", "validation", "test"), strict=True):
        rows = [(concept, TOY_NAMES[concept][0], text) for text, concept in TOY_MENTIONS[split]]
        if split == "train":  # all concepts are in it
            rows += [("D4", "stomach ache", "tummy ache")]
        lines = ["\t".join(row) for row in rows]
        writer.write(f"{linking}/askapatient/AskAPatient.fold-0.{name}.txt", lines)
    procedures = [concept.chinese for concept in TOY_CONCEPTS]
    codes = [f"{n:02}.0\t{first}术" for n, (first, _) in enumerate(procedures)]
    writer.write("zh/term_normalisation/procedure_codes.tsv", codes)
    for n, split in enumerate(SPLITS):
        terms = [f"{second}术\t{first}术" for first, second in procedures[n::3]]
        path = f"zh/term_normalisation/procedures_{split}.tsv"
        writer.write(path, ["原始词\t标准词", *terms])


def _write_ontologies(writer: ToyWriter) -> None:
    terms = ["format-version: 1.2", ""]
    translated: dict[str, list[str]] = {"zh": [], "es": []}
    for number, concept in enumerate(TOY_CONCEPTS, 1):
        name, synonym = concept.english
        terms += [
            "[Term]",
            f"id: HP:{number:07}",
            f"name: {name}",
            f'synonym: "{synonym}" EXACT []',
            f"xref: UMLS:C{number:07}",
            f"xref: MSH:D{number:06}",
            "",
        ]
        for language, label in (("zh", concept.chinese[0]), ("es", f"trastorno {name}")):
            row = f"HP:{number:07}\trdfs:label\t{language}\t{label}"
            translated[language].append(row)
    for ontology in ("hp", "HumanDO_2015", "DO_rare_slim", "NCIthesaurus_DO_subset"):
        writer.write(f"ontologies/obo/{ontology}.obo.gz", terms)
    header = "subject_id\tpredicate_id\ttranslation_language\ttranslation_value"
    for language, rows in translated.items():
        path = f"ontologies/translations/hp-{language}.babelon.tsv.gz"
        writer.write(path, [header, *rows])
    writer.write(
        "ontologies/translations/doid-es-translated.tsv.gz",
        [
            "source_id\tpredicate\tsource_text\ttranslation_text\tsource_lang\ttranslation_lang",
            "HP:0000001\toboInOwl:hasExactSynonym\tbreast cancer\ttrastorno del pecho\ten\tes",
        ],
    )
    header = "subject_id\tsubject_label\tpredicate_id\tobject_id"
    for path, target in (
        ("mesh.sssom.tsv", "mesh:D000001"),
        ("umls.sssom.tsv.gz", "UMLS:C0000001"),
    ):
        row = f"MONDO:1\tbreast carcinoma\tskos:exactMatch\t{target}"
        writer.write(f"ontologies/sssom/mondo_exactmatch_{path}", [header, row])
    for language in ("en", "es", "zh"):
        queries = [
            f"C{n:07}||{label}||One: <tgt>{label}</tgt>."
            for n, concept in enumerate(TOY_CONCEPTS[:4], 1)
            for label in (concept.names(language)[1],)
        ]
        writer.write(f"entity_linking/xl_bel/{language}_1k_test_query_with_context.txt", queries)
    writer.write("zh/medical_kg/triples_derived.tsv.gz", _graph())


def _graph() -> Iterator[str]:
    """Return a graph of Chinese names: aliases, and one symptom of each disease."""
    yield "head\trelation\ttail\thead_type\ttail_type\tsource"
    for concept in TOY_CONCEPTS:
        first, second = concept.chinese
        for alias in (second, f"{first}病"):
            yield f"{first}\talias\t{alias}\tdisease\tdisease\ttoy"
        yield f"{first}\thas_symptom\t多饮\tdisease\tsymptom\ttoy"
