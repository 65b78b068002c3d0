"""`biograft verify` against linkml-term-validator, on the same pairs of id and label.

10,000 pairs of HPO (id and preferred name) hold 100 faults of four kinds, made as in
`verify_faults.py` with a fixed seed. Each run is a process of its own. The validator reads an
ontology by the Ontology Access Kit: as OBO (``simpleobo``, ``pronto``) or as a database of
SQLite, as is published of HPO and made here of the same file (labels, obsolete terms, indexes),
with and without its cache of labels. Its quickest mode then runs by turns with `biograft verify`,
which opens a knowledge base that is built before; the build is timed, too. Since most of the
validator's time is the import of its libraries, both are also timed without their imports, from
the opening of the ontology to the last finding.

    python benchmarks/verify_peer.py --peer VENV/bin/python --json >verify_peer.json

Without ``--peer``, a Python with linkml-term-validator, only biograft is measured.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

from machine import describe_command, describe_commit
from script_options import add_data, run_with, start_parser
from verify_faults import KINDS, Fault, pairs_of

from biograft.compute import describe_machine
from biograft.errors import InputError
from biograft.kb import KnowledgeBase

HPO = "ontologies/obo/hp_2025-01-16.obo.gz"
EACH, SEED = 25, 1
FAULTS = ("unknown_id", "retired", "label_of_another", "misspelt_label")
ADAPTERS = {"simpleobo": "simpleobo:hp.obo", "pronto": "pronto:hp.obo", "sqlite": "sqlite:hp.db"}
MOST_SECONDS = 300
INSIDE = """
import json, sys, time
{imports}
started, start = time.process_time(), time.perf_counter()
{work}
seconds = {{"wall": time.perf_counter() - start, "processor": time.process_time() - started}}
print(json.dumps({{**seconds, "n": n}}))
"""
OURS = {
    "imports": "from pathlib import Path\nfrom biograft.kb import KnowledgeBase\n"
    "from biograft.kb.verify import FileVerifier",
    "work": "verifier = FileVerifier(KnowledgeBase.open('KB'))\n"
    "n = len(list(verifier.verify(Path('pairs.tsv'))))",
}
THEIRS = {
    "imports": "from pathlib import Path\n"
    "from linkml_term_validator.models import ValidationConfig\n"
    "from linkml_term_validator.validator import EnumValidator",
    "work": "lines = open('pairs.tsv', encoding='utf-8').read().splitlines()[1:]\n"
    "pairs = [(*line.split('\\t'), str(n)) for n, line in enumerate(lines, 2)]\n"
    "config = ValidationConfig(\n"
    "    cache_labels=False, oak_config_path=Path(sys.argv[1]), strict_mode=True\n)\n"
    "n = len(EnumValidator(config).validate_curie_label_pairs(pairs))",
}
_PLACE = re.compile(r"line:(\d+)")


class Ran(NamedTuple):
    """A process that ended: its seconds and what it printed."""

    wall: float
    processor: float
    output: str


def run_process(command: list[str], folder: Path) -> Ran | None:
    """Run a command; None if it takes too long."""
    before = os.times()
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None
    wall, after = time.perf_counter() - start, os.times()
    processor = sum(after[2:4]) - sum(before[2:4])
    return Ran(wall, processor, done.stdout + done.stderr)


def make_pairs(kb: KnowledgeBase, folder: Path) -> dict[int, str]:
    """Write pairs with faults; return the kind of the fault in each line that has one."""
    rng = random.Random(SEED)
    pairs = pairs_of(kb, rng, "")
    places = iter(rng.sample(range(len(pairs)), len(pairs)))
    made: dict[int, str] = {}
    for kind in FAULTS:
        n = 0
        while n < EACH:
            place = next(places)
            fault: Fault | None = KINDS[kind](kb, pairs[place], rng)
            if fault is not None:
                pairs[place], made[place + 2], n = fault, kind, n + 1
    rows = [("id", "label"), *pairs]
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
    return made


def write_database(peer: Path, folder: Path) -> None:
    """Make a database of the labels and obsolete terms, in the layout that the peer reads."""
    command = [str(peer), "-c", "import semsql.builder as b; print(b.__path__[0])"]
    layout = Path(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    )
    base = sqlite3.connect(folder / "hp.db")
    base.executescript((layout / "sql_schema" / "semsql.sql").read_text())
    insert = "INSERT INTO statements (stanza, subject, predicate, object, value) VALUES (?,?,?,?,?)"
    for stanza in (folder / "hp.obo").read_text("utf-8").split("\n\n[Term]\n")[1:]:
        tags = [line.partition(": ")[::2] for line in stanza.partition("\n\n[")[0].split("\n")]
        own = next(value for tag, value in tags if tag == "id")
        rows: list[tuple[str | None, ...]] = [(own, "rdf:type", "owl:Class", None)]
        for tag, value in tags:
            if tag == "name":
                rows.append((own, "rdfs:label", None, value))
            elif tag == "is_obsolete":
                rows.append((own, "owl:deprecated", None, "true"))
            elif tag == "alt_id":
                rows.append((value, "rdf:type", "owl:Class", None))
                rows.append((value, "owl:deprecated", None, "true"))
        base.executemany(insert, [(row[0], *row) for row in rows])
    base.executescript("CREATE INDEX at_subject ON statements (subject, predicate);")
    base.commit()
    base.close()


def found_by(ran: Ran, made: dict[int, str]) -> dict[str, Any]:
    """Count the faults among the lines that were accused."""
    lines = {int(line) for line in _PLACE.findall(ran.output)}
    kinds = {kind: sum(made[line] == kind for line in lines & set(made)) for kind in FAULTS}
    return {"found": len(lines & set(made)), "false": len(lines - set(made)), "of_kinds": kinds}


def measure(options: Namespace) -> dict[str, Any]:
    """Build, make the pairs, and time both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hp.obo").write_bytes(gzip.decompress((options.data / HPO).read_bytes()))
        biograft = [sys.executable, "-m", "biograft"]
        built = run_process([*biograft, "kb", "build", "hp.obo", "-o", "KB"], folder)
        assert built is not None
        made = make_pairs(KnowledgeBase.open(folder / "KB"), folder)
        ours = [*biograft, "verify", "pairs.tsv", "--kb", "KB", "--quiet"]
        result: dict[str, Any] = {
            "pairs": (folder / "pairs.tsv").read_text("utf-8").count("\n") - 1,
            "faults": len(made),
            "build": {"wall_s": built.wall, "processor_s": built.processor},
        }
        commands = {"biograft": ours}
        if options.peer is not None:
            modes = peer_modes(options.peer, folder, made)
            result["peer_version"], result["peer_modes"] = peer_version(options.peer), modes
            quickest = min(
                (mode for mode, each in modes.items() if each and each["found"]),
                key=lambda mode: modes[mode]["processor_s"],
            )
            result["quickest"] = quickest
            commands["peer"] = peer_command(options.peer, quickest)
        runs: dict[str, list[Ran]] = {name: [] for name in commands}
        for _ in range(options.runs):
            for each, command in commands.items():
                ran = run_process(command, folder)
                assert ran is not None
                runs[each].append(ran)
        for each, all_runs in runs.items():
            text = re.sub(r"pairs\.tsv:(\d+):\d+: error", r"line:\1", all_runs[-1].output)
            result[each] = {
                "wall_s": statistics.median(ran.wall for ran in all_runs),
                "processor_s": statistics.median(ran.processor for ran in all_runs),
                **found_by(all_runs[-1]._replace(output=text), made),
            }
        inside = {"biograft_inside": [sys.executable, "-c", INSIDE.format(**OURS)]}
        if options.peer is not None:
            script = INSIDE.format(**THEIRS)
            for adapter in ADAPTERS:
                inside[f"{adapter}_inside"] = [str(options.peer), "-c", script, f"{adapter}.yaml"]
        result |= {each: time_inside(inside[each], folder, options.runs) for each in inside}
        if "peer" in result:
            theirs = [result[f"{adapter}_inside"] for adapter in ADAPTERS]
            result["times_quicker"] = {
                key: result["peer"][f"{key}_s"] / result["biograft"][f"{key}_s"]
                for key in ("wall", "processor")
            }
            result["times_quicker_inside"] = {
                key: min(each[f"{key}_s"] for each in theirs)
                / result["biograft_inside"][f"{key}_s"]
                for key in ("wall", "processor")
            }
        return {**result, "runs": options.runs}


