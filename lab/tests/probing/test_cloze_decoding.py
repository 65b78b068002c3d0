"""Beam search equals plain loops over all positions and tokens, in any batches."""

import pytest
import torch

from biograft.errors import BiograftError, ConfigError
from biograft_lab.probing import DecodingConfig, decode

PROMPTS = (
    "aspirin treats [MASK]",
    "[MASK] treats pain",
    "[MASK] is a symptom of flu",
    "pain is a symptom of [MASK]",
    "流感 treats [MASK]",
    "fever [MASK] flu",
)


def log_probabilities(lm, ids):
    with torch.no_grad():
        return lm.model(torch.tensor([ids])).logits[0].log_softmax(-1)


def mask_positions(lm, ids):
    return [position for position, token in enumerate(ids) if token == lm.mask]


def plain_search(lm, prompt, n_masks, beam, order):
    """The paper's search without batches, over the whole vocabulary."""
    ids = lm.token_ids(prompt.replace("[MASK]", "[MASK] " * n_masks))
    positions = mask_positions(lm, ids)
    beams = [(0.0, ids, positions)]
    for _ in range(n_masks):
        candidates = []
        for score, decode_all, masked_positions in beams:
            results = log_probabilities(lm, decode_all)
            for position in masked_positions if order == "any" else masked_positions[:1]:
                for token, value in enumerate(results[position].tolist()):
                    ids = [*decode_all[:position], token, *decode_all[position + 1 :]]
                    candidates.append(
                        (score + value, ids, [p for p in masked_positions if p != position])
                    )
        candidates.sort(key=lambda each: -each[0])
        beams = candidates[:beam]
    return [([ids[position] for position in positions], score) for score, ids, _ in beams]


def decode_all(lm, config, prompts=PROMPTS):
    results = {}
    for query, n_masks, fillings in decode(lm, prompts, config):
        assert (query, n_masks) not in results
        results[query, n_masks] = fillings
    return results


def assert_same(fillings, expected):
    assert [f.text for f in fillings] == [text for text, _ in expected]
    assert [f.score for f in fillings] == pytest.approx([score for _, score in expected], abs=1e-5)


@pytest.mark.parametrize("order", ["any", "left-to-right"])
@pytest.mark.parametrize("beam", [1, 5])
def test_beams_equal_plain_loops(tiny_lm, order, beam):
    results = decode_all(tiny_lm, DecodingConfig(lengths=(1, 2, 4), beam=beam, order=order))
    assert len(results) == 3 * len(PROMPTS)
    for (query, n_masks), fillings in results.items():
        expected = plain_search(tiny_lm, PROMPTS[query], n_masks, beam, order)
        texts = tiny_lm.texts([tokens for tokens, _ in expected])
        assert_same(
            fillings, [(text, score) for text, (_, score) in zip(texts, expected, strict=True)]
        )


def test_any_order_differs_from_left_to_right(tiny_lm):
    """Else the tests of any order would test nothing."""
    orders = [
        decode_all(tiny_lm, DecodingConfig(lengths=(4,), order=o)) for o in ("any", "left-to-right")
    ]
    assert any(orders[0][key] != orders[1][key] for key in orders[0])


def test_greedy_any_order_takes_the_most_confident_first(tiny_lm):
    [(query, _, (best,))] = decode(tiny_lm, PROMPTS[:1], DecodingConfig(lengths=(3,), beam=1))
    ids = tiny_lm.token_ids(PROMPTS[query].replace("[MASK]", "[MASK] " * 3))
    positions, score = mask_positions(tiny_lm, ids), 0.0
    while masked_positions := [position for position in positions if ids[position] == tiny_lm.mask]:
        results = log_probabilities(tiny_lm, ids)
        position = max(masked_positions, key=lambda position: results[position].max().item())
        score += results[position].max().item()
        ids[position] = results[position].argmax().item()
    assert best.text == tiny_lm.texts([[ids[position] for position in positions]])[0]
    assert best.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("order", ["any", "left-to-right"])
def test_results_do_not_depend_on_batches(tiny_lm, order):
    lengths = (1, 2, 3, 5)
    together = decode_all(tiny_lm, DecodingConfig(lengths=lengths, order=order))
    for batch in (1, 2):
        batched = decode_all(tiny_lm, DecodingConfig(lengths=lengths, order=order, batch=batch))
        assert batched.keys() == together.keys()
        for key, fillings in batched.items():
            assert_same(fillings, together[key])
    backwards = decode_all(tiny_lm, DecodingConfig(lengths=lengths, order=order), PROMPTS[::-1])
    for query, prompt in enumerate(PROMPTS):
        config = DecodingConfig(lengths=(3,), order=order)
        assert_same(decode_all(tiny_lm, config, [prompt])[0, 3], together[query, 3])
        assert_same(backwards[len(PROMPTS) - 1 - query, 3], together[query, 3])


def test_the_best_come_first_and_a_run_of_masks_stands_where_the_blank_was(tiny_lm):
    for (_, n_masks), fillings in decode_all(tiny_lm, DecodingConfig(lengths=(1, 6))).items():
        assert len(fillings) == 5
        scores = [filling.score for filling in fillings]
        assert scores == sorted(scores, reverse=True)
        assert max(scores) < 0 or n_masks == 1


def test_too_long_prompts_are_skipped(tiny_lm):
    long = "pain " * 30 + "treats [MASK]"  # 31 words, two special tokens, one mask: 34 of 40
    results = decode_all(tiny_lm, DecodingConfig(lengths=(1, 7, 8, 10)), [long, PROMPTS[0]])
    assert sorted(results) == [(0, 1), (0, 7), (1, 1), (1, 7), (1, 8), (1, 10)]


def test_a_beam_wider_than_the_vocabulary(tiny_lm):
    results = decode_all(tiny_lm, DecodingConfig(lengths=(1, 2), beam=60), PROMPTS[:1])
    assert len(results[0, 1]) == tiny_lm.n_tokens < 60
    assert len(results[0, 2]) == 60
    expected = plain_search(tiny_lm, PROMPTS[0], 2, 60, "any")
    assert results[0, 2][0].score == pytest.approx(expected[0][1], abs=1e-5)


@pytest.mark.parametrize("prompt", ["no blank", "[MASK] and [MASK]"])
def test_a_prompt_has_one_blank(tiny_lm, prompt):
    with pytest.raises(BiograftError, match=r"expected one \[MASK\] in each prompt"):
        list(decode(tiny_lm, [prompt], DecodingConfig()))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam": 0}, "beam: expected"),
        ({"order": "random"}, "order: expected one of any, left-to-right"),
        ({"batch": -1}, "batch: expected"),
    ],
)
def test_invalid_configurations_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        DecodingConfig(**values)
