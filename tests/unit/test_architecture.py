"""The shape of the code: which way imports go, what is loaded when, how much there is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from count_code import count_folder, count_source

from biograft.cli import COMMANDS
from biograft.kb.sources import FORMATS, Format

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "biograft"
FILES = sorted(SRC.rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
LEVELS = (
    ("", "recipes", "starter"),
    ("kb",),
    ("text",),
    ("clinical", "graph", "metrics", "models"),
    ("linking",),
    ("evaluation", "mapping", "serve"),
    ("training",),
    ("cli",),
)
"""The rooms from the ground up: what links, evaluates, maps or serves knows nothing of training."""
STAGES = {package: level for level, packages in enumerate(LEVELS) for package in packages}
HEAVY = (
    *("numpy", "polars", "pyarrow", "scipy", "numba", "pyoxigraph"),
    *("torch", "transformers", "accelerate", "safetensors", "matplotlib", "faiss"),
    *("rapidfuzz", "gensim", "opencc", "fastapi", "uvicorn", "prometheus_client", "sqlalchemy"),
)


FACES = ("testing.py", "opening.py")
"""Files at the top that stand on all packages, as the command line does."""


UPWARDS = {
    ("linking/linker.py", "biograft.evaluation.gold"),  # Linker.fit, which trains on gold
    ("linking/linker.py", "biograft.training.linkers.recipes"),
    ("linking/trained_configs.py", "biograft.training.objectives.configs"),
}
"""The imports that go up, and why."""


def stage(path: Path) -> str:
    relative = path.relative_to(SRC)
    if relative.name in FACES and len(relative.parts) == 1:
        return "cli"
    return relative.parts[0] if len(relative.parts) > 1 else ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> list[str]:
    """All modules a file imports, inside functions and under TYPE_CHECKING too."""
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            found.append(module)
            found += [f"biograft.{alias.name}" for alias in node.names if module == "biograft"]
    return found


def test_imports_go_one_way():
    for path in FILES:
        if path in (SRC / "__init__.py", SRC / "__main__.py"):
            continue  # it re-exports lazily; it is the command line
        for module in imports(path):
            if module.startswith("biograft."):
                parts = module.split(".")
                other = parts[1] if (SRC / parts[1]).is_dir() else ""
                if (path.relative_to(SRC).as_posix(), module) not in UPWARDS:
                    assert STAGES[other] <= STAGES[stage(path)], f"{path} imports {module}"


def test_the_product_and_its_benchmarks_import_nothing_of_the_laboratory():
    for path in (*FILES, *BENCHMARKS):
        assert [name for name in imports(path) if name.startswith("biograft_lab")] == [], path


def test_no_module_imports_itself_in_a_circle():
    """Imports inside functions and under TYPE_CHECKING count, too.

    Not counted are the ``TYPE_CHECKING`` blocks of packages, which only list their public names.
    """
    modules = {
        ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in FILES
    }
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for module, path in modules.items():
        tree = tree_of(path)
        if path.name == "__init__.py":
            tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                sorter.add(module, *(t if t in modules else node.module for t in targets))
            elif isinstance(node, ast.Import):
                sorter.add(module, *(a.name for a in node.names if a.name in modules))
    sorter.prepare()  # raises CycleError


def test_numba_is_imported_in_one_file_and_only_when_needed():
    """Its own ``njit`` would load it whenever a module is imported, before anything is linked."""
    importing = {path.name for path in FILES if any(m.startswith("numba") for m in imports(path))}
    assert importing == {"compute.py"}


def test_the_ground_floor_stands_on_the_standard_library():
    # it re-exports lazily; types of arrays; arrays on disk; numba, when needed
    others = {SRC / name for name in ("__init__.py", "arrays.py", "artifacts.py", "compute.py")}
    for path in FILES:
        if stage(path) == "" and path not in others:
            for module in imports(path):
                root = module.split(".")[0]
                known = root in sys.stdlib_module_names or root == "biograft"
                assert known, f"{path} imports {module}"


@pytest.mark.parametrize("code", ["import biograft", "import sys; sys.argv=['biograft','--help']"])
def test_light_things_load_no_heavy_package(code):
    script = f"""
{code}
import sys
if "--help" in sys.argv:
    from biograft.cli import main
    try:
        main()
    except SystemExit:
        pass
