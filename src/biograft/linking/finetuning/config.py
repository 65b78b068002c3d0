"""How an encoder is fine-tuned on mentions."""

from __future__ import annotations

from dataclasses import dataclass, field

from biograft.errors import ConfigError, nearest
from biograft.linking.lexical.index import LexicalConfig
from biograft.objectives.configs import SynonymAlignmentConfig, SynonymMarginalConfig
from biograft.training.config import TrainingConfig

CHOICES = {
    "loss": ("marginal", "bank", "contrastive"),
    "refresh": ("reachable", "full"),
    "missing_gold": ("add", "skip"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneTraining(TrainingConfig):
    """How long and how fast; the defaults are BioSyn's. A marginal batch counts mentions."""

    epochs: int = 10
    batch_size: int = 16
    learning_rate: float = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConfig:
    """From what is learned, and how.

    ``marginal`` loss: each mention has ``k`` candidates, half of them the nearest names by
    letters, the others the nearest by the encoder, found anew at the start of each epoch. Where
    no gold name is among them, the one most like the mention is added (``missing_gold``), or the
    mention waits (``skip``).

    ``refresh`` says among which names the encoder looks: all (``full``), or the ``reachable``:
    the ``reach`` nearest by letters of any mention, all names of gold concepts, and the last
    candidates. With ``first_full`` the first epoch looks among all, so that the last candidates
    hold what the encoder alone finds.

    ``bank`` loss: the same over all names at once, by vectors kept from the start of the epoch;
    only mentions, and ``partners`` right names of each, are encoded. It looks at letters only to
    say which names are worth keeping (``refresh`` reachable: the ``reach`` nearest of any mention,
    and all names of gold concepts). Mentions are names too; none meets itself.

    ``contrastive`` loss: mentions in pairs with another mention or a name of their concept, apart
    from all others in the batch; for data of many mentions and few names.

    ``exclude_own_mention`` withholds from a mention the names that are the mention itself, so
    that a dictionary which holds the training mentions does not teach to look for equals.
    ``distinct`` asks mentions that are the same text for the same concepts once an epoch.
    """

    loss: str = "marginal"
    k: int = 20
    refresh: str = "reachable"
    first_full: bool = True
    reach: int = 100
    missing_gold: str = "add"
    partners: int = 1
    distinct: bool = True
    exclude_own_mention: bool = False
    encode_batch: int = 64
    """How many names of usual length are encoded at once when candidates are found."""
    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    """How letters are compared, and of which languages names are taken."""
    marginal: SynonymMarginalConfig = field(default_factory=SynonymMarginalConfig)
    contrastive: SynonymAlignmentConfig = field(default_factory=SynonymAlignmentConfig)
    training: FinetuneTraining = field(default_factory=FinetuneTraining)

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(
                    f"{name}: expected one of {', '.join(known)}, found {value!r}; "
                    f"{nearest(value, known)}"
                )
        for name, low in (("k", 2), ("reach", 1), ("partners", 1), ("encode_batch", 1)):
            if getattr(self, name) < low:
                raise ConfigError(f"{name}: expected at least {low}, found {getattr(self, name)}")
