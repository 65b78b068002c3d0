"""The examples of docs/contributing.md: one package, whose parts run in the ordinary commands."""

from __future__ import annotations

import importlib
import json
import math
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from command_runs import runner_of

from biograft.cli import COMMANDS, app, make_app
from biograft.kb import KnowledgeBase
from biograft.kb.sources import FORMATS
from biograft.linking import LINKER_STEPS, MODELS, OUTPUTS
from biograft.metrics import METRICS, Judgements, Metric
from biograft.models import KNOWLEDGE_LAYERS, EntityInputs
from biograft.models.tasks import TASKS, open_task
from biograft.training.linkers import LINKERS
from biograft.training.objectives import OBJECTIVES
from biograft.training.pretraining import STREAMS

PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"
REGISTRIES = (
    FORMATS,
    OBJECTIVES,
    STREAMS,
    TASKS,
    KNOWLEDGE_LAYERS,
    LINKERS,
    MODELS,
    METRICS,
    OUTPUTS,
    LINKER_STEPS,
    COMMANDS,
)
SENTENCES = ("Aspirin reduces fever.", "The weather is fine.", "Fever and asthma are common.")
Section = Callable[[str], list[Any]]


def blocks(section: str, language: str) -> list[str]:
    """Return the code blocks of a language in a section of the page; all sections if empty."""
    text = PAGE.read_text(encoding="utf-8")
    if section:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def install(folder: Path) -> None:
    """Write the files of the page, and the metadata that installing the package would write."""
    for block in [*blocks("", "python"), *blocks("", "toml")]:
        path = folder / block.partition("\n")[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(block, encoding="utf-8")
    described = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in described["entry-points"].items()
    ]
    info = folder / "my_package-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {described['name']}\n")
    (info / "entry_points.txt").write_text("\n".join(groups))


