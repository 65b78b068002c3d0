"""Re-ranking: a cross-encoder reads the mention in its context together with each candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biograft.registry import lazify

if TYPE_CHECKING:
    from biograft.linking.rerank.choice import (
        CandidateChooser as CandidateChooser,
        ChoiceConfig as ChoiceConfig,
        ChoiceError as ChoiceError,
        ChoiceOption as ChoiceOption,
        ChoiceQuestion as ChoiceQuestion,
        ChoiceReview as ChoiceReview,
        UnavailableError as UnavailableError,
    )
    from biograft.linking.rerank.config import (
        RerankConfig as RerankConfig,
        RerankTraining as RerankTraining,
    )
    from biograft.linking.rerank.llm import LlmChooser as LlmChooser, LlmConfig as LlmConfig
    from biograft.linking.rerank.reranker import (
        ContextReranker as ContextReranker,
        load_context_reranker as load_context_reranker,
    )


__getattr__, __dir__, __all__ = lazify(__name__)
