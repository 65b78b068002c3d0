"""The leaderboard of entity linking: published figures and ours, with what each system had.

``published.toml`` has the systems: those of papers with their figures, ours with the names of their
rows in the results of linking by protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from biograft.config import from_mapping, load_toml
from biograft.errors import ConfigError
from biograft_lab.replication.protocol_tables import tests_of
from biograft_lab.replication.tables import markdown

FILE = Path(__file__).parent / "published.toml"
SETS = {
    "ncbi-disease": "NCBI disease",
    "bc5cdr-disease": "BC5CDR disease",
    "bc5cdr-chemical": "BC5CDR chemical",
    "askapatient": "AskAPatient",
    "zh-procedures": "Chinese procedures",
}
SHORT = (
    "SapBERT, fine-tuned",
    "BioSyn",
    "biograft: lexical search",
    "biograft: fine-tuned + lexical",
)
"""The systems of the README."""
_HEADS = {
    "en": ("system", "trained on mentions", "model", "knowledge beside the dictionary"),
    "zh": ("系统", "是否用标注训练", "模型", "词典以外的知识"),
}
_CHINESE = {"yes": "是", "no": "否", "none": "无", "Chinese procedures": "中文手术名"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingSystem:
    """A linker: what it had, and its figures by set; one of ours names its rows (``configs``).

    ``labels`` says whether it was trained on mentions; ``strict`` are figures by one strict answer
    with the ontology alone.
    """

    name: str
    labels: str
    model: str
    knowledge: str
    source: str = ""
    figures: Mapping[str, str] = field(default_factory=dict)
    strict: Mapping[str, str] = field(default_factory=dict)
    configs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        published = {**self.figures, **self.strict}
        if bool(published) == bool(self.configs):
            raise ConfigError(f"{self.name}: expected figures, or the configs of our results")
        if published and not self.source:
            raise ConfigError(f"{self.name}: published figures need a source")
        for name in published:
            if name not in SETS:
                raise ConfigError(f"{self.name}: no set {name!r} in the leaderboard")


@cache
def linking_systems() -> tuple[LinkingSystem, ...]:
    """Return all systems, published ones first."""
    rows = load_toml(FILE)["system"]
    return tuple(from_mapping(LinkingSystem, row, f"{FILE.name}: ") for row in rows)


def leaderboard(
    result: Mapping[str, Any],
    language: str = "en",
    names: Collection[str] = (),
    protocol: str = "published",
) -> str:
    """Return a line a system, a column a set; ours with 95 % intervals.

    Args:
        result: The results of linking by protocol.
        language: Language of the headings, en or zh.
        names: The systems to show; default: all.
        protocol: ``published``, or ``strict``, of the sets that others have published.
    """
    ours, strict = tests_of(result["rows"], protocol), protocol == "strict"
    sets = {s: SETS[s] for s in SETS if not strict or any(s in o.strict for o in linking_systems())}
    lines = []
    for system in linking_systems():
        if names and system.name not in names:
            continue
        found = (system.strict if strict else system.figures) or {
            name: next((ours[name, each] for each in system.configs if (name, each) in ours), "")
            for name in sets
        }
        cells = [system.name, system.labels, system.model, system.knowledge]
        if any(found.values()):
            lines.append([*cells, *(found.get(name, "") for name in sets)])
    heads = [*_HEADS[language], *sets.values()]
    if language == "zh":
        heads, *lines = ([_CHINESE.get(cell, cell) for cell in line] for line in (heads, *lines))
    return markdown(heads, lines)
