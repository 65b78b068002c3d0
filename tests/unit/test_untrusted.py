"""What comes from others is data: loading it runs no code, and stays within its folder."""

from __future__ import annotations

import ast
import importlib
import io
import json
import pickle
import pkgutil
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from manifests import reseal
from mischief import Mischief

import biograft
from biograft.artifacts import ArtifactKind, check_artifacts, describe_files, new_folder, open_array
from biograft.errors import BiograftError, NotFoundError, StoreError
from biograft.evaluation import read_gold
from biograft.kb import KnowledgeBase, build_starter
from biograft.recipe import Recipe
from biograft.registry import Registry
from biograft.text import Inputs

SRC = Path(biograft.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
MODULES = {"pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle"}
CALLS = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "np.fromregex"),
    *(
        "yaml.unsafe_load",
        "yaml.full_load",
        "yaml.load_all",
        "pd.read_pickle",
        "shutil.unpack_archive",
    ),
}
IMPORTERS = {
    "registry.py": "targets of registries, which are in the code or of installed packages",
    "errors.py": "an extra that the code names",
    "cli/__init__.py": "the modules of commands",
    "cli/doctor.py": "the packages that biograft requires",
    "linking/frames.py": "pandas or polars, by name",
}
"""Files that import by name, and what the names are."""
TARGETS = {
    "cli/__init__.py",
    "evaluation/gold.py",
    "kb/verify/pairs.py",
    "models/knowledge_layers.py",
    "models/scratch_configs.py",
    "models/tasks/task.py",
    "registry.py",
    "training/objectives/configs.py",
    "training/pretraining/recipe.py",
    "training/pretraining/stream.py",
}
"""Files that load a target (``module:attribute``), which is a constant of a class there."""
YAML = ("yaml.BaseLoader", "yaml.SafeLoader")
ARRAYS = ("np.load", "np.save")
TRUSTING = ("allow_pickle", "trust_remote_code", "shell")
ARCHIVES = ("tar", "archive", "file", "zip")
ESCAPING = {"html", "xml.sax.saxutils"}
HTML = {"display.py", "text/formats/format.py"}
"""The one function that escapes HTML, and the one that escapes XML."""


