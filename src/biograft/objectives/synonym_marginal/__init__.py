"""Synonym marginalisation: any name of the right concept may be the one that a mention is near."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import lazify

if TYPE_CHECKING:
    from biograft.objectives.synonym_marginal.config import (
        SynonymMarginalConfig as SynonymMarginalConfig,
    )
    from biograft.objectives.synonym_marginal.objective import (
        BankScorer as BankScorer,
        NameScorer as NameScorer,
        marginal_loss as marginal_loss,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
