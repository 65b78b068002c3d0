"""Count the code of a Python tree: tokens, statements and functions a folder.

    python tests/count_code.py [FOLDER ...] [--json]       (default: src lab tests)

Tokens are names, numbers, strings and operators. Comments, documentation (also of fields), blank
lines and indentation do not count, so neither formatting nor explanation costs anything. Only
files that git tracks count.
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEFAULT = ("src", "lab", "tests")
COUNTS = ("files", "tokens", "statements", "functions", "lines")
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def count_source(source: str) -> Counter[str]:
    """Count the code of one module."""
    counts = Counter(files=1, lines=source.count("\n"))
    documentation = set()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            documentation.add((node.lineno, node.col_offset))
        else:
            counts["statements"] += isinstance(node, ast.stmt)
            counts["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        counts["tokens"] += token.type not in LAYOUT and token.start not in documentation
    return counts


def count_folder(folder: str, root: Path = ROOT) -> dict[str, Counter[str]]:
    """Count each package below a folder of the repository, and their sum as ``total``.

    The folder of a distribution (``src``) is divided by the packages inside ``biograft``.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", f"{folder}/*.py"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    rooms: dict[str, Counter[str]] = {"total": Counter()}
    for name in filter(None, listed):
        parts = Path(name).relative_to(folder).parts
        if len(parts) > 1 and parts[0].startswith("biograft"):
            parts = parts[1:]
        counts = count_source((root / name).read_text(encoding="utf-8"))
        for room in (parts[0] if len(parts) > 1 else "(files)", "total"):
            rooms.setdefault(room, Counter()).update(counts)
    return dict(sorted(rooms.items(), key=lambda room: room[1]["tokens"]))


def main() -> None:
    """Print a row a package, or one JSON object."""
    folders = [each for each in sys.argv[1:] if each != "--json"] or DEFAULT
    result = {folder: count_folder(folder) for folder in folders}
    if "--json" in sys.argv:
        sys.stdout.write(f"{json.dumps(result)}\n")
        return
    for folder, rooms in result.items():
        sys.stdout.write(f"{folder:24}{''.join(f'{each:>12}' for each in COUNTS)}\n")
        for room, counts in rooms.items():
            numbers = "".join(f"{counts[each]:12,}" for each in COUNTS)
            sys.stdout.write(f"  {room:22}{numbers}\n")


if __name__ == "__main__":
    main()
