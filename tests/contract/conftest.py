"""Fixtures of the contract: the product as a black box, and golden files of what it answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, run_command
from golden_files import GoldenFiles, scrub

HERE = Path(__file__).parent
GOLDEN_KEY = pytest.StashKey[GoldenFiles]()
Check = Callable[..., None]
Run = Callable[..., Ran]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option behind ``make golden``."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="print how the golden files differ, then write them; rows not asked for are deleted",
    )


def _files(config: pytest.Config) -> GoldenFiles:
    if GOLDEN_KEY not in config.stash:
        update = bool(config.getoption("--update-golden", default=False))
        config.stash[GOLDEN_KEY] = GoldenFiles(update)
    return config.stash[GOLDEN_KEY]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the differences, then write them, if that was asked for and all other tests passed."""
    files = _files(config)
    if not files.update:
        return
    stats = terminalreporter.stats
    whole = [Path(each).resolve() for each in config.args] == [HERE]
    filtered = config.option.keyword or config.option.markexpr or stats.get("skipped")
    if stats.get("failed") or stats.get("error"):
        terminalreporter.write_line("golden files: nothing is written, since tests failed")
        return
    files.write(prune=whole and not filtered)
    for line in files.changed:
        terminalreporter.write_line(f"golden {line}")
    terminalreporter.write_line(f"golden files: {len(files.changed)} differences written")


@pytest.fixture
def golden(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Check:
    """Compare with a golden row: ``golden("commands", "kb info", value, volatile=("created",))``.

    Paths of temporary folders, times and hashes are scrubbed; see :mod:`golden_files`.
    """
    folders = {
        str(tmp_path): "<tmp>",
        str(tmp_path_factory.getbasetemp()): "<tmp>",
        str(HERE.parents[1]): "<repository>",
    }

    def check(file: str, row: str, value: Any, volatile: tuple[str, ...] = ()) -> None:
        _files(request.config).check(file, row, scrub(value, folders, volatile))

    return check


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line in an empty folder: ``run("kb search", kb, "flu").json``."""
    monkeypatch.chdir(tmp_path)
    return run_command


@pytest.fixture(scope="session")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter knowledge base."""
    folder = tmp_path_factory.mktemp("starter") / "KB"
    assert run_command("kb build starter -o", folder).status == 0
    return folder


@pytest.fixture(scope="session")
def index(kb: Path) -> Path:
    """An index of the starter knowledge base: lexical, and with the included static encoder."""
    folder = kb.with_name("INDEX")
    assert run_command("index", kb, "-o", folder).status == 0
    return folder
