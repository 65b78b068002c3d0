"""A stream of is-a edges: a concept and its parent are a pair, for any objective of pairs.

python examples/is_a.py KB ENCODER RUN
"""

import sys
from dataclasses import dataclass

from biograft.kb import KnowledgeBase
from biograft.training.pretraining import STREAMS, PairStreamConfig, TextPairs, pretrain


class Edges(TextPairs):
    """The name of a concept, the name of a parent, and the parent: siblings are positives."""

    def __init__(self, kb, config):
        super().__init__(kb, config)
        children = (concept.id for concept in kb)
        self.edges = [(child, parent) for child in children for parent in kb.parents(child)]

    def __len__(self):
        return len(self.edges)

    def pair(self, epoch, index):
        child, parent = self.edges[index]
        return self.kb[child].name, self.kb[parent].name, self.kb.row(parent)


@STREAMS.register("is_a")
@dataclass(frozen=True, kw_only=True)
class EdgesConfig(PairStreamConfig):
    """Edges of the hierarchy as pairs of names."""

    implementation = Edges


RECIPE = {"base": "sapbert-cpu", "stream": {"kind": "is_a"}, "without": ["stream.max_pairs"]}

if __name__ == "__main__":
    kb, encoder, run = sys.argv[1:4]
    print(pretrain(RECIPE | {"encoder": {"name": encoder}}, KnowledgeBase.open(kb), run).to_json())
