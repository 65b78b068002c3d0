"""Trackers receive configuration, losses and dev scores; a host is named before it gets them."""

from __future__ import annotations

import pytest
from accelerate import tracking
from accelerate.tracking import GeneralTracker
from accelerate.utils import LoggerType

from biograft.errors import BiograftError, ConfigError
from biograft.progress import Progress
from biograft.training import TrainingConfig, train


class ListTracker(GeneralTracker):
    """Keeps what it is told."""

    name = "list"
    requires_logging_directory = False
    runs: list[ListTracker] = []  # noqa: RUF012

    def __init__(self, run_name, **options):
        super().__init__()
        self.project, self.config, self.entries, self.finished = run_name, {}, [], False
        self.runs.append(self)

    @property
    def tracker(self):
        return self.entries

    def store_init_configuration(self, values):
        self.config = values

    def log(self, values, step=None, **options):
        self.entries.append((step, values))

    def finish(self):
        self.finished = True


@pytest.fixture
def list_tracker(monkeypatch):
    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "list", ListTracker)
    monkeypatch.setattr(ListTracker, "runs", [])
    return ListTracker


def config(**options):
    values = {"steps": 6, "batch_size": 8, "learning_rate": 0.01, "precision": "fp32"}
    return TrainingConfig(**{**values, **options})


def test_a_tracker_gets_configuration_losses_and_dev_scores(make_task, tmp_path, list_tracker):
    task = make_task(
        described={"name": "points", "stream": {"types": ["a", "b"]}},
        evaluate=lambda: {"acc@1": 75.0, "pairs": {"loss": 0.5, "histogram": [1, 2]}},
    )
    train(task, config(trackers=("list",), project="trial", eval_every=3), tmp_path / "run")
    (run,) = list_tracker.runs
    assert run.finished
    assert run.project == "trial"
    assert run.config["name"] == "points"
    assert run.config["stream.types"] == "['a', 'b']"
    assert run.config["training.learning_rate"] == 0.01
    losses = {step: values["loss"] for step, values in run.entries if "loss" in values}
    assert list(losses) == [1, 2, 3, 4, 5, 6]
    dev = {step: values for step, values in run.entries if "dev.acc@1" in values}
    assert list(dev) == [0, 3, 6]
    assert {"dev.acc@1": 75.0, "dev.pairs.loss": 0.5}.items() <= dev[3].items()
    assert "dev.pairs.histogram" not in dev[3]


def test_a_tracker_is_closed_when_the_training_fails(make_task, tmp_path, list_tracker):
    def fail(*_):
        raise ConfigError("a broken loss")

    with pytest.raises(ConfigError, match="broken"):
        train(make_task(compute_loss=fail), config(trackers=("list",)), tmp_path / "run")
    assert list_tracker.runs[0].finished


def test_trackers_may_be_added_when_a_run_is_resumed(make_task, tmp_path, list_tracker):
    described = {"training": {"trackers": [], "project": "biograft"}}
    train(make_task(described=described), config(steps=3), tmp_path / "run")
    described = {"training": {"trackers": ["list"], "project": "later"}}
    train(
        make_task(described=described),
        config(trackers=("list",), project="later"),
        tmp_path / "run",
        resume=True,
    )
    assert [step for step, _ in list_tracker.runs[0].entries] == [4, 5, 6]


def test_none_is_the_default(make_task, tmp_path, list_tracker):
    train(make_task(), config(), tmp_path / "run")
    assert list_tracker.runs == []


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [("", "", "https://api.wandb.ai"), ("WANDB_BASE_URL", "http://127.0.0.1:1", "127.0.0.1:1")],
)
def test_the_host_is_named_before_anything_is_sent(
    make_task, tmp_path, monkeypatch, capsys, variable, value, named
):
    monkeypatch.delenv("WANDB_BASE_URL", raising=False)
    if variable:
        monkeypatch.setenv(variable, value)
    for module in ("biograft.training.trackers", "accelerate.tracking"):
        installed = f"{module}.get_available_trackers"
        monkeypatch.setattr(installed, lambda: [LoggerType("wandb")])
    said = []

    class Sending(ListTracker):
        name = "wandb"

        def start(self):
            said.append(capsys.readouterr().err)

    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "wandb", Sending)
    train(make_task(), config(trackers=("wandb",)), tmp_path / "run")
    assert named in said[0]


def test_what_stays_on_the_machine_is_not_announced(make_task, tmp_path, list_tracker, capsys):
    train(make_task(), config(trackers=("list",)), tmp_path / "run")
    assert capsys.readouterr().err == ""


def test_a_tracker_that_is_not_installed_gives_the_install_line(make_task, tmp_path, monkeypatch):
    monkeypatch.setattr("biograft.training.trackers.get_available_trackers", list)
    with pytest.raises(BiograftError, match="pip install tensorboard"):
        train(make_task(), config(trackers=("tensorboard",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unknown_tracker_gives_the_nearest(make_task, tmp_path):
    with pytest.raises(ConfigError, match=r"no tracker is called 'tensorbord'.*tensorboard"):
        train(make_task(), config(trackers=("tensorbord",)), tmp_path / "run")


def test_tensorboard_writes_beside_the_run(make_task, tmp_path):
    pytest.importorskip("tensorboard")
    train(make_task(), config(trackers=("tensorboard",)), tmp_path / "run")
    assert list((tmp_path / "run" / "biograft").rglob("events.*"))


def test_the_line_in_a_log_has_loss_and_dev_score(make_task, tmp_path):
    import io

    now, log = [0.0], io.StringIO()

    def clock():
        now[0] += 10
        return now[0]

    task = make_task(evaluate=lambda: {"n": 4, "acc@1": 75.0})
    progress = Progress(stream=log, clock=clock)
    train(task, config(eval_every=2), tmp_path / "run", progress=progress)
    first, *_ = lines = log.getvalue().splitlines()
    assert first.startswith("training   ")
    assert all("  loss " in line and "  dev.acc@1 75" in line for line in lines)
