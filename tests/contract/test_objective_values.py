"""Losses and gradients of every objective on fixed inputs, and those of published code."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from biograft.training.objectives import (
    CONSISTENT,
    FOLLOWS,
    HEAD_OFFSET,
    IGNORED,
    OBJECTIVES,
    SEGMENT_ENDS,
    VISIBLE_ENTITIES,
    EntityGraph,
    EntityVisibility,
    Setting,
    TensorBatch,
    TextExample,
    TextStates,
    TypeSampler,
    collate,
)

WIDTH, DIM, N_TOKENS, N_ENTITIES, LENGTH = 6, 4, 60, 20, 12
TEXT = tuple(name for name in OBJECTIVES if name not in ("synonym_alignment", "name_generation"))
OPTIONS = {"bidirectional_entity_masking": {"entity_ratio": 1.0, "max_token_ratio": 0.9}}
LOSSES = ("multi_similarity", "infonce", "triplet_margin", "circle")


def wave(*shape: int, phase: float = 0.0) -> Tensor:
    """Fixed numbers between -1 and 1, without a generator whose stream may change."""
    n = int(np.prod(shape))
    values = np.sin(1.7 * np.arange(1, n + 1) ** 1.3 + phase)
    return torch.from_numpy(values.reshape(shape))


def filled(module: nn.Module) -> nn.Module:
    """Give a module fixed weights, but for those that are frozen."""
    module.double()
    with torch.no_grad():
        for number, weight in enumerate(module.parameters()):
            if weight.requires_grad:
                weight.copy_(wave(*weight.shape, phase=number))
    return module


def numbers(values: Tensor | None) -> list[float] | None:
    """A gradient in three numbers: its length, its largest entry, and a product with a wave."""
    if values is None:
        return None
    flat = values.detach().double().flatten()
    return [float(flat.norm()), float(flat.abs().max()), float(flat @ wave(len(flat), phase=9))]


def graph() -> EntityGraph:
    """Entities 0 and 1 have no neighbours, 2 and 3 no type."""
    rows = np.arange(N_ENTITIES)
    n_known = np.where(rows < 2, 0, 1 + rows % 4)
    shape = (N_ENTITIES, 4)
    there = np.arange(4) < n_known[:, None]
    cells = np.arange(N_ENTITIES * 4).reshape(shape)
    types = rows % 3
    types[2:4] = -1
    return EntityGraph(
        neighbours=np.where(there, cells * 7 % N_ENTITIES, -1),
        relations=np.where(there, cells % 3, -1),
        signs=np.where(there, np.where(cells % 2, 1, -1), 0),
        types=types,
        counts=rows % 9,
        relation_vectors=wave(3, 3).numpy(),
        projections=wave(3, DIM, 3, phase=1).numpy(),
    )


def examples() -> list[TextExample]:
    """Three sequences with long, replaced, masked and unknown mentions, one of two segments."""
    mentions = (
        [(1, 2, 5), (4, 8, 9), (10, 10, 13)],
        [(2, 5, 7), (7, 7, -1)],
        [(1, 4, 9), (6, 6, 2)],
    )
    masked = ((1, 2, 9), (7,), (6,))
    made = []
    for row, spans in enumerate(mentions):
        tokens = np.array([2, *range(10 + row, 8 + row + LENGTH), 3])
        labels, ends = np.full(LENGTH, IGNORED), np.full(LENGTH, IGNORED)
        labels[list(masked[row])] = tokens[list(masked[row])]
        for first, last, _ in spans:
            if last - first > 2:
                ends[first : last + 1] = np.arange(last + 1 - first) % 2
                ends[last] = 1
        long = [last - first > 2 for first, last, _ in spans]
        made.append(
            TextExample(
                tokens=np.where(labels == IGNORED, tokens, 4),
                segments=(np.arange(LENGTH) > LENGTH // 2).astype(np.int64),
                words=np.array([-1, *range(LENGTH - 2), -1]),
                mentions=np.array(spans, np.int64),
                token_labels={"masked_tokens": labels, SEGMENT_ENDS: ends},
                mention_labels={
                    HEAD_OFFSET: np.where(long, 2, IGNORED),
                    CONSISTENT: np.where(long, row % 2, IGNORED),
                },
                labels={FOLLOWS: row % 2},
            )
        )
    return made


class Reader(nn.Module):
    """The mean of the states of a mention, through a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(wave(WIDTH, DIM, phase=2))

    def forward(self, states: Tensor, mentions: Tensor) -> Tensor:
        rows = [states[row, first : last + 1].mean(0) for row, first, last in mentions.tolist()]
        return (torch.stack(rows) @ self.weight).tanh()


