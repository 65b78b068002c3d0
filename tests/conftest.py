"""Fixtures for all tests: where the real files are, and how a snippet becomes a source."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from biograft.records import Record
from biograft.sources import Item, ReadLog, SourceConfig, read_source

DATA = Path(os.environ.get("BIOGRAFT_DATA") or Path(__file__).parents[2] / "shared" / "data")


@pytest.fixture(autouse=True, scope="session")
def _full_precision() -> Iterator[None]:
    """Let precision ``auto`` be 32 bits on every machine; tests of bfloat16 ask for it."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cpu, "get_capabilities", dict, raising=False)
        yield


@pytest.fixture
def shared_data() -> Callable[[str], Path]:
    """Find a real file, or skip with its name."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"real file {name} is not there (set BIOGRAFT_DATA)")
        return path

    return find


@dataclass
class Reading:
    """Everything one reading gave."""

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
        """All records, those inside blocks too."""
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
        """The concepts that exist by a concept or a name record."""
        return {r.concept for r in self.records if type(r).table in ("concepts", "names")}


@pytest.fixture
def reading() -> Callable[..., Reading]:
    """Read a source whole: ``reading(path, format="obo", languages=("en",))``."""

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