print("loaded:", [name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_registered_format_loads(name):
    assert isinstance(FORMATS.load(name), Format)
    assert FORMATS.help()[name]


def test_every_reader_is_registered():
    offered = {
        f"biograft.kb.sources.{path.stem}:{name}"
        for path in (SRC / "kb" / "sources").glob("*.py")
        for name in re.findall(r"^([A-Z_]+) = Format\(", path.read_text(encoding="utf-8"), re.M)
    }
    assert offered == {FORMATS._entries[name].target for name in FORMATS}


BUDGET = 708_360
"""Most tokens of code that the product may have. Lower it when code goes; a new capability first
says what it deletes."""


def test_the_code_keeps_to_its_budget():
    counts = count_folder("src")["total"]
    assert counts["tokens"] <= BUDGET, "see `python tests/count_code.py src`; delete before adding"


def test_documentation_and_layout_cost_nothing():
    code = "def f(x):\n    return x + 1\n"
    documented = (
        '"""A module."""\n\ndef f(x):  # why\n    """Add one."""\n\n    return (\n'
        "        x + 1\n    )\n"
    )
    assert count_source(code)["tokens"] == 10
    assert count_source(documented)["tokens"] == 10 + 2  # the parentheses
    assert count_source(documented)["statements"] == count_source(code)["statements"] == 2


def test_the_formatter_lays_out_every_file():
    left_out = [path for path in (*FILES, *BENCHMARKS) if "# fmt: " in path.read_text("utf-8")]
    assert left_out == []


def test_no_file_prints():
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{path}:{node.lineno}"


NARROWING = "tells the type checker what polars gives for a table; no input can make it fail"
ASSERTS = {
    ("kb/collector.py", "isinstance(frame, pl.DataFrame)"): NARROWING,
    ("kb/search.py", "isinstance(column, pl.Series)"): NARROWING,
}
"""The asserts there are, and why each says nothing about what a user gave."""


def test_a_class_name_occurs_once():
    defined = [
        (node.name, path.relative_to(SRC).as_posix())
        for path in FILES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    names = Counter(name for name, _ in defined)
    assert [pair for pair in defined if names[pair[0]] > 1] == []


DESCRIBED_ELSEWHERE = {"ConceptTools"}
"""Classes whose parameters a language model reads about in ``Field(description=...)``."""
MIN_PARAMETERS = 2
"""A function with fewer may leave its parameter to the first sentence."""


def public_functions(body: list[ast.stmt], owner: ast.ClassDef | None = None):
    """Yield the public functions, methods and constructors of a module, with their class."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            is_public = not node.name.startswith("_") or node.name in ("__init__", "__call__")
            # options of commands are described by the shared ones and by configurations, too
            if is_public and not re.search(r"overload|setter|command\(|callback\(", decorators):
                yield node, owner


def parameters_of(node: ast.FunctionDef, owner: ast.ClassDef | None) -> tuple[str, ...]:
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    is_static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    names = names[owner is not None and not is_static :]
    names += [each.arg for each in arguments.kwonlyargs]
    names += [each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return tuple(name for name in names if not name.startswith("_"))


def test_every_parameter_is_documented():
    """Also by another function of the package with its name and parameters, which it stands for."""
    commands = {COMMANDS._entries[name].target for name in COMMANDS}
    described, found = set(), {}
    for path in FILES:
        for node, owner in public_functions(tree_of(path).body):
            text = ast.get_docstring(node) or ""
            if owner is not None and node.name == "__init__":
                text += f"\n{ast.get_docstring(owner)}"
            names = parameters_of(node, owner)
            missing = [n for n in names if not re.search(rf"^    \*{{0,2}}{n}: \S", text, re.M)]
            contract = (stage(path), node.name, names)
            elsewhere = owner is not None and owner.name in DESCRIBED_ELSEWHERE
            if not missing:
                described.add(contract)
            elif (
                len(names) >= MIN_PARAMETERS
                and not elsewhere
                and f"biograft.cli.{path.stem}:{node.name}" not in commands
            ):
                place = f"{path.relative_to(SRC)}:{node.lineno} {node.name}"
                found[place] = contract, missing
    undescribed = {where: names for where, (c, names) in found.items() if c not in described}
    assert undescribed == {}, "describe these under Args"


def exported_names() -> set[str]:
    """Return the names that packages export, which `docs/stability.md` promises."""
    return {
        alias.asname or alias.name
        for path in FILES
        if path.name == "__init__.py"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def undocumented_fields(node: ast.ClassDef) -> Iterator[str]:
    """Yield the fields of a record that nothing describes.

    A field has a docstring below it, a ``Doc`` or ``Option`` in its annotation, or is named in the
    docstring of the class.
    """
    about = ast.get_docstring(node) or ""
    for field, below in pairwise([*node.body, ast.Pass()]):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name, source = field.target.id, ast.unparse(field)
        is_parameter = not re.search(r"ClassVar|init=False", source) and not name.startswith("_")
        is_below = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        is_above = re.search(rf"``{name}``|^    {name}: \S", about, re.M)
        if is_parameter and not (is_below or is_above or re.search(r"\b(Doc|Option)\(", source)):
            yield name


def test_every_field_of_an_exported_record_is_documented():
    """The fields of dataclasses and named tuples are the parameters of their constructors."""
    exported = exported_names()
    undescribed = {
        f"{path.relative_to(SRC)}:{node.lineno} {node.name}": fields
        for path in FILES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and node.name in exported
        if re.search(
            "dataclass|NamedTuple|TypedDict",
            " ".join(map(ast.unparse, (*node.decorator_list, *node.bases))),
        )
        if (fields := list(undocumented_fields(node)))
    }
    assert undescribed == {}, "describe these below the field"


def test_no_assert_checks_what_a_user_gave():
    found = {
        (str(path.relative_to(SRC)), ast.unparse(node.test))
        for path in FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Assert) and path != SRC / "testing.py"  # which is made of them
    }
    assert found <= set(ASSERTS)


OURS = frozenset(
    "TextEncoder StaticEncoder Seq2SeqModel AttentionReader EncoderSimilarity MaskedLanguageModel "
    "MemoryLinker Linker super()".split()
)
"""What has a ``from_pretrained`` of ours, which loads through :mod:`biograft.models.pretrained`."""


def loads_with_transformers(path: Path) -> list[ast.Call]:
    """All calls by which transformers loads a configuration, a tokenizer or a model."""
    return [
        node
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("from_pretrained", "from_config")
        and ast.unparse(node.func.value) not in OURS
    ]


def test_transformers_loads_in_one_file_and_never_code_of_a_folder():
    """Guards: where ``trust_remote_code`` is left out, transformers asks whoever is on stdin."""
    found = {
        path: calls
        for path in (*FILES, *BENCHMARKS, *(ROOT / "lab" / "src").rglob("*.py"))
        if (calls := loads_with_transformers(path))
    }
    assert set(found) == {SRC / "models" / "pretrained.py"}
    for path, calls in found.items():
        for call in calls:
            arguments = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            assert arguments.get("trust_remote_code") == "False", f"{path}:{call.lineno}"


def test_no_exported_name_is_that_of_a_module_beside_it():
    """Guards: importing the module put it where the function of that name had been."""
    for init in SRC.rglob("__init__.py"):
        names = set(re.findall(r"\b(\w+) as \1\b", init.read_text(encoding="utf-8")))
        assert not names & {path.stem for path in init.parent.iterdir()}, init
