"""Tables of the claims: the paper's figure, ours, the interval and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from biograft.metrics import Verdict
from biograft_lab.places import RESULTS
from biograft_lab.replication.claims import OWN, PAPERS, JudgedClaim, judge_claims
from biograft_lab.replication.experiment import shipped_experiments
from biograft_lab.replication.results import read_result
from biograft_lab.replication.tables import markdown

CLAIMS = "claims"
"""The mark of the tables; parts are papers, ``unmeasured`` and ``compute``."""
_UNMEASURED, _COMPUTE = "unmeasured", "compute"
_OURS = "ours, beyond the papers"


def claim_table_names() -> list[str]:
    """Return the marks of all tables of claims."""
    return [CLAIMS, *(f"{CLAIMS}/{part}" for part in (*PAPERS, _UNMEASURED, _COMPUTE))]


def claim_table(name: str) -> str:
    """Return the table of a mark."""
    part = name.partition("/")[2]
    judged = judge_claims()
    if not part:
        return _summary(judged)
    if part == _COMPUTE:
        return _compute(judged)
    if part == _UNMEASURED:
        cells = (
            [c.paper, c.claim, f"{c.figure} ({c.metric})", c.needs]
            for c in (each.claim for each in judged)
            if not c.experiment
        )
        return markdown(["paper", "claim", "its figure", "what it takes"], cells)
    chosen = [each for each in judged if each.claim.whose == part and each.claim.experiment]
    head = ["claim", "the paper", "ours [95 % interval]", "seen from", "verdict", "how"]
    return markdown(head, map(_cells, chosen))


def _summary(judged: Sequence[JudgedClaim]) -> str:
    counts = {whose: Counter[Verdict]() for whose in PAPERS}
    for each in judged:
        counts[each.claim.whose][each.verdict] += 1
    papers = sum((counts[whose] for whose in PAPERS if whose != OWN), Counter[Verdict]())
    ours = counts.pop(OWN)
    rows = {**counts, "**of the papers**": papers, _OURS: ours}
    lines = ([title, *(str(of[verdict]) for verdict in Verdict)] for title, of in rows.items())
    return markdown(["claims", *map(str, Verdict)], lines)


def _cells(judged: JudgedClaim) -> list[str]:
    claim, evidence, found = judged.claim, judged.evidence, judged.found
    cells = [claim.claim, f"{claim.figure} ({claim.metric})"]
    if evidence is None or found is None:
        return [*cells, "", "", str(judged.verdict), claim.needs]
    interval = f"{evidence.effect:+.1f} [{evidence.low:+.1f}, {evidence.high:+.1f}]"
    how = f"{found.how}; `{claim.experiment}`"
    return [*cells, interval, f"{evidence.detectable:.1f}", str(judged.verdict), how]


def _compute(judged: Sequence[JudgedClaim]) -> str:
    """Return the time that the results of each experiment took."""
    counts = Counter(each.claim.experiment for each in judged)
    lines = []
    for name in shipped_experiments():
        path = RESULTS / f"{name}.json"
        rows = read_result(path)["rows"] if path.exists() else ()
        seconds = sum(row.get("seconds") or 0.0 for row in rows)
        lines.append([f"`biograft replicate run {name}`", str(counts[name]), _duration(seconds)])
    return markdown(["command", "claims", "measured time"], lines)


def _duration(seconds: float) -> str:
    if not seconds:
        return "not run"
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.0f} minutes"
