"""What a generative linker reads of a mention: its text with the mention marked, and the prompt.

Where another form is looked up than what stands in the text (the long form of an abbreviation, a
part of a composite), that form stands in the mention's place. Training and linking ask alike.
"""

from __future__ import annotations

from typing import NamedTuple

from biograft.corpus.mention_text import clean_text, mark_mention, prompt_of
from biograft.errors import ConfigError
from biograft.linking.generative.config import GenerativeConfig
from biograft.linking.rankers import Context


class Question(NamedTuple):
    """What the model reads, and what its answer begins with."""

    source: str
    prompt: str


def ask(form: str, context: Context, config: GenerativeConfig) -> Question:
    """Write what is asked of a mention; one without a known place stands alone."""
    text, start, end = context
    if not 0 <= start <= end <= len(text):
        raise ConfigError(
            f"context: expected a mention within the {len(text):,} characters of its text, found "
            f"one from {start:,} to {end:,}"
        )
    placed = bool(text[start:end].strip())
    left, right = (text[:start], text[end:]) if placed else ("", "")
    lower = config.names.lower
    source = mark_mention(left, form, right, words=config.context_words, lower=lower)
    return Question(source, prompt_of(clean_text(form, lower=lower)) if config.prompt else "")
