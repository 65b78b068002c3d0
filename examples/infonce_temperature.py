"""InfoNCE with a learned temperature: an objective of name pairs with a parameter of its own.

python examples/infonce_temperature.py KB ENCODER RUN
"""

import sys
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from biograft.kb import KnowledgeBase
from biograft.training.objectives import OBJECTIVES, PairObjective, PairObjectiveConfig
from biograft.training.pretraining import pretrain


class Temperature(nn.Module):
    """The logarithm of 1 / temperature, as in CLIP."""

    def __init__(self, start):
        super().__init__()
        self.log_scale = nn.Parameter(-torch.tensor(start).log())


class LearnedInfoNCE(PairObjective):
    """The second name of a pair among those of all pairs, for the first name, and the reverse."""

    def __init__(self, config, setting=None):
        super().__init__(config, setting)
        self.head = Temperature(config.temperature)

    def loss(self, states, batch):
        left, right = normalize(states.float(), dim=1).chunk(2)
        labels, own = batch["labels"][: len(left)], torch.arange(len(left), device=left.device)
        no_negative = (labels[:, None] == labels) & (own[:, None] != own)
        scores = (left @ right.T * self.head.log_scale.exp()).masked_fill(no_negative, -1e4)
        loss = (cross_entropy(scores, own) + cross_entropy(scores.T, own)) / 2
        temperature = float(self.head.log_scale.detach().neg().exp())
        return self.config.weight * loss, {"temperature": temperature}


@OBJECTIVES.register("learned_infonce")
@dataclass(frozen=True, kw_only=True)
class LearnedInfoNCEConfig(PairObjectiveConfig):
    """InfoNCE whose temperature is learned."""

    implementation = LearnedInfoNCE
    temperature: float = 0.07
    weight: float = 1.0


RECIPE = {"base": "sapbert-cpu", "without": ["objective.synonym_alignment"]}
RECIPE["objective"] = {"learned_infonce": {}}

if __name__ == "__main__":
    kb, encoder, run = sys.argv[1:4]
    print(pretrain(RECIPE | {"encoder": {"name": encoder}}, KnowledgeBase.open(kb), run).to_json())
