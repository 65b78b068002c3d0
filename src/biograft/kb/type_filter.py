"""Keep the concepts of some semantic types, and of all types below those."""

from __future__ import annotations

import numpy as np

from biograft.errors import ConfigError, nearest
from biograft.kb.concepts import DROPPED, Concepts, renumber
from biograft.kb.gather import Gathered


def keep_types(concepts: Concepts, gathered: Gathered, wanted: tuple[str, ...]) -> Concepts:
    """Drop the concepts that have none of the wanted types."""
    vocabulary = gathered.vocabularies["type"]
    labels = {code: gathered.labels.get(code, ("", "")) for code in vocabulary.words}
    closed = close_types({code: tree for code, (_, tree) in labels.items()}, _codes(labels, wanted))
    numbers = [number for number, code in enumerate(vocabulary.words) if code in closed]
    n = len(concepts.ids)
    keep = np.zeros(n, bool)
    for frame in gathered.frames("types"):
        chosen = frame.filter(frame["type"].is_in(numbers))
        rows = concepts.rows_of(chosen["concept"])
        keep[rows.drop_nulls().to_numpy()] = True
    leaders = np.where(keep, np.arange(n, dtype=np.uint32), DROPPED)
    kept = renumber(concepts, leaders.astype(np.uint32))
    kept.n_dropped = n - len(kept.ids)
    return kept


def _codes(labels: dict[str, tuple[str, str]], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Turn types given by code, label or category letter into codes."""
    by_label = {label.lower(): code for code, (label, _) in labels.items() if label}
    known = {*labels, *by_label, *(tree for _, tree in labels.values() if tree)}
    categories = {tree[0] for _, tree in labels.values() if tree}
    for word in wanted:
        if word not in known and word.lower() not in by_label and word not in categories:
            hint = nearest(word, known) if known else "the sources give no types at all"
            raise ConfigError(f"types: no concept has the type {word!r}; {hint}")
    return tuple(by_label.get(word.lower(), word) for word in wanted)


def close_types(trees: dict[str, str], wanted: tuple[str, ...]) -> set[str]:
    """Give the wanted types and all below them in the hierarchy of types.

    A type is below another if its tree number goes on from the other's (``B2.2.1`` from
    ``B2.2``); a single letter stands for a whole category, as in MeSH.
    """
    roots = [trees.get(code) or code for code in wanted]
    return set(wanted) | {
        code for code, tree in trees.items() if any(_is_below(tree or code, root) for root in roots)
    }


def _is_below(tree: str, root: str) -> bool:
    in_category = len(root) == 1 and tree[:1] == root and tree[1:2].isdigit()
    return tree == root or tree.startswith(root + ".") or in_category
