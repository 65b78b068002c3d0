"""Segmentation of a store's names on disk: build it, open it, and segment further entities.

=================  ==================================================================
``phrases.tsv``    mined phrases with their statistics and quality, the best first
``cut_points.tsv`` cut-point characters (Chinese)
``words.tsv``      words, counts, kinds: ``short`` entity (count 0: not in the vocabulary), other
                   ``name``, ``phrase``, ``head`` (not Chinese: words that precede it)
``rows.npy``       rows of the store's table of names that are long, ascending
``starts.npy``     start of each name in ``segments.npy``, and the end of the last
``segments.npy``   offsets of the segments
``parts.npy``      offsets of adjective part and head: ``(names, 2, 2)``
=================  ==================================================================
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from biograft.arrays import Array
from biograft.artifacts import (
    ArraySpec,
    ArtifactKind,
    describe_files,
    hash_file,
    new_folder,
    open_arrays,
    save_arrays,
    write_lines,
)
from biograft.config import from_mapping
from biograft.errors import ConfigError, FormatError, NotFoundError, StoreError
from biograft.kb import KnowledgeBase, fingerprint
from biograft.kb.sources.files import read_lines
from biograft.progress import Progress
from biograft.text.input_config import InputConfig
from biograft.text.inputs import files_below, read_texts
from biograft.text.segmentation.config import CHINESE, SegmentationConfig
from biograft.text.segmentation.phrases import (
    MinedPhrases,
    mine_phrases,
    write_phrases,
)
from biograft.text.segmentation.segmenter import (
    ChineseSegmenter,
    CutPoint,
    HeadSegmenter,
    SegmentedEntity,
    find_cut_points,
    read_cut_points,
    whole,
    write_cut_points,
)
from biograft.text.segmentation.words import (
    NameRuns,
    UnigramVocabulary,
    fit_vocabulary,
    join,
    open_word_segmenter,
    read_units,
    runs,
)

SEGMENTATION = ArtifactKind(
    format="biograft-segmentation",
    version=3,
    called="segmentation",
    remedy="run `biograft corpus segment` again",
    absent="make one with `biograft corpus segment`",
    keys=("config", "store", "n_names", "n_long", "files"),
)
NAMED_BY = ("names",)
"""The tables of a store whose rows a segmentation refers to."""
WORD_KINDS = ("short", "name", "phrase", "head")


def names_in(base: KnowledgeBase, language: str) -> dict[str, list[int]]:
    """Return the rows of each name in a language that has a letter or digit, sorted by name.

    Args:
        base: Knowledge base.
        language: The language, such as ``zh``.
    """
    if language not in base.languages:
        raise NotFoundError(
            f"{base.folder}: no name is in language {language!r}; "
            f"the store has {', '.join(base.languages)}"
        )
    table = base.table("names").select(["text", "language"])
    wanted = table.column("language").to_numpy() == base.languages.index(language)
    texts = table.column("text").filter(wanted).to_pylist()
    rows: dict[str, list[int]] = {}
    for row, text in zip(np.flatnonzero(wanted).tolist(), texts, strict=True):
        rows.setdefault(text, []).append(row)
    return {text: rows[text] for text in sorted(rows) if read_units(text, language)}


class LongNames:
    """The segments of the long names of a store, in flat arrays."""

    def __init__(self) -> None:
        self.n = 0
        """The number of distinct long names."""
        self._rows, self._lengths = array("q"), array("q")
        self._segments, self._parts = array("i"), array("i")

    def add(self, rows: Sequence[int], name: SegmentedEntity) -> None:
        """Add the segments of the rows of a name, if it is long.

        Args:
            rows: Rows of the name.
            name: The name with its segments.
        """
        if not name.is_long:
            return
        self.n += 1
        for row in rows:
            self._rows.append(row)
            self._lengths.append(len(name.segments))
            self._segments.extend(chain.from_iterable(name.segments))
            self._parts.extend((*name.adjective, *name.head))

    def write(self, folder: Path) -> None:
        """Write the arrays, by row."""
        rows, lengths = np.array(self._rows, np.int64), np.array(self._lengths, np.int64)
        order = np.argsort(rows)
        before = np.cumsum(lengths) - lengths  # segments of the names added before
        starts = np.append(0, np.cumsum(lengths[order]))
        taken = np.repeat(before[order] - starts[:-1], lengths[order]) + np.arange(starts[-1])
        arrays: dict[str, Array] = {
            "rows": rows[order],
            "starts": starts.astype(np.int64),
            "segments": np.array(self._segments, np.int32).reshape(-1, 2)[taken],
            "parts": np.array(self._parts, np.int32).reshape(-1, 2, 2)[order],
        }
        save_arrays(folder, arrays)


def _write_words(segmenter: ChineseSegmenter | HeadSegmenter, names: set[str], path: Path) -> None:
    """Write the words; short ones in the order in which they were added, which matters."""
    counts = segmenter.vocabulary.counts
    short: dict[str, float] = {}
    if isinstance(segmenter, ChineseSegmenter):
        short = {word: counts.get(word, 0.0) for word in segmenter.short}
    lines = [(word, count, "short") for word, count in short.items()]
    for word, count in sorted(counts.items()):
        if word not in short:
            lines.append((word, count, "name" if word in names else "phrase"))
    if isinstance(segmenter, HeadSegmenter):
        lines += [(word, float(n), "head") for word, n in sorted(segmenter.heads.items())]
    write_lines(path, (f"{word}\t{count!r}\t{kind}" for word, count, kind in lines))


def read_words(path: Path) -> Iterator[tuple[str, float, str]]:
    """Read words with their counts and kinds."""
    for number, line in read_lines(path):
        word, _, rest = line.partition("\t")
        count, _, kind = rest.partition("\t")
        try:
            if kind not in WORD_KINDS:
                raise ValueError(kind)
            yield word, float(count), kind
        except ValueError as error:
            raise FormatError(
                "expected a word, a count and a kind", path=path, line=number, text=line
            ) from error


_ARRAYS = {
    "rows": ArraySpec("int64", ("names",), low=0, rising=True),
    "starts": ArraySpec("int64", ("names + 1",), ends="segments"),
    "segments": ArraySpec("int32", ("segments", 2), low=0),
    "parts": ArraySpec("int32", ("names", 2, 2), low=0),
}


class Segmentation:
    """The segmentation of a store's names; its arrays are memory-mapped.

    Args:
        folder: Folder of the segmentation.
        manifest: Its manifest.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = folder, manifest
        self.config = from_mapping(SegmentationConfig, manifest["config"], "config.")
        try:
            arrays = open_arrays(folder, _ARRAYS)
        except ValueError as error:
            raise SEGMENTATION.damaged(folder, error) from error
        self.rows, self._starts = arrays["rows"], arrays["starts"]
        self._segments, self._parts = arrays["segments"], arrays["parts"]

    @classmethod
    def open(cls, folder: str | Path) -> Segmentation:
        """Open the segmentation in a folder."""
        folder = Path(folder)
        manifest = SEGMENTATION.read(folder)
        SEGMENTATION.check_files(folder, manifest)
        return cls(folder, manifest)

    def __len__(self) -> int:
        """The number of rows of the table of names that are long."""
        return len(self.rows)

    def check_store(self, base: KnowledgeBase) -> None:
        """Raise a ``StoreError`` if the segmentation was made for another store."""
        if fingerprint(base, NAMED_BY) != self.manifest["store"]:
            raise StoreError(
                f"{self.folder}: made for another knowledge base than {base.folder}; "
                f"{SEGMENTATION.remedy}"
            )

    def of_name(self, base: KnowledgeBase, row: int) -> SegmentedEntity:
        """Return the segmentation of a row of the store's table of names.

        Args:
            base: Knowledge base that it was made from.
            row: Row of the name.
        """
        text = base.table("names").column("text")[row].as_py()
        position = int(np.searchsorted(self.rows, row))
        if position == len(self.rows) or self.rows[position] != row:
            return whole(text)
        spans = self._segments[self._starts[position] : self._starts[position + 1]].tolist()
        adjective, head = self._parts[position].tolist()
        return SegmentedEntity(text, tuple((s, e) for s, e in spans), tuple(adjective), tuple(head))

    def segment(self, text: str) -> SegmentedEntity:
        """Segment any entity with the same rules and words."""
        return self.segmenter.segment(text)

    @cached_property
    def cut_points(self) -> list[CutPoint]:
        """The cut-point characters; empty unless the language is Chinese."""
        path = self.folder / "cut_points.tsv"
        return read_cut_points(path) if self.config.language == CHINESE else []

    @cached_property
    def segmenter(self) -> ChineseSegmenter | HeadSegmenter:
        """The segmenter of this segmentation, with its dictionary."""
        by_kind: dict[str, dict[str, float]] = {kind: {} for kind in WORD_KINDS}
        for word, count, kind in read_words(self.folder / "words.tsv"):
            by_kind[kind][word] = count
        heads = by_kind.pop("head")
        counts = {word: n for words in by_kind.values() for word, n in words.items() if n}
        vocabulary = UnigramVocabulary(dict(sorted(counts.items())), self.config.language)
        if self.config.language != CHINESE:
            return HeadSegmenter(vocabulary, {h: int(n) for h, n in heads.items()}, self.config)
        words = open_word_segmenter(self.config.word_segmenter, vocabulary, by_kind["phrase"])
        segmenter = ChineseSegmenter(vocabulary, words, self.cut_points, self.config)
        for word in by_kind["short"]:
            segmenter.add_word(word)
        return segmenter


