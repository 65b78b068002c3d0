"""``biograft finetune``: each kind of recipe from gold to a linker that works, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_runs import runner_of
from generative_store import store_in
from tiny_models import tiny_encoder_folder

from biograft.cli import app
from biograft.errors import BiograftError, ConfigError, OutputError
from biograft.training.linkers import label_mentions

CONCEPTS: list[dict[str, Any]] = [
    {"id": "STENOSIS", "name": "mitral stenosis", "names": ["ms"]},
    {"id": "SCLEROSIS", "name": "multiple sclerosis", "names": ["ms"]},
    {"id": "INSUFFICIENCY", "name": "mitral insufficiency", "names": ["mi"]},
    {"id": "INFARCTION", "name": "myocardial infarction", "names": ["mi", "heart attack"]},
    {"id": "RENAL", "name": "renal failure", "names": ["kidney failure"]},
]
MEANT = {
    "ms": "SCLEROSIS",
    "mi": "INFARCTION",
    "failing kidneys": "RENAL",
    "heart attack": "INFARCTION",
    "mitral stenosis": "STENOSIS",
}
SMALL = ("config.folds=3", "config.batch_size=16", "config.learning_rate=0.02")
QUICK = (
    "config.training.steps=2",
    "config.training.batch_size=4",
    "config.training.precision=fp32",
)


def gold_line(n: int) -> str:
    text, mentions = f"In document {n} we saw", []
    for mention, concept in MEANT.items():
        start = len(text) + 1
        text = f"{text} {mention}"
        entry = {"start": start, "end": len(text), "text": mention, "concepts": [concept]}
        mentions.append(entry)
    return json.dumps({"id": f"d{n}", "text": text, "mentions": mentions}) + "\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, gold standards and an encoder; nothing here is written to by tests."""
    folder = tmp_path_factory.mktemp("finetune")
    store_in(folder, CONCEPTS)
    (folder / "train.jsonl").write_text("".join(map(gold_line, range(4))))
    (folder / "more.jsonl").write_text("".join(map(gold_line, range(4, 6))))
    (folder / "dev.jsonl").write_text("".join(map(gold_line, range(6, 8))))
    words = [*map(gold_line, range(8)), *map(json.dumps, CONCEPTS), "none of these"]
    tiny_encoder_folder(folder / "encoder", words, hidden=16, layers=1)
    return folder


@pytest.fixture(scope="module")
def run(inputs: Path) -> Callable[..., Any]:
    """Run a command: ``run("finetune", "linker-ranker", ...)``; finetune knows the store."""
    return runner_of(app)


@pytest.fixture(scope="module")
def train(inputs: Path, run: Callable[..., Any]) -> Callable[..., Any]:
    """Finetune on the sample: ``train("linker-ranker", out, "--json", changes=[...])``."""

    def of(recipe: str, out: Path, *arguments: object, changes: tuple[str, ...] = ()) -> Any:
        gold = ("--train", inputs / "train.jsonl", "--format", "sample")
        sets = [part for change in changes for part in ("--set", change)]
        return run("finetune", recipe, "--kb", inputs / "kb", *gold, "-o", out, *sets, *arguments)

    return of


@pytest.fixture(scope="module")
def ranker(inputs: Path, train: Callable[..., Any], tmp_path_factory: Any) -> tuple[Path, Any]:
    """A ranker trained with a dense index beside the lexical one."""
    out = tmp_path_factory.mktemp("ranker") / "run"
    more = ("--train", inputs / "more.jsonl", "--dev", inputs / "dev.jsonl", "--json")
    done = train("linker-ranker", out, *more, "--encoder", inputs / "encoder", changes=SMALL)
    return out, json.loads(done.stdout)


def test_a_ranker_learns_what_is_meant(ranker, inputs):
    out, said = ranker
    assert (said["recipe"], said["linker"], said["finished"]) == ("linker-ranker", "ranker", True)
    assert said["report"]["n_mentions"] == 6 * len(MEANT)
    assert said["dev"]["n"] == 2 * len(MEANT)
    assert said["dev"]["trained"] == 1
    assert said["dev"]["search"] < 1
    assert said["model"] == str(out / "model")
    assert (out / "index" / "dense" / "manifest.json").exists()


