"""Small changes of a source file, each of which its tests should notice.

The changes are those of mutmut: `<` becomes `<=`, `+` becomes `-`, an argument becomes None or is
left out, a number is one more, `and` becomes `or`, a string has letters around it, and so on. Left
out is what tests should not fix: annotations, decorators, the messages of errors, and other strings
with a blank, which are text for people.
"""

from __future__ import annotations

import difflib
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators


@dataclass(frozen=True)
class Mutant:
    """A file of the source with one change."""

    file: str
    """Its path below src."""
    line: int
    operator: str
    was: str
    """The lines that changed, joined by " / "."""
    becomes: str
    text: str
    """The whole file, changed."""
    span: tuple[int, int]
    """The first and last line of the statement."""
    is_definition: bool = False
    """Whether it takes effect when the module is imported, outside of functions."""

    @property
    def lines(self) -> list[int] | None:
        """The lines that a test must reach to notice it; None: any of the file."""
        return None if self.is_definition else list(range(self.span[0], self.span[1] + 1))

    @property
    def key(self) -> str:
        """Key that does not depend on the lines above it in the file."""
        return f"{self.file}: {self.was} -> {self.becomes}"


@dataclass(frozen=True)
class _Change:
    """A node of a syntax tree, and what replaces it."""

    operator: str
    node: Any
    replacement: Any
    line: int
    span: tuple[int, int]
    is_definition: bool


class _Source:
    """The syntax tree of a file, with positions."""

    def __init__(self, root: Path, file: str) -> None:
        self.file, self.text = file, (root / file).read_text(encoding="utf-8")
        wrapper = MetadataWrapper(cst.parse_module(self.text))
        self.tree = wrapper.module
        self.positions: Any = wrapper.resolve(PositionProvider)

    def changes(self) -> Iterator[_Change]:
        """Yield all changes of the file."""
        yield from self._below(self.tree, (1, 1), is_definition=True)

    def _below(self, node: Any, span: tuple[int, int], *, is_definition: bool) -> Iterator[_Change]:
        if _is_left_out(node):
            return
        position: CodeRange = self.positions.get(node)
        if position and isinstance(node, cst.BaseSmallStatement):
            span = (position.start.line, position.end.line)
        if position:
            for kind, operator in mutation_operators:
                if not isinstance(node, kind):
                    continue
                for new in operator(node):
                    if not _is_text(node, new):
                        yield _Change(
                            operator.__name__.removeprefix("operator_"),
                            node,
                            new,
                            position.start.line,
                            span if span[0] <= position.start.line <= span[1] else _lines(position),
                            is_definition,
                        )
        for child in node.children:
            of_body = isinstance(node, cst.FunctionDef | cst.Lambda) and child is node.body
            yield from self._below(child, span, is_definition=is_definition and not of_body)

    def apply(self, change: _Change) -> Mutant | None:
        """Return the changed file; None if it is no valid Python, or reads as before."""
        changed: Any = self.tree.deep_replace(change.node, change.replacement)
        text: str = changed.code
        try:
            compile(text, self.file, "exec")
        except (SyntaxError, ValueError):
            return None
        was, becomes = changed_lines(self.text, text)
        if was == becomes:
            return None
        return Mutant(
            self.file,
            change.line,
            change.operator,
            was,
            becomes,
            text,
            change.span,
            change.is_definition,
        )


def _lines(position: CodeRange) -> tuple[int, int]:
    return position.start.line, position.end.line


def _is_left_out(node: Any) -> bool:
    if isinstance(node, cst.Annotation | cst.Decorator | cst.Raise | cst.Import | cst.ImportFrom):
        return True
    return isinstance(node, cst.Assign) and any(
        isinstance(each.target, cst.Name) and each.target.value == "__all__"
        for each in node.targets
    )


def _is_text(node: Any, new: Any) -> bool:
    """Whether a change concerns text for people, or only the case of a string."""
    if not isinstance(node, cst.BaseString):
        return False
    return not isinstance(node, cst.SimpleString) or " " in node.value or "XX" not in new.value


def changed_lines(before: str, after: str) -> tuple[str, str]:
    """Return the lines that differ, of either text, without their indentation."""
    was, becomes = [], []
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if line.startswith("-") and not line.startswith("---"):
            was.append(line[1:].strip())
        elif line.startswith("+") and not line.startswith("+++"):
            becomes.append(line[1:].strip())
    return " / ".join(was), " / ".join(becomes)


def sample_mutants(root: Path, files: Sequence[str], n: int, seed: int) -> tuple[list[Mutant], int]:
    """Return a sample of the mutants of some files, and how many there are.

    At most one changes a line. The operators take turns, because most changes are arguments left
    out, which any test notices.
    """
    rng = random.Random(seed)
    of_operator: dict[str, list[tuple[_Source, _Change]]] = defaultdict(list)
    for file in files:
        source = _Source(root, file)
        for change in source.changes():
            of_operator[change.operator].append((source, change))
    n_all = sum(map(len, of_operator.values()))
    queues = [of_operator[name] for name in sorted(of_operator)]
    for queue in queues:
        rng.shuffle(queue)
    sample: list[Mutant] = []
    lines: set[tuple[str, int]] = set()
    while len(sample) < n and any(queues):
        for queue in queues:
            while queue and len(sample) < n:
                source, change = queue.pop()
                mutant = None
                if (source.file, change.line) not in lines:
                    mutant = source.apply(change)
                if mutant is not None:
                    lines.add((source.file, change.line))
                    sample.append(mutant)
                    break
    return sample, n_all