class Encoder(nn.Module):
    """An encoder in the shape of a transformers model: embeddings and one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(N_TOKENS, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **_: Any) -> Any:
        states = self.layer(self.table(input_ids)).tanh()
        return type("Output", (), {"last_hidden_state": states})()


def setting() -> Setting:
    return Setting(
        mask=4,
        n_tokens=N_TOKENS,
        special=(0, 1, 2, 3, 4),
        width=WIDTH,
        graph=graph(),
        entity_counts=np.ones(N_ENTITIES, np.int64),
        embeddings=wave(N_TOKENS, WIDTH, phase=3),
        entity_visibility="mixed",
        encoder=filled(Encoder()),
        first=2,
        separator=3,
    )


@pytest.mark.parametrize("name", TEXT)
def test_objectives_of_text(name, golden):
    torch.manual_seed(0)
    made = OBJECTIVES.load(name)(**OPTIONS.get(name, {})).build(setting())
    if made.head is not None:
        filled(made.head)
    rng = np.random.default_rng(0)
    steps = [EntityVisibility("mixed", graph().neighbours), made]
    steps.sort(key=lambda step: step.order)
    prepared = examples()
    for step in steps:
        prepared = [step.prepare(example, rng) for example in prepared]
    text = collate(prepared, 0)
    batch, reader, table = TensorBatch.of(text), Reader(), wave(N_ENTITIES, DIM, phase=4)
    own = filled(Encoder())
    with torch.no_grad():
        own.table.weight += 0.1 * wave(N_TOKENS, WIDTH, phase=8)
    inputs = {
        "final": wave(3, LENGTH, WIDTH, phase=5),
        "embeddings": wave(N_TOKENS, WIDTH, phase=3),
        "detection": wave(3, LENGTH, 3, phase=6),
        "queries": wave(len(batch.mentions), DIM, phase=7),
        "table": table,
    }
    for values in inputs.values():
        values.requires_grad_()
    states = TextStates(
        **inputs,
        token_scores=lambda some: some @ inputs["embeddings"].T,
        read_mentions=reader,
        encode=lambda tokens, mask: own(tokens, mask).last_hidden_state,
    )
    seen: dict[str, Any] = {
        "tokens": batch.tokens.tolist(),
        "labels": {
            key: numbers(value)
            for kind in (batch.token_labels, batch.mention_labels, batch.labels)
            for key, value in kind.items()
        },
    }
    total = torch.zeros((), dtype=torch.float64)
    for term, part in made.terms.items():
        loss, stats = part.loss(states, batch)
        seen[f"loss {term}".strip()] = [float(loss.detach()), part.count(text), stats]
        total = total + loss
    total.backward()
    parameters = {} if made.head is None else dict(made.head.named_parameters())
    gradients = {**inputs, **parameters, "reader": reader.weight, "encoder": own.layer.weight}
    seen["gradients"] = {
        key: numbers(value.grad) for key, value in gradients.items() if value.grad is not None
    }
    assert total
    assert seen["gradients"]
    golden("objectives", name, seen)


def alignment(loss: str, miner: str = "all") -> Any:
    return OBJECTIVES.load("synonym_alignment")(loss=loss, miner=miner).build()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("miner", ["all", "hard", "semihard", "none"])
def test_synonym_alignment(loss, miner, golden):
    labels = torch.arange(12) % 5
    embeddings = (wave(12, 8) + 2 * wave(5, 8, phase=1)[labels]).requires_grad_()
    value, stats = alignment(loss, miner).loss(embeddings, {"labels": labels})
    value.backward()
    golden(
        "objectives",
        f"synonym_alignment {loss} {miner}",
        [float(value.detach()), stats, numbers(embeddings.grad)],
    )


GENERATION = {
    "plain": {"label_smoothing": 0.0},
    "mean": {"form": "mean"},
    "fairseq": {"form": "fairseq"},
    "r_drop": {"r_drop": 1.0},
}


def generation(labels: Tensor, **options: Any) -> Any:
    """The loss of one pass or more of logits for these labels."""
    objective = OBJECTIVES.load("name_generation")(**options).build()
    return partial(objective.loss, batch=SequenceLabels(labels))


class SequenceLabels:
    """A batch of sequences, of which a loss reads the labels alone."""

    def __init__(self, labels: Tensor) -> None:
        self.labels = labels


@pytest.mark.parametrize("form", GENERATION)
def test_name_generation(form, golden):
    labels = torch.tensor([[-100, 3, 8, 2], [-100, -100, 5, 2]])
    passes = [wave(2, 4, 11, phase=phase).requires_grad_() for phase in range(2)]
    passes = passes if form == "r_drop" else passes[:1]
    loss, stats = generation(labels, **GENERATION[form])(passes)
    loss.backward()
    golden(
        "objectives",
        f"name_generation {form}",
        [float(loss.detach()), stats, [numbers(each.grad) for each in passes]],
    )


class TestPublishedValues:
    """Values that the papers' own code computed, or a reference of their equations."""

    @pytest.mark.parametrize("batch", ["batch8", "batch32", "batch128", "none_survive"])
    @pytest.mark.parametrize("suffix", ["", "_without_miner"])
    @pytest.mark.parametrize("name", LOSSES)
    def test_sapbert(self, batch, suffix, name, shared_data):
        data = load_file(shared_data(f"parity/sapbert/{batch}.safetensors"))
        expected = read(shared_data("parity/sapbert/losses.json"))[batch]["losses"][name + suffix]
        objective = alignment(name, "none" if suffix else "all")
        for dtype, tolerance in ((torch.float64, 1e-7), (torch.float32, 1e-5)):
            embeddings = data["embeddings"].to(dtype).requires_grad_()
            loss, _ = objective.loss(embeddings, {"labels": data["labels"]})
            loss.backward()
            assert float(loss.detach()) == pytest.approx(
                expected["float64"], rel=tolerance, abs=1e-9
            )
            torch.testing.assert_close(
                embeddings.grad.double(),
                data[f"gradient_{name}{suffix}"].double(),
                rtol=10 * tolerance,
                atol=10 * tolerance * expected["max_abs_gradient_float64"] + 1e-12,
            )

    @pytest.mark.parametrize("name", ["gold", "many", "none"])
    def test_kebiolm(self, name, shared_data):
        """Detection, linking and masked tokens from the reference's states."""
        folder = shared_data("parity/kebiolm_paper")
        given = load_file(shared_data(f"parity/kebiolm/batch_{name}.safetensors"))
        arrays = load_file(folder / f"batch_{name}.safetensors")
        weights = load_file(shared_data("parity/kebiolm/model.safetensors"))
        expected = read(folder / "expected.json")[name]["losses"]
        (table,) = (value for value in weights.values() if value.shape == (50, 16))
        tags = given["mention_labels"].masked_fill(given["attention_mask"] == 0, IGNORED)
        mentions = arrays.get("mentions", torch.zeros(0, 3, dtype=torch.int64))
        counts = mentions[:, 0].bincount(minlength=len(tags))
        gold = [row[:n] for row, n in zip(given["gold_entity_ids"], counts, strict=True)]
        batch = TensorBatch(
            given["input_ids"],
            given["attention_mask"],
            given["token_type_ids"],
            mentions,
            torch.cat(gold),
            {"entity_detection": tags, "masked_tokens": given["mlm_labels"]},
            {},
            {},
        )
        states = TextStates(
            final=arrays["with_layer_norm.token_logits"].double(),
            token_scores=lambda scores: scores,
            detection=arrays["detection_logits"],
            queries=arrays.get("mention_vectors", torch.zeros(0, 16).double()),
            table=table.double(),
        )
        for objective, value in (
            ("entity_detection", expected["detection"]),
            ("entity_linking", expected.get("linking", 0.0)),
            ("masked_tokens", expected["with_layer_norm"]["mlm"]),
        ):
            loss, _ = OBJECTIVES.load(objective)().build(setting()).loss(states, batch)
            assert float(loss) == pytest.approx(value, rel=1e-5), objective

    def test_genbioel(self, shared_data):
        folder = shared_data("parity/genbioel")
        tensors = load_file(folder / "training.safetensors")
        expected = read(folder / "training.json")
        for logits, labels, key in (
            (tensors["logits"].double(), tensors["labels"], "model_batch"),
            (tensors["random_logits"], tensors["random_labels"], "random_logits"),
        ):
            for form, name in (
                ("plain", "label_smoothed_epsilon_0.0"),
                ("mean", "label_smoothed_epsilon_0.1"),
                ("fairseq", "label_smoothed_fairseq_form_epsilon_0.1"),
            ):
                loss, stats = generation(labels, **GENERATION[form])([logits])
                assert float(loss) == pytest.approx(expected[key][name], abs=1e-5)
                assert stats["nll"] == pytest.approx(expected[key]["nll"], abs=1e-5)
        both = [tensors["random_logits"], tensors["random_logits_second_pass"]]
        labels = tensors["random_labels"]
        apart = float(generation(labels, r_drop=1.0)(both)[0])
        alone = [float(generation(labels)([each])[0]) for each in both]
        wanted = expected["random_logits"]["rdrop_symmetric_kl"]
        assert apart - sum(alone) / 2 == pytest.approx(wanted, abs=1e-6)

    @pytest.mark.parametrize("reduction", ["mean", "sequence_sum"])
    def test_embert(self, reduction, shared_data):
        """The three losses with the reference's weights, in both readings of the paper."""
        arrays = load_file(shared_data("parity/embert/heads.safetensors"))
        expected = read(shared_data("parity/embert/losses.json"))
        own = Setting(mask=4, n_tokens=60, special=(0, 1, 2, 3, 4), width=20)
        states = TextStates(
            final=arrays["input.states"],
            token_scores=lambda some: some,
            embeddings=arrays["weight.word_embedding"],
        )
        tokens = arrays["input.token_ids"]
        replaced, long = arrays["input.replaced_entities"], arrays["input.long_entities"]
        long = long[torch.argsort(long[:, 0], stable=True)]  # mentions go by sequences
        masking = "bidirectional_entity_masking"
        parts = {
            f"{masking}.{part}": torch.full_like(tokens, IGNORED) for part in ("adjective", "head")
        }
        for row, first, middle, start, last in long.tolist():
            for part, span in (("adjective", (first, middle)), ("head", (start, last))):
                there = (row, slice(span[0], span[1] + 1))
                parts[f"{masking}.{part}"][there] = tokens[there]
        batches = {
            "context_entity_consistency": (replaced[:, :3], {}, {CONSISTENT: replaced[:, 3]}),
            "entity_segmentation": (
                torch.zeros(0, 3, dtype=torch.int64),
                {SEGMENT_ENDS: arrays["input.segment_labels"]},
                {},
            ),
            masking: (long[:, [0, 1, 4]], parts, {HEAD_OFFSET: long[:, 3] - long[:, 1]}),
        }
        losses = {}
        for name, (mentions, token_labels, mention_labels) in batches.items():
            options: dict[str, Any] = {"reduction": reduction} if token_labels else {}
            if name == masking:
                options |= {"position_dim": 8, "max_tokens": 10}
            made = OBJECTIVES.load(name)(**options).build(own)
            head = made.head[0] if name == masking else made.head
            head.double().load_state_dict(
                {own: arrays[f"weight.{theirs}"] for own, theirs in HEADS[name].items()}
            )
            batch = TensorBatch(
                tokens,
                torch.ones_like(tokens),
                torch.zeros_like(tokens),
                mentions,
                torch.full_like(mentions[:, 0], -1),
                token_labels,
                mention_labels,
                {},
            )
            values = [term.loss(states, batch)[0].detach() for term in made.terms.values()]
            # the reference sums over its batch of three sequences; an update takes the mean
            times = 3 if reduction == "sequence_sum" and token_labels else 1
            losses[name] = times * float(sum(values))
        total = expected["weighted_without_bert_loss"]
        wanted = total["means_throughout" if reduction == "mean" else "paper_reductions"]
        assert sum(losses.values()) == pytest.approx(wanted, rel=1e-9)
        consistency = 2 * expected["eccp"]["mean_over_entities"]
        assert losses["context_entity_consistency"] == pytest.approx(consistency, rel=1e-9)

    @pytest.mark.parametrize("reduction", ["mse", "mean", "sequence_sum"])
    def test_smedbert_mentions(self, reduction, shared_data):
        arrays = load_file(shared_data("parity/smedbert/knowledge_layer.safetensors"))
        expected = read(shared_data("parity/smedbert/losses.json"))
        vectors = arrays["input.input_embeddings"].flatten(0, 1)
        config = OBJECTIVES.load("masked_mention")(reduction=reduction)
        made = config.build(replace(setting(), embeddings=vectors, entity_visibility="masked"))
        tokens = torch.arange(48).view(3, 16)  # the id of a token is its position
        batch = TensorBatch(
            tokens,
            arrays["input.attention_mask"],
            torch.zeros_like(tokens),
            arrays["input.mentions"],
            torch.arange(4),
            {"masked_tokens": torch.full_like(tokens, IGNORED)},
            {VISIBLE_ENTITIES: torch.arange(4)},
            {},
        )
        states = TextStates(
            final=arrays["input.final_states"],
            token_scores=lambda some: some,
            table=arrays["weight.entity_embedding"],
            read_mentions=partial(read_published_mentions, arrays),
        )
        loss, _ = made.loss(states, batch)
        mean = expected["mention_loss_mean_over_mentions"]
        wanted = {"mse": mean / 12, "mean": mean, "sequence_sum": expected["mention_loss_sum"] / 3}
        assert float(loss) == pytest.approx(4 * wanted[reduction], rel=1e-9)

    @pytest.mark.parametrize("form", ["eq16", "eq19"])
    @pytest.mark.parametrize("correction", ["log_q", "mu_log_q", "none"])
    def test_smedbert_neighbours(self, form, correction, shared_data, monkeypatch):
        """The reference's negatives instead of sampled ones; all losses as mean and as sum."""
        name = f"{form}_no_correction" if correction == "none" else f"{form}_minus_{correction}"
        expected = read(shared_data("parity/smedbert/losses.json"))
        if name not in expected["neighbour_loss_sum"]:
            return
        arrays = load_file(shared_data("parity/smedbert/knowledge_layer.safetensors"))
        monkeypatch.setattr(TypeSampler, "sample", lambda *_: published_negatives(arrays))
        empty = torch.zeros(3, 16, dtype=torch.int64)
        batch = TensorBatch(
            empty,
            arrays["input.attention_mask"],
            empty,
            arrays["input.mentions"],
            torch.arange(4),
            {"masked_tokens": empty + IGNORED},
            {
                VISIBLE_ENTITIES: torch.full((4,), IGNORED),
                "masked_neighbour": torch.zeros(4, 100, dtype=torch.int64),
            },
            {},
        )
        states = TextStates(
            final=arrays["input.final_states"],
            token_scores=lambda some: some,
            table=arrays["weight.entity_embedding"],
            read_mentions=partial(read_published_mentions, arrays),
        )
        options = {"form": form, "correction": correction}
        own = replace(setting(), graph=published_graph(arrays), entity_visibility="masked")
        losses = {}
        for reduction in ("mean", "sequence_sum"):
            config = OBJECTIVES.load("masked_neighbour")(reduction=reduction, **options)
            losses[reduction] = float(config.build(own).loss(states, batch)[0])
        mean = expected["neighbour_loss_mean_over_true_neighbours"][name]
        total = expected["neighbour_loss_sum"][name]
        assert losses["mean"] == pytest.approx(2 * mean, rel=1e-9)
        # the reference sums over its batch of three sequences; an update takes the mean
        assert 3 * losses["sequence_sum"] == pytest.approx(2 * total, rel=1e-9)


