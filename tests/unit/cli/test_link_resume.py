"""``biograft link -o OUT`` that is killed: --resume goes on, and OUT is what it would have been.

The commands run in processes that kill themselves at a document; they are forked from one that has
no threads, so that each starts at once.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest
from generative_store import store_in
from typer.testing import CliRunner

from biograft.cli import app
from biograft.cli.link import LinkInputs
from biograft.linking.outputs import OUTPUTS, unfinished
from biograft.text.input_config import InputConfig

CONCEPTS = [
    {"id": "D1", "names": {"en": ["Influenza", "flu"]}, "types": ["T047"]},
    {"id": "D2", "name": "Fever", "types": ["T184"]},
    {"id": "D3", "name": "Left ventricular hypertrophy", "types": ["T046"]},
    {"id": "C4", "name": "Zinc", "types": ["T121"]},
]
SENTENCES = ("No flu.", "Fever of 39 C.", "History of flu.", "Mother had zinc.", "Nothing.")
N_NOTES = 48
MOMENTS = (5, 20, 40)
"""Documents at which a command kills itself, one after the other."""

RUNNER = """
import os, signal, sys
from typer.main import get_command
from biograft.cli import app
from biograft.linking.outputs import findings, lines, unfinished
unfinished.SECONDS, findings._ROWS, lines._BLOCK = 0.0, 16, 8
command = get_command(app)
command.main(["link", "No fever (LVH) of 39 C.", "--kb", sys.argv[1]], standalone_mode=False)

def link(arguments, moment):
    child = os.fork()
    if child == 0:
        seen, identity = [], unfinished._identity
        def counted(document):
            seen.append(1)
            if len(seen) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return identity(document)
        unfinished._identity = counted
        command.main(arguments)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

for line in sys.argv[2:]:
    moment, *arguments = line.split("\\t")
    assert link(arguments, int(moment)) == (-9 if int(moment) else 0), line
"""
TEXTS = [name for name in OUTPUTS if name != "parquet" or importlib.util.find_spec("pyarrow")]
CASES = {
    **{name: ["notes", "--to", name] for name in TEXTS},
    "terms": ["terms.txt", "--terms"],
    "terms as rows": ["terms.txt", "--terms", "--to", "csv"],
    "table": ["notes.csv", "--column", "text", "--id-column", "id", "--all-ids", "--to", "jsonl"],
    "within the inputs": ["more", "--to", "csv"],
}


def note(number):
    chosen = [SENTENCES[(number * step) % len(SENTENCES)] for step in (1, 2, 3)]
    return f"Note {number}. {' '.join(chosen)} LVH and left ventricular hypertrophy (LVH)."


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder with inputs and outputs; all are finished but ``killed.csv``."""
    folder = tmp_path_factory.mktemp("world")
    kb = store_in(folder, CONCEPTS, "KB").folder
    for name in ("notes", "more"):
        (folder / name).mkdir()
        for number in range(N_NOTES):
            (folder / name / f"{number:03}.txt").write_text(note(number))
    rows = "".join(f"n{n},{note(n)}\n" for n in range(N_NOTES))
    (folder / "notes.csv").write_text(f"id,text\n{rows}")
    (folder / "terms.txt").write_text("flu\nn/a\nfevr\n" * 17)
    lines = []
    for name, arguments in CASES.items():
        out = "more/out" if name == "within the inputs" else f"{name} resumed"
        lines.append(["0", *arguments, "-o", f"{name} whole"])
        lines += [
            [str(moment), *arguments, "-o", out, *(["--resume"] if turn else [])]
            for turn, moment in enumerate((*MOMENTS, 0))
        ]
    lines.append(["30", "notes", "-o", "killed.csv"])
    texts = ["\t".join([line[0], "link", *line[1:], "--kb", "KB", "-q"]) for line in lines]
    command = [sys.executable, "-c", RUNNER, str(kb), *texts]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return folder


@pytest.fixture
def killed(world, tmp_path, monkeypatch):
    """A copy of that folder, and the arguments of the command that was killed."""
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return ["link", "notes", "-o", "killed.csv", "--kb", "KB", "-q"]


def link(*arguments):
    return CliRunner().invoke(app, [*arguments])


def content(path):
    """Return the bytes of a file, or of each file of a folder, but for the date of OMOP."""
    if path.is_dir():
        return {str(each.relative_to(path)): content(each) for each in path.rglob("*.*")}
    return re.sub(rb"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", b"DATE", path.read_bytes())


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("name", list(CASES))
def test_outputs_go_on(name, world):
    out = world / ("more/out" if name == "within the inputs" else f"{name} resumed")
    assert content(out) == content(world / f"{name} whole")
    assert hidden(world / "more") == []
    assert hidden(world) == [".killed.csv.lock", ".killed.csv.unfinished"]


