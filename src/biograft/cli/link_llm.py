"""The language model of ``biograft link``: its options, and the report of what it chose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from biograft.errors import ConfigError

if TYPE_CHECKING:
    from biograft.kb import KnowledgeBase
    from biograft.linking.rerank import ChoiceReview

LlmUrl = Annotated[
    str,
    typer.Option(
        "--llm-url",
        metavar="URL",
        help="Let a language model choose among the candidates of doubtful mentions: an "
        "OpenAI-compatible endpoint on this machine, such as http://127.0.0.1:8080/v1.",
    ),
]
LlmModel = Annotated[
    str, typer.Option("--llm-model", metavar="NAME", help="With --llm-url: the name of the model.")
]
LlmAllowRemote = Annotated[
    bool,
    typer.Option(
        "--llm-allow-remote",
        help="With --llm-url: allow sending mentions and the text around them to another machine.",
    ),
]


def open_review(
    base: KnowledgeBase, url: str, model: str, *, allow_remote: bool
) -> ChoiceReview | None:
    """Return the review by a language model that the options ask for, or None."""
    if not url:
        if model or allow_remote:
            given = "--llm-model" if model else "--llm-allow-remote"
            raise ConfigError(f"{given}: needs --llm-url")
        return None
    if not model:
        raise ConfigError("--llm-url: needs the name of a model (--llm-model)")
    from biograft.linking.rerank import ChoiceReview, LlmChooser, LlmConfig

    config = LlmConfig(url=url, model=model, allow_remote=allow_remote)
    return ChoiceReview(base, LlmChooser(config))


def report_review(review: ChoiceReview) -> None:
    """Print on stderr how many mentions the model was asked about, and the results."""
    counts = dict(review.counts)
    asked = counts.pop("asked", 0)
    rest = ", ".join(f"{n:,} {what}" for what, n in counts.items())
    typer.echo(f"llm         {asked:,} mentions asked about{': ' if rest else ''}{rest}", err=True)
