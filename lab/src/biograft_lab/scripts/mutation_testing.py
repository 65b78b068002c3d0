"""Whether tests would notice: small changes of the source, each tried with the tests nearest to it.

Of each module a sample of the mutants of `mutants.py` is made, and the changes that are named in
`known_mutants.toml`: mistakes that no test once noticed. A mutant is killed if one of the tests in
the folder that mirrors the module fails, dies or does not end, and else survives. Survivors that
change nothing, or only speed or text for people, are listed there too, each with its reason.

    pip install mutmut coverage          the changes are mutmut's; coverage finds the tests
    python -m biograft_lab.scripts.mutation_testing --quick --json
    python -m biograft_lab.scripts.mutation_testing --sample 40 --folder F -o mutants.json

What is in the folder F is not run again, unless the source, or for a survivor the tests, changed.
Needs Linux or macOS, because processes are forked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine import describe_command, describe_commit
from script_options import some_of, start_parser

from biograft.compute import describe_machine
from biograft_lab.places import REPOSITORY
from biograft_lab.replication.results import write_result

try:
    import coverage as _coverage  # noqa: F401

    from biograft_lab.scripts.mutant_runs import SURVIVED, Laboratory, Reach, Trials
    from biograft_lab.scripts.mutants import Mutant, changed_lines, sample_mutants
except ImportError as _error:
    raise SystemExit(f"error: {_error}; run: pip install mutmut coverage") from _error

ROOT = REPOSITORY.resolve()
SOURCE = ROOT / "src"
KNOWN = Path(__file__).with_name("known_mutants.toml")
NAMED = "named"
"""The changes that the file of known mutants names."""
MODULES = {
    "metrics": ("metrics",),
    "evaluation": ("evaluation",),
    "objectives": ("training/objectives",),
    "linking": ("linking/fusion.py", "linking/calibration.py"),
    "kb": ("kb",),
    "sources": ("kb/sources",),
    "serve": ("serve",),
    "mapping": ("mapping",),
}
"""Files or folders below biograft; their tests are found by the layout of tests/unit."""
_OTHER_TESTS = {
    "linking/fusion.py": (
        "linking/test_fusion.py",
        "linking/test_candidate_builder.py",
        "linking/test_concept_choice.py",
        "linking/test_shared_names.py",
        "linking/generative/test_generative_folder.py",
    ),
    "linking/calibration.py": ("linking/test_linking_calibration.py",),
    "kb/sources": ("kb/sources", "evaluation/test_gold_archives.py"),
    "serve": ("serve",),
    "mapping": (
        "mapping",
        "cli/test_map.py",
        "cli/test_mapping_command.py",
        "cli/test_review_command.py",
        "serve/test_review_routes.py",
    ),
}
"""Tests that are named otherwise than what they test."""


@dataclass(frozen=True)
class Module:
    """Some files of the source, and the tests nearest to them."""

    files: list[str]
    tests: list[str]

    @property
    def hash_of_tests(self) -> str:
        """Hash that changes when a test does."""
        files = [file for test in self.tests for file in _python_files(ROOT / test)]
        return _hash(*(file.read_text(encoding="utf-8") for file in files))


def find_module(name: str) -> Module:
    """Return the files of a module and its tests."""
    files: list[str] = []
    tests: list[str] = []
    for place in MODULES[name]:
        found = _python_files(SOURCE / "biograft" / place)
        files += [file.relative_to(SOURCE).as_posix() for file in found]
        mirror = place if not place.endswith(".py") else mirror_of(place)
        tests += [f"tests/unit/{each}" for each in _OTHER_TESTS.get(place, (mirror,))]
    return Module(files, tests)


def mirror_of(place: str) -> str:
    """Return the file of tests of a file of the source, both below their folders."""
    folder, _, file = place.rpartition("/")
    return f"{folder}/test_{file}"


def _python_files(place: Path) -> list[Path]:
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


class Outcomes:
    """Results of mutants in earlier runs, one line each in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._known: dict[str, dict[str, str]] = {}
        for line in lines:
            each = json.loads(line)
            self._known[each["mutant"]] = each

    def find(self, mutant: Mutant, tests: str) -> str | None:
        """Return "killed" or "survived", if that still holds."""
        each = self._known.get(_name(mutant))
        if each is None or (each["outcome"] == SURVIVED and each["tests"] != tests):
            return None
        return each["outcome"]

    def add(self, mutant: Mutant, tests: str, outcome: str) -> None:
        """Keep an outcome."""
        each = {"mutant": _name(mutant), "tests": tests, "outcome": outcome}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(each) + "\n")