def test_dates_of_a_resumed_run_are_those_of_its_beginning(world):
    rows = (world / "omop resumed").read_bytes()
    assert len(set(re.findall(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", rows))) == 1


def test_what_is_left_is_private_and_holds_no_more_than_the_output(world):
    folder = world / ".killed.csv.unfinished"
    assert not (world / "killed.csv").exists()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["output", "plan.json"]
    whole, left = ((each).read_text() for each in (world / "csv whole", folder / "output"))
    assert whole.startswith(left)
    assert "History of" not in left + (folder / "plan.json").read_text()


def test_a_run_without_resume_says_what_is_there(killed, tmp_path):
    (line,) = str(link(*killed).exception).splitlines()
    assert "29 documents" in line
    assert all(each in line for each in (".killed.csv.unfinished", "--resume", "--overwrite"))
    assert link(*killed, "--overwrite").exit_code == 0
    assert content(tmp_path / "killed.csv") == content(tmp_path / "csv whole")
    assert hidden(tmp_path) == []


def test_other_options_are_refused(killed, tmp_path):
    for option, said in ((["-k", "2"], "settings k"), (["--prefer", "MSH"], "output")):
        refused = str(link(*killed, *option, "--resume").exception)
        assert f"was begun with another {said}" in refused
        assert len(refused) < 500
    store_in(tmp_path, CONCEPTS[:2], "OTHER")
    refused = str(link(*killed[:-2], "OTHER", "--resume").exception)
    assert "was begun with another store" in refused
    assert link(*killed, "--resume").exit_code == 0
    assert content(tmp_path / "killed.csv") == content(tmp_path / "csv whole")


def test_another_version_is_refused(killed, monkeypatch):
    monkeypatch.setattr("biograft.__version__", "99.0")
    assert "was begun with another version" in str(link(*killed, "--resume").exception)


def test_changed_inputs_are_refused(killed, tmp_path):
    """A note of another length is seen at once, one of the same when it is read."""
    path = tmp_path / "notes" / "003.txt"
    text = path.read_text()
    path.write_text(f"{text} Flu.")
    assert "was begun with another inputs" in str(link(*killed, "--resume").exception)
    path.write_text(text[::-1])
    assert "the inputs have changed" in str(link(*killed, "--resume").exception)
    assert not (tmp_path / "killed.csv").exists()
    path.write_text(text)
    assert link(*killed, "--resume").exit_code == 0
    assert content(tmp_path / "killed.csv") == content(tmp_path / "csv whole")


def test_what_cannot_be_read_again_cannot_go_on(killed, tmp_path):
    refused = link("link", "No flu.", "--kb", "KB", "-o", "out.csv", "--resume")
    assert "--resume" in str(refused.exception)
    refused = link("link", "notes", "--kb", "KB", "--resume")
    assert "(-o)" in str(refused.exception)
    assert ".out.csv.unfinished" not in hidden(tmp_path)


def test_an_input_that_cannot_be_read_leaves_nothing(killed, tmp_path, monkeypatch):
    monkeypatch.setattr("biograft.linking.outputs.unfinished.SECONDS", 0.0)
    (tmp_path / "more" / "040.txt").write_bytes(b"\xff\xfe\x00")
    assert link("link", "more", "--kb", "KB", "-o", "out.csv").exit_code != 0
    assert ".out.csv.unfinished" not in hidden(tmp_path)


def test_an_interrupted_run_goes_on(killed, tmp_path, monkeypatch):
    class Interrupted(unfinished.UnfinishedOutput):
        def _note(self):
            super()._note()
            raise KeyboardInterrupt

    monkeypatch.setattr(unfinished, "UnfinishedOutput", Interrupted)
    monkeypatch.setattr(unfinished, "SECONDS", 0.0)
    done = link("link", "notes", "--kb", "KB", "-q", "-o", "out.csv")
    assert done.exit_code == 130
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert link("link", "notes", "--kb", "KB", "-q", "-o", "out.csv", "--resume").exit_code == 0
    assert content(tmp_path / "out.csv") == content(tmp_path / "csv whole")


def test_resuming_a_run_that_never_began_begins_it(killed, tmp_path):
    (tmp_path / ".out.csv.unfinished").mkdir()
    (tmp_path / ".out.csv.unfinished" / "output").write_text("half a li")
    assert link("link", "notes", "--kb", "KB", "-q", "-o", "out.csv", "--resume").exit_code == 0
    assert content(tmp_path / "out.csv") == content(tmp_path / "csv whole")


def test_processes_that_are_killed_go_on(killed, tmp_path):
    """The whole group is killed from outside, workers and all."""
    script = (
        "import sys; from biograft.linking.outputs import unfinished; unfinished.SECONDS = 0.0\n"
        "from biograft.cli import app\n"
        "if __name__ == '__main__': app(sys.argv[1:])\n"
    )
    (tmp_path / "script.py").write_text(script)
    arguments = ["link", "notes", "--kb", "KB", "-q", "-o", "out.csv"]
    command = [sys.executable, "script.py", *arguments, "--workers", "2"]
    process = subprocess.Popen(command, start_new_session=True)
    plan = tmp_path / ".out.csv.unfinished" / "plan.json"
    while not plan.exists() and process.poll() is None:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert link(*arguments, "--resume").exit_code == 0
    assert content(tmp_path / "out.csv") == content(tmp_path / "csv whole")


def test_the_share_of_files_that_is_done_is_known(killed, tmp_path):
    for given, options in (("notes", {}), ("notes.csv", {"column": "text"})):
        texts = LinkInputs([given], InputConfig(**options))
        assert len(list(texts.documents())) == N_NOTES
        assert list(texts.shares) == sorted(texts.shares)
        assert texts.shares[-1] == pytest.approx(1)
        assert texts.shares[N_NOTES // 2 - 1] == pytest.approx(0.5, abs=0.02)
