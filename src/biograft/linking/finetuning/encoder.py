"""Fine-tune an encoder: mentions in, an encoder and the weight of letters beside it out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from biograft.errors import MissingExtraError
from biograft.kb import KnowledgeBase
from biograft.linking.finetuning.config import FinetuneConfig
from biograft.linking.labelled import LabelledMention
from biograft.linking.provenance import store_fingerprint
from biograft.linking.weights import write_weights
from biograft.progress import Progress
from biograft.runs import new_folder

try:
    from biograft.linking.finetuning.lessons import LessonCounts, make_lessons
    from biograft.linking.finetuning.tasks import make_task
    from biograft.nn import TextEncoder
    from biograft.objectives.synonym_marginal.objective import NameScorer
    from biograft.training import TrainingResult, train
    from biograft.training.processes import join_processes
except ModuleNotFoundError as error:
    raise MissingExtraError("models", "fine-tuning an encoder") from error


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
    ``out/encoder``, after the marginal loss with the weight of letters in it, also when the time
    of the session was over before the last step.
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
    progress.start("candidates by letters")
    made = make_task(encoder, lessons, config, run)
    task = replace(made, described=described, provenance=provenance)
    trained = train(task, config.training, run, resume=resume, progress=progress)
    if trained.finished:
        shutil.rmtree(run / "bank", ignore_errors=True)  # large, and of no use any more
    scorer = task.model if isinstance(task.model, NameScorer) else None
    weight = scorer.lexical_weight.item() if scorer is not None else None
    if join_processes().is_main_process:
        _save(encoder, run / "encoder", weight, {**described, "provenance": provenance})
    encoder.folder = run / "encoder"
    return FinetuneResult(run, run / "encoder", lessons.counts, trained, weight)


def _save(
    encoder: TextEncoder, folder: Path, weight: float | None, described: Mapping[str, Any]
) -> None:
    """Write the encoder, and with it the weight of letters.

    A weight beside inner products of any length says nothing to a search, which goes by cosines.
    """
    with new_folder(folder, overwrite=True) as work:
        encoder.save(work)
        if weight is not None and described["marginal"]["similarity"] == "cosine":
            told = {key: described[key] for key in ("marginal", "lexical", "provenance")}
            write_weights(work, weight, told)
