"""The diseases of BC5CDR: the dictionary published for its dev split, and the texts of dev."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from biograft.evaluation import read_gold_texts
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.text.documents import Document

_FOLDER = Path("entity_linking", "bc5cdr")


def open_diseases(data: Path, work: Path) -> KnowledgeBase:
    """Build the store of the dictionary in a folder, and open it.

    Args:
        data: The folder of real data.
        work: Where the store is written.

    """
    path = data / _FOLDER / "biosyn_disease" / "dev_dictionary.txt.gz"
    build_store(BuildConfig(sources=(SourceConfig(path=path, format="biosyn"),)), work / "kb")
    return KnowledgeBase.open(work / "kb")


def read_abstracts(data: Path) -> Sequence[Document]:
    """Read the abstracts of dev, with all their mentions.

    Args:
        data: The folder of real data.

    """
    path = data / _FOLDER / "pubtator" / "CDR_DevelopmentSet.PubTator.txt.gz"
    return read_gold_texts(path, "pubtator").documents