def test_a_calibration_is_fitted_on_dev_queries_and_used(ranker, inputs, run, tmp_path):
    out, file = ranker[0], tmp_path / "c.json"
    whole = ("--kb", out / "kb", "--index", out / "index", "--model", out / "model")
    gold = ("--gold", inputs / "dev.jsonl", "--format", "sample")
    output = run("evaluate", "link", *whole, *gold, "--fit-calibration", file, "--aim", "f1").stdout
    assert "calibration error" in output
    assert "NIL below 1.0000" in output
    linked = json.loads(run("link", "ms", *whole, "--calibration", file, "--json").stdout)
    assert linked["mentions"][0]["candidates"][0]["probability"] == 1
    with pytest.raises(OutputError, match=r"c\.json: exists already"):
        run("evaluate", "link", *whole, *gold, "--fit-calibration", file)
    with pytest.raises(ConfigError, match="--aim"):
        run("evaluate", "link", *whole, *gold, "--aim", "f1")
    fitted = ("--fit-calibration", file, "--overwrite", "--json", "--nil")
    said = json.loads(run("evaluate", "link", *whole, *gold, *fitted).stdout)["calibration"]
    assert said["threshold"] == json.loads(file.read_text())["threshold"] == 1
    assert said["n"] == 2 * len(MEANT)
    with pytest.raises(ConfigError, match="--nil-below"):
        run("evaluate", "link", *whole, *gold, *fitted, "--nil-below", 0.5)


def test_vectors_of_an_index_are_taken_over(inputs, run, train, tmp_path):
    run("index", inputs / "kb", "--encoder", inputs / "encoder", "-o", tmp_path / "index")
    out = tmp_path / "run"
    done = train("linker-ranker", out, "--index", tmp_path / "index", changes=SMALL)
    assert f"model: {out / 'model'}" in done.stdout
    assert sorted(path.name for path in out.iterdir()) == ["index", "kb", "model", "run.json"]
    whole = ("--kb", out / "kb", "--index", out / "index", "--model", out / "model", "--json")
    assert json.loads(run("link", "ms", *whole).stdout)["mentions"][0]["concept"] == "SCLEROSIS"
    both = ("--index", tmp_path / "index", "--encoder", inputs / "encoder")
    with pytest.raises(ConfigError, match="the index brings its own"):
        train("linker-ranker", tmp_path / "other", *both)


def test_a_ranker_goes_on_and_is_replaced_only_on_demand(train, tmp_path):
    out = tmp_path / "run"
    train("linker-ranker", out, changes=SMALL)
    built = (out / "kb" / "manifest.json").read_bytes()
    (out / "model" / "manifest.json").unlink()
    with pytest.raises(OutputError, match="exists already"):
        train("linker-ranker", out, changes=SMALL)
    train("linker-ranker", out, "--resume", changes=SMALL)
    assert (out / "model" / "manifest.json").exists()
    assert (out / "kb" / "manifest.json").read_bytes() == built
    with pytest.raises(ConfigError, match=r"config\.epochs = 30, found 1"):
        train("linker-ranker", out, "--resume", changes=(*SMALL, "config.epochs=1"))
    train("linker-ranker", out, "--overwrite", changes=(*SMALL, "config.epochs=1"))
    with pytest.raises(ConfigError, match="give one of them"):
        train("linker-ranker", out, "--overwrite", "--resume")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(OutputError, match="is no run of biograft"):
        train("linker-ranker", tmp_path / "mine", "--overwrite")
    assert (tmp_path / "mine" / "letter.txt").exists()


