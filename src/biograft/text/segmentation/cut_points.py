"""Cut-point characters: characters at which the words of Chinese entities begin or end (EMBERT).

The names of a store are split with the entity vocabulary; the most frequent characters at the
start or the end of segments are the cut points. They are written to a file for review: deleting a
line, or commenting it out, removes the cut point. A character cuts on the side where segment
boundaries are more frequent: before 急, after 性.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from biograft.artifacts import new_file
from biograft.errors import ConfigError, FormatError
from biograft.kb.sources.files import read_lines
from biograft.text.segmentation.words import UnigramVocabulary, Unit

BEFORE, AFTER = "before", "after"
COLUMNS = ("character", "side", "count", "starts", "ends", "ratio")
_FILE_HEADER = f"""\
# Characters at which names are cut. Delete the line of one that should not cut.
# side: cut before or after it. count: segments that begin (starts) or end (ends) with it.
# ratio: how many of its occurrences inside names are such a cut.
# {chr(9).join(COLUMNS)}
"""


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A character at which names are cut, with its statistics."""

    character: str
    side: str
    starts: int
    ends: int
    ratio: float

    @property
    def count(self) -> int:
        """The number of segments that begin or end with the character."""
        return self.starts + self.ends


def find_cut_points(
    names: Iterable[Sequence[Unit]],
    vocabulary: UnigramVocabulary,
    *,
    n: int = 100,
    min_ratio: float = 0.0,
) -> list[CutPoint]:
    """Count the characters at the edges of segments and return the ``n`` most frequent.

    ``min_ratio`` drops characters that are a segment boundary at a lower ratio of occurrences.
    """
    if n < 0:
        raise ConfigError(f"n_cut_points: expected 0 or more, found {n}")
    edges = _Edges()
    for run in names:
        if len(run) > 1:
            edges.add(run, vocabulary.split(run, whole=False))
    points = [edges.point(character) for character in edges.seen]
    points = [point for point in points if point.ratio >= min_ratio]
    points.sort(key=lambda point: (-point.count, point.character))
    return points[:n]


class _Edges:
    """Counts of characters at the edges of segments, and of cuts inside runs."""

    def __init__(self) -> None:
        self.starts: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.positions: Counter[tuple[str, str]] = Counter()
        self.cuts: Counter[tuple[str, str]] = Counter()

    @property
    def seen(self) -> list[str]:
        return sorted(self.starts.keys() | self.ends.keys())

    def add(self, run: Sequence[Unit], segments: Sequence[Sequence[Unit]]) -> None:
        for unit, following in pairwise(run):
            self.positions[unit.form, AFTER] += 1
            self.positions[following.form, BEFORE] += 1
        for segment in segments:
            first, last = segment[0], segment[-1]
            self.starts[first.form] += _is_character(first)
            self.ends[last.form] += _is_character(last)
            self.cuts[first.form, BEFORE] += first is not run[0]
            self.cuts[last.form, AFTER] += last is not run[-1]

    def point(self, character: str) -> CutPoint:
        starts, ends = self.starts[character], self.ends[character]
        side = BEFORE if starts > ends else AFTER
        positions = self.positions[character, side]
        ratio = self.cuts[character, side] / positions if positions else 0.0
        return CutPoint(character, side, starts, ends, round(ratio, 3))


def _is_character(unit: Unit) -> bool:
    """Whether a unit is a single Chinese character, not a number or a Latin word."""
    return len(unit.form) == 1 and unit.form.isalpha() and not unit.form.isascii()


def write_cut_points(points: Iterable[CutPoint], path: Path, *, overwrite: bool = False) -> None:
    """Write cut points for review, the most frequent first."""
    with new_file(path, overwrite=overwrite) as file:
        file.write(_FILE_HEADER.encode())
        for point in points:
            fields = (point.character, point.side, point.count, point.starts, point.ends)
            file.write("\t".join(map(str, (*fields, f"{point.ratio:.3f}"))).encode() + b"\n")


def read_cut_points(path: Path) -> list[CutPoint]:
    """Read cut points; empty lines and lines that begin with ``#`` are skipped."""
    points: dict[str, CutPoint] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        point = _read_point(line)
        if point is None or point.character in points:
            problem = (
                f"expected one character and, separated by tabs, {', '.join(COLUMNS[1:])}"
                if point is None
                else "a character that is in the file already"
            )
            raise FormatError(problem, path=path, line=number, text=line)
        points[point.character] = point
    return list(points.values())


def _read_point(line: str) -> CutPoint | None:
    fields = line.split("\t")
    if len(fields) != len(COLUMNS) or len(fields[0]) != 1 or fields[1] not in (BEFORE, AFTER):
        return None
    try:
        return CutPoint(fields[0], fields[1], int(fields[3]), int(fields[4]), float(fields[5]))
    except ValueError:
        return None
