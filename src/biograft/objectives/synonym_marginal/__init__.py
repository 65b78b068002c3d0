"""Synonym marginalisation: any name of the right concept may be the one that a mention is near."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.lazy import load_on_use

if TYPE_CHECKING:
    from biograft.objectives.synonym_marginal.config import SynonymMarginalConfig
    from biograft.objectives.synonym_marginal.objective import BankScorer, NameScorer, marginal_loss

__all__ = ["BankScorer", "NameScorer", "SynonymMarginalConfig", "marginal_loss"]

_HOMES = {
    "BankScorer": "biograft.objectives.synonym_marginal.objective",
    "NameScorer": "biograft.objectives.synonym_marginal.objective",
    "SynonymMarginalConfig": "biograft.objectives.synonym_marginal.config",
    "marginal_loss": "biograft.objectives.synonym_marginal.objective",
}

__getattr__ = load_on_use(__name__, _HOMES)
