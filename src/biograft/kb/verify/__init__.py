"""Verification of ids and labels in files against a knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.kb.verify.check import (
        FileVerifier as FileVerifier,
        IdFinding as IdFinding,
        Verification as Verification,
        files_of as files_of,
    )
    from biograft.kb.verify.config import (
        FORMATS as FORMATS,
        VerifyConfig as VerifyConfig,
    )
    from biograft.kb.verify.judge import (
        Judgement as Judgement,
        Status as Status,
        Verifier as Verifier,
    )
    from biograft.kb.verify.pairs import (
        Pair as Pair,
        PairFinder as PairFinder,
        SourceText as SourceText,
    )
    from biograft.kb.verify.reports import (
        REPORTS as REPORTS,
        write_report as write_report,
    )

__getattr__, __dir__, __all__ = lazify(__name__)
