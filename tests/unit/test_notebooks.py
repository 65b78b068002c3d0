"""The notebooks of examples/ run as they are written, cell by cell, in an empty folder."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from tiny_models import tiny_encoder_folder

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path, kind):
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def run(path):
    """Run the cells in one namespace; return what the last expression of each shows."""
    namespace, shown = {"__name__": "__main__"}, []
    for number, source in enumerate(cells(path, "code")):
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        place = f"{path.name}, cell {number}"
        exec(compile(tree, place, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), place, "eval"), namespace)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    return shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_clean(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    for cell in content["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert "/work" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["map_a_column", "notes_to_a_plot"])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("biograft.opening.cache_folder", lambda: tmp_path)
    shown = run(FOLDER / f"{name}.ipynb")
    assert all("<script" not in each for each in shown)
    assert any(each.startswith(("<table", "<div", "<svg")) for each in shown)


@pytest.mark.long
def test_the_notebook_that_aligns_an_encoder_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    words = [f"{first}{second}" for first in "abcdefgh" for second in "aeiou"]
    encoder = tiny_encoder_folder(tmp_path / "encoder", words, hidden=16, layers=1)
    monkeypatch.setenv("ENCODER", str(encoder or tmp_path / "encoder"))
    monkeypatch.setenv("STEPS", "4")
    shown = run(FOLDER / "align_an_encoder.ipynb")
    assert "dev acc@1" in shown[3]


def test_every_notebook_is_linked():
    readme = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    assert [
        path.name for path in NOTEBOOKS if f"examples/notebooks/{path.name}" not in readme
    ] == []
