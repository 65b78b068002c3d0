"""Tables of the claims: the paper's figure, ours, the interval and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from biograft.metrics import Verdict
from biograft_lab.places import RESULTS
from biograft_lab.replication.claims import OWN, PAPERS, JudgedClaim, judge_claims
from biograft_lab.replication.results import read_result

CLAIMS = "claims"
"""The mark of the tables: ``claims``, ``claims/PAPER``, ``claims/compute``."""
_COMPUTE = "compute"


def claim_table_names() -> list[str]:
    """Return the marks of all tables of claims."""
    return [CLAIMS, *(f"{CLAIMS}/{paper}" for paper in PAPERS), f"{CLAIMS}/{_COMPUTE}"]


def claim_table(name: str) -> str:
    """Return the table of a mark."""
    part = name.partition("/")[2]
    judged = judge_claims()
    if not part:
        return _summary(judged)
    if part == _COMPUTE:
        return _compute(judged)
    return _of_paper([each for each in judged if each.claim.paper == part])


def _summary(judged: Sequence[JudgedClaim]) -> str:
    lines = [f"| claims | {' | '.join(Verdict)} |", f"|---|{'---|' * len(Verdict)}"]
    of_paper: dict[str, list[Verdict]] = {paper: [] for paper in PAPERS if paper != OWN}
    of_paper["ours, beyond the papers"] = []
    for each in judged:
        ours = each.claim.ours or each.claim.paper == OWN
        label = "ours, beyond the papers" if ours else each.claim.paper
        of_paper[label].append(each.verdict)
    for label, verdicts in of_paper.items():
        counts = Counter(verdicts)
        lines.append(f"| {label} | {' | '.join(str(counts[v]) for v in Verdict)} |")
    return "\n".join(lines)


def _of_paper(judged: Sequence[JudgedClaim]) -> str:
    lines = [
        "| claim | the paper | ours [95 % interval] | verdict | how |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(_cells(each))} |" for each in judged]
    return "\n".join(lines)


def _cells(judged: JudgedClaim) -> Iterator[str]:
    claim, evidence, found = judged.claim, judged.evidence, judged.found
    yield claim.claim
    yield f"{claim.figure} ({claim.metric})"
    if evidence is None or found is None:
        yield ""
        yield str(judged.verdict)
        yield f"needs {claim.needs}" if claim.needs else ""
        return
    yield f"{evidence.effect:+.1f} [{evidence.low:+.1f}, {evidence.high:+.1f}]"
    unseen = judged.verdict in (Verdict.SAME_SIGN, Verdict.NO_EFFECT)
    yield f"{judged.verdict} (from {evidence.detectable:.1f})" if unseen else str(judged.verdict)
    yield f"{found.how}; `{claim.experiment}`"


def _compute(judged: Sequence[JudgedClaim]) -> str:
    """Return the time that the results of each experiment took, where rows have it."""
    lines = ["| command | claims | measured time |", "|---|---|---|"]
    counts = Counter(each.claim.experiment for each in judged)
    for name, n in counts.items():
        path = RESULTS / f"{name}.json"
        cell = _duration(_seconds(read_result(path))) if path.exists() else "not run"
        lines.append(f"| `biograft replicate run {name}` | {n} | {cell} |")
    return "\n".join(lines)


def _seconds(content: Mapping[str, Any]) -> float:
    if "answers" in content:
        parts = [
            part
            for answer in content["answers"].values()
            for part in (*answer.get("encoders", ()), *answer.get("models", ()))
        ]
    else:
        parts = content["rows"]
    return float(sum(part.get("seconds") or 0.0 for part in parts))


def _duration(seconds: float) -> str:
    if not seconds:
        return "not recorded"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