def _name(mutant: Mutant) -> str:
    return f"{mutant.key} {_hash(mutant.text)}"


class Testing:
    """Mutants, their tests and results, in a folder."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder, self._options = folder, options
        self._laboratory = Laboratory(ROOT, folder)
        self._outcomes = Outcomes(folder / "outcomes.jsonl")
        self._known = read_known()

    def run(self, name: str) -> dict[str, Any]:
        """Try the mutants of a module; return the results."""
        if name == NAMED:
            return self._run_named()
        module, options = find_module(name), self._options
        sample, n_all = sample_mutants(SOURCE, module.files, options.sample, options.seed)
        tests = module.hash_of_tests
        source = [(SOURCE / file).read_text(encoding="utf-8") for file in module.files]
        files = [file for test in module.tests for file in _python_files(ROOT / test)]
        names = [file.relative_to(ROOT).as_posix() for file in files if file.name[:5] == "test_"]
        texts = [(ROOT / each).read_text(encoding="utf-8") for each in names]
        kept = [_hash(each, text, *source) for each, text in zip(names, texts, strict=True)]
        reached = {
            each: self._folder / f"reach-{key}.json" for each, key in zip(names, kept, strict=True)
        }
        new = [each for each in sample if self._outcomes.find(each, tests) is None]

        def work(trials: Trials) -> None:
            for tested, path in reached.items():
                if not path.exists():
                    trials.reach(module.files, path, tested)
            reach = Reach.load(*reached.values())
            for mutant in new:
                if not mutant.is_definition:
                    self._try(mutant, reach, trials, tests)

        if new:
            self._laboratory.collect(module.tests, module.files, work)
        for mutant in new:
            if mutant.is_definition:  # where nothing of the tests is imported yet
                self._try(mutant, Reach.load(*reached.values()), self._laboratory, tests)
        return {"possible": n_all, **self._summary(sample, [tests] * len(sample))}

    def _try(self, mutant: Mutant, reach: Reach, ways: Laboratory | Trials, tests: str) -> None:
        """Try a mutant with the tests of its line, or else with all of its file.

        The line may be compiled, or computed once and kept, and then no test is seen to reach it.
        """
        chosen = reach.tests(mutant.file, mutant.lines) or reach.tests(mutant.file, None)
        seconds = sum(reach.seconds[test] for test in chosen)
        outcome = SURVIVED
        if chosen:
            outcome = ways.outcome(mutant.file, mutant.text, chosen, seconds)
        self._add(mutant, tests, outcome, len(chosen))

    def _run_named(self) -> dict[str, Any]:
        known = self._known["named"]
        mutants = [named_mutant(each) for each in known]
        files = [sorted({test.partition("::")[0] for test in each["tests"]}) for each in known]
        hashes = [
            _hash(*((ROOT / file).read_text(encoding="utf-8") for file in some)) for some in files
        ]
        new = [
            (each, mutant, tests)
            for each, mutant, tests in zip(known, mutants, hashes, strict=True)
            if self._outcomes.find(mutant, tests) is None
        ]

        def work(trials: Trials) -> None:
            unchanged = (SOURCE / new[0][1].file).read_text(encoding="utf-8")
            chosen = sorted({test for each, _, _ in new for test in each["tests"]})
            if trials.outcome(new[0][1].file, unchanged, chosen, 60) != SURVIVED:
                raise SystemExit("error: a test of a named mutant fails on the unchanged source")
            for each, mutant, tests in new:
                outcome = trials.outcome(mutant.file, mutant.text, each["tests"], 60)
                self._add(mutant, tests, outcome, len(each["tests"]))

        if new:
            of_tests = sorted({file for some in files for file in some})
            of_source = sorted({mutant.file for mutant in mutants})
            self._laboratory.collect(of_tests, of_source, work)
        return self._summary(mutants, hashes)

    def _add(self, mutant: Mutant, tests: str, outcome: str, n: int) -> None:
        """Keep an outcome, from whatever process."""
        self._outcomes.add(mutant, tests, outcome)
        with (self._folder / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{outcome:8} {n:4} tests  {mutant.line:4} {mutant.key}\n")

    def _summary(self, mutants: Sequence[Mutant], tests: Sequence[str]) -> dict[str, Any]:
        self._outcomes = Outcomes(self._outcomes.path)  # with those of forked processes
        outcomes = [
            self._outcomes.find(mutant, each) for mutant, each in zip(mutants, tests, strict=True)
        ]
        reasons = {each["mutant"]: each for each in self._known["survivor"]}
        survived = [
            mutant for mutant, outcome in zip(mutants, outcomes, strict=True) if outcome == SURVIVED
        ]
        kinds = [reasons.get(mutant.key, {}).get("kind", "") for mutant in survived]
        n_equivalent = kinds.count("equivalent")
        return {
            "mutants": len(mutants),
            "killed": len(mutants) - len(survived),
            "survived": len(survived) - n_equivalent,
            "equivalent": n_equivalent,
            "survivors": [
                {
                    "mutant": mutant.key,
                    "line": mutant.line,
                    "kind": kind or "unexplained",
                    "reason": reasons.get(mutant.key, {}).get("reason", ""),
                }
                for mutant, kind in zip(survived, kinds, strict=True)
            ],
        }


def read_known() -> dict[str, list[dict[str, Any]]]:
    """Return the named changes, and the survivors that have a reason."""
    known: dict[str, list[dict[str, Any]]] = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    return {"named": known.get("named", []), "survivor": known.get("survivor", [])}


def named_mutant(each: dict[str, Any]) -> Mutant:
    """Return a named change; its text must occur once."""
    before = (SOURCE / each["file"]).read_text(encoding="utf-8")
    if before.count(each["was"]) != 1:
        raise SystemExit(f"error: {KNOWN.name}: {each['what']}: not found once in {each['file']}")
    after = before.replace(each["was"], each["becomes"])
    line = before[: before.index(each["was"])].count("\n") + 1
    return Mutant(
        each["file"], line, NAMED, *changed_lines(before, after), text=after, span=(line, line)
    )


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Try the mutants of the chosen modules; write the result after each of them."""
    testing = Testing(folder, options)
    modules: dict[str, Any] = {}
    for name in options.modules:
        modules[name] = testing.run(name)
        result = {
            **{
                key: sum(each[key] for each in modules.values())
                for key in ("mutants", "killed", "survived", "equivalent")
            },
            "sample": f"{options.sample} mutants of each module, seed {options.seed}",
            "modules": modules,
            "machine": describe_machine(),
            "commit": describe_commit(),
            "command": describe_command("-m biograft_lab.scripts.mutation_testing", sys.argv[1:]),
        }
        if options.output:
            write_result(options.output, result)
    return result


def main() -> None:
    """Parse the command line and run."""
    known = [*MODULES, NAMED]
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="ten mutants of the metrics")
    parser.add_argument("--modules", type=some_of(known), help=f"some of {', '.join(known)}")
    parser.add_argument("--sample", type=int, default=40, help="mutants of a module; default: 40")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to work, and to go on from")
    parser.add_argument("-o", "--output", type=Path, help="the file of the result")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")
    options = parser.parse_args()
    if options.quick:
        options.modules, options.sample = ["metrics"], 10
    options.modules = options.modules or known
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        print(json.dumps(measure(options, folder)))


if __name__ == "__main__":
    main()
