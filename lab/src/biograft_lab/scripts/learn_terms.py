"""What decisions about half of the messy terms do for the other half: F1 of answers.

Each seed splits the terms in halves. `learn` is taught the decisions about one half, with a copy of
an index; `map` answers the other half before and after. Answers are right if they are one of the
concepts that the terms name; terms without a concept are right without an answer.

before, after  F1 of answers, right / (answered + with a concept), mean over splits
gain           mean over splits, with an interval over splits, and one over terms
applied        fraction of splits in which anything learned changes other terms
parts          how often each part was applied

English terms with MEDIC and the diseases of MeSH, Chinese terms with the built-in knowledge base,
each with the index that `biograft index` makes, or with --lexical one without vectors. Sets on
which nothing was chosen: phrases of AskAPatient (validation part) and Chinese procedures (dev), of
which --decided terms are taught and as many answered.

    BIOGRAFT_DATA=... python -m biograft_lab.scripts.learn_terms --json
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from script_options import some_of

from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.names import one_line, term_key
from biograft.kb.sources import SourceConfig
from biograft.linking import Linker
from biograft.linking.dense.encoders import default_encoder
from biograft.linking.index import build_index
from biograft.mapping import map_terms
from biograft.mapping.decisions import APPROVED, NIL, Decision
from biograft.mapping.learning import forget, learn
from biograft.metrics import bootstrap_interval
from biograft_lab.scripts import new_parser, run
from biograft_lab.scripts.unseen_notes import mesh_table, open_store, percent

SETS = ("medic", "mesh", "chinese", "askapatient", "procedures")
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class MessyTerm:
    """A term and the concepts that are right, best first; none: it has no concept."""

    text: str
    concepts: tuple[str, ...]


def term_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each term of a file, with the names of what it means.

    Args:
        path: Tab-separated, or Chinese with ``term=names``.
    """
    for line in path.read_text("utf-8").splitlines():
        if path.suffix == ".tsv":
            kind, text, names = line.split("\t")
            if kind == "kind":
                continue
        else:
            text, _, names = line.partition("=")
        yield text, names


def read_terms(path: Path, kb: KnowledgeBase) -> Iterator[MessyTerm]:
    """Yield the terms whose concepts a knowledge base has, and those without a concept.

    Args:
        path: Tab-separated, or Chinese with ``term=names``.
        kb: The knowledge base.
    """
    for text, names in term_lines(path):
        wanted = names.replace(" + ", "|").split("|")
        found = (kb.id_at(row) for name in wanted for row in kb.rows_by_name(name))
        concepts = tuple(dict.fromkeys(found))
        if concepts or names == "NIL":
            yield MessyTerm(text, concepts)


def decisions_of(terms: Sequence[MessyTerm], kb: KnowledgeBase) -> list[Decision]:
    """Return what a reviewer decides about terms: the first concept, or none."""
    made = []
    for term in terms:
        concept = term.concepts[0] if term.concepts else ""
        made.append(
            Decision(
                term=term.text,
                verdict=APPROVED if concept else NIL,
                concept=concept,
                name=kb[concept].name if concept else "",
            )
        )
    return made


def answers_of(linker: Linker, terms: Sequence[MessyTerm]) -> dict[str, str | None]:
    """Return the answer of each term."""
    found = list(map_terms(linker, [t.text for t in terms]))
    return {each.term.text: each.concept for each in reversed(found)}  # the first of several


def f1_of(answers: Sequence[str | None], terms: Sequence[MessyTerm]) -> float:
    """Return the F1 of answers.

    Args:
        answers: The answers; None: no concept.
        terms: The terms.
    """
    right = sum(a in t.concepts for a, t in zip(answers, terms, strict=True))
    total = sum(a is not None for a in answers) + sum(bool(t.concepts) for t in terms)
    return 2 * right / total if total else 0.0


