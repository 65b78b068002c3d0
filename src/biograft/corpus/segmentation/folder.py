"""The folder of a segmentation: what it rests on, to be read by people, and the long names.

=================  ==================================================================
``phrases.tsv``    mined phrases with their figures, the best first
``cut_points.tsv`` cut-point characters (Chinese)
``words.tsv``      words, counts, kinds: ``short`` entity (count 0: none of the vocabulary), other
                   ``name``, ``phrase``, ``head`` (not Chinese: words that precede it)
``rows.npy``       rows of the store's table of names that are long, ascending
``starts.npy``     where the pieces of each begin in ``pieces.npy``, and one end more
``pieces.npy``     spans of the pieces
``parts.npy``      adjective and head of each: ``(names, 2, 2)``
=================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from biograft.corpus.segmentation.cut_points import CutPoint, write_cut_points
from biograft.corpus.segmentation.heads import HeadSegmenter
from biograft.corpus.segmentation.phrases import MinedPhrases, write_phrases
from biograft.corpus.segmentation.segmented import Segmented
from biograft.corpus.segmentation.segmenter import ChineseSegmenter
from biograft.corpus.segmentation.units import read_units
from biograft.errors import FormatError, NotFoundError
from biograft.kb import KnowledgeBase, fingerprint
from biograft.manifests import Kind, file_sizes
from biograft.runs import new_file
from biograft.sources.files import read_lines

SEGMENTATION = Kind(
    format="biograft-segmentation",
    version=1,
    called="segmentation",
    remedy="run `biograft corpus segment` again",
    absent="make one with `biograft corpus segment`",
    keys=("config", "store", "n_names", "n_long", "files"),
)
NAMED_BY = ("names",)
"""The tables of a store whose rows it speaks of."""
WORD_KINDS = ("short", "name", "phrase", "head")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoreNames:
    """The different names of a store in one language, and the rows each stands in."""

    texts: list[str]
    rows: list[list[int]]
    forms: set[str]

    @classmethod
    def of(cls, base: KnowledgeBase, language: str) -> StoreNames:
        """Take the names of a language; texts without a letter or digit are left out."""
        if language not in base.languages:
            raise NotFoundError(
                f"{base.folder}: no name is in language {language!r}; "
                f"the store has {', '.join(base.languages)}"
            )
        table = base.table("names").select(["text", "language"])
        wanted = table.column("language").to_numpy() == base.languages.index(language)
        rows: dict[str, list[int]] = {}
        for row, text in zip(
            np.flatnonzero(wanted).tolist(),
            table.column("text").filter(wanted).to_pylist(),
            strict=True,
        ):
            rows.setdefault(text, []).append(row)
        texts = sorted(text for text in rows if read_units(text, language))
        forms = {"".join(unit.form for unit in read_units(text, language)) for text in texts}
        return cls(texts, [rows[text] for text in texts], forms)


def write_folder(
    folder: Path,
    base: KnowledgeBase,
    names: StoreNames,
    made: tuple[MinedPhrases, ChineseSegmenter | HeadSegmenter, Sequence[CutPoint]],
    segmented: Sequence[Segmented],
    content: dict[str, Any],
) -> dict[str, Any]:
    """Write all files into a working folder, the manifest last."""
    mined, segmenter, points = made
    write_phrases(mined.phrases, folder / "phrases.tsv")
    if isinstance(segmenter, ChineseSegmenter):
        write_cut_points(points, folder / "cut_points.tsv")
    _write_words(segmenter, names.forms, folder / "words.tsv")
    n_long = _write_arrays(folder, names, segmented)
    files = file_sizes(folder)
    return SEGMENTATION.write(
        folder,
        {
            "store": fingerprint(base, NAMED_BY),
            "n_names": len(names.texts),
            "n_long": n_long,
            "n_cut_points": len(points),
            **content,
            "files": files,
        },
    )


def _write_arrays(folder: Path, names: StoreNames, segmented: Sequence[Segmented]) -> int:
    """Write the long names by row; give how many different texts they are."""
    by_row = sorted(
        ((row, each) for rows, each in zip(names.rows, segmented, strict=True) for row in rows
         if each.is_long),
        key=lambda pair: pair[0],
    )  # fmt: skip
    pieces = [piece for _, each in by_row for piece in each.pieces]
    starts = np.cumsum([0, *(len(each.pieces) for _, each in by_row)])
    arrays: dict[str, npt.NDArray[Any]] = {
        "rows": np.array([row for row, _ in by_row], np.int64),
        "starts": starts.astype(np.int64),
        "pieces": np.array(pieces, np.int32).reshape(-1, 2),
        "parts": np.array([(s.adjective, s.head) for _, s in by_row], np.int32).reshape(-1, 2, 2),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    return sum(each.is_long for each in segmented)


def _write_words(segmenter: ChineseSegmenter | HeadSegmenter, names: set[str], path: Path) -> None:
    """Write the words; short ones in the order in which they were added, which counts."""
    counts = segmenter.vocabulary.counts
    marked: dict[str, float] = {}
    if isinstance(segmenter, ChineseSegmenter):
        marked = {word: counts.get(word, 0.0) for word in segmenter.short}
    lines = [(word, count, "short") for word, count in marked.items()]
    for word, count in sorted(counts.items()):
        if word not in marked:
            lines.append((word, count, "name" if word in names else "phrase"))
    if isinstance(segmenter, HeadSegmenter):
        lines += [(word, float(n), "head") for word, n in sorted(segmenter.heads.items())]
    with new_file(path) as file:
        file.writelines(f"{word}\t{count!r}\t{kind}\n".encode() for word, count, kind in lines)


def read_words(path: Path) -> Iterator[tuple[str, float, str]]:
    """Read words, their counts and their kinds."""
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
