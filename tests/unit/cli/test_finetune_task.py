"""``biograft finetune`` and ``evaluate task``: tasks from files to results, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import runner_of
from tiny_models import tiny_encoder_folder

from biograft.cli import app
from biograft.errors import ConfigError, OutputError

NAMES = ("heart attack", "fever", "lung cancer", "cold")
FRAMES = ("we saw {} today", "no {} here", "{} was treated")
QUICK = (
    "config.training.learning_rate=0.01",
    "config.training.precision=fp32",
    "config.training.epochs=25",
    "config.training.batch_size=4",
    "config.training.patience=0",
    "encoder.max_length=32",
)


def conll() -> str:
    """Write every name in every frame."""
    lines = []
    for frame in FRAMES:
        for name in NAMES:
            for word in frame.split():
                words = name.split() if word == "{}" else [word]
                tags = ["B-Disease", "I-Disease"] if word == "{}" else ["O"]
                lines += [f"{w}\t{t}" for w, t in zip(words, tags, strict=False)]
            lines.append("")
    return "\n".join(lines) + "\n"


def gad() -> str:
    rows = ["index\tsentence\tlabel"]
    for number in range(24):
        verb, label = ("causes", "1") if number % 3 else ("ignores", "0")
        rows.append(f"{number}\t@GENE$ {verb} @DISEASE$ in {NAMES[number % 4]}\t{label}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "ner.tsv").write_text(conll())
    (folder / "gad.tsv").write_text(gad())
    tiny_encoder_folder(folder / "encoder", [conll(), gad()], hidden=16, layers=1)
    return folder


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    return runner_of(app)


@pytest.fixture(scope="module")
def train(inputs: Path, run: Callable[..., Any]) -> Callable[..., Any]:
    """Train on a file, which is dev and test too: ``train("ner-cpu", "ner.tsv", out)``."""

    def of(
        recipe: str, file: str, out: Path, *arguments: object, extra: tuple[str, ...] = ()
    ) -> Any:
        parts = [x for part in ("train", "dev", "test") for x in (f"--{part}", inputs / file)]
        sets = [x for change in (*QUICK, *extra) for x in ("--set", change)]
        encoder = ("--encoder", inputs / "encoder")
        return run("finetune", recipe, *parts, *sets, *encoder, "-o", out, *arguments)

    return of


@pytest.fixture(scope="module")
def entities(train: Callable[..., Any], tmp_path_factory: Any) -> tuple[Path, Any]:
    """Entities learned with two seeds."""
    out = tmp_path_factory.mktemp("ner") / "run"
    overlap = ("config.overlap=4",)
    done = train("ner-cpu", "ner.tsv", out, "--seeds", "1,2", "--json", extra=overlap)
    return out, json.loads(done.stdout)


def test_entities_are_learned_and_measured(entities, run, inputs, tmp_path):
    out, said = entities
    assert (said["task"], said["seeds"]) == ("ner", [1, 2])
    assert said["test"]["f1"]["mean"] == 1.0
    assert said["n_examples"] == {"train": 12, "dev": 12, "test": 12}
    answers = tmp_path / "answers.jsonl"
    asked = ("--data", inputs / "ner.tsv", "-o", answers, "--json")
    found = json.loads(run("evaluate", "task", out, *asked).stdout)["data"]
    assert (found["n"], found["f1"], found["classes"]["Disease"]["right"]) == (12, 1.0, 12)
    assert len(answers.read_text().splitlines()) == 12
    shown = run("evaluate", "task", out / "model", "--data", inputs / "ner.tsv").stdout
    assert "Disease" in shown
    assert "f1 1.0000" in shown


def test_a_run_is_replaced_only_if_it_is_one(train, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="is no run of biograft"):
        train("relation-cpu", "gad.tsv", tmp_path / "mine", "--overwrite")
    with pytest.raises(OutputError, match="exists already"):
        train("relation-cpu", "gad.tsv", tmp_path / "mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ner-cpu", "--kb", "KB"), "--kb: a recipe of 'ner' does not use it"),
        (("ner-cpu", "--types", "Disease"), "--types: a recipe of 'ner' does not use it"),
        (("ner-cpu", "--seeds", "one"), "--seeds: expected numbers, found one"),
        (("ner-cpu",), "--train: name a file"),
        (("linker-ranker",), "--kb: a recipe of 'ranker' needs a knowledge base"),
        (("ner-gpu",), "no recipe is called 'ner-gpu'; did you mean 'ner-cpu'"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, tmp_path, arguments, message):
    with pytest.raises(ConfigError, match=message):
        run("finetune", *arguments, "-o", tmp_path / "run")


def test_nothing_to_measure_is_said(entities, run):
    with pytest.raises(ConfigError, match="--data, --against or --published"):
        run("evaluate", "task", entities[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "answers.jsonl"), "--out: needs a file"),
        (("--format", "gad", "--split", "dev"), "--format: needs a file"),
        (("--grouped", "--published", "0.5"), "--grouped: needs a file"),
    ],
)
def test_what_is_said_of_a_file_needs_one(run, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        run("evaluate", "task", tmp_path, *options)


PAIRS = "".join(
    f"{int(first == second)}\tno {first}\t{second}\n" for first in NAMES for second in NAMES
)
ANSWERS = "".join(
    f"{int(answer == 'fever')}\twe saw {name}\t{answer}\n" for name in NAMES for answer in NAMES
)


FILES = {
    "matching": ("cmedqq", PAIRS),
    "ranking": ("cmedqa", ANSWERS),
}


@pytest.mark.parametrize("kind", list(FILES))
def test_texts_pairs_and_answers(kind, inputs, train, run, tmp_path):
    form, content = FILES[kind]
    (inputs / f"{kind}.txt").write_text(content)
    main = "acc@1" if kind == "ranking" else "f1"
    few = ("config.training.epochs=4",)
    asked = ("--format", form, "--seeds", "1,2")
    shown = train(f"{kind}-cpu", f"{kind}.txt", tmp_path / "run", *asked, extra=few).stdout
    assert f"test  {main} " in shown
    assert f"chance on test: {main} " in shown
    data, answers = ("--data", inputs / f"{kind}.txt", "--format", form), tmp_path / "answers.jsonl"
    shown = run("evaluate", "task", tmp_path / "run", *data, "-o", answers).stdout
    assert f"all                  {main} " in shown
    assert f"chance               {main} " in shown
    assert len(answers.read_text().splitlines()) > 3
    found = run("evaluate", "task", tmp_path / "run", *data, "--json").stdout
    assert json.loads(found)["data"]["metrics"][0] == main
    assert f"  {main} " in run("evaluate", "task", tmp_path / "run", "--published", "0.5").stdout


def sweep_of(done: Any) -> dict[str, Any]:
    return json.loads(done.stdout.splitlines()[-1])


def test_a_sweep_names_the_best_by_dev_and_tests_it_alone(train, run, tmp_path):
    out = tmp_path / "sweep"
    grid = ("--sweep", "training.learning_rate=1e-9,1e-2", "--sweep", "training.seed=0,1")
    extra = ("config.overlap=4", "config.training.epochs=8")
    said = sweep_of(train("ner-cpu", "ner.tsv", out, *grid, "--json", extra=extra))
    assert [(r["training.learning_rate"], r["training.seed"]) for r in said["rows"]] == [
        *((1e-9, 0), (1e-9, 1), (1e-2, 0), (1e-2, 1)),
    ]
    assert said["metric"] == "f1"
    assert said["best"]["training.learning_rate"] == 1e-2
    assert said["best"]["dev f1"] == max(row["dev f1"] for row in said["rows"])
    assert said["test"] == said["best"]["dev f1"]  # the file is dev and test
    tested = [run_ for run_ in out.glob("run-*") if "test" in json_of(run_ / "results.json")]
    assert [each.name for each in tested] == [said["best"]["run"]]
    head, *lines = (out / "sweep.tsv").read_text().splitlines()
    assert head.split("\t") == ["training.learning_rate", "training.seed", "run", "dev f1"]
    assert len(lines) == 4
    (out / "sweep.tsv").unlink()
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("run-*/runs/*/result.json")}
    assert len(stamps) == 4
    again = train("ner-cpu", "ner.tsv", out, *grid, "--resume", extra=extra)
    assert again.stdout.splitlines()[0].split() == ["training.learning_rate", *head.split()[1:]]
    assert f"best: {out / said['best']['run']}; test f1" in again.stdout
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    with pytest.raises(ConfigError, match="another recipe or grid"):
        train("ner-cpu", "ner.tsv", out, *grid[:2], "--resume", extra=extra)
    with pytest.raises(ConfigError, match="resume it"):
        train("ner-cpu", "ner.tsv", out, *grid, extra=extra)


def test_a_sweep_chooses_with_few_seeds_and_trains_the_best_with_all(train, tmp_path):
    out = tmp_path / "sweep"
    grid = ("--sweep", "training.learning_rate=1e-9,1e-2", "--seeds", "1,2,3")
    extra = ("config.overlap=4", "config.training.epochs=4", "search.seeds=[1,2]")
    chosen = sweep_of(
        train(
            *("ner-cpu", "ner.tsv", out, *grid, "--json"), extra=(*extra, "search.choosing_seeds=2")
        )
    )
    seeds = {run.name: sorted(p.name for p in (run / "runs").iterdir()) for run in out.glob("run*")}
    assert seeds == {"run-1": ["seed-1", "seed-2"], "run-2": ["seed-1", "seed-2", "seed-3"]}
    results = json_of(out / "best" / "results.json")
    assert (results["seeds"], results["test"]["f1"]["mean"]) == ([1, 2, 3], chosen["test"])
    assert (out / "best").resolve() == out / "run-2"


@pytest.mark.parametrize("form", ["option", "file"])
def test_a_recipe_that_lists_rates_is_sent_to_the_sweep(train, tmp_path, form):
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "ner-cpu"\nsearch.learning_rates = [1e-5]\n')
    recipe, extra = (str(mine), ()) if form == "file" else ("ner", ("search.learning_rates=[]",))
    with pytest.raises(ConfigError, match=r"rates: .*--sweep training\.learning_rate=1e-5,3e-5"):
        train(recipe, "ner.tsv", tmp_path / "run", extra=extra)


def json_of(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("training.rate=1,2", "unknown key 'rate'"),
        ("rate=1,2", "expected table.key=value,value"),
        ("training.seed=", "expected values of training.seed"),
        ("training.seed=a,b", "seeds"),
    ],
)
def test_a_sweep_is_checked_before_anything_is_trained(train, tmp_path, value, message):
    with pytest.raises(ConfigError, match=message):
        train("ner-cpu", "ner.tsv", tmp_path / "sweep", "--sweep", value)
    assert not (tmp_path / "sweep").exists()


def test_an_interrupted_sweep_goes_on_with_what_is_missing(inputs, tmp_path, monkeypatch):
    from biograft.training import sweeps

    trained, real = [], sweeps.finetune

    def interrupted(recipe, folder, **options):
        trained.append(folder.name)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return real(recipe, folder, **options)

    monkeypatch.setattr(sweeps, "finetune", interrupted)
    gold = [str(inputs / "ner.tsv")]
    given: dict[str, Any] = {
        "data": {"train": gold, "dev": gold},
        "encoder": str(inputs / "encoder"),
        "overrides": [*QUICK, "config.overlap=4", "config.training.epochs=1"],
    }
    grid = {"training.seed": [0, 1, 2]}
    with pytest.raises(KeyboardInterrupt):
        sweeps.sweep("ner-cpu", tmp_path / "sweep", grid, **given)
    result = sweeps.sweep("ner-cpu", tmp_path / "sweep", grid, resume=True, **given)
    assert trained == ["run-1", "run-2", "run-2", "run-3"]
    assert [row["training.seed"] for row in result.rows] == [0, 1, 2]
    assert result.test is None
    assert repr(result).startswith("SweepResult(folder=")
    assert result._repr_html_().count("<tr>") == 4
