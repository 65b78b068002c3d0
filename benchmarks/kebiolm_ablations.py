"""What each part of the entity memory gives: encoders pre-trained without it, then fine-tuned.

All encoders see the same text for as many updates with the same seed; each differs in one setting.
Told are the objectives on held-out text, and F1 on the sets, as in encoder_tasks.py. Runs are kept
in --work, and what is finished is not done again.

    python benchmarks/kebiolm_ablations.py --work W --kb KB --corpus CORPUS --vectors TRANSE
        --encoder MINILM --sets ncbi --seeds 1,2 --most 1500 --set training.steps=300
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from command_line import RESULTS, run_with, start_parser
from encoder_tasks import add_settings, measure_encoders
from machine import describe_command, describe_commit
from result_rows import Results

from biograft.kb import KnowledgeBase
from biograft.progress import Progress
from biograft.recipes import Recipe, pretrain

WITH = "vectors of the graph"
VARIANTS: dict[str, tuple[str, ...]] = {
    "all": (WITH,),
    "words masked, not entities": (WITH, 'objective.masked_tokens.mode="whole_word"'),
    "random table": (),
    "frozen table": (WITH, "knowledge.freeze=true"),
    "memory after layer 2": (WITH, "knowledge.after=2"),
    "no fusion": (WITH, "knowledge.after=6"),
}


def run(options: argparse.Namespace) -> None:
    """Pre-train every variant, then fine-tune each; all are in every row of results."""
    told = {label: _pretrain(label, changes, options) for label, changes in VARIANTS.items()}
    options.encoders = {label: _folder(label, options) / "encoder" for label in VARIANTS}
    results = Results(options.out)
    for name in options.sets:
        row = {
            "pretraining": options.changes,
            "held_out": told,
            **measure_encoders(name, options),
            "command": describe_command("kebiolm_ablations.py", sys.argv[1:]),
            "commit": describe_commit(),
        }
        key = {"set": name, "seeds": options.seeds, "epochs": options.epochs, "most": options.most}
        results.add(key, row)


def _pretrain(label: str, changes: tuple[str, ...], options: argparse.Namespace) -> dict[str, Any]:
    """Pre-train one variant; give what it was measured as on held-out text at the end."""
    out = _folder(label, options)
    if not (out / "done").exists():
        chosen = [
            f"encoder.name={json.dumps(str(options.encoder))}",
            f"stream.shards={json.dumps(str(options.corpus))}",
            *(change for change in changes if change != WITH),
            *options.changes,
        ]
        if WITH in changes:
            chosen.append(f"knowledge.vectors={json.dumps(str(options.vectors))}")
        recipe = Recipe.load("kebiolm-cpu", chosen)
        resume = (out / "run.json").exists()
        pretrain(recipe, KnowledgeBase.open(options.kb), out, resume=resume, progress=Progress())
        (out / "done").touch()
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    evaluations = [row["evaluation"] for row in map(json.loads, lines) if "evaluation" in row]
    return dict(evaluations[-1])


def _folder(label: str, options: argparse.Namespace) -> Path:
    return Path(options.work) / "pretrained" / label.replace(" ", "-").replace(",", "")


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_settings(parser)
    add = parser.add_argument
    add("--corpus", type=Path, required=True, help="annotated text")
    add("--vectors", type=Path, required=True, help="how the table begins")
    add("--encoder", required=True, metavar="DIR", help="what all begin with")
    add("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE",
        help="change a value of kebiolm-cpu, for all")  # fmt: skip
    add("--out", type=Path, default=RESULTS / "kebiolm_ablations.json")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
