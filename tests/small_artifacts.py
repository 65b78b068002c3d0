"""The smallest inputs and commands that make each kind of artefact; each takes about a second."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

_CONCEPTS = "id,name,parent\n1,heart disease,\n2,heart attack,1\n2,infarction,1\n3,stroke,1\n"
_OTHERS = "id,name,parent\n1,heart disease,\n2,heart attack,1\n4,fever,1\n4,ague,1\n3,stroke,1\n"
_SENTENCE = "In {} we saw stroke and heart attack"
_SSSOM = (
    "subject_id\tsubject_label\tpredicate_id\tpredicate_modifier\tobject_id\tobject_label\t"
    "mapping_justification\n"
)
FILES = {
    "terms.csv": f"{_CONCEPTS}3,cerebral stroke,1\n",
    "more.csv": _OTHERS,
    "local.csv": "term\nhart attack\nstroke\nflu\n",
    "notes/a.txt": "A heart attack, no stroke.\n" * 4,
    "notes/b.txt": "Heart disease.\nAn infarction and a stroke.\n" * 4,
    "notes.txt": "A heart attack, no stroke.\n",
    "ner.tsv": "we\tO\nsaw\tO\nheart\tB-Disease\nattack\tI-Disease\n\nno\tO\nstroke\tB-Disease\n\n",
    "labs.sssom.tsv": (
        "#curie_map:\n#  concept: https://example.org/kb/concept/\n"
        "#  term: https://example.org/source/term/\n"
        f"{_SSSOM}term:1\twidow maker\tskos:exactMatch\t\tconcept:2\theart attack\t"
        "semapv:ManualMappingCuration\n"
    ),
    "mapped.csv": (
        "source_term,concept,name,score,probability,flag,source_code,frequency\n"
        "heart attack,2,heart attack,1.0,,exact,1,12\n"
        "hart atack,2,heart attack,0.76,,,2,40\nzzq,,,0.2,,nil,3,2\n"
    ),
}
"""Input files by their paths."""

STORE = "kb build terms.csv -o KB"
OTHER_STORE = "kb build more.csv -o KB"
INDEX = "index KB -o I --encoder none"
STATIC_INDEX = "index KB -o I --encoder static-english"
SHARDS = "corpus annotate KB notes -o A --workers 1"
VECTORS = "graph embed KB -o V --set model.dim=8 --set training.epochs=3 --set training.batch=16"
NEIGHBOURS = "graph neighbours KB -o N"
IMPORT = "review import mapped.csv --review R.db --reviewer ann"


def _with(command: str, *settings: str) -> str:
    return " ".join([command, *(f"--set {setting}" for setting in settings)])


ALIGNMENT = _with(
    "pretrain sapbert-cpu --kb KB --encoder encoder -o P",
    *("training.batch_size=2", "training.steps=3"),
    *("training.eval_every=0", "training.save_every=1"),
)
MASKED_TEXT = _with(
    "pretrain mlm-cpu --kb KB --encoder encoder --corpus A --workers 1 -o P",
    *("training.batch_size=2", "training.steps=2", "training.eval_every=0"),
    *("training.save_every=1", "stream.max_length=32"),
)
RANKER = _with(
    "finetune linker-ranker --kb KB --train gold.jsonl --format sample -o F",
    *("config.folds=2", "config.batch_size=4", "config.epochs=2"),
)
TASK = _with(
    "finetune ner-cpu --train ner.tsv --dev ner.tsv --test ner.tsv --encoder encoder -o F",
    *("config.training.epochs=1", "config.training.batch_size=2"),
    *("encoder.max_length=16", "config.overlap=2"),
)
GENERATION = _with(
    "finetune genbioel-finetune-ncbi-cpu --kb KB --train gold.jsonl --format sample -o F",
    *("config.new.width=16", "config.new.layers=1", "config.new.heads=2"),
    *("config.new.feed_forward=32", "config.new.n_tokens=300", "config.new.max_length=96"),
    *("config.training.steps=2", "config.training.batch_size=4"),
    *("config.training.save_every=1", "config.training.precision=fp32"),
)
"""A generative linker, with its trie of names."""


def write_inputs(folder: Path, *, encoder: bool = False) -> None:
    """Write the input files, and on request a random encoder of 16 dimensions."""
    for name, content in {**FILES, "gold.jsonl": "".join(map(_gold_line, range(4)))}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    if encoder:
        words = [*FILES.values(), _SENTENCE, "0 1 2 3"]
        importlib.import_module("tiny_models").tiny_encoder_folder(
            folder / "encoder", words, hidden=16, layers=1
        )


def find_damage(path: Path) -> list[str]:
    """Return what `biograft check` finds wrong in an artefact, or in a run."""
    from biograft.cli.check import check_all

    return [problem for each in check_all(path) for problem in each.problems]


def _gold_line(n: int) -> str:
    text, mentions = _SENTENCE.format(n), []
    for mention, concept in (("stroke", "3"), ("heart attack", "2")):
        start = text.index(mention)
        end = start + len(mention)
        mentions.append({"start": start, "end": end, "text": mention, "concepts": [concept]})
    return json.dumps({"id": f"d{n}", "text": text, "mentions": mentions}) + "\n"
