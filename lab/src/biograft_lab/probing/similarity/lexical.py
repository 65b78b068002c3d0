"""Lexical similarity of names: the cosine of their character n-grams, weighted by rarity.

An edit distance has few values on short names and many ties, and Jaro-Winkler already selects the
hard negatives.
"""

from __future__ import annotations

import numpy as np

from biograft.kb.names import normalise
from biograft.progress import Progress
from biograft_lab.probing.similarity.report import QueryNames, Scores


def lexical_similarity(names: QueryNames, progress: Progress | None = None) -> Scores:
    """Score the candidates of each query by n-grams of one to three characters.

    Args:
        names: The names of the queries.
        progress: Not used.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    del progress
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), dtype=np.float64)
    weights = vectorizer.fit_transform([normalise(text) for text in names.texts])
    queries = weights[names.rows[:, 0]]
    scores = [weights[column].multiply(queries).sum(axis=1) for column in names.rows[:, 1:].T]
    return np.asarray(np.hstack(scores), np.float64)