def test_an_encoder_is_trained_and_indexed(inputs, run, train, tmp_path):
    out = tmp_path / "run"
    changes = (*QUICK, "encoder.max_length=16")
    done = train("linker-encoder", out, "--encoder", inputs / "encoder", changes=changes)
    assert f"encoder: {out / 'encoder'}" in done.stdout
    made = run("index", inputs / "kb", "--encoder", out / "encoder", "-o", tmp_path / "index")
    learned = json.loads((out / "encoder" / "biograft_lexical_weight.json").read_text())["weights"]
    weight = learned["lexical"] / (1 + learned["lexical"])
    counts = f"dense {1 - weight:.3g}, lexical {weight:.3g}"
    assert f"weights learned with the encoder: {counts}" in made.stdout
    whole = ("--kb", inputs / "kb", "--index", tmp_path / "index", "--json")
    linked = json.loads(run("link", "failing kidneys", "--terms", *whole).stdout)
    first = linked["mentions"][0]["candidates"][0]
    assert first["score"] == pytest.approx(
        sum(
            {"dense": 1 - weight, "lexical": weight}[e["generator"]] * e["score"]
            for e in first["evidence"]
        ),
        abs=1e-4,
    )
    with pytest.raises(ConfigError, match="known: a recipe of 'encoder' does not use it"):
        train(
            "linker-encoder",
            tmp_path / "b",
            "--known",
            inputs / "dev.jsonl",
            "--encoder",
            inputs / "encoder",
        )


def test_the_lexical_weight_is_fitted_on_dev(inputs, train, tmp_path):
    given = ("--encoder", inputs / "encoder", "--dev", inputs / "dev.jsonl", "--json")
    done = train("linker-encoder", tmp_path / "run", *given, changes=QUICK)
    report = json.loads(done.stdout)["report"]
    fitted = report["dev"]["lexical_weight"]
    assert max(report["dev"]["accuracy"].values()) <= 1
    written = tmp_path / "run" / "encoder" / "biograft_lexical_weight.json"
    weights = json.loads(written.read_text())["weights"]
    assert weights == {"dense": 1.0, "lexical": pytest.approx(fitted / (1 - fitted))}
    assert not (tmp_path / "run" / "index-dev").exists()
    with pytest.raises(ConfigError, match="this recipe trains for dot"):
        train("linker-encoder-biosyn", tmp_path / "dot", *given, changes=QUICK)
    assert not (tmp_path / "dot").exists()


def test_a_re_ranker_reads_the_context(inputs, run, train, tmp_path):
    out = tmp_path / "run"
    run("index", inputs / "kb", "-o", tmp_path / "index")
    given = ("--index", tmp_path / "index", "--encoder", inputs / "encoder", "--json")
    said = train(
        "linker-rerank",
        out,
        *given,
        "--dev",
        inputs / "dev.jsonl",
        changes=(*QUICK, "config.max_length=48"),
    )
    report = json.loads(said.stdout)["report"]
    assert (report["n_train"], report["n_held_out"]) == (4 * len(MEANT), 2 * len(MEANT))
    whole = ("--kb", inputs / "kb", "--index", tmp_path / "index", "--model", out / "model")
    linked = json.loads(run("link", "heart attack", *whole, "--json").stdout)["mentions"][0]
    first = linked["candidates"][0]
    assert "context" in {evidence["generator"] for evidence in first["evidence"]}
    # without a threshold the re-ranker says itself when nothing fits
    assert linked["concept"] == (first["concept"] if first["score"] >= 0 else None)
    gold = ("--gold", inputs / "dev.jsonl", "--format", "sample", "--json")
    assert json.loads(run("evaluate", "link", *whole, *gold).stdout)["n"] == 2 * len(MEANT)


def test_data_of_a_recipe(inputs, run, write, tmp_path):
    gold = json.dumps([str(inputs / "train.jsonl")])
    text = (
        'kind = "linker"\nlinker = "ranker"\n[config]\nepochs = 1\n'
        f'[data]\ntrain = {gold}\nformat = "sample"\n'
    )
    mine = write("mine.toml", text)
    done = run("finetune", mine, "--kb", inputs / "kb", "-o", tmp_path / "run")
    assert "n_mentions" in done.stdout