def published_negatives(arrays: dict[str, Tensor]) -> Tensor:
    """The negatives of every true neighbour, in the order of edges."""
    relations = arrays["input.neighbour_relation"]
    order = relations[relations >= 0].argsort(stable=True)
    return arrays["input.negatives"][relations >= 0][order]


def published_graph(arrays: dict[str, Tensor]) -> EntityGraph:
    """The four entities that are mentioned have neighbours, the others of the table none."""
    neighbours, relations = (np.full((40, 10), -1) for _ in range(2))
    neighbours[:4] = arrays["input.neighbour_entity"].numpy()
    relations[:4] = arrays["input.neighbour_relation"].numpy()
    return EntityGraph(
        neighbours=neighbours,
        relations=relations,
        signs=(neighbours >= 0).astype(np.int64),
        types=arrays["input.entity_type"].numpy(),
        counts=arrays["input.entity_frequency"].numpy(),
        relation_vectors=arrays["weight.relation_embedding"].numpy(),
        projections=arrays["weight.relation_projection"].numpy(),
    )


HEADS = {
    "context_entity_consistency": {
        "inner.dense.weight": "W1",
        "inner.norm.weight": "ln_eccp_gain",
        "inner.norm.bias": "ln_eccp_bias",
        "classes.weight": "W2",
    },
    "entity_segmentation": {
        "inner.dense.weight": "W4",
        "inner.norm.weight": "ln_est_gain",
        "inner.norm.bias": "ln_est_bias",
        "outer.weight": "W3",
        "outer.bias": "b",
        "classes.weight": "W5",
    },
    "bidirectional_entity_masking": {
        "position.weight": "position_embedding",
        "inner.dense.weight": "W6",
        "inner.norm.weight": "ln_bem_1_gain",
        "inner.norm.bias": "ln_bem_1_bias",
        "outer.dense.weight": "W7",
        "outer.norm.weight": "ln_bem_2_gain",
        "outer.norm.bias": "ln_bem_2_bias",
    },
}
"""The weights of each head, and the reference's names of them."""


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_published_mentions(arrays: dict[str, Tensor], states: Tensor, mentions: Tensor) -> Tensor:
    """LN(GELU(pooled W_sa)) of SMedBERT's equation 12."""
    pooled = []
    for row, first, last in mentions.tolist():
        span = states[row, first : last + 1]
        scores = span @ arrays["weight.final_pool_w"] + arrays["weight.final_pool_b"]
        pooled.append(scores.softmax(0) @ span)
    inner = nn.functional.gelu(torch.stack(pooled) @ arrays["weight.W_sa"])
    return nn.functional.layer_norm(
        inner, (12,), arrays["weight.ln_final_gain"], arrays["weight.ln_final_bias"], 1e-12
    )
