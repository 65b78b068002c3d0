"""Replication of the papers' claims: experiments as TOML files, one runner, one report.

>>> from biograft.replication import shipped_claims
>>> shipped_claims()[0].paper
'SapBERT'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.replication.claims import (
        judge_claims as judge_claims,
        shipped_claims as shipped_claims,
    )
    from biograft.replication.experiment import (
        Experiment as Experiment,
        list_experiments as list_experiments,
        shipped_experiments as shipped_experiments,
    )
    from biograft.replication.report import write_tables as write_tables
    from biograft.replication.runner import (
        ExperimentJob as ExperimentJob,
        run_experiment as run_experiment,
    )
    from biograft.replication.smoke import run_smoke as run_smoke

__getattr__, __dir__, __all__ = lazify(__name__)
