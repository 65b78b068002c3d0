"""The model card of a trained encoder: README.md beside its weights, as model hubs show it.

It says what the encoder was trained from and on, and how well, and how to load it. It names files,
but no folders of the machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import biograft
from biograft.artifacts import new_file
from biograft.models.settings import EncoderSettings

CARD = "README.md"
_LICENCE_NOTE = "licence: "
_FRONT = re.compile(r"---\n(.*?)\n---", re.DOTALL)
_LICENCE_KEY = re.compile(r"^license: *(\S+)", re.MULTILINE)
_UNKNOWN = "other"
_HUB_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
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

    @property
    def base_name(self) -> str:
        """The last part of a folder, or the name on a hub as it is."""
        if Path(self.base_model).exists() or not _HUB_NAME.fullmatch(self.base_model):
            return Path(self.base_model).name or "encoder"
        return self.base_model

    @property
    def licence(self) -> str:
        """The licence that the card of the base model states; "other" if there is none."""
        try:
            text = (Path(self.base_model) / CARD).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return _UNKNOWN
        front = _FRONT.match(text)
        stated = _LICENCE_KEY.search(front.group(1)) if front else None
        return stated.group(1) if stated else _UNKNOWN


def write_card(folder: Path, card: ModelCard, settings: EncoderSettings) -> None:
    """Write the card of an encoder into its folder.

    Args:
        folder: Folder of the encoder.
        card: Origin and results of the encoder.
        settings: Pooling, maximum length and lowercasing.
    """
    with new_file(folder / CARD, overwrite=True) as file:
        file.write(render_card(card, settings).encode())


def render_card(card: ModelCard, settings: EncoderSettings) -> str:
    """Return a card as Markdown, with the front matter that hubs read.

    Args:
        card: Origin and results of the encoder.
        settings: Pooling, maximum length and lowercasing.
    """
    front = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "license": card.licence,
        "base_model": card.base_name,
        "tags": ["biograft", "biomedical", "entity-linking", "feature-extraction"],
    }
    poolings = {"mean": "the mean", "cls": "the first"}
    use = _USE.format(
        pooling=poolings.get(settings.pooling, settings.pooling),
        max_length=settings.max_length,
        lower=", and are lowercased first" if settings.lower else "",
    )
    parts = [
        "\n".join(["---", *(f"{k}: {json.dumps(v)}" for k, v in front.items()), "---"]),
        f"# Encoder of medical names, from {card.base_name}",
        f"{card.method} by biograft {biograft.__version__}.",
        f"## Use\n\n{use}",
        f"## Training data\n\n{_table(card.data)}{_sources(card)}",
        f"## Results\n\n{_table(card.metrics)}\n\nThese are of the training itself. Measure "
        "linking by `biograft evaluate link`.",
        f"## Licence\n\nThe weights derive from {card.base_name} (licence: {card.licence}) and "
        "from names of the sources above, whose licences may limit what may be passed on. Check "
        "them before you publish.",
    ]
    return "\n\n".join(parts) + "\n"


def _table(values: Mapping[str, Any]) -> str:
    rows = [f"| {key.replace('_', ' ')} | {_shown(value)} |" for key, value in values.items()]
    return "\n".join(["| | |", "|---|---|", *rows])


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "/").replace("\n", " ")


def _sources(card: ModelCard) -> str:
    """List the sources of the knowledge base with the licences that they state."""
    lines = []
    for source in card.sources:
        name = re.split(r"[\\/]", str(source.get("path", "")))[-1]
        stated = [n for n in source.get("notes", ()) if str(n).startswith(_LICENCE_NOTE)]
        hashes = [str(file.get("sha256", ""))[:12] for file in source.get("files", ())][:1]
        lines.append(f"- {', '.join([f'`{name}`', *hashes, *stated])}")
    return "\n\nSources of the knowledge base:\n\n" + "\n".join(lines) if lines else ""