def write_data(folder: Path) -> None:
    """Write the files that the commands of the page read."""
    (folder / "genes.jsonl").write_text(blocks("A source format", "json")[0])
    texts = [" ".join(SENTENCES[: 1 + row % 3]) for row in range(40)]
    (folder / "texts.txt").write_text("\n".join(texts))
    for split in ("train", "dev", "test"):
        examples = [{"text": SENTENCES[row % 2], "labels": [str(1 - row % 2)]} for row in range(12)]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, examples)))
    mention = {"start": 0, "end": 4, "text": "flue", "concepts": ["D007251"]}
    document = {"id": "1", "language": "en", "text": "flue", "mentions": [mention]}
    (folder / "gold.jsonl").write_text(json.dumps(document))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The working directory, with the package importable."""
    folder = tmp_path_factory.mktemp("contributing")
    install(folder)
    write_data(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        forget()
        yield folder
    forget()


def forget() -> None:
    """Read entry points anew."""
    for registry in REGISTRIES:
        registry.__dict__.pop("_entries", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_package"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def run(folder: Path) -> Section:
    """Run the commands of a section; return their results."""

    def section(name: str) -> list[Any]:
        lines = blocks(name, "sh")[0].splitlines()
        return [runner_of(app)(*shlex.split(line)[1:]) for line in lines]

    return section


@pytest.fixture(scope="module")
def pretrained(run: Section, folder: Path) -> Path:
    run("An objective")
    return folder / "RUN"


def logged_steps(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if "evaluation" not in line]


def last_logged(run: Path) -> dict[str, Any]:
    return logged_steps(run)[-1]


def test_every_entry_point_of_the_page_loads(folder):
    described = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    registries = {registry.group: registry for registry in REGISTRIES}
    for group, points in described["entry-points"].items():
        for name in points:
            registries[group].load(name)


def test_the_source_format(run, folder):
    built, found = run("A source format")
    assert "not a gene with id and symbol" in built.output
    assert "HGNC:1100" in found.output
    concept = KnowledgeBase.open(folder / "GENES")["HGNC:1100"]
    assert [name.text for name in concept.names] == ["BRCA1", "RNF53"]
    assert [each.code for each in concept.types] == ["gene"]


def test_the_objective(pretrained):
    logged = last_logged(pretrained)
    assert logged["step"] == 3
    assert logged["odd_mentions.loss"] == pytest.approx(math.log(2), abs=0.1)


def test_the_objective_of_name_pairs(run, pretrained, folder):
    """Guards: the parameters of such an objective were never trained, and it needed a miner."""
    run("An objective of name pairs")
    scales = [line["contrast.scale"] for line in logged_steps(folder / "RUN3")]
    assert scales[0] == pytest.approx(10)
    assert abs(scales[-1] - scales[0]) > 0.1


def test_a_cell_of_a_notebook_adds_a_loss(pretrained, folder):
    cell = runpy.run_path(str(folder / "notebook.py"))
    changes = {
        "encoder": {"name": str(pretrained / "encoder"), "max_length": 16},
        "training": {"steps": 2, "batch_size": 8, "eval_every": 0},
    }
    kb = KnowledgeBase.open(folder / "KB")
    cell["pretrain"](cell["recipe"] | changes, kb, folder / "RUN5")
    assert all(line["loss"] > 0 for line in logged_steps(folder / "RUN5"))


def test_a_stream_of_definitions_trains_the_encoder(run, pretrained, folder):
    run("A stream")
    lines = logged_steps(folder / "RUN4")
    assert [line["rows"] for line in lines] == [8, 8, 8]
    described = json.loads((folder / "RUN4" / "run.json").read_text())
    kb = KnowledgeBase.open(folder / "KB")
    n = sum(bool(concept.definition) for concept in kb)
    assert described["provenance"]["pairs"] == {"n_pairs": n}


def test_the_task(run, pretrained, folder):
    _, evaluated = run("A task")
    result = json.loads((folder / "TASK" / "results.json").read_text())
    assert (result["metric"], list(result["test"])) == ("mcc", ["mcc", "accuracy"])
    assert "mcc" in evaluated.output
    assert last_logged(folder / "TASK" / "runs" / "seed-1")["step"] == 3


def test_a_variation_of_a_task_selects_epochs_by_its_own_metric(pretrained, folder):
    """The metrics of the task that it varies were used, and its name was saved."""
    recipe = 'kind = "task"\ntask = "balanced"\n[encoder]\nname = "RUN/encoder"\nmax_length = 32\n'
    Path("balanced.toml").write_text(f"{recipe}[config.training]\nepochs = 1\n")
    data = ["--train", "train.jsonl", "--dev", "dev.jsonl"]
    runner_of(app)("finetune", "balanced.toml", *data, "-o", "BALANCED")
    trial = folder / "BALANCED" / "runs" / "seed-1"
    [epoch] = json.loads((trial / "result.json").read_text())["epochs"]
    assert list(epoch) == ["epoch", "macro_f1", "f1"]
    manifest = json.loads((folder / "BALANCED" / "model" / "manifest.json").read_text())
    assert manifest["task"] == "balanced"
    assert open_task(folder / "BALANCED").kind == "balanced"


def test_the_knowledge_layer(run, pretrained, folder):
    run("A knowledge layer")
    config = json.loads((folder / "RUN2" / "encoder" / "config.json").read_text())
    assert config["knowledge_layers"] == {"entity_addition": {"after": 1, "neutral_start": True}}


def test_the_knowledge_layer_adds_vectors_to_first_tokens(folder):
    config = KNOWLEDGE_LAYERS.load("entity_addition")(after=1, neutral_start=False)
    layer = config.build(SimpleNamespace(entity_dim=3, hidden_size=4))
    states, table = torch.randn(2, 5, 4), torch.randn(6, 3)
    mentions = torch.tensor([[0, 1, 2], [0, 3, 3], [1, 2, 4]])
    inputs = EntityInputs(states, torch.ones(2, 5), table, mentions, torch.tensor([4, -1, 0]))
    expected = states.clone()
    expected[0, 1] += layer.project(table[4])
    expected[1, 2] += layer.project(table[0])
    torch.testing.assert_close(layer(inputs).states, expected)


def test_the_linker(run, pretrained):
    trained, evaluated = run("A linker")
    assert "n_mentions" in trained.output
    assert "acc@1" in evaluated.output


def test_the_metric(folder):
    first_right = [0, 2, None]  # the rank of the right answer, from 0
    right = [[float(rank is not None and rank <= k) for k in range(3)] for rank in first_right]
    nothing = np.zeros(3, bool)
    judged = Judgements(
        np.array(right), np.array(right), nothing, nothing, np.zeros(3), ("a", "b", "c")
    )
    for k in (1, 2, 3):
        gains = [1 / math.log2(r + 2) for r in first_right if r is not None and r < k]
        assert Metric.parse(f"ndcg@{k}")(judged) == pytest.approx(sum(gains) / 3)


def test_the_output_the_step_and_the_command(folder, monkeypatch):
    link = runner_of(app)
    link("kb", "build", "starter", "-o", "STARTER", "-q")
    given = ("link", "flu and fever", "--kb", "STARTER", "-q")
    listed = link(*given, "--to", "markdown").stdout
    assert listed == "- flu: D007251\n- fever: D005334\n"
    alike = ("link", "the dog had a fever", "--kb", "STARTER", "-q", "--to", "markdown")
    assert link(*alike).stdout == "- fever: D005334\n"
    assert link(*alike, "--steps", "no-animals").stdout == ""
    link(*given, "-o", "findings.md")
    assert Path("findings.md").read_text() == listed
    shout = runner_of(make_app("shout"))
    given = ("shout", "flu and fever", "STARTER", "--types", "symptom")
    assert shout(*given).stdout == "FEVER\n"


def test_the_tests_of_the_page_pass(folder, tmp_path):
    runner_of(app)("kb", "build", "starter", "-o", "STARTER", "-q", "--overwrite")
    importlib.import_module("my_package.test_my_package").test_parts(tmp_path)
