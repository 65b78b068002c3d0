"""RotatE (Sun et al. 2019): a relation is a rotation of complex vectors; a model of the graph.

python examples/rotate.py KB OUT
"""

import sys

import torch

from biograft.graph import GraphRecipe, embed_graph
from biograft.graph.config import GRAPH_MODELS
from biograft.kb import KnowledgeBase


@GRAPH_MODELS.register("rotate")
class RotatE:
    """Half of an entity's vector are real parts, half imaginary ones; a relation has the angles."""

    @staticmethod
    def tails(heads, relations):
        return RotatE.rotate(heads, relations * torch.pi)

    @staticmethod
    def heads(tails, relations):
        return RotatE.rotate(tails, -relations * torch.pi)

    @staticmethod
    def rotate(vectors, angles):
        real, imaginary = vectors.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], -1)


def recipe(dim=100, **training):
    """Return the recipe; relations have half the dimensions of entities."""
    model = {"kind": "rotate", "dim": dim, "relation_dim": dim // 2, "entity_bound": "none"}
    tables = {"kind": "graph", "model": model, "loss": {"kind": "self-adversarial", "margin": 2.0}}
    tables |= {"sampling": {"negatives": 16, "filtered": True}, "training": training}
    return GraphRecipe.load(tables | {"optimiser": {"kind": "adam", "learning_rate": 0.05}})


if __name__ == "__main__":
    print(embed_graph(KnowledgeBase.open(sys.argv[1]), recipe(epochs=50), sys.argv[2]))