def called(node: ast.AST) -> str:
    """The dotted name of a function, such as ``np.load``."""
    if isinstance(node, ast.Attribute):
        return f"{called(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def problems(source: str, name: str) -> list[str]:
    """What in a file could run code that comes from outside."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [f"{node.lineno}: {each}" for each in of_import(node, name)]
        elif isinstance(node, ast.Call):
            found += [f"{node.lineno}: {each}" for each in of_call(node, name)]
    return found


def of_import(node: ast.Import | ast.ImportFrom, name: str) -> list[str]:
    home = {node.module} if isinstance(node, ast.ImportFrom) else set()
    names = {alias.name for alias in node.names}
    found = []
    unpickles = bool((home | names) & MODULES) and names != {"UnpicklingError"}  # which is caught
    if unpickles and name != "models/checkpoints/published.py":
        found.append("imports a module that unpickles")
    if home & ESCAPING and names & {"escape", "quoteattr"} and name not in HTML:
        found.append("escapes by itself")
    return found


def of_call(call: ast.Call, name: str) -> list[str]:
    function, given = (
        called(call.func),
        {each.arg: ast.unparse(each.value) for each in call.keywords},
    )
    owner, _, last = function.rpartition(".")
    wrong = {
        function: function in CALLS or function.startswith(("pickle.load", "torch.hub.")),
        "a loader that makes objects": function == "yaml.load" and given.get("Loader") not in YAML,
        "without weights_only": function == "torch.load" and given.get("weights_only") != "True",
        "without allow_pickle=False": function in ARRAYS and given.get("allow_pickle") != "False",
        "trusts a folder": any(given.get(key, "False") != "False" for key in TRUSTING),
        "unpacks onto the disk": last in ("extractall", "extract") and owner in ARCHIVES,
        "imports by name": last == "import_module" and name not in IMPORTERS,
        "loads a target": last == "load_object" and name not in TARGETS,
    }
    return [what for what, is_so in wrong.items() if is_so]


def test_no_call_runs_what_comes_from_outside():
    for path in FILES:
        name = path.relative_to(SRC).as_posix()
        assert problems(path.read_text(encoding="utf-8"), name) == [], name


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "eval(x)",
        "exec(x)",
        "os.system(x)",
        "yaml.load(x)",
        "yaml.load(x, Loader=yaml.Loader)",
        "torch.load(x)",
        "torch.load(x, weights_only=False)",
        "np.load(x)",
        "np.load(x, allow_pickle=True)",
        "subprocess.run(x, shell=True)",
        "importlib.import_module(x)",
        "load_object(x)",
        "AutoModel.from_pretrained(x, trust_remote_code=True)",
        "from html import escape",
        "tar.extractall(x)",
    ],
)
def test_the_check_sees(source):
    assert problems(source, "x.py")


def test_every_loader_of_transformers_is_told_to_trust_no_code():
    """Loaders that are not told ask, and take what is piped into a command for the answer."""
    source = (SRC / "models" / "pretrained.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    loaders = [each for each in calls if called(each.func).endswith(".from_pretrained")]
    assert len(loaders) >= 3
    for each in loaders:
        assert "trust_remote_code=False" in ast.unparse(each)


# ---- names from files


@pytest.fixture
def witness(tmp_path, monkeypatch):
    """A module that can be imported; the fixture says whether it was."""
    (tmp_path / "witness_module.py").write_text("def run(*a, **k):\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda: "witness_module" in sys.modules
    sys.modules.pop("witness_module", None)


def registries():
    """All registries of the package."""
    for module in pkgutil.walk_packages(biograft.__path__, "biograft."):
        path = SRC.parent.joinpath(*module.name.split("."))
        file = path / "__init__.py" if module.ispkg else path.with_suffix(".py")
        if "Registry[" in file.read_text(encoding="utf-8") and module.name != "biograft.registry":
            loaded = importlib.import_module(module.name)
            for name, value in vars(loaded).items():
                if isinstance(value, Registry):
                    yield f"{module.name}.{name}", value


def test_a_registry_loads_its_own_names_only(witness):
    found = dict(registries())
    assert len(found) > 15
    for registry in found.values():
        for name in ("witness_module:run", "os:system", "../x", ""):
            with pytest.raises(NotFoundError):
                registry.load(name)
    assert not witness()


@pytest.mark.parametrize(
    "recipe",
    [
        'kind = "witness_module:run"',
        'kind = "pretrain"\nbase = "witness_module:run"',
        'kind = "linker"\nbase = "os:system"',
        'kind = "task"\ntask = "witness_module:run"',
        'kind = "task"\n[witness_module]\nrun = 1',
        'kind = "pretrain"\n[objectives.a]\nkind = "witness_module:run"\n'
        'implementation = "witness_module:run"',
        'kind = "pretrain"\n[model]\nkind = "witness_module:run"',
        'kind = "graph"\n[model]\nkind = "witness_module:run"',
        'kind = "linker"\nlinker = "witness_module:run"',
    ],
)
def test_a_recipe_imports_nothing_that_it_names(recipe, tmp_path, witness):
    path = tmp_path / "r.toml"
    path.write_text(recipe + "\n")
    with pytest.raises(BiograftError) as caught:
        Recipe.load(path)
    assert "\n" not in str(caught.value)
    assert not witness()


@pytest.mark.parametrize("name", ["witness_module:run", "os:system", ["os:system"], None, {}])
def test_a_manifest_imports_nothing_that_it_names(name, tmp_path, witness):
    from biograft.linking import load_ranker
    from biograft.models.tasks import open_task

    (tmp_path / "manifest.json").write_text(json.dumps({"format": name, "version": 1}))
    with pytest.raises(BiograftError):
        load_ranker(tmp_path, None)
    content = {"format": "biograft-task-model", "version": 2, "task": name, "config": {}}
    manifest = {**content, "labels": [], "files": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BiograftError):
        open_task(tmp_path)
    assert not witness()


def test_a_knowledge_layer_is_one_of_ours(witness):
    from biograft.models import read_layers

    for table in (
        {"witness_module:run": {}},
        {"entity_memory": {"implementation": "witness_module:run"}},
    ):
        with pytest.raises(BiograftError):
            read_layers(table, "config.json: ")
    assert not witness()


# ---- pickles


def pickled(path: Path) -> None:
    np.save(path, np.array([Mischief()], dtype=object), allow_pickle=True)


def test_an_array_of_objects_is_not_unpickled(tmp_path, capsys):
    from biograft.linking import Network
    from biograft.text.trie import FlatTrie

    pickled(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"a\.npy"):
        open_array(tmp_path / "a.npy", np.int64)
    for name in (*FlatTrie.FILES, *(f"{each}.npy" for each in Network.__annotations__)):
        pickled(tmp_path / name)
    with pytest.raises(StoreError):
        FlatTrie.open(tmp_path)
    with pytest.raises(StoreError):
        Network.load(tmp_path, 3)
    assert capsys.readouterr().out == ""


def test_an_archive_of_arrays_is_no_array(tmp_path):
    """Guards: ``np.load`` takes a zip for a table of arrays, which has no type."""
    from biograft.linking import Network

    for name in Network.__annotations__:
        with (tmp_path / f"{name}.npy").open("wb") as file:
            np.savez(file, a=np.zeros(3))
    with pytest.raises(StoreError):
        Network.load(tmp_path, 3)


def test_the_pickled_weights_of_an_encoder_run_nothing(tmp_path, capsys):
    from tiny_models import tiny_encoder_folder

    from biograft.models import TextEncoder

    folder = tiny_encoder_folder(tmp_path / "E", ["flu"])
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"bert.a": Mischief()}, protocol=2))
    with pytest.raises(BiograftError) as caught:
        TextEncoder.from_pretrained(folder)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


# ---- places


KIND = ArtifactKind(format="biograft-x", version=1, called="thing", remedy="make it again")


@pytest.mark.parametrize("name", ["../secret", "a/../../secret", "/etc/hostname"])
def test_a_manifest_describes_files_of_its_folder_only(name, tmp_path):
    """Guards: a manifest could have files elsewhere read, and their sizes and hashes compared."""
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "A"
    folder.mkdir()
    described = describe_files(tmp_path)["secret"]
    manifest = {"format": "biograft-x", "version": 1, "files": {name: described}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match="outside of the folder"):
        KIND.check_files(folder, KIND.read(folder))
    (checked,) = check_artifacts(folder)
    assert "outside of the folder" in checked.problems[0]


def test_an_archive_is_read_in_memory_wherever_its_names_lead(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    with zipfile.ZipFile(place / "a.zip", "w") as archive:
        for name in ("../../evil.txt", "/evil.txt", "in/../../evil.txt", "good.txt"):
            archive.writestr(name, "No fever.")
    texts = [document.text for document in Inputs([place / "a.zip"])]
    assert texts == ["No fever."] * 2  # names with two dots are left out
    with tarfile.open(place / "a.tar", "w") as archive:
        link = tarfile.TarInfo("g/link.concept")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
        data = b"1||0|3||d||flu||D1\n"
        for name in ("g/1.concept", "../g/2.concept"):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    gold = read_gold(f"{place / 'a.tar'}::g", "biosyn")
    assert [query.mention for query in gold.queries] == ["flu"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar", "a.zip", "place"]


def test_what_a_link_leads_to_is_not_removed_with_a_folder(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").write_text("x")
    target = tmp_path / "T"
    with new_folder(target) as work:
        (work / "a").write_text("x")
    (target / "link").symlink_to(tmp_path / "kept")
    with new_folder(target, overwrite=True) as work:
        (work / "b").write_text("x")
    assert [path.name for path in target.iterdir()] == ["b"]
    assert (tmp_path / "kept" / "a").read_text() == "x"


def test_a_store_whose_table_is_a_link_to_a_device_is_refused(tmp_path):
    build_starter(tmp_path / "KB")
    table = tmp_path / "KB" / "names.arrow"
    table.unlink()
    table.symlink_to("/dev/zero")
    reseal(tmp_path / "KB" / "manifest.json")
    with pytest.raises(StoreError):
        KnowledgeBase.open(tmp_path / "KB")


def test_a_damaged_store_is_an_error_of_one_line(tmp_path):
    """Guards: a code without a name was an IndexError when the row was read."""
    build_starter(tmp_path / "KB")
    manifest = tmp_path / "KB" / "manifest.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    content["vocabularies"] |= {"languages": [], "sources": [], "types": []}
    manifest.write_text(json.dumps(content), encoding="utf-8")
    reseal(manifest)
    kb = KnowledgeBase.open(tmp_path / "KB")
    with pytest.raises(StoreError, match="refers to what is not there"):
        kb.concept_at(0)
