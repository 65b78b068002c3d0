"""Model cards: README.md beside the weights, with the front matter that model hubs read.

A card says what a model was trained from and on, how well it does, and how to load it. It names
data sets and hub names, but no folders of the machine.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard as HubCard, ModelCardData

import biograft
from biograft.artifacts import new_file
from biograft.models.settings import EncoderSettings

CARD = "README.md"
_LICENCE_NOTE = "licence: "
_HUB_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_CACHED = "models--"
_USE = """\
```python
from sentence_transformers import SentenceTransformer

SentenceTransformer("FOLDER").encode(["heart attack", "myocardial infarction"])
```

```python
from biograft.models import TextEncoder

TextEncoder.from_pretrained("FOLDER").encode(["heart attack", "myocardial infarction"])
```

transformers loads the model without pooling: `AutoModel.from_pretrained("FOLDER")`. The vector of a
text is {pooling} of the states of the last layer, scaled to length 1. Texts have at most
{max_length} tokens{lower}. In biograft: `biograft index KB --encoder FOLDER -o INDEX`."""
_MEASURE = "These are of the training itself. Measure linking by `biograft evaluate link`."


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Facts of a training for its model card."""

    base_model: str
    """Name or folder of the encoder that the training began with."""
    method: str
    """Training method, in a few words."""
    data: Mapping[str, Any]
    """Numbers and hashes of the training data."""
    metrics: Mapping[str, Any]
    """Results of the training, such as steps and loss."""
    sources: tuple[Mapping[str, Any], ...] = field(default=())
    """The sources of the knowledge base, as its manifest lists them."""
    languages: Sequence[str] = ()
    """Languages of the training texts."""
    data_sets: Mapping[str, str] = field(default_factory=dict)
    """The name of the data of each split: train, dev, test."""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Metrics of the saved weights on each split, from 0 to 1."""
    title: str = "Encoder of medical names"
    """Heading of the card."""
    use: str = ""
    """Instructions to load the model, as Markdown."""
    about_metrics: str = _MEASURE
    """Explanation of the metrics."""
    library: str = "sentence-transformers"
    """Library that loads the model, as the hub names it."""
    pipeline: str = "sentence-similarity"
    """The task of the hub, which chooses its widget."""
    tags: Sequence[str] = ("entity-linking", "feature-extraction")
    """Tags on the hub."""

    @property
    def base_name(self) -> str:
        """The last part of a folder, or the name on a hub as it is."""
        return self.hub_name or Path(self.base_model).name or "encoder"

    @property
    def hub_name(self) -> str:
        """The base model on the hub; empty for a folder whose origin is unknown."""
        if not Path(self.base_model).exists():
            return self.base_model if _HUB_NAME.fullmatch(self.base_model) else ""
        for part in Path(self.base_model).absolute().parts:  # in the cache of the hub
            if part.startswith(_CACHED):
                return part.removeprefix(_CACHED).replace("--", "/")
        known = self._base.base_model
        return known if isinstance(known, str) else ""

    @property
    def licence(self) -> str:
        """The licence that the card of the base model states; empty if it states none."""
        return str(self._base.license or "")

    @property
    def _base(self) -> ModelCardData:
        """The front matter of the card of the base model."""
        try:
            found = HubCard.load(Path(self.base_model) / CARD, ignore_metadata_errors=True).data
        except (OSError, ValueError):
            return ModelCardData()
        return found if isinstance(found, ModelCardData) else ModelCardData()

    def front(self) -> ModelCardData:
        """Return the front matter, without what is not known."""
        scores = dict(self.scores)
        if not scores and "acc@1" in self.metrics:
            scores = {"dev": {"acc@1": self.metrics["acc@1"]}}
        names = {split: self.data_sets.get(split, "mentions") for split in scores}
        results = [
            EvalResult(
                task_type=self.pipeline,
                dataset_type=re.sub(r"[^\w-]+", "-", names[split]).strip("-").lower(),
                dataset_name=names[split],
                dataset_split=split,
                metric_type=metric,
                metric_value=round(value, 6),
            )
            for split, reached in scores.items()
            for metric, value in reached.items()
        ]
        return ModelCardData(
            language=[*self.languages] or None,
            license=self.licence or None,
            library_name=self.library,
            pipeline_tag=self.pipeline,
            base_model=self.hub_name or None,
            datasets=[*dict.fromkeys([*self.data_sets.values(), *map(_name, self.sources)])]
            or None,
            metrics=[*dict.fromkeys(each.metric_type for each in results)] or None,
            tags=["biograft", "biomedical", *self.tags],
            model_name=self.title,
            eval_results=results or None,
        )


def write_card(folder: Path, card: ModelCard, settings: EncoderSettings | None = None) -> None:
    """Write a card into the folder of its model, unless it is there already.

    Args:
        folder: Folder of the model.
        card: Origin and results of the model.
        settings: Pooling, maximum length and lowercasing of an encoder.
    """
    text = render_card(card, settings).encode()
    if not (folder / CARD).exists() or (folder / CARD).read_bytes() != text:
        with new_file(folder / CARD, overwrite=True) as file:
            file.write(text)


def render_card(card: ModelCard, settings: EncoderSettings | None = None) -> str:
    """Return a card as Markdown, with the front matter that hubs read.

    Args:
        card: Origin and results of the model.
        settings: Pooling, maximum length and lowercasing of an encoder.
    """
    if settings is not None:
        poolings = {"mean": "the mean", "cls": "the first"}
        use = _USE.format(
            pooling=poolings.get(settings.pooling, settings.pooling),
            max_length=settings.max_length,
            lower=", and are lowercased first" if settings.lower else "",
        )
        card = replace(card, use=use)
    made_by = f"biograft {biograft.__version__}{_commit()}"
    stated = f"licence: {card.licence}" if card.licence else "its licence is not known here"
    parts = [
        f"---\n{card.front().to_yaml()}\n---",
        f"# {card.title}, from {card.base_name}",
        f"{card.method} by {made_by}.",
        f"## Use\n\n{card.use}",
        f"## Training data\n\n{_table(card.data)}{_sources(card)}",
        f"## Results\n\n{_table(card.metrics)}\n\n{card.about_metrics}",
        f"## Licence\n\nThe weights derive from {card.base_name} ({stated}) and from the data "
        "above, whose licences may limit what may be passed on. Check them before you publish.",
    ]
    return "\n\n".join(parts) + "\n"


def _commit() -> str:
    """Return the commit of a checkout, for a card; empty for an installed package."""
    root = Path(biograft.__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" (commit {found.strip()})"


def _table(values: Mapping[str, Any]) -> str:
    rows = [
        f"| {key.removeprefix('n_').replace('_', ' ')} | {_shown(value)} |"
        for key, value in values.items()
    ]
    return "\n".join(["| | |", "|---|---|", *rows])


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "/").replace("\n", " ")


def _name(source: Mapping[str, Any]) -> str:
    return re.split(r"[\\/]", str(source.get("path", "")))[-1]


def _sources(card: ModelCard) -> str:
    """List the sources of the knowledge base with the licences that they state."""
    lines = []
    for source in card.sources:
        stated = [n for n in source.get("notes", ()) if str(n).startswith(_LICENCE_NOTE)]
        hashes = [str(file.get("sha256", ""))[:12] for file in source.get("files", ())][:1]
        lines.append(f"- {', '.join([f'`{_name(source)}`', *hashes, *stated])}")
    return "\n\nSources of the knowledge base:\n\n" + "\n".join(lines) if lines else ""
