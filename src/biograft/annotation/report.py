"""What annotating did: documents and spans, what was rejected and where, what was cleaned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from biograft.errors import shorten
from biograft.sources.log import Example, Rejections


@dataclass
class AnnotationReport:
    """Counts of one part, or of all of them put together."""

    counts: Counter[str] = field(default_factory=Counter)
    """``records``, ``documents``, ``characters``, ``spans``, and what became of spans."""
    cleaned: Counter[str] = field(default_factory=Counter)
    """By step of cleaning."""
    rejected: Rejections = field(default_factory=Rejections)

    @property
    def n_rejected(self) -> int:
        """How many records were broken."""
        return self.rejected.counts.total()

    def reject(self, reason: str, path: str, line: int, text: str) -> None:
        """Count a broken record, with where it stands."""
        said = shorten(text).encode(errors="replace").decode()
        self.rejected.add(reason, Example(path, line, said))

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the report of another part, as plain values; parts come in their order."""
        self.counts.update(other["counts"])
        self.cleaned.update(other["cleaned"])
        for reason, entry in other["rejected"].items():
            self.rejected.add(reason, n=entry["n"])
            for example in entry["examples"]:
                self.rejected.add(
                    reason, Example(example["file"], example["line"], example["text"]), n=0
                )

    def to_json(self) -> dict[str, Any]:
        """Give the report as plain values."""
        return {
            "counts": dict(sorted(self.counts.items())),
            "cleaned": dict(sorted(self.cleaned.items())),
            "rejected": self.rejected.to_json(),
        }
