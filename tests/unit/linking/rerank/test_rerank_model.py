from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from biograft.errors import ConfigError, NotFoundError, StoreError
from biograft.linking import Context, CrossEncoder
from biograft.linking.rerank import CandidatePairTokenizer, CandidateTexts, mark_mention
from biograft.models import TextEncoder


@pytest.fixture
def model(bench):
    return CrossEncoder.start(bench.config())


def test_batches_of_like_length_give_what_each_pair_gives_alone(model):
    left = ["{ cold }", "fever and { cold } with cough and snow", "ice { cold }"] * 5
    right = ["Heat", "Cold ; common cold ; disease", "none of these"] * 5
    pairs, is_nil = model.pairs.tokenize(left, right), np.array([False, False, True] * 5)
    with torch.no_grad():
        model.nil_bias.fill_(3.0)
    together = model.score(pairs, is_nil)
    model.eval()
    for pair, nil, score in zip(pairs, is_nil, together, strict=True):
        with torch.no_grad():
            states = model.model(
                input_ids=torch.tensor([pair.ids]), token_type_ids=torch.tensor([pair.types])
            ).last_hidden_state
            alone = states[0, 0] @ model.head.weight[0] + model.head.bias[0] + 3.0 * bool(nil)
        assert score == pytest.approx(float(alone), abs=1e-5)


def test_scoring_drops_nothing_out_and_leaves_the_mode_as_it_was(model):
    pairs = model.pairs.tokenize(["{ cold }"], ["Heat"])
    model.train()
    scores = [model.score(pairs, np.array([False])) for _ in range(2)]
    assert scores[0] == scores[1]
    assert model.training
    assert len(model.score([], np.zeros(0, bool))) == 0


def test_the_start_follows_from_the_seed_alone(bench):
    starts = [CrossEncoder.start(bench.config(seed=seed)).head.weight for seed in (1, 1, 2)]
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


def test_a_saved_model_gives_the_same_scores(model, bench, tmp_path):
    with torch.no_grad():
        model.nil_bias.fill_(1.5)
    model.save(tmp_path)
    again = CrossEncoder.load(tmp_path, bench.config())
    pairs, is_nil = (
        model.pairs.tokenize(["{ cold }"] * 2, ["Heat", "none"]),
        np.array([False, True]),
    )
    assert np.array_equal(model.score(pairs, is_nil), again.score(pairs, is_nil))
    assert again.encoder.settings == model.encoder.settings


def test_weights_that_are_no_numbers_are_refused(model, bench, tmp_path):
    with torch.no_grad():
        model.head.weight[0, 0] = float("nan")
    with pytest.raises(StoreError, match="gives NaN or infinity for 1 of 1 candidates"):
        model.score(model.pairs.tokenize(["{ cold }"], ["Heat"]), np.array([False]))
    model.save(tmp_path)
    with pytest.raises(StoreError, match=r"head.safetensors: holds NaN or infinity \(weight\)"):
        CrossEncoder.load(tmp_path, bench.config())


def test_a_head_of_another_encoder_is_refused(model, bench, tmp_path):
    model.save(tmp_path)
    (tmp_path / "head.safetensors").write_bytes(b"no tensors")
    with pytest.raises(StoreError, match=r"head.safetensors: damaged"):
        CrossEncoder.load(tmp_path, bench.config())


def test_pairs_longer_than_the_encoder_are_refused_before_training(bench):
    with pytest.raises(ConfigError, match=r"max_length: expected 3 to 64 for .* found 128"):
        CrossEncoder.start(bench.config(max_length=128))


TEXT = "A common cold was seen in the patient."


@pytest.mark.parametrize(
    ("text", "mention", "n", "shown"),
    [
        (TEXT, "cold", 100, "A common  { cold }  was seen in the patient."),
        (TEXT, "cold", 8, "common  { cold }  was"),
        (TEXT, "cold", 0, "{ cold }"),
        (TEXT, "A", 9, "{ A }  common"),
        (TEXT, "patient.", 7, "in the  { patient. }"),
        (TEXT, "patient.", 6, "the  { patient. }"),
        (TEXT, TEXT, 5, f"{{ {TEXT} }}"),
        ("🤧 cold 🥶", "cold", 2, "🤧  { cold }  🥶"),
        ("患者感冒三天了", "感冒", 2, "患者 { 感冒 } 三天"),
        ("他患感冒三天了", "感冒", 1, "患 { 感冒 } 三"),
        ("end of a cold", "cold", 4, "a  { cold }"),
    ],
)
def test_a_mention_is_marked_and_no_word_is_cut(text, mention, n, shown):
    start = text.index(mention)
    context = Context(text, start, start + len(mention))
    assert mark_mention(mention, context, n) == shown


def test_another_form_stands_behind_the_mention():
    assert mark_mention("common  Cold", Context("a CC.", 2, 4), 9) == "a  { CC ( common  Cold ) } ."
    assert mark_mention("COLD", Context("a cold", 2, 6), 9) == "a  { cold }"


@pytest.mark.parametrize("context", [Context(), Context(TEXT, 0, 0), Context("a  b", 1, 3)])
def test_without_a_known_position_the_form_has_no_context(context):
    assert mark_mention("cold", context, 50) == "{ cold }"


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (5, 2), (0, 40), (99, 100)])
def test_a_position_outside_the_text_is_refused(start, end):
    with pytest.raises(ConfigError, match="expected a mention within the 38 characters of its"):
        mark_mention("cold", Context(TEXT, start, end), 9)


