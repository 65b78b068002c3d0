"""What pre-training with an entity memory gives on entities and relations.

Encoders are fine-tuned on each set with the same settings and seeds, and compared on its test
part; the rate is that of the recipe, nothing is chosen on test. Runs are kept in --work, and what
is finished is not done again, so a stopped script goes on where it was. Results are added to those
of --out, each in its row.

    python benchmarks/kebiolm_tasks.py --work W --sets ncbi,gad --seeds 1,2,3 --epochs 3
        --encoders base=MINILM,mlm=RUN1/encoder,kebiolm=RUN2/encoder

Differences are told with the p of Welch's test and of the paired one (two-sided, over seeds).
With --kb, the share of a test part's mentions that are names of the store, and of those concepts
that the entity table of the encoder ``kebiolm`` has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from command_line import RESULTS, add_data, run_with, some_of, start_parser
from machine import describe_command, describe_commit
from result_rows import Results

from biograft.corpus.tasks.records import RelationExample
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge.entities import ENTITIES
from biograft.progress import Progress
from biograft.tasks import TASKS, TaskLesson, TaskRecipe, finetune_task
from biograft.tasks.comparing import compare_runs
from biograft.tasks.kinds import TaskExamples


@dataclass(frozen=True, slots=True)
class Set:
    """One set of examples: the recipe it is learned by, where its parts are, how they are read."""

    recipe: str
    folder: str
    train: str
    dev: str
    test: str
    settings: tuple[str, ...] = field(default=())

    def path(self, part: str, data: Path) -> str:
        """Give the file of a part, packed or not."""
        path = data / self.folder / str(getattr(self, part))
        return str(path if path.exists() else path.with_name(f"{path.name}.gz"))


def _entities(folder: str) -> Set:
    return Set("ner-cpu", f"ner_en/{folder}", "train.tsv", "devel.tsv", "test.tsv")


_DDI = "DDICorpus-2013.zip"
SETS = {
    "ncbi": _entities("NCBI-disease"),
    "bc5cdr-disease": _entities("BC5CDR-disease"),
    "bc5cdr-chemical": _entities("BC5CDR-chem"),
    "bc2gm": _entities("BC2GM"),
    "jnlpba": _entities("JNLPBA_untyped"),
    "gad": Set("relation-cpu", "re_en/gad", "train.tsv", "dev.tsv", "test.tsv"),
    "ddi": Set(
        "relation-cpu", "re_en/ddi2013", _DDI, _DDI, _DDI,
        ('data.format="ddi"', 'data.dev_list="{data}/re_en/ddi2013/blurb_dev.tsv"'),
    ),
    "chemprot": Set("relation-cpu", "re_en/chemprot", "train.jsonl", "dev.jsonl", "test.jsonl"),
}  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Train and measure every encoder on every set; a row is written when its set is done."""
    results = Results(options.out)
    for name in options.sets:
        key = {
            "set": name,
            "seeds": options.seeds,
            "epochs": options.epochs,
            "most": options.most,
            "labels": list(options.encoders),
        }
        if results.has(key):
            continue
        row = measure_encoders(name, options)
        about = {
            "command": describe_command("kebiolm_tasks.py", sys.argv[1:]),
            "commit": describe_commit(),
        }
        results.add(key, {**row, **about})
        f1 = {label: found["test"]["mean"] for label, found in row["encoders"].items()}
        print(json.dumps({"set": name, "f1": f1}), flush=True)


