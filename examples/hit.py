"""HiT (He et al. 2024): the hierarchy in a Poincaré ball, by an objective that reads parents.

python examples/hit.py KB ENCODER RUN

A name is nearer its parent than another concept, and farther from the origin than the parent.
"""

import sys
from dataclasses import dataclass

import numpy as np

from biograft.kb import KnowledgeBase
from biograft.training.objectives import OBJECTIVES, PairObjective, PairObjectiveConfig
from biograft.training.objectives.distances import into_ball, poincare_distances as distances
from biograft.training.pretraining import pretrain


class HyperbolicTree(PairObjective):
    """Clustering and centripetal loss of a name, its parent and another concept."""

    def __init__(self, config, setting):
        super().__init__(config, setting)
        self.kb = setting.kb

    def texts(self, batch):
        rng = np.random.default_rng(batch.labels)
        ids = self.kb.ids_at(batch.labels.tolist())
        parents = [(self.kb.parents(name) or [name])[0] for name in ids]
        others = rng.integers(len(self.kb), size=len(batch)).tolist()
        names = [self.kb[parent].name for parent in parents]
        return {"parent": names, "other": [self.kb.name_at(row) for row in others]}

    def loss(self, states, batch):
        vectors = states.chunk(2)[0], batch["parent"], batch["other"]
        child, parent, other = (into_ball(each) for each in vectors)
        near, far = distances(child, parent), distances(child, other)
        origin = child * 0
        height = distances(child, origin) - distances(parent, origin)
        losses = (near - far + self.config.cluster).relu() + (self.config.centre - height).relu()
        return self.config.weight * losses.mean(), {"nearer": float((near < far).float().mean())}


@OBJECTIVES.register("hit")
@dataclass(frozen=True, kw_only=True)
class HyperbolicTreeConfig(PairObjectiveConfig):
    """The margins of clustering and of the distance from the origin."""

    implementation = HyperbolicTree
    cluster: float = 1.0
    centre: float = 0.1
    weight: float = 1.0


RECIPE = {"base": "sapbert-cpu", "without": ["objective.synonym_alignment"]}
RECIPE["objective"] = {"hit": {}}

if __name__ == "__main__":
    kb, encoder, run = sys.argv[1:4]
    print(pretrain(RECIPE | {"encoder": {"name": encoder}}, KnowledgeBase.open(kb), run).to_json())
