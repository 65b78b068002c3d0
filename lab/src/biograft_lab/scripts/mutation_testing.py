"""Whether tests would notice: small changes of the source, each tried with the tests nearest to it.

Of each module a sample of mutants is made: an operator becomes another, a condition its opposite, a
number one more. The changes that are named in ``known_mutants.toml`` are tried, too: mistakes that
no test once noticed. A mutant is written to a copy of the source, and is killed if one of the tests
in the folder that mirrors the module fails, dies or does not end; else it survives. Survivors that
change nothing, or only speed or text for people, are listed in that file, each with its reason.

    python -m biograft_lab.scripts.mutation_testing --quick
    python -m biograft_lab.scripts.mutation_testing --sample 40 -o mutants.json

Modules are put into the file of ``-o`` one by one.
"""

from __future__ import annotations

import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from machine import keep_part
from script_options import some_of, start_parser

from biograft_lab.places import REPOSITORY
from biograft_lab.scripts import facts

KNOWN = tomllib.loads(Path(__file__).with_name("known_mutants.toml").read_text(encoding="utf-8"))
NAMED = "named"
"""The changes that the file of known mutants names."""
MODULES = {
    "metrics": ("metrics", ()),
    "evaluation": ("evaluation", ()),
    "objectives": ("training/objectives", ()),
    "linking": ("linking/fusion.py", ("linking/test_fusion.py", "linking/test_concept_choice.py")),
    "kb": ("kb", ()),
    "sources": ("kb/sources", ("kb/sources", "evaluation/test_gold_archives.py")),
    "serve": ("serve", ()),
    "mapping": ("mapping", ("mapping", "cli/test_map.py", "serve/test_review_routes.py")),
}
"""A file or folder below biograft, and its tests below tests/unit, if these are named otherwise."""
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Mutant(NamedTuple):
    """A file of the source with one change."""

    file: str
    """Its path below src."""
    line: int
    was: str
    becomes: str
    text: str
    """The whole file, changed."""

    @property
    def key(self) -> str:
        """Key that does not depend on the lines above it in the file."""
        return f"{self.file}: {self.was} -> {self.becomes}"


def mutants_of(root: Path, file: str) -> Iterator[tuple[str, Mutant]]:
    """Yield the mutants of a file in the order of its syntax tree, with the kind of change.

    Annotations, decorators and errors are left out, which tests should not fix.

    Args:
        root: The folder of the source.
        file: Its path below the folder.
    """
    text = (root / file).read_bytes()
    lines = text.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for node in _below(ast.parse(text)):
        for old, becomes in _changes(node):
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            whole = slice(old.lineno - 1, old.end_lineno)
            was = b"".join(lines[whole]).decode()
            left, right = text[starts[whole.start] : start], text[end : starts[whole.stop]]
            new = f"{left.decode()}{becomes}{right.decode()}"
            changed = b"".join(
                (text[: starts[whole.start]], new.encode(), text[starts[whole.stop] :])
            )
            before, after = (" / ".join(map(str.strip, each.splitlines())) for each in (was, new))
            yield (
                type(node).__name__,
                Mutant(file, old.lineno, before, after, changed.decode()),
            )


def _below(node: ast.AST) -> Iterator[Any]:
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "exc", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from _below(child)


def _changes(node: Any) -> Iterator[tuple[Any, str]]:
    """Yield what may be replaced in a node, and by what: an operator or a value exchanged."""
    new = copy.copy(node)
    if isinstance(node, ast.Break | ast.Continue):
        yield node, "continue" if isinstance(node, ast.Break) else "break"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, ast.unparse(node.operand)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        yield node.test, f"not ({ast.unparse(node.test)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield node, repr(not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        new.ops = [_SWAPS[type(node.ops[0])](), *node.ops[1:]]
        yield node, ast.unparse(new)
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
        new.op = _SWAPS[type(node.op)]()
        yield node, ast.unparse(new)


def sample_mutants(root: Path, files: Sequence[str], n: int, seed: int) -> tuple[list[Mutant], int]:
    """Return a sample of the mutants of some files, at most one a line, and how many there are.

    Kinds of changes take turns, because most are numbers, which any test notices.

    Args:
        root: The folder of the source.
        files: Paths below it.
        n: Size of the sample.
        seed: Seed of the choice.
    """
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for file in files:
        for kind, mutant in mutants_of(root, file):
            kinds[kind].append(mutant)
    for of_kind in kinds.values():
        random.Random(seed).shuffle(of_kind)
    turns = (each for turn in zip_longest(*kinds.values()) for each in turn if each)
    one_a_line = {(each.file, each.line): each for each in turns}
    return list(one_a_line.values())[:n], sum(map(len, kinds.values()))


