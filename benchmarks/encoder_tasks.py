"""What the pre-training of encoders gives on tasks: entities, relations, pairs, answers.

Encoders are fine-tuned on each set with the same settings and seeds, and compared on its test
part; the rate is that of the recipe, nothing is chosen on test. Runs are kept in --work, and what
is finished is not done again, so a stopped script goes on where it was. Results are added to those
of --out, each in its row.

    python benchmarks/encoder_tasks.py --work W --sets ncbi,gad --seeds 1,2,3 --epochs 3
        --encoders base=MINILM,mlm=RUN1/encoder,kebiolm=RUN2/encoder
        --out benchmarks/results/kebiolm_tasks.json

Told is the main figure of each task (F1, or the right answer first for ranking). Differences come
with the p of Welch's test and of the paired one (two-sided, over seeds). The labelled part of CMeEE
is cut in five: one fifth to test on, a tenth of the others for dev. The dev part of cMedQA, whose
train part is not to be had, is cut in train and dev.
With --kb, the share of a test part's mentions that are names of the store, and of those concepts
that the entity table of the encoder ``kebiolm`` has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from command_line import add_data, run_with, seeds, some_of, start_parser
from machine import describe_command, describe_commit
from result_rows import Results

from biograft.corpus.tasks.records import RelationExample
from biograft.kb import KnowledgeBase
from biograft.nn.knowledge.entities import ENTITIES
from biograft.progress import Progress
from biograft.tasks import TASKS, TaskLesson, TaskRecipe, finetune_task
from biograft.tasks.results import compare_runs, figure_of
from biograft.tasks.task import TaskExamples

Cut = Callable[[Sequence[Any]], dict[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Set:
    """One set of examples: the recipe it is learned by, where its parts are, how they are read."""

    recipe: str
    folder: str
    train: str
    dev: str
    test: str
    settings: tuple[str, ...] = field(default=())
    cut: Cut | None = None
    """Makes parts of the examples in the file of train, where they are not files of their own."""

    def path(self, part: str, data: Path) -> str:
        """Give the file of a part, packed or not."""
        path = data / self.folder / str(getattr(self, part))
        return str(path if path.exists() else path.with_name(f"{path.name}.gz"))


def _fold(number: int, examples: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Take one fifth to test on, and of the others one tenth for dev."""
    order = np.random.default_rng(0).permutation(len(examples)).tolist()
    test, others = order[number::5], [n for k in range(5) if k != number for n in order[k::5]]
    parts = {"train": others[len(others) // 10 :], "dev": others[: len(others) // 10], "test": test}
    return {name: [examples[n] for n in sorted(part)] for name, part in parts.items()}


def _four_fifths(examples: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Take one fifth for dev; what is tested on is another file."""
    parts = _fold(0, examples)
    return {"train": [*parts["train"], *parts["dev"]], "dev": parts["test"]}


def _entities(folder: str) -> Set:
    return Set("ner-cpu", f"ner_en/{folder}", "train.tsv", "devel.tsv", "test.tsv")


_DDI, _BLUE = "DDICorpus-2013.zip", "zh/chineseblue"
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
    "cmedqq": Set(
        "matching-cpu", f"{_BLUE}/cMedQQ", "train.txt", "dev.txt", "test.txt",
        ('data.format="cmedqq"',),
    ),
    "cmedqaner": Set(
        "ner-cpu", f"{_BLUE}/cMedQANER", "train.json", "dev.json", "test.json",
        ('data.format="cmedqaner"',),
    ),
    "cmedqa": Set(
        "ranking-cpu", f"{_BLUE}/cMedQA", "dev.txt", "", "test.txt", ('data.format="cmedqa"',),
        _four_fifths,
    ),
    **{
        f"cmeee-{fold}": Set(
            "ner-cpu", "zh/cmeee_v2", "CMeEE-V2_dev.json", "", "",
            ('data.format="cmeee"', 'config.head="spans"'), partial(_fold, fold),
        )
        for fold in range(5)
    },
}  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Train and measure every encoder on every set; a row is written when its set is done."""
    key = {"labels": list(options.encoders)}
    measure_sets("encoder_tasks.py", options, options.out, key=key)


def measure_sets(
    script: str,
    options: argparse.Namespace,
    out: Path,
    *,
    key: Mapping[str, Any],
    about: Mapping[str, Any] | None = None,
) -> None:
    """Measure all encoders on each set that has no row of these settings and ``key`` yet."""
    results = Results(out)
    settings = {
        "seeds": options.seeds,
        "epochs": options.epochs,
        "most": options.most,
        "task_changes": options.task_changes or None,
        **key,
    }
    for name in options.sets:
        own = {"set": name, **settings}
        if results.has(own):
            continue
        row = {
            **(about or {}),
            **measure_encoders(name, options),
            "command": describe_command(script, sys.argv[1:]),
            "commit": describe_commit(),
        }
        results.add(own, row)
        means = {label: found["test"]["mean"] for label, found in row["encoders"].items()}
        print(json.dumps({"set": name, **means}), flush=True)


def measure_encoders(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Fine-tune every encoder on a set; give scores, and how sure their differences are.

    ``options.changes_of`` are changes of the recipe by the label of an encoder.
    """
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
    changes += options.task_changes
    changes += [f"search.seeds={options.seeds}", f"config.training.epochs={options.epochs}"]
    return TaskRecipe.load(chosen.recipe, [*changes, *more])


def _read(name: str, options: argparse.Namespace) -> dict[str, TaskExamples]:
    recipe = _recipe(name, options)
    kind = TASKS.load(recipe.kind)
    chosen = SETS[name]
    examples = {
        part: kind.read([chosen.path(part, options.data)], part, recipe.data)
        for part in ("train", "dev", "test")
        if getattr(chosen, part)
    }
    if chosen.cut is not None:
        cut = chosen.cut(examples["train"].examples)
        examples |= {part: TaskExamples(tuple(given)) for part, given in cut.items()}
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
    changes = options.changes_of.get(label, ())
    recipe = _recipe(name, options, f"encoder.name={json.dumps(str(encoder))}", *changes)
    lesson = TaskLesson(
        train=examples["train"], dev=examples["dev"], test=examples["test"],
        out=out, resume=out.exists(), progress=progress,
    )  # fmt: skip
    results = finetune_task(recipe, lesson).results
    figure, told = figure_of(results), {}
    for part in ("dev", "test"):
        found = results[part][figure]
        told[part] = {
            "mean": 100 * found["mean"],
            "deviation": found["deviation"] and 100 * found["deviation"],  # none of one run
            "values": [100 * value for value in found["values"]],
        }
    return {"figure": figure, **told}


def _differences(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    if len(options.seeds) < 2:
        return
    for before, after in combinations(options.encoders, 2):
        compared = compare_runs(options.work / name / after, options.work / name / before)
        tests = {name: compared[name]["p"] for name in ("welch", "paired")}
        yield {"of": after, "against": before, "by": 100 * compared["difference"], "p": tests}


def _coverage(examples: TaskExamples, options: argparse.Namespace) -> dict[str, Any]:
    """Say how many mentions the store knows by their names, and how many the entity table."""
    if options.kb is None or "kebiolm" not in options.encoders:
        return {}
    texts = [text for example in examples.examples for text in _mention_texts(example)]
    if not texts or any(text.startswith("@") for text in texts):
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
    parser.set_defaults(changes_of={})
    add_data(parser)
    parser.add_argument("--sets", type=some_of(SETS), default=["ncbi"], help=", ".join(SETS))
    parser.add_argument("--seeds", type=seeds, default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--most", type=int, default=0, help="examples of train, and of dev; 0: all")
    parser.add_argument(
        "--task-set", dest="task_changes", action="append", default=[], metavar="KEY=VALUE",
        help="change a value of the tasks' recipes",
    )  # fmt: skip
    parser.add_argument("--work", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--kb", type=Path, help="store of the entities")


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_settings(parser)
    parser.add_argument("--encoders", type=_encoders, required=True, help="label=folder,...")
    parser.add_argument("--out", type=Path, required=True, help="file of results")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
