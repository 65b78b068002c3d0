"""Fine-tune an encoder: mentions in, an encoder and the weight of letters beside it out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import biograft
from biograft.errors import MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.labelled import LabelledMention
from biograft.linking.lexical.index import LexicalIndex
from biograft.linking.provenance import store_fingerprint
from biograft.progress import Progress
from biograft.runs import new_file

try:
    import torch
    from torch import Tensor, nn

    from biograft.linking.finetuning.batches import (
        CandidateBatch,
        CandidateBatches,
        EpochOrder,
        Share,
    )
    from biograft.linking.finetuning.candidates import CandidateFinder
    from biograft.linking.finetuning.lessons import LessonCounts, Lessons, make_lessons
    from biograft.linking.finetuning.pairs import MentionPairBatches, MentionPairs
    from biograft.nn import TextEncoder
    from biograft.objectives.synonym_marginal.objective import (
        NameScorer,
        cut_in_pieces,
        marginal_loss,
    )
    from biograft.recipes.alignment import Alignment, Embedder
    from biograft.training import Task, TrainingResult, train
    from biograft.training.processes import join_processes
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "fine-tuning an encoder") from error

FORMAT, VERSION = "biograft-weights", 1


@dataclass(frozen=True, slots=True)
class FinetuneResult:
    """What fine-tuning gave."""

    run: Path
    encoder: Path
    """Folder of the encoder; transformers and sentence-transformers load it."""
    counts: LessonCounts
    training: TrainingResult
    lexical_weight: float | None
    """How much letters count beside the encoder, which counts 1; none if that is not learned."""

    def to_json(self) -> dict[str, Any]:
        """Give the result as plain values."""
        trained = self.training
        return {
            "run": str(self.run),
            "encoder": str(self.encoder),
            "mentions": self.counts.to_json(),
            "lexical_weight": self.lexical_weight,
            "step": trained.step,
            "n_steps": trained.n_steps,
            "finished": trained.finished,
            "loss": trained.loss,
            "seconds": round(trained.seconds, 3),
        }


def finetune_encoder(  # noqa: PLR0913 - what learns from what, how, and where to
    kb: KnowledgeBase,
    encoder: TextEncoder,
    mentions: Sequence[LabelledMention],
    config: FinetuneConfig,
    out: str | Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
) -> FinetuneResult:
    """Train an encoder, in place, in the folder ``out``, or go on where a run stopped there.

    To resume, give the encoder that the run began with. The encoder is written to
    ``out/encoder``, and after the marginal loss the weight of letters to ``out/weights.json``,
    also when the time of the session was over before the last step.
    """
    progress, run = progress or Progress(enabled=False), Path(out)
    progress.start("mentions")
    lessons = make_lessons(kb, encoder, mentions, config)
    provenance = {
        "kb": store_fingerprint(kb),
        "encoder": encoder.fingerprint(),
        "mentions": lessons.fingerprint(),
    }
    described = json.loads(json.dumps(asdict(config)))
    if config.loss == "contrastive":
        task = _contrastive_task(encoder, lessons, config)
    else:
        progress.start("candidates by letters")
        lexical = LexicalIndex.build(kb, config.lexical)
        finder = CandidateFinder(lessons, lexical, encoder, config)
        task = _marginal_task(encoder, finder, run)
    task = Task(task.model, task.source, task.compute_loss, None, described, provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    scorer = task.model if isinstance(task.model, NameScorer) else None
    weight = scorer.lexical_weight.item() if scorer is not None else None
    if join_processes().is_main_process:
        encoder.save(run / "encoder", overwrite=True)
        if weight is not None:
            _write_weights(run / "weights.json", weight, config, provenance)
    return FinetuneResult(run, run / "encoder", lessons.counts, trained, weight)


def _marginal_task(encoder: TextEncoder, finder: CandidateFinder, run: Path) -> Task[Any]:
    order = _order(len(finder.lessons), finder.config)
    return Task(
        model=NameScorer(encoder, finder.config.marginal),
        source=CandidateBatches(finder, run / "candidates", order),
        compute_loss=partial(_marginal_loss, encoder),
    )


def _marginal_loss(
    encoder: TextEncoder, model: nn.Module, batch: CandidateBatch
) -> tuple[Tensor, dict[str, float]]:
    """Score the candidates of a batch, all its texts in one pass, and give the loss."""
    pieces = cut_in_pieces(encoder, [*batch.mentions, *batch.names])
    places, lexical = torch.from_numpy(batch.places), torch.from_numpy(batch.lexical)
    scores = model(pieces, places, lexical)
    loss, statistics = marginal_loss(scores, torch.from_numpy(batch.gold).to(scores.device))
    return loss, {**statistics, "gold_found": float(batch.found.mean())}


def _contrastive_task(encoder: TextEncoder, lessons: Lessons, config: FinetuneConfig) -> Task[Any]:
    pairs = MentionPairs(lessons, config.training.seed)
    alignment = Alignment(encoder, {"synonym_alignment": config.contrastive.build()})
    return Task(
        model=Embedder(encoder),
        source=MentionPairBatches(pairs, _order(len(pairs), config)),
        compute_loss=alignment.loss,
    )


def _order(n_lessons: int, config: FinetuneConfig) -> EpochOrder:
    processes, training = join_processes(), config.training
    share = Share(processes.process_index, processes.num_processes)
    return EpochOrder(n_lessons, training.batch_size, training.seed, share)


def _write_weights(
    path: Path, weight: float, config: FinetuneConfig, provenance: dict[str, str]
) -> None:
    """Write how much letters count beside the encoder; a weight below 0 helps no search."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": f"biograft {biograft.__version__}",
        "similarity": config.marginal.similarity,
        "temperature": config.marginal.temperature,
        "learned": {"lexical": weight},
        "weights": {"dense": 1.0, "lexical": max(weight, 0.0)},
        "provenance": provenance,
    }
    with new_file(path, overwrite=True) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())
