"""BioLORD (Remy et al. 2022): a name near the definition of its concept, far from those of others.

python examples/biolord.py KB ENCODER RUN

A concept without a definition is described by its parents, as in the paper.
"""

import sys
from dataclasses import dataclass

from torch.nn.functional import normalize

from biograft.kb import KnowledgeBase
from biograft.training.objectives import OBJECTIVES, PairObjective, PairObjectiveConfig
from biograft.training.pretraining import pretrain


class BioLord(PairObjective):
    """InfoNCE of names and descriptions, in both directions."""

    def __init__(self, config, setting):
        super().__init__(config, setting)
        self.kb = setting.kb

    def texts(self, batch):
        return {"description": [self.describe(row) for row in batch.labels.tolist()]}

    def describe(self, row):
        concept = self.kb.concept_at(row)
        parents = [self.kb[parent].name for parent in self.kb.parents(concept.id)]
        return concept.definition or f"{concept.name}, a kind of {', '.join(parents) or 'thing'}"

    def loss(self, states, batch):
        names = normalize(states.float().chunk(2)[0], dim=1)
        descriptions = normalize(batch["description"].float(), dim=1)
        labels = batch["labels"][: len(names)]
        same = (labels[:, None] == labels).float()
        scores = names @ descriptions.T / self.config.temperature
        found = [(same * s.log_softmax(1)).sum(1) / same.sum(1) for s in (scores, scores.T)]
        right = same.gather(1, scores.argmax(1, keepdim=True)).mean()
        return -self.config.weight * sum(found).mean() / 2, {"accuracy": float(right)}


@OBJECTIVES.register("biolord")
@dataclass(frozen=True, kw_only=True)
class BioLordConfig(PairObjectiveConfig):
    """Contrast of names and definitions."""

    implementation = BioLord
    temperature: float = 0.07
    weight: float = 1.0


RECIPE = {"base": "sapbert-cpu", "without": ["objective.synonym_alignment"]}
RECIPE["objective"] = {"biolord": {}}

if __name__ == "__main__":
    kb, encoder, run = sys.argv[1:4]
    start = {"encoder": {"name": encoder, "max_length": 64}}  # definitions are longer than names
    print(pretrain(RECIPE | start, KnowledgeBase.open(kb), run).to_json())
