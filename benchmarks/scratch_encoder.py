r"""What alignment is worth to an encoder that knows nothing: a small one of letters, from scratch.

The encoder is made untrained and aligned on the names of a set's training dictionary and, where
the dictionary lacks them, its training mentions. Both states are written, to be measured by
linking_accuracy.py.

    python benchmarks/scratch_encoder.py --set zh-procedures --out DIR
    python benchmarks/linking_accuracy.py --sets zh-procedures --config dense,both \
        --encoder letters-untrained=DIR/untrained --encoder letters-aligned=DIR/run/encoder
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from command_line import add_data, run_with, start_parser
from linking_sets import SETS
from linking_supervised import TRAINED, read_resolved

from biograft.kb import KnowledgeBase
from biograft.linking.recipes import label_mentions
from biograft.linking.supervised import grow_store
from biograft.nn.scratch import make_character_encoder
from biograft.pretraining.recipe import Recipe
from biograft.pretraining.run import pretrain
from biograft.progress import Progress


def run(options: argparse.Namespace) -> None:
    """Grow the store, make the encoder, align it."""
    asked, out = SETS[options.set], options.out
    base = asked.open_store(options.data, "train", out)
    if not (out / "grown").exists():
        queries = read_resolved(asked, "train", base, options.data)
        grow_store(base, label_mentions(queries), out / "grown")
    grown = KnowledgeBase.open(out / "grown")
    if not (out / "untrained").exists():
        names = grown.table("names").column("text").to_pylist()
        make_character_encoder(names, out / "untrained", width=options.width, seed=options.seed)
    changes = {
        "encoder.name": json.dumps(str(out / "untrained")),
        "encoder.max_length": 64,
        "training.steps": options.steps,
        "training.learning_rate": 1e-3,
        "training.eval_every": 0,
        "training.seed": options.seed,
    }
    recipe = Recipe.load("sapbert-cpu", [f"{key}={value}" for key, value in changes.items()])
    resume = (out / "run" / "checkpoints").exists()
    result = pretrain(recipe, grown, out / "run", resume=resume, progress=Progress())
    print(json.dumps({"set": options.set, **result.to_json()}, default=str))


def _parse() -> argparse.Namespace:
    parser = start_parser(__doc__)
    add = parser.add_argument
    add("--set", choices=TRAINED, required=True)
    add("--out", type=Path, required=True, help="folder for the store and the encoders")
    add("--steps", type=int, default=800, help="of 64 pairs")
    add("--width", type=int, default=192)
    add("--seed", type=int, default=0)
    add_data(parser)
    return parser.parse_args()


def main() -> None:
    """Parse the command line and run."""
    run_with(run, _parse())


if __name__ == "__main__":
    main()
