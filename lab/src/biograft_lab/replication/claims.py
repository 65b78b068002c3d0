"""The claims of the papers, and what our results say about each.

``claims.toml`` lists the claims: what a paper says, its figure, and the two arms of an experiment
whose difference tests it. Effects are in percentage points of the metric, above 0 where they are as
claimed. P values are corrected among the claims of a paper, and among ours (Holm).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import erfc, sqrt
from pathlib import Path
from typing import Annotated, Any

from biograft.config import AtLeast, Choice, check_fields, from_mapping, load_toml
from biograft.errors import ConfigError
from biograft.metrics import EffectSize, Verdict, holm, judge_evidence
from biograft_lab.places import RESULTS
from biograft_lab.replication.differences import CHANCE, ArmDifference, Arms, find_difference
from biograft_lab.replication.results import read_result

FILE = Path(__file__).parent / "claims.toml"
HIGHER, LOWER, EQUAL = "higher", "lower", "equal"
_LEARNED = 5.0
"""Standard errors above chance from which an objective is learned."""
OWN = "none"
"""The paper of claims that are ours."""
PAPERS = ("SapBERT", "KeBioLM", "GenBioEL", "EMBERT", "SMedBERT", OWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of a paper, and the arms of the experiment that tests it.

    ``figure`` is what the paper reports. The claim ``predicts`` that the metric of arm ``of`` is
    higher or lower than that of ``against``, or equal to it within ``margin`` points.
    ``against_experiment`` has the second arm, where it is another; ``protocol``, ``dictionary``
    and ``part`` select rows and parts of results. A claim without arms has not been run.
    """

    name: str
    paper: Annotated[str, Choice(*PAPERS)]
    claim: str
    figure: str
    metric: str
    experiment: str = ""
    set: str = ""
    of: str = ""
    against: str = ""
    against_experiment: str = ""
    protocol: str = ""
    dictionary: str = ""
    part: str = ""
    predicts: Annotated[str, Choice(HIGHER, LOWER, EQUAL)] = HIGHER
    margin: Annotated[float, AtLeast(0)] = 0.0
    ours: bool = False
    """No paper makes this claim."""
    needs: str = ""
    """Data or hardware that is missing to test the claim, if it was not run."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.predicts == EQUAL) != (self.margin > 0):
            raise ConfigError(f"claim {self.name}: 'equal' needs a margin, and only it")

    @property
    def whose(self) -> str:
        """The paper that makes the claim, or ``OWN``: p values are corrected among these."""
        return OWN if self.ours else self.paper

    @property
    def arms(self) -> Arms:
        """The arms that are compared."""
        return Arms(
            set=self.set,
            of=self.of,
            against=self.against,
            protocol=self.protocol,
            dictionary=self.dictionary,
            part=self.part,
        )


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim with its evidence and verdict."""

    claim: Claim
    verdict: Verdict
    found: ArmDifference | None = None
    evidence: EffectSize | None = None
    """As the claim predicts: above 0 where it is right."""
    corrected_p: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what ``biograft replicate list --json`` shows."""
        evidence, found = self.evidence, self.found
        return {
            "name": self.claim.name,
            "paper": self.claim.paper,
            "claim": self.claim.claim,
            "verdict": str(self.verdict),
            "effect": evidence and round(evidence.effect, 3),
            "low": evidence and round(evidence.low, 3),
            "high": evidence and round(evidence.high, 3),
            "n_seeds": found and found.n_seeds,
            "p": self.corrected_p and round(self.corrected_p, 4),
            "detectable": evidence and round(evidence.detectable, 3),
            "figure": self.claim.figure,
            "metric": self.claim.metric,
            "experiment": self.claim.experiment,
        }


@cache
def shipped_claims() -> tuple[Claim, ...]:
    """Return the claims that come with biograft, in the order of their file."""
    tables = load_toml(FILE)["claim"]
    return tuple(
        from_mapping(Claim, table, f"claim {table.get('name', number)}: ")
        for number, table in enumerate(tables, start=1)
    )


def claims_of(experiment: str) -> list[Claim]:
    """Return the claims that an experiment tests."""
    return [claim for claim in shipped_claims() if claim.experiment == experiment]


@cache
def judge_claims(results: Path = RESULTS) -> tuple[JudgedClaim, ...]:
    """Return every claim with its verdict; p values are corrected among those of each paper."""
    found = {claim.name: _find(claim, results) for claim in shipped_claims()}
    evidence = {
        claim.name: predicted(claim, each.evidence)
        for claim in shipped_claims()
        if (each := found[claim.name]) is not None
    }
    corrected: dict[str, float] = {}
    for paper in PAPERS:
        of_paper = {claim.name for claim in shipped_claims() if claim.whose == paper}
        corrected |= holm({name: evidence[name].p for name in of_paper & evidence.keys()})
    judged = []
    for claim in shipped_claims():
        name = claim.name
        if name not in evidence:
            judged.append(JudgedClaim(claim, Verdict.NOT_RUN))
            continue
        errors = evidence[name].effect / (evidence[name].standard_error or 1)
        if claim.against == CHANCE and errors < _LEARNED:
            verdict = Verdict.NOT_LEARNED
        else:
            verdict = judge_evidence(evidence[name], corrected[name])
        judged.append(JudgedClaim(claim, verdict, found[name], evidence[name], corrected[name]))
    return tuple(judged)


def _find(claim: Claim, results: Path) -> ArmDifference | None:
    path = results / f"{claim.experiment}.json"
    if not (claim.of and path.exists()):
        return None
    content: Mapping[str, Any] = read_result(path)
    other = content
    if claim.against_experiment:
        other_path = results / f"{claim.against_experiment}.json"
        if not other_path.exists():
            return None
        other = read_result(other_path)
    return find_difference(claim.arms, content, other)


def predicted(claim: Claim, evidence: EffectSize) -> EffectSize:
    """Turn a difference into evidence for a claim: above 0 where it is as predicted.

    For ``equal`` it is the distance to the nearer bound, and p that of the two one-sided tests.
    """
    if claim.predicts == HIGHER:
        return evidence
    if claim.predicts == LOWER:
        return EffectSize(-evidence.effect, -evidence.high, -evidence.low, evidence.p)
    largest = max(abs(evidence.low), abs(evidence.high))
    smallest = 0.0 if evidence.low < 0 < evidence.high else min(map(abs, _ends(evidence)))
    inside = claim.margin - abs(evidence.effect)
    error = evidence.standard_error
    p = erfc(abs(inside) / error / sqrt(2)) if error else float(inside == 0)
    return EffectSize(inside, claim.margin - largest, claim.margin - smallest, p)


def _ends(evidence: EffectSize) -> Iterator[float]:
    yield from (evidence.low, evidence.high)
