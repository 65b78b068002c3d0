"""Open a segmentation: the long names of a store in pieces, and a segmenter for other text."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.config import from_mapping
from biograft.corpus.segmentation.config import SegmentationConfig
from biograft.corpus.segmentation.cut_points import CutPoint, read_cut_points
from biograft.corpus.segmentation.folder import (
    NAMED_BY,
    SEGMENTATION,
    WORD_KINDS,
    read_words,
)
from biograft.corpus.segmentation.heads import HeadSegmenter
from biograft.corpus.segmentation.segmented import Segmented, whole
from biograft.corpus.segmentation.segmenter import ChineseSegmenter
from biograft.corpus.segmentation.units import CHINESE
from biograft.corpus.segmentation.vocabulary import Vocabulary
from biograft.corpus.segmentation.words import open_words
from biograft.errors import StoreError
from biograft.kb import KnowledgeBase, fingerprint


class Segmentation:
    """The segmentation of a store's names, mapped into memory."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.config = from_mapping(SegmentationConfig, manifest["config"], "config.")
        self.rows = self._load("rows")
        self._starts, self._pieces = self._load("starts"), self._load("pieces")
        self._parts = self._load("parts")

    @classmethod
    def open(cls, folder: str | Path) -> Segmentation:
        """Open the segmentation in a folder."""
        folder = Path(folder)
        manifest = SEGMENTATION.read(folder)
        SEGMENTATION.check_files(folder, manifest)
        return cls(folder, manifest)

    def __len__(self) -> int:
        """How many rows of the table of names are long."""
        return len(self.rows)

    def check_store(self, base: KnowledgeBase) -> None:
        """Refuse a store that these rows do not belong to."""
        if fingerprint(base, NAMED_BY) != self.manifest["store"]:
            raise StoreError(
                f"{self.folder}: made for another knowledge base than {base.folder}; "
                f"{SEGMENTATION.remedy}"
            )

    def of_name(self, base: KnowledgeBase, row: int) -> Segmented:
        """Give the segmentation of a row of the store's table of names."""
        text = base.table("names").column("text")[row].as_py()
        place = int(np.searchsorted(self.rows, row))
        if place == len(self.rows) or self.rows[place] != row:
            return whole(text)
        spans = self._pieces[self._starts[place] : self._starts[place + 1]].tolist()
        adjective, head = self._parts[place].tolist()
        return Segmented(text, tuple((s, e) for s, e in spans), tuple(adjective), tuple(head))

    def segment(self, text: str) -> Segmented:
        """Segment any entity by the same rules and words."""
        return self.segmenter.segment(text)

    @cached_property
    def cut_points(self) -> list[CutPoint]:
        """The cut-point characters; none where the language has blanks."""
        path = self.folder / "cut_points.tsv"
        return read_cut_points(path) if self.config.language == CHINESE else []

    @cached_property
    def segmenter(self) -> ChineseSegmenter | HeadSegmenter:
        """The segmenter that made this, with its dictionary."""
        by_kind: dict[str, dict[str, float]] = {kind: {} for kind in WORD_KINDS}
        for word, count, kind in read_words(self.folder / "words.tsv"):
            by_kind[kind][word] = count
        heads = by_kind.pop("head")
        counts = {word: n for words in by_kind.values() for word, n in words.items() if n}
        vocabulary = Vocabulary(dict(sorted(counts.items())), self.config.language)
        if self.config.language != CHINESE:
            return HeadSegmenter(vocabulary, {h: int(n) for h, n in heads.items()}, self.config)
        words = open_words(self.config.words, vocabulary, by_kind["phrase"])
        segmenter = ChineseSegmenter(vocabulary, words, self.cut_points, self.config)
        for word in by_kind["short"]:
            segmenter.add_word(word)
        return segmenter

    def _load(self, name: str) -> npt.NDArray[Any]:
        path = self.folder / f"{name}.npy"
        try:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except (OSError, ValueError, EOFError) as error:
            raise SEGMENTATION.damaged(path, error) from error
