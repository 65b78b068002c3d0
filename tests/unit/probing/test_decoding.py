"""Filling blanks: equal to plain loops over all places and tokens, however queries are grouped."""

from itertools import product

import pytest
import torch

from biograft.errors import BiograftError, ConfigError
from biograft.probing import DecodingConfig, decode

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


def masked(lm, ids):
    return [place for place, token in enumerate(ids) if token == lm.mask]


def plainly(lm, prompt, n_masks, beam, order):
    """The paper's search, written as it is said: no batches, no part of the vocabulary left out."""
    ids = lm.token_ids(prompt.replace("[MASK]", "[MASK] " * n_masks))
    places = masked(lm, ids)
    beams = [(0.0, ids, places)]
    for _ in range(n_masks):
        candidates = []
        for score, filled, still in beams:
            found = log_probabilities(lm, filled)
            for place in still if order == "any" else still[:1]:
                for token, value in enumerate(found[place].tolist()):
                    ids = [*filled[:place], token, *filled[place + 1 :]]
                    candidates.append((score + value, ids, [p for p in still if p != place]))
        candidates.sort(key=lambda each: -each[0])
        beams = candidates[:beam]
    return [([ids[place] for place in places], score) for score, ids, _ in beams]


def filled(lm, config, prompts=PROMPTS):
    found = {}
    for query, n_masks, fillings in decode(lm, prompts, config):
        assert (query, n_masks) not in found
        found[query, n_masks] = fillings
    return found


def same(fillings, expected):
    assert [f.text for f in fillings] == [text for text, _ in expected]
    assert [f.score for f in fillings] == pytest.approx([score for _, score in expected], abs=1e-5)


@pytest.mark.parametrize("order", ["any", "left-to-right"])
@pytest.mark.parametrize("beam", [1, 5])
def test_beams_are_those_of_plain_loops(tiny_lm, order, beam):
    found = filled(tiny_lm, DecodingConfig(lengths=(1, 2, 4), beam=beam, order=order))
    assert len(found) == 3 * len(PROMPTS)
    for (query, n_masks), fillings in found.items():
        expected = plainly(tiny_lm, PROMPTS[query], n_masks, beam, order)
        texts = tiny_lm.texts([tokens for tokens, _ in expected])
        same(fillings, [(text, score) for text, (_, score) in zip(texts, expected, strict=True)])


def test_places_are_filled_in_another_order_than_from_left_to_right(tiny_lm):
    """Else the tests of any order would say nothing."""
    orders = [
        filled(tiny_lm, DecodingConfig(lengths=(4,), order=o)) for o in ("any", "left-to-right")
    ]
    assert any(orders[0][key] != orders[1][key] for key in orders[0])


def test_greedy_any_order_takes_the_most_confident_first(tiny_lm):
    [(query, _, (best,))] = decode(tiny_lm, PROMPTS[:1], DecodingConfig(lengths=(3,), beam=1))
    ids = tiny_lm.token_ids(PROMPTS[query].replace("[MASK]", "[MASK] " * 3))
    places, score = masked(tiny_lm, ids), 0.0
    while still := [place for place in places if ids[place] == tiny_lm.mask]:
        found = log_probabilities(tiny_lm, ids)
        place = max(still, key=lambda place: found[place].max().item())
        score += found[place].max().item()
        ids[place] = found[place].argmax().item()
    assert best.text == tiny_lm.texts([[ids[place] for place in places]])[0]
    assert best.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("beam", [1, 5])
def test_independent_places_give_the_best_of_all_fillings(tiny_lm, beam):
    found = filled(tiny_lm, DecodingConfig(lengths=(2,), beam=beam, order="independent"))
    for (query, _), fillings in found.items():
        ids = tiny_lm.token_ids(PROMPTS[query].replace("[MASK]", "[MASK] [MASK]"))
        at = log_probabilities(tiny_lm, ids)[masked(tiny_lm, ids)].tolist()
        every = [
            ([a, b], at[0][a] + at[1][b]) for a, b in product(range(tiny_lm.n_tokens), repeat=2)
        ]
        expected = sorted(every, key=lambda each: -each[1])[:beam]
        texts = tiny_lm.texts([tokens for tokens, _ in expected])
        same(fillings, [(text, score) for text, (_, score) in zip(texts, expected, strict=True)])


@pytest.mark.parametrize("order", ["any", "left-to-right", "independent"])
def test_neither_batches_nor_company_change_an_answer(tiny_lm, order):
    lengths = (1, 2, 3, 5)
    together = filled(tiny_lm, DecodingConfig(lengths=lengths, order=order))
    for batch in (1, 2):
        batched = filled(tiny_lm, DecodingConfig(lengths=lengths, order=order, batch=batch))
        assert batched.keys() == together.keys()
        for key, fillings in batched.items():
            same(fillings, together[key])
    backwards = filled(tiny_lm, DecodingConfig(lengths=lengths, order=order), PROMPTS[::-1])
    for query, prompt in enumerate(PROMPTS):
        config = DecodingConfig(lengths=(3,), order=order)
        same(filled(tiny_lm, config, [prompt])[0, 3], together[query, 3])
        same(backwards[len(PROMPTS) - 1 - query, 3], together[query, 3])


def test_the_best_come_first_and_a_run_of_masks_stands_where_the_blank_was(tiny_lm):
    for (_, n_masks), fillings in filled(tiny_lm, DecodingConfig(lengths=(1, 6))).items():
        assert len(fillings) == 5
        scores = [filling.score for filling in fillings]
        assert scores == sorted(scores, reverse=True)
        assert max(scores) < 0 or n_masks == 1


def test_what_the_model_has_no_room_for_is_not_filled(tiny_lm):
    long = "pain " * 30 + "treats [MASK]"  # 31 words, two special tokens, one mask: 34 of 40
    found = filled(tiny_lm, DecodingConfig(lengths=(1, 7, 8, 10)), [long, PROMPTS[0]])
    assert sorted(found) == [(0, 1), (0, 7), (1, 1), (1, 7), (1, 8), (1, 10)]


def test_a_beam_wider_than_the_vocabulary(tiny_lm):
    found = filled(tiny_lm, DecodingConfig(lengths=(1, 2), beam=60), PROMPTS[:1])
    assert len(found[0, 1]) == tiny_lm.n_tokens < 60
    assert len(found[0, 2]) == 60
    expected = plainly(tiny_lm, PROMPTS[0], 2, 60, "any")
    assert found[0, 2][0].score == pytest.approx(expected[0][1], abs=1e-5)


@pytest.mark.parametrize("prompt", ["no blank", "[MASK] and [MASK]"])
def test_a_prompt_has_one_blank(tiny_lm, prompt):
    with pytest.raises(BiograftError, match=r"expected one \[MASK\] in each prompt"):
        list(decode(tiny_lm, [prompt], DecodingConfig()))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lengths": ()}, "lengths: expected different numbers from 1"),
        ({"lengths": (0, 1)}, "lengths"),
        ({"lengths": (2, 2)}, "lengths"),
        ({"beam": 0}, "beam: expected at least 1"),
        ({"order": "random"}, "order: expected one of any, left-to-right, independent"),
        ({"batch": -1}, "batch: expected 0 or more"),
    ],
)
def test_what_makes_no_sense_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        DecodingConfig(**values)
