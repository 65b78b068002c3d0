"""Cut-point characters: those at which the words of Chinese entities begin or end.

The names of a store are split with the entity vocabulary; the characters met most often at the
start or the end of a segment are the cut points. They go to a file for a person to read: a line
deleted, or made a comment, is a cut that is never made. A character cuts on the side where
segments part there more often: 急 before it, 性 after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from biograft.artifacts import new_file
from biograft.corpus.segmentation.words import Unit, Vocabulary
from biograft.errors import ConfigError, FormatError
from biograft.sources.files import read_lines

BEFORE, AFTER = "before", "after"
COLUMNS = ("character", "side", "count", "starts", "ends", "share")
_EXPLAINED = f"""\
# Characters at which names are cut. Delete the line of one that should not cut.
# side: cut before or after it. count: segments that begin (starts) or end (ends) with it.
# share: of its places inside names, how many are such a cut.
# {chr(9).join(COLUMNS)}
"""


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A character at which names are cut, and what that rests on."""

    character: str
    side: str
    starts: int
    ends: int
    share: float

    @property
    def count(self) -> int:
        """How many segments begin or end with it."""
        return self.starts + self.ends


def find_cut_points(
    names: Iterable[Sequence[Unit]],
    vocabulary: Vocabulary,
    *,
    n: int = 100,
    min_share: float = 0.0,
) -> list[CutPoint]:
    """Count the characters at the edges of segments and give the ``n`` most frequent.

    ``min_share`` leaves out those at which segments part in fewer of their places: what a person
    would strike from the list first.
    """
    if n < 0:
        raise ConfigError(f"n_cut_points: expected 0 or more, found {n}")
    edges = _Edges()
    for run in names:
        if len(run) > 1:
            edges.add(run, vocabulary.split(run, whole=False))
    points = [edges.point(character) for character in edges.seen]
    points = [point for point in points if point.share >= min_share]
    points.sort(key=lambda point: (-point.count, point.character))
    return points[:n]


class _Edges:
    """Where characters stand in segments, and whether those are cuts inside a run."""

    def __init__(self) -> None:
        self.starts: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.places: Counter[tuple[str, str]] = Counter()
        self.cuts: Counter[tuple[str, str]] = Counter()

    @property
    def seen(self) -> list[str]:
        return sorted(self.starts.keys() | self.ends.keys())

    def add(self, run: Sequence[Unit], pieces: Sequence[Sequence[Unit]]) -> None:
        for unit, following in pairwise(run):
            self.places[unit.form, AFTER] += 1
            self.places[following.form, BEFORE] += 1
        for piece in pieces:
            first, last = piece[0], piece[-1]
            self.starts[first.form] += _is_character(first)
            self.ends[last.form] += _is_character(last)
            self.cuts[first.form, BEFORE] += first is not run[0]
            self.cuts[last.form, AFTER] += last is not run[-1]

    def point(self, character: str) -> CutPoint:
        starts, ends = self.starts[character], self.ends[character]
        side = BEFORE if starts > ends else AFTER
        places = self.places[character, side]
        share = self.cuts[character, side] / places if places else 0.0
        return CutPoint(character, side, starts, ends, round(share, 3))


def _is_character(unit: Unit) -> bool:
    """Whether a unit is one character of Chinese, not a number or a run of letters."""
    return len(unit.form) == 1 and unit.form.isalpha() and not unit.form.isascii()


def write_cut_points(points: Iterable[CutPoint], path: Path, *, overwrite: bool = False) -> None:
    """Write cut points for people to review, the most frequent first."""
    with new_file(path, overwrite=overwrite) as file:
        file.write(_EXPLAINED.encode())
        for point in points:
            fields = (point.character, point.side, point.count, point.starts, point.ends)
            file.write("\t".join(map(str, (*fields, f"{point.share:.3f}"))).encode() + b"\n")


def read_cut_points(path: Path) -> list[CutPoint]:
    """Read cut points; empty lines and those that begin with ``#`` say nothing."""
    points: dict[str, CutPoint] = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        point = _read_point(line)
        if point is None or point.character in points:
            problem = (
                f"expected one character and, parted by tabs, {', '.join(COLUMNS[1:])}"
                if point is None
                else "a character that stands in the file already"
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
