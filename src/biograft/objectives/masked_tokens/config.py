"""What may be chosen of masked tokens; the defaults are KeBioLM's, which are BERT's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from biograft.errors import ConfigError
from biograft.objectives.choices import check_choice
from biograft.objectives.weights import check_weight

if TYPE_CHECKING:
    from biograft.objectives.masked_tokens.objective import MaskedTokens
    from biograft.objectives.setting import Setting

MODES = ("token", "whole_word", "whole_entity")


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedTokensConfig:
    """Which tokens are to be foretold, and what stands in their place.

    ``mode`` says what is chosen as one: a ``token``, a ``whole_word`` with all its tokens, or a
    ``whole_entity``, which is a word or a mention with all its words. Of the tokens of a text
    ``mask_share`` are masked, ``random_share`` exchanged for random ones, ``kept_share`` left as
    they are; all of these are foretold.
    """

    reads: ClassVar[str] = "annotated_text"
    """The kind of stream it learns from."""

    mode: str = "whole_entity"
    mask_share: float = 0.12
    random_share: float = 0.015
    kept_share: float = 0.015
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MODES)
        for name in ("mask_share", "random_share", "kept_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"{name}: expected a share from 0 to 1, found {getattr(self, name)}"
                )
        if not 0 < self.chosen_share <= 1:
            raise ConfigError(
                "mask_share, random_share, kept_share: expected a sum above 0 and at most 1, "
                f"found {self.chosen_share:g}"
            )
        check_weight(self.weight)

    @property
    def chosen_share(self) -> float:
        """Which share of the tokens is to be foretold."""
        return self.mask_share + self.random_share + self.kept_share

    def build(self, setting: Setting) -> MaskedTokens:
        """Make the objective."""
        from biograft.objectives.masked_tokens.objective import MaskedTokens

        return MaskedTokens(self, setting)