def measure_set(
    kb: KnowledgeBase, index: Path, terms: Sequence[MessyTerm], options: argparse.Namespace
) -> dict[str, Any]:
    """Measure all splits of a set of terms.

    Args:
        kb: The knowledge base.
        index: An index of it.
        terms: The terms.
        options: Number of seeds.
    """
    splits: list[tuple[float, float]] = []
    parts: Counter[str] = Counter()
    forget(index)
    linker = Linker.open(kb, index, k=1)
    plain = answers_of(linker, terms)
    pairs: list[tuple[list[MessyTerm], list[str | None], list[str | None]]] = []
    for seed in range(options.seeds):
        order = np.random.default_rng(seed).permutation(len(terms))[: 2 * options.decided]
        half = min(options.decided, len(order) // 2)
        taught, other = ([terms[n] for n in part] for part in (order[:half], order[half:]))
        report = learn(kb, index, decisions_of(taught, kb))
        learned = answers_of(Linker.open(kb, index, k=1), other)
        before, after = [plain[t.text] for t in other], [learned[t.text] for t in other]
        pairs.append((other, before, after))
        splits.append((f1_of(before, other), f1_of(after, other)))
        applied = [part.name for part in report.parts if part.applied]
        parts.update(applied or ["nothing"])
    forget(index)
    before, after = np.array(splits).T
    return {
        "terms": len(terms),
        "before": percent(before.mean()),
        "after": percent(after.mean()),
        "gain": percent((after - before).mean()),
        "over_splits": bootstrap_interval(after - before).to_json(),
        "over_terms": _over_terms(pairs),
        "applied": round(1 - parts["nothing"] / options.seeds, 2),
        "parts": dict(parts.most_common()),
        "worse": int((after < before).sum()),
    }


def _over_terms(
    pairs: Sequence[tuple[list[MessyTerm], list[str | None], list[str | None]]],
) -> list[float]:
    """Return the interval of the mean gain over the terms, which all splits share."""
    numbers = {t: n for n, t in enumerate(dict.fromkeys(t.text for ts, _, _ in pairs for t in ts))}
    sums = np.zeros((len(pairs), 4, len(numbers)))
    for row, (terms, before, after) in enumerate(pairs):
        for term, a, b in zip(terms, before, after, strict=True):
            n = numbers[term.text]
            has = bool(term.concepts)
            sums[row, :, n] = (
                2 * (a in term.concepts),
                (a is not None) + has,
                2 * (b in term.concepts),
                (b is not None) + has,
            )
    rng = np.random.default_rng(1)
    weights = rng.multinomial(len(numbers), np.full(len(numbers), 1 / len(numbers)), _RESAMPLES)
    total = np.einsum("skn,rn->rsk", sums, weights)
    gains = (total[..., 2] / total[..., 3] - total[..., 0] / total[..., 1]).mean(axis=1)
    return [percent(each) for each in np.percentile(gains, [2.5, 97.5])]


def open_set(name: str, data: Path, folder: Path) -> tuple[KnowledgeBase, list[MessyTerm]]:
    """Open the store of a set, and read its terms."""
    if name in ("medic", "mesh", "chinese"):
        kb = open_store(name, data, folder) if name != "mesh" else _open_mesh(data, folder)
        file = "messy_terms_zh_dev.txt" if name == "chinese" else "messy_terms_en_dev.tsv"
        return kb, list(read_terms(data / "mapping" / file, kb))
    names: dict[str, str]
    if name == "askapatient":
        aap = data / "entity_linking" / "askapatient"
        table = json.loads((aap / "ontology_askapatient.json").read_text("utf-8"))
        names = {f"AAP:{c}": own[0][1] for c, own in table.items()}
        lines = (aap / "AskAPatient.fold-0.validation.txt").read_text("cp1252").splitlines()
        rows = [(phrase, f"AAP:{c}") for c, _, phrase in (line.split("\t") for line in lines)]
    else:
        zh = data / "zh" / "term_normalisation"
        table = (zh / "procedure_codes.tsv").read_text("utf-8").splitlines()[1:]
        names = dict(line.split("\t")[:2] for line in table)
        by_name = {n: c for c, n in names.items()}
        rows = []
        for line in (zh / "procedures_dev.tsv").read_text("utf-8").splitlines()[1:]:
            term, found = line.split("\t")[:2]
            rows.append((term, by_name.get(found, "")))
    if not (folder / name).exists():
        path = folder / f"{name}.jsonl"
        path.write_text("\n".join(json.dumps({"id": c, "names": [n]}) for c, n in names.items()))
        build_store(BuildConfig(sources=(SourceConfig(path=path, format="jsonl"),)), folder / name)
    terms = {term_key(text): MessyTerm(one_line(text), (c,)) for text, c in rows if c}
    return KnowledgeBase.open(folder / name), list(terms.values())


def _open_mesh(data: Path, folder: Path) -> KnowledgeBase:
    """Build the store of the diseases of MeSH, unless the folder has it."""
    store = folder / "mesh-diseases"
    if not store.exists():
        path = mesh_table(data / "entity_linking" / "mesh", folder)
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path = folder / "mesh-diseases.tsv"
        kept = (line for line in lines[1:] if line.endswith("\tdisease\n"))
        path.write_text("".join((lines[0], *kept)), "utf-8")
        build_store(BuildConfig(sources=(SourceConfig(path=path),)), store)
    return KnowledgeBase.open(store)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the chosen sets, and print the result."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as work:
        folder = options.folder or Path(work)
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.sets:
            kb, terms = open_set(name, options.data, folder)
            index = folder / f"{name}-{'lexical' if options.lexical else 'index'}"
            if not index.exists():
                build_index(kb, index, None if options.lexical else default_encoder(kb, ()))
            result[name] = measure_set(kb, index, terms, options)
    return result


def main() -> None:
    """Measure, and print one JSON object."""
    parser = new_parser(__doc__)
    parser.add_argument("--sets", type=some_of(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=20, help="number of splits")
    parser.add_argument("--decided", type=int, default=200, help="most terms that are taught")
    parser.add_argument("--folder", type=Path, help="folder of the stores; default: a new one")
    parser.add_argument("--lexical", action="store_true", help="search without vectors")
    run(measure, parser)


if __name__ == "__main__":
    main()
