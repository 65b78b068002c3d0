"""SapBERT (Liu et al. 2021), the whole method: pairs of synonyms, an encoder, a loss, the loop.

python examples/sapbert.py KB ENCODER DEV RUN        (DEV: gold mentions in BioSyn's format)
"""

import sys
from pathlib import Path

from torch.nn.functional import softplus

from biograft.kb import KnowledgeBase
from biograft.models import TextEncoder
from biograft.training import TrainingConfig, train
from biograft.training.batches import EpochOrder, OrderedBatches
from biograft.training.objectives import EncoderReader, ObjectiveModel, PairObjective
from biograft.training.objectives.synonym_alignment import TripletMarginMiner, cosines
from biograft.training.pretraining import SynonymPairs, SynonymPairsConfig
from biograft.training.pretraining.dev_linking import DevLinking


class MultiSimilarity(PairObjective):
    """Equation 3 of the paper, over the pairs that are in a hard triplet (equation 2)."""

    miner = TripletMarginMiner(margin=0.2)
    alpha, beta, base = 1.0, 60.0, 0.5

    def loss(self, states, batch):
        cosine = cosines(states)  # (names, names)
        mined = self.miner(cosine, batch["labels"])
        near, far = -self.alpha * (cosine - self.base), self.beta * (cosine - self.base)
        near = near.masked_fill(~mined.kept_positives, -1e30).logsumexp(1)
        far = far.masked_fill(~mined.kept_negatives, -1e30).logsumexp(1)
        loss = (softplus(near) / self.alpha + softplus(far) / self.beta).mean()
        return loss, {"triplets": mined.n_triplets}


def align(kb, encoder, dev, run, **training):
    """Train an encoder on the synonyms of a knowledge base; return the results on dev."""
    stream = SynonymPairsConfig(dev=dev, dev_format="biosyn")
    pairs, config = SynonymPairs(kb, stream), TrainingConfig(**training)
    objectives = {"multi_similarity": MultiSimilarity(None)}
    model = ObjectiveModel(EncoderReader(encoder, objectives), objectives)
    order = EpochOrder.for_training(len(pairs), config, divisible=model.divisible)
    linking, curve = DevLinking(kb, encoder, stream, run), []

    def evaluate():
        curve.append(linking.accuracy(config.precision))
        return {"acc@1": curve[-1]}

    batches = OrderedBatches(order, pairs.batch, together=not model.divisible)
    train(model.task(batches, evaluate=evaluate), config, run)
    encoder.save_pretrained(run / "encoder")
    return curve


if __name__ == "__main__":
    kb, encoder, dev, run = map(Path, sys.argv[1:5])
    opened = KnowledgeBase.open(kb), TextEncoder.from_pretrained(encoder)
    print(align(*opened, dev, run, steps=500, batch_size=64, eval_every=100))
