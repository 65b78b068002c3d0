"""What became of documents and spans when they were packed."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class PackingCounts:
    """Every span is a mention of a sequence, or counted under the reason why it is none."""

    n_documents: int = 0
    n_tokens: int = 0
    """Tokens of the documents, without special ones."""
    n_sequences: int = 0
    n_left_out_tokens: int = 0
    """Tokens of pieces too short to be parted in two segments."""
    n_spans: int = 0
    n_mentions: int = 0
    """Spans that are mentions of sequences."""
    n_outside_table: int = 0
    """Mentions, of these, whose concept is no entity; they are detected, not linked."""
    n_low_score: int = 0
    """Spans scored below ``min_score``."""
    n_without_token: int = 0
    """Spans of characters that the tokenizer leaves out."""
    n_overlapping: int = 0
    """Spans that share a token with one that is scored better."""
    n_cut: int = 0
    """Spans longer than a sequence, cut with it, or of a piece that is left out."""
    n_beyond: int = 0
    """Spans beyond ``max_mentions``, those with the lowest scores."""
    n_without_pieces: int = 0
    """Long entities of the documents whose pieces share a token: they are short ones here."""
    n_without_head: int = 0
    """Long entities of the documents whose head does not end them: their pieces are known."""

    def to_json(self) -> dict[str, int]:
        """Give the counts as plain values."""
        return asdict(self)