def test_mentions_of_certain_types_only(inputs, run, write, tmp_path):
    """What the command names goes before what the recipe names; without either all count."""
    typed = gold_line(0).replace('"text": "ms"', '"text": "ms", "type": "Sign"')
    gold = write("typed.jsonl", typed.replace('"text": "mi"', '"text": "mi", "type": "Disease"'))
    given = ("--kb", inputs / "kb", "--train", gold, "--format", "sample", "--json")
    quick = [part for change in (*SMALL, "config.epochs=1") for part in ("--set", change)]

    def count(name, *arguments):
        out = ("-o", tmp_path / name)
        done = run("finetune", "linker-ranker", *given, *quick, *out, *arguments)
        return json.loads(done.stdout)["report"]["n_mentions"]

    sign = ("--set", "data.types=['Sign']")
    assert count("a", "--types", "Disease, Sign,") == 2
    assert count("b", *sign) == 1
    assert count("c", *sign, "--types", "Sign,Disease") == 2
    assert count("d") == len(MEANT)
    with pytest.raises(BiograftError, match=f"{len(MEANT)} of another type"):
        count("e", "--types", "Gene")


def test_composite_mentions_teach_nothing():
    """Formerly each part became a name of all the concepts: 8 points lost on NCBI dev."""

    class Query:
        def __init__(self, parts, needed, document=""):
            self.parts, self.document = parts, document
            self.needed = tuple(map(frozenset, needed))
            self.gold = frozenset().union(*self.needed)

    queries = [
        Query(("a", "b"), [{"1"}, {"2"}], "d"),
        Query(("c",), []),
        Query(("c",), [{"1"}]),
        Query(("d",), [{"1", "2"}], "e"),  # either is right
    ]
    made = [(m.text, sorted(m.concepts), m.document) for m in label_mentions(queries)]
    assert made == [("c", ["1"], "query 2"), ("d", ["1", "2"], "e")]


def test_a_ranker_of_several_seeds(ranker, inputs, train, run, tmp_path):
    given = ("--dev", inputs / "dev.jsonl", "--seeds", "3,4", "--json")
    said = json.loads(train("linker-ranker", tmp_path / "run", *given, changes=SMALL).stdout)
    assert {"seed-3/model", "seed-4/model"} <= said.keys()
    assert all(len(each["values"]) == 2 for each in said["report"].values())
    train("linker-ranker", tmp_path / "run", *given, "--overwrite", changes=SMALL)
    with pytest.raises(ConfigError, match="test: a recipe of 'ranker' does not use it"):
        train("linker-ranker", tmp_path / "b", "--test", inputs / "dev.jsonl", changes=SMALL)
    gold = ("--gold", inputs / "dev.jsonl", "--format", "sample", "--kb", ranker[0] / "kb")
    with pytest.raises(ConfigError, match=r"prompt: .* generates no names"):
        run("evaluate", "link", *gold, "--model", ranker[0] / "model", "--prompt", "none")


@pytest.mark.parametrize(
    ("recipe", "grid", "changes"),
    [
        ("linker-ranker", "config.learning_rate=1e-9,0.02", SMALL[:2]),
        ("linker-encoder-cpu", "training.learning_rate=1e-9,1e-3", QUICK),
    ],
)
def test_a_sweep_of_a_linker_chooses_by_accuracy_on_dev(
    train, inputs, tmp_path, recipe, grid, changes
):
    more = ["--dev", inputs / "dev.jsonl", "--test", inputs / "more.jsonl", "--json"]
    if recipe == "linker-encoder-cpu":
        more += ["--encoder", inputs / "encoder"]
    done = train(recipe, tmp_path / "sweep", "--sweep", grid, *more, changes=changes)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["metric"] == "acc@1"
    assert len(said["rows"]) == 2
    assert all(0 <= row["dev acc@1"] <= 1 for row in said["rows"])
    assert said["best"]["dev acc@1"] == max(row["dev acc@1"] for row in said["rows"])
    assert 0 <= said["test"] <= 1


def test_a_sweep_of_a_linker_needs_a_dev_set(train, tmp_path):
    with pytest.raises(ConfigError, match="dev: a sweep chooses by it"):
        train("linker-ranker", tmp_path / "sweep", "--sweep", "config.seed=0,1", changes=SMALL)