def test_the_context_is_a_substring_of_the_text_around_the_mention():
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choices("ab  \n🤧感e\u0301", k=rng.randrange(1, 40)))
        start = rng.randrange(len(text))
        end = rng.randrange(start + 1, len(text) + 1)
        n = rng.randrange(12)
        shown = mark_mention(text[start:end], Context(text, start, end), n)
        if not text[start:end].strip():
            continue
        left, right = shown.split(f"{{ {text[start:end]} }}")
        assert text[:start].rstrip().endswith(left.strip())
        assert text[end:].lstrip().startswith(right.strip())
        assert max(len(left), len(right)) <= n + 1


def test_the_text_of_a_candidate_has_name_match_synonyms_type_and_definition(bench):
    config = bench.config(n_synonyms=1, definition_characters=21)
    describe = CandidateTexts(bench.kb, config).describe
    assert describe("ILL", "coryza") == (
        "Cold ; coryza ; common cold ; disease ; An illness with cough"
    )
    assert describe("ILL", "cold") == "Cold ; common cold ; disease ; An illness with cough"


def test_what_a_concept_lacks_is_left_out(bench):
    assert CandidateTexts(bench.kb, bench.config()).describe("HEAT", "Heat") == "Heat"
    lean = replace(bench.config(), n_synonyms=0, definition_characters=0)
    assert CandidateTexts(bench.kb, lean).describe("ILL", "Cold") == "Cold ; disease"


def test_a_concept_that_the_store_does_not_have_is_named(bench):
    with pytest.raises(NotFoundError, match="no concept has the id 'X'"):
        CandidateTexts(bench.kb, bench.config()).describe("X", "x")


@pytest.fixture(scope="module")
def encoder(bench):
    return TextEncoder.from_pretrained(bench.config().encoder, max_length=32)


def words_of(encoder, ids):
    return encoder.tokenizer.convert_ids_to_tokens(ids)


def test_both_texts_are_encoded_with_their_segments(encoder):
    (pair,) = CandidatePairTokenizer(encoder, 120).tokenize(["fever { cold }"], ["Heat"])
    assert words_of(encoder, pair.ids) == [
        *("[CLS]", "fever", "{", "cold", "}", "[SEP]", "heat", "[SEP]")
    ]
    assert pair.types == [0] * 6 + [1] * 2


def test_what_is_too_long_is_cut_from_the_candidate(encoder):
    (pair,) = CandidatePairTokenizer(encoder, 120).tokenize(["{ cold }"], ["cough " * 90])
    assert len(pair.ids) == 32
    assert words_of(encoder, pair.ids)[:5] == ["[CLS]", "{", "cold", "}", "[SEP]"]
    assert words_of(encoder, pair.ids)[-1] == "[SEP]"


@pytest.mark.parametrize("n_characters", [0, 40, 10_000])
def test_a_mention_stays_whole_between_as_much_context_as_there_is_room_for(encoder, n_characters):
    tokenizer = CandidatePairTokenizer(encoder, n_characters)
    text = "fever " * 4000 + "cold" + " cough" * 4000
    contexts = [Context(text, 24000, 24004), Context("cold", 0, 4), Context()]
    marked = tokenizer.mark_mentions([("cold", context) for context in contexts])
    assert marked[1:] == ["{ cold }"] * 2
    assert "{ cold }" in marked[0]
    n_tokens = len(encoder.tokenizer.tokenize(marked[0]))
    assert n_tokens <= tokenizer.context_room == 17
    assert n_tokens >= (3 if n_characters == 0 else 9)


def test_of_a_mention_that_is_too_long_the_beginning_is_shown(encoder):
    text = "a cold " + "winter " * 400
    mention = text[2:].strip()
    mentions = [(mention, Context(text, 2, 2 + len(mention))), (mention, Context())]
    tokenizer = CandidatePairTokenizer(encoder, 50)
    for marked in tokenizer.mark_mentions(mentions):
        assert marked.startswith("{ cold winter")
        assert marked.endswith("}")
        assert len(encoder.tokenizer.tokenize(marked)) <= tokenizer.context_room
        assert len(tokenizer.tokenize([marked], ["Heat"])[0]) <= 32


def test_many_marks_without_whitespace_come_to_an_end(encoder):
    text = "🤧" * 500
    (marked,) = CandidatePairTokenizer(encoder, 120).mark_mentions(
        [("x" * 500, Context(text, 100, 300))]
    )
    assert len(encoder.tokenizer.tokenize(marked)) <= 17


def test_a_batch_is_filled_up_to_the_longest(encoder):
    tokenizer = CandidatePairTokenizer(encoder, 120)
    pairs = tokenizer.tokenize(["{ cold }", "fever { cold }"], ["Heat", "Cold Temperature"])
    batch = tokenizer.pad(pairs)
    assert batch["input_ids"].shape == (2, 9)
    assert batch["attention_mask"].sum(1).tolist() == [7, 9]
    assert batch["token_type_ids"].tolist() == [[0] * 5 + [1] * 2 + [0] * 2, [0] * 6 + [1] * 3]
    assert tokenizer.tokenize([], []) == []
