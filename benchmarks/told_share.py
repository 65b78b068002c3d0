"""What a model gains from the entities that it is told: fine-tuned with a share of them only.

The encoder is one of `biograft pretrain` with neighbours of entities (or ERNIE's entities). It is
fine-tuned on each set with no entity told, with all, and with shares between, by the same settings
and seeds; nothing is chosen on test. SMedBERT's curve over the share of mentions that are linked.

    python benchmarks/told_share.py --work W --encoder RUN/encoder --sets cmedqaner,ncbi
        --shares 0,0.25,0.5,0.75,1 --seeds 1,2,3 --most 1500
"""

from __future__ import annotations

import argparse
from pathlib import Path

from command_line import RESULTS, run_with, start_parser
from encoder_tasks import add_settings, measure_sets


def run(options: argparse.Namespace) -> None:
    """Measure every share on every set; a row is written when its set is done."""
    labels = {f"told {share:g}": share for share in options.shares}
    options.encoders = dict.fromkeys(labels, Path(options.encoder))
    options.changes_of = {
        label: (f"encoder.told_share={share}",) for label, share in labels.items()
    }
    key = {"encoder": Path(options.encoder).parent.name, "shares": options.shares}
    measure_sets("told_share.py", options, options.out, key=key)


def _shares(text: str) -> list[float]:
    found = [float(part) for part in text.split(",")]
    if not all(0 <= share <= 1 for share in found):
        raise argparse.ArgumentTypeError(f"expected shares from 0 to 1, found {text!r}")
    return found


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_settings(parser)
    parser.add_argument("--encoder", required=True, metavar="DIR", help="a model with knowledge")
    parser.add_argument("--shares", type=_shares, default=[0.0, 0.25, 0.5, 0.75, 1.0])
    parser.add_argument("--out", type=Path, default=RESULTS / "told_share.json")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
