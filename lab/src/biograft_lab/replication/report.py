"""Tables of documents: written between marks from the result files, so that none is typed by hand.

A document holds ``<!-- begin: NAME -->`` and ``<!-- end: NAME -->``. NAME is an experiment or a
benchmark, with ``/PART`` where its results fill several tables. The text around is written by hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from biograft.errors import InputError, nearest
from biograft_lab.places import BENCHMARKS, DOCS, LAB_DOCS, REPOSITORY, RESULTS
from biograft_lab.replication.claim_tables import CLAIMS, claim_table, claim_table_names
from biograft_lab.replication.declared import declared_tables
from biograft_lab.replication.experiment import Experiment, shipped_experiments
from biograft_lab.replication.leaderboard import SHORT, leaderboard
from biograft_lab.replication.protocol_tables import (
    best_on_dev,
    causes,
    one_protocol,
    side_by_side,
    text_linking,
)
from biograft_lab.replication.protocols import PROTOCOLS
from biograft_lab.replication.reliability_tables import reliability_tables
from biograft_lab.replication.results import read_result
from biograft_lab.replication.tables import (
    generation_starts,
    generation_targets,
    layout_invariance,
    learned_objectives,
    linking_cross_lingual,
    match_ontologies,
)

_MARK = re.compile(r"<!-- begin: ([\w/-]+) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)
_SCRIPTS = {
    "kb_build_15m": "benchmarks/kb_build.py --names 15000000 --relations 5000000",
    "linking_speed": "benchmarks/linking_speed.py --full",
    "verify_peer": "benchmarks/verify_peer.py --peer VENV/bin/python",
    "phenotype_speed": "benchmarks/phenotype_speed.py --fasthpocr PYTHON --index hp.index",
    "compare_peers": "benchmarks/compare_peers.py --environments VENVS --work WORK",
    "unseen_notes": "-m biograft_lab.scripts.unseen_notes",
    "text_linking": "-m biograft_lab.scripts.text_linking",
    "layout_invariance": "-m biograft_lab.scripts.layout_invariance --variants 2200",
    "learned_forms": "-m biograft_lab.scripts.learned_forms",
    "learn_terms": "-m biograft_lab.scripts.learn_terms",
    "map_terms": "-m biograft_lab.scripts.map_terms",
    "match": "-m biograft_lab.scripts.match_ontologies --peer lexmatch=SSSOM",
}
"""The commands of benchmarks that are not the name of the result alone."""
_JOINED = {
    "linking-protocols": (
        "linking-joint",
        "linking-procedures",
        "linking-askapatient",
    )
}
"""Experiments whose rows stand in the tables of another."""
Table = Callable[[Mapping[str, Any]], str]


def tables() -> dict[str, Table]:
    """Return the function of every table, by the name of its mark."""
    objectives = {
        name: partial(learned_objectives, name)
        for name in shipped_experiments()
        if Experiment.load(name).held_out and result_path(name).exists()
    }
    protocols = {f"linking-protocols/{name}": partial(one_protocol, name) for name in PROTOCOLS}
    return {
        **objectives,
        **{name: table.write for name, table in declared_tables().items()},
        **protocols,
        "linking-protocols": side_by_side,
        "linking-protocols/best": best_on_dev,
        "linking-protocols/leaderboard": leaderboard,
        "linking-protocols/leaderboard-strict": partial(leaderboard, protocol="strict"),
        "linking-protocols/leaderboard-short": partial(leaderboard, names=SHORT),
        "linking-protocols/leaderboard-short-zh": partial(leaderboard, language="zh", names=SHORT),
        "linking-protocols/causes": causes,
        "linking-cross-lingual": linking_cross_lingual,
        "genbioel-linking": generation_starts,
        "genbioel-linking/targets": generation_targets,
        "layout_invariance": layout_invariance,
        "match": match_ontologies,
        "text_linking": text_linking,
    }


def documents() -> list[Path]:
    """Return the documents of the repository that may hold tables."""
    pages = (REPOSITORY / "README.md", REPOSITORY / "README.zh.md")
    found = [*pages, *sorted(DOCS.rglob("*.md")), *sorted(LAB_DOCS.rglob("*.md"))]
    return [path for path in found if path.exists()]


def write_tables(paths: Iterable[Path] | None = None, *, check: bool = False) -> list[Path]:
    """Rewrite the tables of documents; return those that were not up to date.

    With ``check`` nothing is written.
    """
    chosen = documents() if paths is None else list(paths)
    if not chosen:
        raise InputError("no documents here", path=REPOSITORY, remedy="run this in a clone")
    known = tables()
    stale = []
    for path in chosen:
        text = path.read_text(encoding="utf-8")
        if (rendered := render(text, path, known)) != text:
            stale.append(path)
            if not check:
                path.write_text(rendered, encoding="utf-8")
    return stale


def render(text: str, path: Path, known: Mapping[str, Table]) -> str:
    """Fill every marked block of a document."""
    listed = reliability_tables()

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name in listed:
            return f"<!-- begin: {name} -->\n{listed[name]()}\n<!-- end: {name} -->"
        if name.partition("/")[0] == CLAIMS and name in claim_table_names():
            return f"<!-- begin: {name} -->\n{claim_table(name)}\n<!-- end: {name} -->"
        if name not in known:
            names = [*known, *listed, *claim_table_names()]
            raise InputError(f"no table is called {name!r}; {nearest(name, names)}", path=path)
        source = result_path(name)
        result = _join(name, read_result(source))
        table, caption = known[name](result), _caption(name, result, source, path)
        return f"<!-- begin: {name} -->\n{table}\n{caption}<!-- end: {name} -->"

    return _MARK.sub(fill, text)


def result_path(name: str) -> Path:
    """Return the result file of a mark."""
    file = f"{name.partition('/')[0]}.json"
    return RESULTS / file if (RESULTS / file).exists() else BENCHMARKS / file


def _join(name: str, result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the rows of the experiments that share the tables of this one."""
    others = _joined(name.partition("/")[0])
    rows = [row for other in others for row in read_result(RESULTS / f"{other}.json")["rows"]]
    return {**result, "rows": [*result["rows"], *rows]} if rows else result


def _joined(stem: str) -> list[str]:
    """Return the experiments with results that share the tables of another."""
    return [name for name in _JOINED.get(stem, ()) if (RESULTS / f"{name}.json").exists()]


def _caption(name: str, result: Mapping[str, Any], source: Path, document: Path) -> str:
    """Return one line: the result file, the command, and the facts of the run."""
    stem, _, part = name.partition("/")
    if part:
        return ""
    link = Path(os.path.relpath(source, document.parent)).as_posix()
    facts = [f"[Results]({link})"]
    if stem in shipped_experiments():
        facts += [f"`biograft replicate run {each}`" for each in (stem, *_joined(stem))]
    else:
        machine = result.get("machine", result)
        facts.append(f"`python {_SCRIPTS.get(stem, f'benchmarks/{stem}.py')}`")
        facts.append(f"{machine['n_cores']} cores ({machine['processor']})")
    return f"\n{'; '.join(facts)}.\n"