def time_inside(command: list[str], folder: Path, n_runs: int) -> dict[str, Any]:
    """Return the medians that a script measures of itself, and its number of findings."""
    runs = []
    for _ in range(n_runs):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    medians = {f"{key}_s": statistics.median(r[key] for r in runs) for key in ("wall", "processor")}
    return {**medians, "findings": runs[0]["n"]}


def peer_command(peer: Path, mode: str) -> list[str]:
    """Return the command of a mode: an adapter, and whether labels are cached."""
    adapter, _, cached = mode.partition(", ")
    command = [str(peer.with_name("linkml-term-validator")), "validate-text-file", "pairs.tsv"]
    command += ["-r", r"(HP:\S+|MONDO:\S+)\t([^\n]*)", "-c", f"{adapter}.yaml", "--strict"]
    return [*command, *(["--cache-dir", adapter] if cached else ["--no-cache"])]


def peer_modes(peer: Path, folder: Path, made: dict[int, str]) -> dict[str, Any]:
    """Time every mode of the peer once; None where it took more than ``MOST_SECONDS``."""
    write_database(peer, folder)
    for name, adapter in ADAPTERS.items():
        (folder / f"{name}.yaml").write_text(f"ontology_adapters:\n  HP: {adapter}\n")
    modes: dict[str, Any] = {}
    for mode in (*ADAPTERS, "simpleobo, with its cache"):
        ran = run_process(peer_command(peer, mode), folder)
        modes[mode] = ran and {
            "wall_s": ran.wall,
            "processor_s": ran.processor,
            **found_by(ran, made),
        }
    return modes


def peer_version(peer: Path) -> str:
    """Return the version of the peer."""
    code = "from importlib.metadata import version; print(version('linkml-term-validator'))"
    command = [str(peer), "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError("has no linkml-term-validator", path=peer, remedy="pip install it there")
    return done.stdout.strip()


def run(options: Namespace) -> None:
    """Measure, and print a table or one JSON object."""
    if options.peer is not None:
        options.peer = options.peer.absolute()
        peer_version(options.peer)
    else:
        print("linkml-term-validator is not measured: no --peer", file=sys.stderr)
    result = measure(options)
    if options.json:
        about = {
            "command": describe_command("verify_peer.py", sys.argv[1:]),
            "commit": describe_commit(),
            "machine": describe_machine(),
        }
        print(json.dumps({**about, **result}))
        return
    for key, value in result.items():
        print(key, value)


def main() -> None:
    """Parse the options and run."""
    parser = start_parser(__doc__)
    add_data(parser)
    parser.add_argument("--peer", type=Path, help="a Python with linkml-term-validator")
    parser.add_argument("--runs", type=int, default=7, help="runs of each, by turns; default: 7")
    parser.add_argument("--json", action="store_true")
    run_with(run, parser.parse_args())


if __name__ == "__main__":
    main()
