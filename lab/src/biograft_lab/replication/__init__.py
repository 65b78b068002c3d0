"""Replication of the papers' claims: experiments as TOML files, one runner, one report.

>>> from biograft_lab.replication import shipped_claims
>>> shipped_claims()[0].paper
'SapBERT'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft_lab.replication.claims import (
        judge_claims as judge_claims,
        shipped_claims as shipped_claims,
    )
    from biograft_lab.replication.experiment import (
        Experiment as Experiment,
        list_experiments as list_experiments,
        shipped_experiments as shipped_experiments,
    )
    from biograft_lab.replication.report import write_tables as write_tables
    from biograft_lab.replication.runner import (
        ExperimentJob as ExperimentJob,
        run_experiment as run_experiment,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
