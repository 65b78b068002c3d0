"""How messy local terms are mapped: answers, terms left alone, several targets, contrasts.

top1, top5     terms with a concept whose first target, or one of the first five, is right
left           terms without a concept that get no answer
combined       terms that list several concepts, all of whose targets are right, no other
decorated      terms with a code, value, side, stage or bracket added that get the same answer
accepted       terms with one answer, `exact`, `part` or `wording`; `right`: fraction that is right
contrasts      names of the store with a word changed to its opposite, 1,000 by chance; `over`:
               those that get the concept of the name with a score above 0.5

English terms with MEDIC, the diseases of MeSH and all of MeSH; Chinese terms with the built-in
knowledge base, and `full`: that, HPO in Chinese and the diseases of a Chinese knowledge graph; the
procedures (dev) with `##`: several targets, with the codes of procedures. `learned`: after `learn`
with the terms of train; `folds`: the terms of train, each after `learn` with three fourths of them,
from which the constants were chosen.

one            terms with one target that have one answer, and those of them that have a mark

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.map_terms --json
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from script_options import some_of

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import HAN_CHARACTER
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.linking.dense.encoders import default_encoder
from biograft.linking.index import build_index
from biograft.linking.normalisation import DEFAULT_STEPS
from biograft.mapping import SourceTerm, TermMapping, map_terms
from biograft.mapping.decisions import APPROVED, Decision
from biograft.mapping.learning import learn
from biograft.metrics import bootstrap_interval
from biograft_lab.scripts import new_parser, run
from biograft_lab.scripts.learn_terms import open_set, term_lines
from biograft_lab.scripts.unseen_notes import open_store

SETS = ("medic", "mesh-diseases", "mesh", "chinese", "full", "procedures", "learned", "folds")
_PROCEDURES = ("procedures", "learned", "folds")
_FOLDS = 4
_MARK = re.compile(r"[+＋、，,;；]|伴|及|并|加|联合")
"""What may stand between parts of a term."""
_K = 5
_ACCEPTED = {"exact", "part", "wording"}
_N_CONTRASTS = 1000
_OVER = 0.5
_DECORATIONS = {
    "en": {
        "code": (
            "J45.909 {}",
            "I10 - {}",
            "{} (E11.9)",
            "SNOMED 73211009 {}",
            "ICD-10: K21.9 {}",
            "[N39.0] {}",
            "{} - M54.5",
        ),
        "value": (
            "{} 5 mm",
            "BMI 36 kg/m2 {}",
            "{} 39.5 C",
            "Hb 8 g/dl {}",
            "{} BP 180/110 mmHg",
            "{}, HbA1c 9.1 %",
            "{} x 3 days",
        ),
        "side": (
            "left {}",
            "{}, right",
            "{} (L)",
            "bilateral {}",
            "right-sided {}",
            "{} (bilateral)",
        ),
        "stage": (
            "{} stage III",
            "{}, grade 2",
            "severe {}",
            "mild {}",
            "{} NOS",
            "{}, unspecified",
            "recurrent {}",
        ),
        "bracket": (
            "{} (see letter)",
            "{} [confirmed]",
            "{} (2019)",
            "{} (on treatment)",
            "{} (history of)",
        ),
    },
    "zh": {
        "code": ("J45.909 {}", "{}(E11.9)", "I10 {}"),
        "value": ("{}5mm", "{} 39.5℃", "{}3天"),
        "side": ("左侧{}", "{}（右）", "双侧{}"),
        "stage": ("{}3级", "{}（重度）", "{}III期", "{}术后", "{}待查"),
        "bracket": ("{}（复诊）", "{}（2019年）", "{}（治疗后）"),
    },
}
_CONTRASTS = {
    "en": "acute/chronic;benign/malignant;upper/lower;left/right;primary/secondary"
    ";congenital/acquired;internal/external;anterior/posterior;complete/incomplete;male/female"
    ";hyper-/hypo-;type 1/type 2"
    ";hepatitis b/hepatitis c;breast/prostate;kidney/liver;lung/stomach;renal/hepatic;with/without"
    ";pulmonary/gastric;knee/hip;ovarian/thyroid;bacterial/viral;dominant/recessive"
    ";normal/abnormal;proximal/distal;brady-/tachy-;macro-/micro-;cardiac/cerebral",
    "zh": "急性/慢性;良性/恶性;上肢/下肢;上消化道/下消化道;上呼吸道/下呼吸道;左/右;原发性/继发性"
    ";先天性/后天性;完全性/不完全性;乳腺/腮腺;肝/肾;肺/胃;病毒性/细菌性;高血/低血;亢进/减退;1型/2型;颈椎/腰椎;胆囊/膀胱"
    ";甲状腺/前列腺",
}


class Term(NamedTuple):
    """A term with what is meant: alternatives for each of its concepts; none: no concept."""

    text: str
    targets: tuple[frozenset[str], ...]
    n_named: int
    """Concepts that the term names, also those that the store lacks."""


def read_terms(path: Path, kb: KnowledgeBase) -> Iterator[Term]:
    """Yield all terms of a file, with the ids that the store has for their names.

    Args:
        path: Tab-separated, or Chinese with ``term=names``.
        kb: The knowledge base.
    """
    for text, names in term_lines(path):
        groups = [] if names == "NIL" else re.split(r" \+ |##", names)
        ids = [_ids(kb, group.split("|")) for group in groups]
        yield Term(" ".join(text.split()), tuple(ids), len(groups))


def _ids(kb: KnowledgeBase, names: Sequence[str]) -> frozenset[str]:
    return frozenset(kb.id_at(row) for name in names for row in kb.rows_by_name(name))


def map_all(linker: Linker, texts: Sequence[str]) -> list[list[TermMapping]]:
    """Return the mappings of each text.

    Args:
        linker: The linker.
        texts: Texts of terms.
    """
    found: list[list[TermMapping]] = [[] for _ in texts]
    for each in map_terms(linker, [SourceTerm(text, str(n)) for n, text in enumerate(texts)]):
        found[int(each.term.code)].append(each)
    return found


def _concepts(mapped: Sequence[TermMapping]) -> frozenset[str]:
    return frozenset(each.concept for each in mapped if each.concept)


def _is_exactly(term: Term, mapped: Sequence[TermMapping]) -> bool:
    """Return whether the answers are the targets of a term, and nothing else."""
    found = _concepts(mapped)
    used = [ids for ids in term.targets if ids & found]
    return len(used) == len(term.targets) == len(found) and all(
        any(concept in ids for ids in term.targets) for concept in found
    )


def measure_set(linker: Linker, terms: Sequence[Term]) -> dict[str, Any]:
    """Measure the answers to a set of terms.

    Args:
        linker: The linker.
        terms: The terms.
    """
    return measure_answers(terms, map_all(linker, [term.text for term in terms]))


def measure_answers(terms: Sequence[Term], mapped: Sequence[list[TermMapping]]) -> dict[str, Any]:
    """Measure the answers to a set of terms.

    Args:
        terms: The terms.
        mapped: The mappings of each.
    """
    first, five, left, combined, accepted = [], [], [], [], []
    doubtful: list[Any] = []
    for term, each in zip(terms, mapped, strict=True):
        wanted = frozenset().union(*term.targets)
        is_accepted = len(each) == 1 and each[0].flag in _ACCEPTED
        if not term.n_named:
            left.append(not _concepts(each))
            if is_accepted:
                accepted.append(False)
            continue
        top = [m.concept for m in each if m.concept]
        top += [c.concept for m in each for c in m.others]
        first.append(each[0].concept in wanted)
        five.append(bool(wanted & set(top[:_K])))
        if term.n_named > 1:
            combined.append(_is_exactly(term, each))
        if is_accepted:
            accepted.append(_concepts(each) <= wanted)
            if not accepted[-1]:
                doubtful.append((term.text, [m.name for m in each]))
    return {
        "terms": len(first),
        "top1": _percent(first),
        "interval": bootstrap_interval(np.array(first, float)).to_json(),
        "top5": _percent(five),
        "left": [sum(left), len(left)],
        "combined": [sum(combined), len(combined)],
        "accepted": [len(accepted), len(terms)],
        "right": _percent(accepted),
        "accepted_wrong": doubtful,
        "wrong": [
            t.text for t, ok in zip([t for t in terms if t.n_named], first, strict=True) if not ok
        ],
    }


def measure_decorated(linker: Linker, terms: Sequence[Term], language: str) -> dict[str, Any]:
    """Measure how often a term with something added gets the same answer.

    Args:
        linker: The linker.
        terms: The terms.
        language: ``en`` or ``zh``.
    """
    plain = dict(zip(terms, map_all(linker, [term.text for term in terms]), strict=True))
    bases = [t for t in terms if len(t.targets) == 1 and plain[t][0].concept]
    result: dict[str, Any] = {}
    total = 0
    for kind, patterns in _DECORATIONS[language].items():
        rng = np.random.default_rng(7)
        chosen = rng.integers(0, len(patterns), len(bases))
        texts = [patterns[n].format(t.text) for n, t in zip(chosen, bases, strict=True)]
        same = [
            _concepts(found) == _concepts(plain[t])
            for found, t in zip(map_all(linker, texts), bases, strict=True)
        ]
        result[kind] = _percent(same)
        total += sum(same)
    n = len(bases) * len(result)
    return {"n": n, "same": round(100 * total / n, 1), **result}


def contrasts(kb: KnowledgeBase, language: str) -> list[tuple[str, str]]:
    """Return names with a word changed to its opposite, and the ids of the concepts.

    Args:
        kb: The knowledge base.
        language: ``en`` or ``zh``.
    """
    pairs = [tuple(phrase.split("/")) for phrase in _CONTRASTS[language].split(";")]
    found: dict[str, str] = {}
    is_han = language == "zh"
    for concept in kb:
        names = [n.text for n in concept.names if bool(HAN_CHARACTER.search(n.text)) == is_han]
        together = " ".join(names).lower()
        for a, b in (*pairs, *((b, a) for a, b in pairs)):
            if b.rstrip("-") in together:
                continue  # the concept is of both
            end = "" if a.endswith("-") or is_han else r"\b"
            begin = "(?<![亚不非])" if is_han else r"\b"
            pattern = re.compile(begin + re.escape(a.rstrip("-")) + end, re.IGNORECASE)
            for name in names:
                text = pattern.sub(b.rstrip("-"), name)
                if text != name and not set(name) & set(";&"):
                    found.setdefault(text, concept.id)
    left = [(t, c) for t, c in found.items() if not _is_name(kb, t, c)]
    order = np.random.default_rng(3).permutation(len(left))[:_N_CONTRASTS]
    return [left[n] for n in order]


def _is_name(kb: KnowledgeBase, text: str, concept: str) -> bool:
    """Return whether a concept has a name, also with another spelling of its number: Type II."""
    form = DEFAULT_STEPS(text)
    return concept in _ids(kb, [text]) or form in map(
        DEFAULT_STEPS, kb.name_texts_at(kb.row(concept))
    )


def measure_contrasts(linker: Linker, language: str) -> dict[str, Any]:
    """Measure how often a name with an opposite word gets the concept of the name.

    Args:
        linker: The linker.
        language: ``en`` or ``zh``.
    """
    pairs = {" ".join(text.split()): concept for text, concept in contrasts(linker.kb, language)}
    found = map_all(linker, list(pairs))
    over = [
        (text, linker.kb[concept].name)
        for (text, concept), each in zip(pairs.items(), found, strict=True)
        if any(m.concept == concept and (m.score or 0) > _OVER for m in each)
    ]
    return {"n": len(pairs), "over": len(over), "texts": over}


def _percent(values: Sequence[bool]) -> float:
    return round(100 * sum(values) / len(values), 1) if values else 0.0


def _procedures(data: Path, kb: KnowledgeBase, split: str) -> list[Term]:
    path = data / "zh" / "term_normalisation" / f"procedures_{split}.tsv"
    rows = (line.split("\t")[:2] for line in path.read_text("utf-8").splitlines()[1:])
    terms = []
    for text, names in rows:
        groups = names.split("##")
        ids = (_ids(kb, [name]) for name in groups)
        terms.append(Term(" ".join(text.split()), tuple(filter(None, ids)), len(groups)))
    return terms


def _decisions(terms: Sequence[Term], kb: KnowledgeBase) -> list[Decision]:
    return [
        Decision(term=term.text, verdict=APPROVED, concept=min(ids), name=kb[min(ids)].name)
        for term in terms
        for ids in term.targets
    ]


def measure_procedures(name: str, data: Path, folder: Path) -> dict[str, Any]:
    """Measure terms of several codes, and whether terms of one stay one.

    Args:
        name: One of the sets of procedures.
        data: Folder of the real data.
        folder: Folder of the stores.
    """
    linker, _ = _opened("procedures", data, folder)
    kb, train = linker.kb, _procedures(data, linker.kb, "train")
    if name == "procedures":
        return _one_or_several([(linker, _procedures(data, kb, "dev"))])
    folds = np.random.default_rng(0).integers(0, _FOLDS, len(train)).tolist()
    runs = []
    for fold in range(_FOLDS) if name == "folds" else (-1,):
        index = folder / f"procedures-{fold}-index"
        shutil.copytree(folder / "procedures-index", index, dirs_exist_ok=True)
        taught = [term for term, own in zip(train, folds, strict=True) if own != fold]
        learn(kb, index, _decisions(taught, kb))
        left = [term for term, own in zip(train, folds, strict=True) if own == fold]
        asked = left if name == "folds" else _procedures(data, kb, "dev")
        runs.append((Linker.open(kb, index, k=_K), asked))
    return _one_or_several(runs)


def _one_or_several(runs: Sequence[tuple[Linker, list[Term]]]) -> dict[str, Any]:
    found = [
        pair
        for linker, terms in runs
        for pair in zip(terms, map_all(linker, [term.text for term in terms]), strict=True)
    ]
    several = [pair for pair in found if len(pair[0].targets) > 1]
    single = [pair for pair in found if len(pair[0].targets) == 1]
    marked = [pair for pair in single if _MARK.search(pair[0].text)]
    figures = measure_answers([t for t, _ in several], [m for _, m in several])
    for name, own in (("one", single), ("marked", marked)):
        figures[name] = [sum(len(mapped) == 1 for _, mapped in own), len(own)]
        figures[f"{name}_right"] = _percent([_is_exactly(*pair) for pair in own])
    return figures


def _full_store(data: Path, folder: Path) -> KnowledgeBase:
    """Build the fullest Chinese store, unless the folder has it."""
    if not (folder / "full").exists():
        graph = data / "zh" / "medical_kg"
        path = folder / "graph.jsonl"
        with (
            gzip.open(graph / "disease_gb18030.csv.gz", "rt", encoding="gb18030") as file,
            path.open("w", encoding="utf-8") as out,
        ):
            for number, row in enumerate(csv.DictReader(file)):
                names = [row["name"], *re.split("[,，]", row["alias"])]
                names = [{"text": each, "language": "zh"} for each in names if each]
                print(json.dumps({"id": f"graph:{number}", "names": names}), file=out)
        ontologies = data / "ontologies"
        hpo = ("obo/hp_2025-01-16.obo.gz", "translations/hp-zh.babelon.tsv.gz")
        sources = ("starter", "clinical-findings", path, *(ontologies / each for each in hpo))
        configs = tuple(SourceConfig(path=Path(str(each))) for each in sources)
        build_store(BuildConfig(sources=configs), folder / "full")
    return KnowledgeBase.open(folder / "full")


def _opened(name: str, data: Path, folder: Path) -> tuple[Linker, list[Term]]:
    """Return the linker of a set, with an index, and its terms."""
    if name in ("mesh-diseases", "procedures"):
        kb, _ = open_set(name.partition("-")[0], data, folder)
    elif name == "full":
        kb = _full_store(data, folder)
    else:
        kb = open_store(name, data, folder)
    index = folder / f"{name}-index"
    if not index.exists():
        build_index(kb, index, default_encoder(kb, ()))
    linker = Linker.open(kb, index, k=_K)
    if name == "procedures":
        return linker, []
    file = "messy_terms_zh_dev.txt" if name in ("chinese", "full") else "messy_terms_en_dev.tsv"
    return linker, list(read_terms(data / "mapping" / file, kb))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the chosen sets, and print the result."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        folder = options.folder or Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.sets:
            if name in _PROCEDURES:
                figures = measure_procedures(name, options.data, folder)
            else:
                linker, terms = _opened(name, options.data, folder)
                language = "zh" if name in ("chinese", "full") else "en"
                figures = measure_set(linker, terms)
            result[name] = figures
            if name in ("medic", "chinese"):
                figures["decorated"] = measure_decorated(linker, terms, language)
                figures["contrasts"] = measure_contrasts(linker, language)
            if not options.details:
                del figures["wrong"], figures["accepted_wrong"]
                figures.get("contrasts", {}).pop("texts", None)
    return result


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--sets", type=some_of(SETS), default=list(SETS))
    parser.add_argument("--folder", type=Path, help="folder of the stores; default: a new one")
    parser.add_argument("--details", action="store_true", help="list what is wrong")
    run(measure, parser)


if __name__ == "__main__":
    main()
