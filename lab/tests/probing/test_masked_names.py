"""Names at masked places, against a plain loop."""

from __future__ import annotations

import pytest
import torch
from tiny_masked_lm import tiny_masked_lm_folder

from biograft.errors import InputError
from biograft.models.masked_lm import MaskedLanguageModel
from biograft_lab.probing.masked_names import NameChoice, score_names

CHOICES = [
    NameChoice("a b", "c", ("d", "e f")),
    NameChoice("", "c d", ("a b", "f e")),
    NameChoice("f", "", ("e", "c"), group="other"),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_masked_lm_folder(tmp_path_factory.mktemp("lm") / "lm", ["a b c d e f"])
    return MaskedLanguageModel.from_pretrained(folder, device="cpu")


def plain(model, choice, n_masks):
    """The log probabilities at the masks of one text."""
    ids = model.token_ids(f"{choice.before} {'[MASK] ' * n_masks}{choice.after}")
    with torch.inference_mode():
        logits = model.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return logits[[k for k, token in enumerate(ids) if token == model.mask]]


def test_scores_are_those_of_a_plain_loop(model):
    found = score_names(model, CHOICES)
    for row, choice in enumerate(CHOICES):
        for column, option in enumerate(choice.options):
            tokens = model.token_ids(option)[1:-1]
            alike = [other for other in CHOICES if other.group == choice.group]
            every = torch.stack([plain(model, other, len(tokens)) for other in alike])
            means = every[:, range(len(tokens)), tokens].mean(1)
            own = float(means[alike.index(choice)])
            assert found.likelihood[row, column] == pytest.approx(own, abs=0.05)  # 16 bits
            information = own - float(means.mean())
            assert found.information[row, column] == pytest.approx(information, abs=0.05)


def test_what_is_too_long_is_refused(model):
    with pytest.raises(InputError, match="too long"):
        score_names(model, [NameChoice("a " * 50, "", ("b", "c"))])
