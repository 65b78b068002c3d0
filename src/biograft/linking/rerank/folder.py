"""The folder of a re-ranker: its files, and the manifest that is written last.

====================  ===========================================================
``encoder/``          the encoder, which transformers loads as any other
``head.safetensors``  the head that makes a score of a pair, and the bias of NIL
``ranker/``           the trained linker that ranks first, if there is one
====================  ===========================================================
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from biograft.config import from_mapping
from biograft.errors import ConfigError
from biograft.linking.rerank.config import RerankConfig
from biograft.linking.rerank.mixing import Mix
from biograft.linking.rerank.model import CrossEncoder
from biograft.manifests import Kind, file_sizes
from biograft.runs import new_folder

RANKER = "ranker"
RERANKER = Kind(
    format="biograft-context-ranker",
    version=1,
    called="re-ranker",
    remedy="train the re-ranker again",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of a re-ranker but its weights."""

    config: RerankConfig
    mix: Mix
    weights: Mapping[str, float]
    """How much each generator counted in the first ranking, where no trained linker made it."""
    report: Mapping[str, Any]
    provenance: Mapping[str, Any]


def write_reranker(
    folder: Path, model: CrossEncoder, described: Description, ranker: Path | None
) -> None:
    """Write a re-ranker, replacing an earlier one of the same run."""
    with new_folder(folder, overwrite=True) as work:
        model.save(work)
        if ranker is not None:
            shutil.copytree(ranker, work / RANKER)
        RERANKER.write(work, {**asdict(described), "files": file_sizes(work)})


def read_description(folder: Path) -> Description:
    """Read what a re-ranker is, refusing what is none, of another version or not whole."""
    manifest = RERANKER.read(folder)
    try:
        RERANKER.check_files(folder, manifest)
        return Description(
            config=from_mapping(RerankConfig, manifest["config"], "config."),
            mix=Mix(**manifest["mix"]),
            weights={name: float(weight) for name, weight in manifest["weights"].items()},
            report=dict(manifest["report"]),
            provenance=dict(manifest["provenance"]),
        )
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError) as error:
        raise RERANKER.damaged(folder / RERANKER.file, repr(error)) from error