class Laboratory:
    """A copy of the source, in which mutants are tested.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        shutil.copytree(REPOSITORY / "src", self._source)

    def is_noticed(self, mutant: Mutant, tests: Sequence[str], seconds: float) -> bool:
        """Return whether a test fails, or the tests do not end, with a mutant.

        Args:
            mutant: The mutant.
            tests: Files, folders or names of tests.
            seconds: Time that they may take.
        """
        path = self._source / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(mutant.text, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self._source),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=self._source.parent)
        try:
            done = subprocess.run(
                command,
                cwd=REPOSITORY,
                env=environment,
                timeout=seconds,
                capture_output=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return True
        finally:
            path.write_text(before, encoding="utf-8")
        if done.returncode in (4, 5):
            raise SystemExit(f"error: {done.stdout.decode()[-500:]}")
        return done.returncode != 0

    def try_all(self, mutants: Sequence[tuple[Mutant, Sequence[str]]]) -> dict[str, Any]:
        """Return how many mutants are noticed by their tests, and which are not."""
        tests = sorted({test for _, some in mutants for test in some})
        unchanged = mutants[0][0]._replace(
            text=(self._source / mutants[0][0].file).read_text(encoding="utf-8")
        )
        started = time.monotonic()
        if self.is_noticed(unchanged, tests, 3600):
            raise SystemExit(f"error: a test of {', '.join(tests)} fails on the unchanged source")
        seconds = 60 + 5 * (time.monotonic() - started)
        survived = [each for each, some in mutants if not self.is_noticed(each, some, seconds)]
        known = {each["mutant"]: each for each in KNOWN["survivor"]}
        unknown = {"kind": "unexplained", "reason": ""}
        rows = [
            {"mutant": each.key, "line": each.line}
            | {key: known.get(each.key, unknown)[key] for key in unknown}
            for each in survived
        ]
        n_equivalent = sum(row["kind"] == "equivalent" for row in rows)
        return {
            "mutants": len(mutants),
            "killed": len(mutants) - len(rows),
            "survived": len(rows) - n_equivalent,
            "equivalent": n_equivalent,
            "survivors": rows,
        }


def chosen_mutants(name: str, n: int, seed: int) -> list[tuple[Mutant, list[str]]]:
    """Return mutants of a module, or those that are named, with the tests nearest to each.

    Args:
        name: One of ``MODULES``, or ``NAMED``.
        n: Size of the sample of a module.
        seed: Seed of the choice.
    """
    source = REPOSITORY / "src"
    if name == NAMED:
        return [(named_mutant(each), each["tests"]) for each in KNOWN["named"]]
    place, tests = MODULES[name]
    found = source / "biograft" / place
    paths = sorted(found.rglob("*.py")) if found.is_dir() else [found]
    files = [path.relative_to(source).as_posix() for path in paths]
    of_module = [f"tests/unit/{each}" for each in tests or (place,)]
    return [(each, of_module) for each in sample_mutants(source, files, n, seed)[0]]


def named_mutant(each: dict[str, Any]) -> Mutant:
    """Return a named change; its text must occur once."""
    before = (REPOSITORY / "src" / each["file"]).read_text(encoding="utf-8")
    if before.count(each["was"]) != 1:
        raise SystemExit(f"error: {each['what']}: not found once in {each['file']}")
    line = before[: before.index(each["was"])].count("\n") + 1
    after = before.replace(each["was"], each["becomes"])
    return Mutant(each["file"], line, each["was"], each["becomes"], after)


def main() -> None:
    """Try the mutants of the chosen modules; print the result of each."""
    known = [*MODULES, NAMED]
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="two mutants of the metrics")
    parser.add_argument("--modules", type=some_of(known), default=known, help=", ".join(known))
    parser.add_argument("--sample", type=int, default=40, help="mutants of a module; default: 40")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="the file of the result")
    options = parser.parse_args()
    names, n = (["metrics"], 2) if options.quick else (options.modules, options.sample)
    about = {
        "sample": f"{n} mutants of each module, seed {options.seed}",
        **facts(),
    }
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            result = Laboratory(Path(folder)).try_all(chosen_mutants(name, n, options.seed))
        keep_part(options.output, "modules", {**about, "modules": {name: result}})
        print(json.dumps({name: result}), flush=True)


if __name__ == "__main__":
    main()
