"""NIL by score: the scores below which a linker without a calibration gives no answer.

Chosen on dev splits, so that nearly all right answers stay and texts that are in no vocabulary have
no answer. A short word with one wrong letter has a low score, too, and is no NIL.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from biograft.errors import ConfigError
from biograft.kb.names import HAN_CHARACTER
from biograft.linking.candidates import Candidate

if TYPE_CHECKING:
    from biograft.linking.calibration import Calibration
    from biograft.linking.rankers import CandidateRanker

LEXICAL_NIL = 0.55
"""For lexical search alone."""
FUSED_NIL = 0.6
"""For lexical search beside dense search, whose cosines are higher."""
CHINESE_NIL = 0.4
"""For texts with Chinese characters, of which names share single ones."""


def default_threshold(text: str, generators: Collection[str]) -> float | None:
    """Return the score below which the answer to a text is NIL; None for dense search alone.

    Args:
        text: The mention.
        generators: Names of the generators of the search.

    >>> default_threshold("hart atack", ["lexical"]), default_threshold("肚子疼", ["lexical"])
    (0.55, 0.4)
    """
    if "lexical" not in generators:
        return None
    if HAN_CHARACTER.search(text):
        return CHINESE_NIL
    return LEXICAL_NIL if len(generators) == 1 else FUSED_NIL


@dataclass(frozen=True, slots=True)
class NilThreshold:
    """Says which first candidates are no answer."""

    threshold: float | None
    """Threshold of the configuration or the calibration; None: no threshold."""
    calibration: Calibration | None
    """Maps scores to probabilities; None: scores are compared themselves."""
    ranker: CandidateRanker | None
    """Ranker whose NIL score decides; None: the score of the search decides."""
    generators: tuple[str, ...]
    """Searches that the threshold was fitted to."""

    def check(self, threshold: float | None) -> None:
        """Refuse a threshold that no answer, or every answer, has: scores of search are ratios."""
        of_ranker = self.ranker is not None and self.calibration is None
        if threshold is None or of_ranker or not set(self.generators) <= {"lexical", "dense"}:
            return
        if not 0 <= threshold <= 1:
            what = "score" if self.calibration is None else "probability"
            raise ConfigError(
                f"threshold: expected a {what} from 0 to 1, found {threshold}; 0 answers always"
            )

    def threshold_of(self, form: str) -> float | None:
        """Return the threshold for a text; None if every answer counts.

        Without a calibration, or with one that keeps NIL as it is, the default is that of the
        ranker, which may have none, or that of the search.
        """
        keeps_nil = self.calibration is None or self.calibration.keeps_nil
        if self.threshold is not None or not keeps_nil:
            return self.threshold
        if self.ranker is not None:
            return getattr(self.ranker, "nil_below", None)
        return default_threshold(form, self.generators)

    def is_nil(self, form: str, first: Candidate) -> bool:
        """Return True if a text has no concept.

        Args:
            form: The text that was looked up.
            first: Its first candidate.

        """
        threshold, is_default = self.threshold_of(form), self.threshold is None
        by_score = is_default or first.probability is None  # defaults are scores
        confidence = first.score if by_score else first.probability
        if threshold is None or confidence is None or confidence >= threshold:
            return False
        return not (is_default and self.ranker is None and is_misspelt(form, first.name))


_MIN_LENGTH = 4
"""Shorter words are other words if a letter differs."""


def is_misspelt(text: str, name: str) -> bool:
    """Whether one letter is missing, added or wrong, or two are swapped, within a word.

    Args:
        text: The mention.
        name: A name.

    >>> is_misspelt("fevr", "Fever"), is_misspelt("hand", "sand"), is_misspelt("flu", "fly")
    (True, False, False)
    >>> is_misspelt("CPAP", "CPAP")
    False
    """
    a, b = text.casefold(), name.casefold()
    if a == b or min(len(a), len(b)) < _MIN_LENGTH or abs(len(a) - len(b)) > 1 or a[0] != b[0]:
        return False
    if not (a.isascii() and a.replace(" ", "").isalpha()):
        return False
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:  # one begins with the other
        return True
    a, b = a[start:], b[start:]
    if len(a) != len(b):
        return a[len(a) > len(b) :] == b[len(b) > len(a) :]
    return a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