def measure_encoders(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fine-tune every encoder on a set; give scores, and how sure their differences are."""
    progress = Progress(enabled=True)
    began = time.perf_counter()
    examples = _read(name, options)
    rows = {label: _measure(name, label, examples, options, progress) for label in options.encoders}
    return {
        "n_examples": {part: len(given.examples) for part, given in examples.items()},
        "encoders": rows,
        "differences": list(_differences(name, options)),
        **_coverage(examples["test"], options),
        "seconds": round(time.perf_counter() - began, 1),
    }


def _recipe(name: str, options: argparse.Namespace, *more: str) -> TaskRecipe:
    chosen = SETS[name]
    changes = [text.format(data=options.data) for text in chosen.settings]
    changes += [f"search.seeds={options.seeds}", f"config.training.epochs={options.epochs}"]
    return TaskRecipe.load(chosen.recipe, [*changes, *more])


def _read(name: str, options: argparse.Namespace) -> dict[str, TaskExamples]:
    recipe = _recipe(name, options)
    kind = TASKS.load(recipe.kind)
    examples = {
        part: kind.read([SETS[name].path(part, options.data)], part, recipe.data)
        for part in ("train", "dev", "test")
    }
    for part in ("train", "dev"):
        given = examples[part].examples
        if options.most and len(given) > options.most:
            examples[part] = TaskExamples(given[:: -(-len(given) // options.most)])
    return examples


def _measure(
    name: str,
    label: str,
    examples: Mapping[str, TaskExamples],
    options: argparse.Namespace,
    progress: Progress,
) -> dict[str, Any]:
    encoder, out = options.encoders[label], options.work / name / label
    recipe = _recipe(name, options, f"encoder.name={json.dumps(str(encoder))}")
    lesson = TaskLesson(
        train=examples["train"], dev=examples["dev"], test=examples["test"],
        out=out, resume=out.exists(), progress=progress,
    )  # fmt: skip
    results = finetune_task(recipe, lesson).results
    return {
        part: {
            "mean": 100 * results[part]["f1"]["mean"],
            "deviation": 100 * results[part]["f1"]["deviation"],
            "values": [100 * value for value in results[part]["f1"]["values"]],
        }
        for part in ("dev", "test")
    }


def _differences(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if len(options.seeds) < 2:
        return
    for before, after in combinations(options.encoders, 2):
        compared = compare_runs(options.work / name / after, options.work / name / before)
        tests = {name: compared[name]["p"] for name in ("welch", "paired")}
        yield {"of": after, "against": before, "f1": 100 * compared["difference"], "p": tests}


def _coverage(examples: TaskExamples, options: argparse.Namespace) -> dict[str, Any]:
    """Say how many mentions the store knows by their names, and how many the entity table."""
    texts = [text for example in examples.examples for text in _mention_texts(example)]
    if options.kb is None or not texts or any(text.startswith("@") for text in texts):
        return {}
    kb = KnowledgeBase.open(options.kb)
    lines = (options.encoders["kebiolm"] / ENTITIES).read_text(encoding="utf-8").splitlines()
    table = {json.loads(line)["id"] for line in lines}
    found = {text: {match.concept for match in kb.find(text)} for text in set(texts)}
    return {
        "coverage": {
            "n_mentions": len(texts),
            "in_store": sum(bool(found[text]) for text in texts) / len(texts),
            "in_table": sum(bool(found[text] & table) for text in texts) / len(texts),
        }
    }


def _mention_texts(example: Any) -> list[str]:
    """Give the texts of an example's mentions, whether it is a document or a relation."""
    if isinstance(example, RelationExample):
        return [example.first.text, example.second.text]
    return [mention.text for mention in example.mentions]


def _encoders(text: str) -> dict[str, Path]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not pairs or not all(label and place for label, _, place in pairs):
        raise argparse.ArgumentTypeError(f"expected label=folder,label=folder, found {text!r}")
    return {label: Path(place) for label, _, place in pairs}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of fine-tuning."""
    add_data(parser)
    parser.add_argument("--sets", type=some_of(SETS), default=["ncbi"], help=", ".join(SETS))
    parser.add_argument(
        "--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3]
    )
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--most", type=int, default=0, help="examples of train, and of dev; 0: all")
    parser.add_argument("--work", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--kb", type=Path, help="store of the entities")


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_settings(parser)
    parser.add_argument("--encoders", type=_encoders, required=True, help="label=folder,...")
    parser.add_argument("--out", type=Path, default=RESULTS / "kebiolm_tasks.json")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
