"""Cut a text that is too long for a model round its marked mention, token by token."""

from __future__ import annotations

import re
from collections.abc import Sequence

from biograft.corpus.mention_text import END, START, share_room

_MARKED = re.compile(rf"(?<!\S){START}(?!\S).*(?<!\S){END}(?!\S)", re.DOTALL)


def cut_round_mention(
    text: str, tokens: Sequence[int], offsets: Sequence[tuple[int, int]], room: int
) -> list[int]:
    """Keep so many tokens: the marked mention, and those nearest to it on either side.

    Of a mention that is too long by itself the first and the last tokens stay, so that both its
    marks do; of a text without one the first tokens stay.
    """
    marked = _MARKED.search(text)
    if marked is None:
        return list(tokens[:room])
    inside = [
        place
        for place, (start, end) in enumerate(offsets)
        if start < marked.end() and end > marked.start()
    ]
    first, last = inside[0], inside[-1] + 1
    if last - first > room:
        return [*tokens[first : first + room - room // 2], *tokens[last - room // 2 : last]]
    before, after = share_room(first, len(tokens) - last, room - (last - first))
    return list(tokens[first - before : last + after])
