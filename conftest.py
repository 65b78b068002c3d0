"""Fixtures for all tests: paths of data files, reading of sources, snippets as files."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

from biograft.kb.records import Record
from biograft.kb.sources import Item, ReadLog, SourceConfig, read_source

DATA = Path(os.environ.get("BIOGRAFT_DATA") or Path(__file__).parents[1] / "shared" / "data")
os.environ["BIOGRAFT_LANG"] = "en"  # whatever the locale of the machine
settings.register_profile("fixed", derandomize=True)
settings.register_profile("random", derandomize=False, print_blob=True)
# the same examples in every run; others with --hypothesis-profile random
settings.load_profile("fixed")
VENDORED = Path(__file__).parent / "tests" / "data"
"""Small files that are part of the repository, used where ``DATA`` lacks them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files of slow tests, then of many tests: no process is left waiting at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -sizes[item.path]))


@pytest.fixture(autouse=True, scope="session")
def _full_precision() -> Iterator[None]:
    """Make precision ``auto`` mean 32 bits on every machine; tests of bfloat16 name it."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cpu, "get_capabilities", dict, raising=False)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Return the path of a data file, or skip the test and name the missing file."""

    def find(name: str) -> Path:
        for path in (DATA / name, VENDORED / name):
            if path.exists():
                return path
        pytest.skip(f"data file {name} is missing (set BIOGRAFT_DATA)")

    return find


@dataclass
class Reading:
    """The records and the log of a source."""

    items: list[Item]
    log: ReadLog
    counts: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = Counter()
        for item in self.items:
            self.counts[self._record(item).table] += self._size(item)

    @staticmethod
    def _record(item: Item) -> type[Record]:
        return item.record if hasattr(item, "frame") else type(item)

    @staticmethod
    def _size(item: Item) -> int:
        return item.frame.height if hasattr(item, "frame") else 1

    @property
    def records(self) -> list[Record]:
        """All records, including those in blocks."""
        records: list[Record] = []
        for item in self.items:
            if hasattr(item, "frame"):
                records.extend(item.record(**row) for row in item.frame.iter_rows(named=True))
            else:
                records.append(item)
        return records

    def of(self, kind: type[Record]) -> list[Record]:
        """The records of one type."""
        return [record for record in self.records if isinstance(record, kind)]

    @property
    def concepts(self) -> set[str]:
        """The concepts that have a concept record or a name record."""
        return {r.concept for r in self.records if type(r).table in ("concepts", "names")}


@pytest.fixture
def reading() -> Callable[..., Reading]:
    """Read a source: ``reading(path, format="obo", languages=("en",))``."""

    def read(path: Path, **options: object) -> Reading:
        config = SourceConfig(path=path, **options)
        log = ReadLog(path)
        return Reading(list(read_source(config, log)), log)

    return read


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a snippet to a file: ``write("a.obo", "...")``."""

    def to_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return to_file


@pytest.fixture
def tiny_encoder(tmp_path: Path) -> Callable[..., Path]:
    """Write a tiny encoder: ``tiny_encoder(["heart attack", ...], hidden=32)``."""
    from tiny_models import tiny_encoder_folder

    def write(texts: list[str], **options: int) -> Path:
        return tiny_encoder_folder(tmp_path / "tiny", texts, **options)

    return write


class Completed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run_main(capsys, monkeypatch):
    """Return a function that runs the whole program: ``run_main("kb", "info", store)``."""
    from biograft.cli import main

    handler = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> Completed:
        monkeypatch.setattr(sys, "argv", ["biograft", *map(str, arguments)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return Completed(int(str(code or 0)), out, err)

    yield run
    signal.signal(signal.SIGTERM, handler)