def build_segmentation(
    base: KnowledgeBase,
    texts: Sequence[Path],
    out: Path,
    config: SegmentationConfig | None = None,
    *,
    reading: InputConfig | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Segment all names of a store in one language and write the result to a folder.

    Args:
        base: The knowledge base.
        texts: Files from which phrases are mined, and from the names: a document a line, or any
            document format.
        out: The folder.
        config: Settings of long entities and their segmentation.
        reading: How the texts are read.
        overwrite: Replace the folder.
        progress: Shows the stages.

    Returns:
        The manifest of the folder.
    """
    reading = reading or InputConfig(lines=True)
    config, progress = config or SegmentationConfig(), progress or Progress()
    names = names_in(base, config.language)
    reviewed = read_cut_points(config.cut_points) if config.cut_points else None
    with new_folder(out, overwrite=overwrite) as folder:
        progress.start("phrases")
        mined = mine_phrases(
            chain(read_texts(texts, reading), names),
            config.phrases,
            language=config.language,
            names=names,
            advance=progress.advance,
        )
        progress.start("vocabulary")
        grouped = NameRuns(list(names), config.language)
        counts = _count_words(mined, names, config.language)
        vocabulary = fit_vocabulary(counts, grouped, config.language)
        progress.start("segments")
        forms = {"".join(unit.form for unit in read_units(name, config.language)) for name in names}
        points: list[CutPoint] = []
        segmenter: ChineseSegmenter | HeadSegmenter
        if config.language == CHINESE:
            points = (
                find_cut_points(
                    grouped, vocabulary, n=config.n_cut_points, min_ratio=config.min_cut_ratio
                )
                if reviewed is None
                else reviewed
            )
            phrases = [word for word in vocabulary.counts if word not in forms]
            words = open_word_segmenter(config.word_segmenter, vocabulary, phrases)
            segmenter = ChineseSegmenter(vocabulary, words, points, config)
            write_cut_points(points, folder / "cut_points.tsv")
        elif reviewed is None:
            segmenter = HeadSegmenter(vocabulary, config=config)
        else:
            raise ConfigError("cut_points: expected none unless the language is zh; leave them out")
        segmenter.learn(names)
        segmented = LongNames()
        for n, (name, rows) in enumerate(names.items(), 1):
            segmented.add(rows, segmenter.segment(name))
            progress.advance(1, n / len(names))
        progress.finish()
        write_phrases(mined.phrases, folder / "phrases.tsv")
        _write_words(segmenter, forms, folder / "words.tsv")
        segmented.write(folder)
        cut_points = config.cut_points
        plain = {**asdict(config), "cut_points": cut_points.name if cut_points else None}
        content = {
            "store": fingerprint(base, NAMED_BY),
            "n_names": len(names),
            "n_long": segmented.n,
            "n_cut_points": len(points),
            "config": plain,
            "cut_points_sha256": hash_file(cut_points) if cut_points else None,
            "texts": [
                {"name": file.name, "sha256": hash_file(file)} for file in files_below(texts)
            ],
            "n_units": mined.n_units,
            "n_runs_pruned": mined.pruned,
            "n_units_pruned": mined.pruned_units,
            "n_phrases": len(mined.phrases),
            "seconds": {stage: round(took, 3) for stage, took in progress.seconds.items()},
            "files": describe_files(folder),
        }
        return SEGMENTATION.write(folder, content)


def _count_words(mined: MinedPhrases, names: Iterable[str], language: str) -> dict[str, float]:
    """Count the words of the entity vocabulary: phrases, and names without punctuation."""
    counts: dict[str, float] = {phrase.text: phrase.count for phrase in mined.phrases}
    for name in names:
        grouped = runs(name, language)
        if len(grouped) == 1 and language == CHINESE:
            forms = [unit.form for unit in grouped[0]]
            counts[join(forms, language)] = max(mined.count(forms), 1)
    return counts
