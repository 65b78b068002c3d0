"""What each part of a way of pre-training gives: encoders made without it, then fine-tuned.

All encoders of a family begin with the same weights and see the same text for as many updates
with the same seed; each differs in what its label says. Told are the objectives on held-out text,
and the scores on the sets, as in encoder_tasks.py. Runs are kept in --work, and what is finished
is not done again.

    python benchmarks/ablations.py --family kebiolm --work W --kb KB --corpus CORPUS
        --vectors TRANSE --encoder MINILM --sets ncbi --seeds 1,2 --most 1500
    python benchmarks/ablations.py --family embert --work W --kb KB --corpus CORPUS
        --segmentation S --encoder CHINESE_BERT --sets cmedqq,cmedqaner,cmedqa,cmeee-0
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_line import RESULTS, run_with, start_parser
from encoder_tasks import add_settings, measure_sets

from biograft.config import find_recipe, load_toml, set_value
from biograft.kb import KnowledgeBase
from biograft.pretraining.recipe import Recipe, shipped_recipes
from biograft.pretraining.run import pretrain
from biograft.progress import Progress
from biograft.training.run_folder import check_config


@dataclass(frozen=True)
class Variant:
    """How an encoder's recipe differs: values that are set, tables and keys that are taken out."""

    set: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    recipe: str = ""
    """The recipe, where it is another than the family's."""


@dataclass(frozen=True)
class Family:
    """A recipe, what of it is named on the command line, and its variants by label."""

    recipe: str
    variants: Mapping[str, Variant]
    options: Mapping[str, str] = field(default_factory=dict)
    """Keys of the recipe, and the option that says their value; those taken out are not set."""
    start: str = ""
    """The label of the encoder that all begin with, where it is measured, too."""


_CONSISTENCY, _SEGMENTATION, _MASKING = (
    "objective.context_entity_consistency",
    "objective.entity_segmentation",
    "objective.bidirectional_entity_masking",
)
_REPLACED = (_CONSISTENCY, "stream.replacement")
"""Copies with other entities in their place are for this objective alone."""
_PIECES = (_SEGMENTATION, _MASKING, "stream.segmentation")
_VECTORS = "knowledge.vectors"
_EMBERT = {
    "reading alone": Variant(without=(*_REPLACED, *_PIECES)),
    "all": Variant(),
    "without consistency": Variant(without=_REPLACED),
    "without segmentation": Variant(without=(_SEGMENTATION,)),
    "without masking of halves": Variant(without=(_MASKING,)),
}
_LOSSES = ("objective.masked_neighbour", "objective.masked_mention")
_CUT = "stream.segmentation"
_GRAPH = {_VECTORS: "vectors", "knowledge.neighbours": "neighbours"}
_SMEDBERT = {
    "reading alone": Variant(without=("knowledge", *_LOSSES, _CUT)),
    "ernie": Variant(without=("knowledge.neighbours", _CUT), recipe="ernie-cpu"),
    "all": Variant(without=(_CUT,)),
    "without type attention": Variant(("knowledge.type_attention=false",), (_CUT,)),
    "without hybrid attention": Variant(("knowledge.node_attention=false",), (_CUT,)),
    "without knowledge losses": Variant(('knowledge.shown="all"',), (*_LOSSES, _CUT)),
    "mention loss as printed": Variant(("objective.masked_mention.weight=4.0",), (_CUT,)),
    "sixth": Variant(recipe="sixth-cpu"),
}
FAMILIES = {
    "kebiolm": Family(
        "kebiolm-cpu",
        {
            "all": Variant(),
            "words masked, not entities": Variant(('objective.masked_tokens.mode="whole_word"',)),
            "random table": Variant(without=(_VECTORS,)),
            "frozen table": Variant(("knowledge.freeze=true",)),
            "memory after layer 2": Variant(("knowledge.after.entity_memory=2",)),
            "no fusion": Variant(("knowledge.after.entity_memory=6",)),
        },
        {_VECTORS: "vectors"},
    ),
    "embert": Family("embert-cpu", _EMBERT, {"stream.segmentation": "segmentation"}),
    "embert-english": Family(
        "embert-cpu",
        {label: _EMBERT[label] for label in ("reading alone", "all")},
        {"stream.segmentation": "segmentation"},
        "start",
    ),
    "smedbert": Family("smedbert-cpu", _SMEDBERT, {**_GRAPH, _CUT: "segmentation"}, "start"),
    "smedbert-english": Family(
        "smedbert-cpu",
        {label: _SMEDBERT[label] for label in ("reading alone", "all")},
        _GRAPH,
        "start",
    ),
    "smedbert-neighbours": Family(
        "smedbert-cpu",
        {f"{n} neighbours": Variant((f"knowledge.n_neighbours={n}",)) for n in (5, 10, 20, 30)},
        _GRAPH,
    ),
}


def run(options: argparse.Namespace) -> None:
    """Pre-train every variant, then fine-tune each; all are in every row of results."""
    family = FAMILIES[options.family]
    told = {label: _pretrain(label, family, options) for label in family.variants}
    options.encoders = {family.start: Path(options.encoder)} if family.start else {}
    options.encoders |= {label: _folder(label, options) / "encoder" for label in family.variants}
    out = options.out or RESULTS / f"{options.family.replace('-', '_')}_ablations.json"
    key = {"pretraining": options.changes, "labels": list(options.encoders)}
    measure_sets("ablations.py", options, out, key=key, about={"held_out": told})


def _pretrain(label: str, family: Family, options: argparse.Namespace) -> dict[str, Any]:
    """Pre-train one variant; give what it was measured as on held-out text at the end."""
    out, recipe = _folder(label, options), _recipe(family, family.variants[label], options)
    if (out / "done").exists():
        check_config(out, recipe.to_json())
    else:
        kb = KnowledgeBase.open(options.kb)
        pretrain(recipe, kb, out, resume=(out / "run.json").exists(), progress=Progress())
        (out / "done").touch()
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    evaluations = [row["evaluation"] for row in map(json.loads, lines) if "evaluation" in row]
    return dict(evaluations[-1])


def _recipe(family: Family, variant: Variant, options: argparse.Namespace) -> Recipe:
    name = variant.recipe or family.recipe
    values = load_toml(find_recipe(name, shipped_recipes()))
    values.pop("new", None)
    named = {"encoder.name": options.encoder, "stream.shards": options.corpus}
    named |= {key: getattr(options, option) for key, option in family.options.items()}
    for key, place in named.items():
        set_value(values, f"{key}={json.dumps(str(place))}")
    for change in (*variant.set, *options.changes):
        set_value(values, change)
    for key in variant.without:
        *tables, last = key.split(".")
        table = values
        for part in tables:
            table = table[part]
        table.pop(last, None)
    return Recipe.from_values(name, values)


def _folder(label: str, options: argparse.Namespace) -> Path:
    return Path(options.work) / "pretrained" / label.replace(" ", "-").replace(",", "")


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    add_settings(parser)
    add = parser.add_argument
    add("--family", choices=FAMILIES, required=True, help=", ".join(FAMILIES))
    add("--corpus", type=Path, required=True, help="annotated text")
    add("--vectors", type=Path, help="how the table begins")
    add("--neighbours", type=Path, help="what entities are joined to")
    add("--segmentation", type=Path, help="long entities in pieces")
    add("--encoder", required=True, metavar="DIR", help="what all begin with")
    add("--set", dest="changes", action="append", default=[], metavar="KEY=VALUE",
        help="change a value of the recipe, for all")  # fmt: skip
    add("--out", type=Path, help="file of results; default: benchmarks/results/FAMILY_ablations")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
