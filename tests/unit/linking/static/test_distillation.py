from __future__ import annotations

import numpy as np
import pytest
from manifests import changed, contents

torch = pytest.importorskip("torch")

from biograft.cli import app  # noqa: E402
from biograft.config import from_mapping  # noqa: E402
from biograft.errors import ConfigError  # noqa: E402
from biograft.evaluation import LinkQuery, to_queries  # noqa: E402
from biograft.linking import (  # noqa: E402
    Linker,
    StaticConfig,
    StaticEncoder,
    WordPieceTokenizer,
    build_index,
    open_index,
)
from biograft.models import TextEncoder  # noqa: E402
from biograft.training.linkers import (  # noqa: E402
    LinkerRecipe,
    LinkerTrainingData,
    finetune,
)
from biograft.training.linkers.static import (  # noqa: E402
    StaticNetwork,
    choose_words,
    distillation_loss,
    drop_rare,
    gold_loss,
)

SITES = "heart lung liver kidney brain skin bone eye ear nose".split()
KINDS = "pain cancer failure infection injury disease".split()
SMALL = [
    "config.width=16",
    "config.hidden=24",
    "config.training.steps=150",
    "config.training.batch_size=32",
    "config.training.learning_rate=0.01",
]


@pytest.fixture
def teacher(tiny_encoder):
    return tiny_encoder([*SITES, *KINDS, "acute"], hidden=32)


@pytest.fixture
def sites(store_of):
    concepts = [
        {"id": f"{site}-{kind}", "name": f"{site} {kind}", "names": [f"acute {kind} of {site}"]}
        for site in SITES
        for kind in KINDS
    ]
    return store_of(concepts, "sites")


def distil(kb, teacher, out, *changes, **data):
    recipe = LinkerRecipe.load("linker-static", [*SMALL, *changes], encoder=str(teacher or ""))
    return finetune(recipe, LinkerTrainingData(kb=kb, train=(), out=out, **data))


def random_network(n_rows=9, width=6, dim=8, hidden=5):
    torch.manual_seed(0)
    network = StaticNetwork(
        torch.randn(n_rows, width), torch.randn(n_rows), torch.randn(width, dim), hidden
    )
    torch.nn.init.normal_(network.contract)
    torch.nn.init.normal_(network.bias)
    return network


def test_the_network_and_the_encoder_without_torch_give_the_same_vectors():
    from biograft.models import EncoderSettings

    tokenizer = WordPieceTokenizer(["[UNK]", *"abcdefg"], ["ab"])
    network = random_network(len(tokenizer))
    settings = EncoderSettings(pooling="attention", max_length=8, lower=True)
    encoder = network.export(tokenizer, settings, "student")
    table = encoder.weights.table * encoder.weights.scales[:, None]
    network.table.data = torch.from_numpy(table)  # rounded to 8 bits
    texts = ["a", "b c", "g f e d c b a a a a", "a a a ?"]
    rows, starts = tokenizer.rows_of(texts, 8)
    with torch.no_grad():
        vectors = network(torch.from_numpy(rows).long(), torch.from_numpy(starts)).numpy()
    np.testing.assert_allclose(encoder.encode(texts), vectors, atol=1e-5)


def test_the_loss_is_that_of_plain_loops():
    rng, config = np.random.default_rng(0), StaticConfig(similarity_weight=0.7, temperature=0.3)
    vectors, targets = (rng.normal(size=(5, 4)) for _ in range(2))
    vectors, targets = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (vectors, targets))

    def distribution(matrix, i):
        weights = {j: np.exp(matrix[i] @ matrix[j] / 0.3) for j in range(5) if j != i}
        return {j: weight / sum(weights.values()) for j, weight in weights.items()}

    divergence = 0.0
    for i in range(5):
        own, wanted = distribution(vectors, i), distribution(targets, i)
        divergence += sum(p * np.log(p / own[j]) for j, p in wanted.items()) / 5
    distance = np.mean([1 - a @ b for a, b in zip(vectors, targets, strict=True)])
    loss, statistics = distillation_loss(*map(torch.from_numpy, (vectors, targets)), config)
    assert float(loss) == pytest.approx(distance + 0.7 * divergence)
    assert statistics == pytest.approx({"distance": distance, "divergence": divergence})


def test_words_are_those_of_several_tokens_that_occur_often():
    tokenizer = WordPieceTokenizer(["[UNK]", "flu", "a", "##b", "##c"])
    texts = ["flu abc", "(abc) ab", "ab abc acb", "acb zz zz"]
    assert choose_words(tokenizer, texts, 2, 9) == ["abc", "ab", "acb"]
    assert choose_words(tokenizer, texts, 2, 1) == ["abc"]
    assert choose_words(tokenizer, texts, 3, 9) == ["abc"]


def test_pairs_of_chinese_characters_are_words():
    tokenizer = WordPieceTokenizer(["[UNK]", "心", "肌", "梗", "死", "ct"])
    assert choose_words(tokenizer, ["心肌", "心肌梗死", "CT 心梗", "a 心"], 2, 9) == ["心肌"]
    paired = WordPieceTokenizer(tokenizer.vocabulary, ["心肌", "梗死"])
    assert paired.rows_of_part("心肌梗死") == (1, 2, 3, 4, 6, 7)
    assert paired.rows_of_part("心CT肌") == (1, 5, 2)


def test_rare_tokens_are_dropped_but_for_letters():
    tokenizer = WordPieceTokenizer(["[UNK]", "flu", "a", "##b", "abc", "心", "肌"])
    kept = drop_rare(tokenizer, ["flu 心", "abc flu"], 2)
    assert kept.vocabulary == ("[UNK]", "flu", "a", "##b")


def test_the_loss_of_gold_names_is_that_of_plain_loops():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, 4))
    is_right = np.array([[True, False, True], [False, True, False]])
    wanted = 0.0
    for mention, right in zip(vectors[:2], is_right, strict=True):
        weights = np.exp(vectors[2:] @ mention / 0.3)
        wanted -= np.log(weights[right].sum() / weights.sum()) / 2
    loss = gold_loss(torch.from_numpy(vectors), torch.from_numpy(is_right), 0.3)
    assert float(loss) == pytest.approx(wanted)


def test_mentions_become_similar_to_the_names_of_their_concepts(sites, teacher, tmp_path):
    """What only the concepts of mentions say: that *acute heart* is a pain."""
    train = [
        LinkQuery(f"acute {site}", frozenset([f"{site}-pain"]), (f"acute {site}",))
        for site in SITES
    ]
    right = {}
    for weight in (0.0, 1.0):
        changes = [*SMALL, "config.training.steps=60", f"config.gold_weight={weight}"]
        recipe = LinkerRecipe.load("linker-static", changes, encoder=str(teacher))
        out = tmp_path / f"RUN{weight}"
        made = finetune(recipe, LinkerTrainingData(kb=sites, train=train, out=out)).made
        build_index(sites, out / "I", StaticEncoder.from_pretrained(made["encoder"]))
        linker = Linker(sites, open_index(sites, out / "I").search.generators[1])
        found = linker.link_mentions([query.parts[0] for query in train], 1)
        answers = zip(found, train, strict=True)
        right[weight] = sum(first.concept in query.gold for (first, *_), query in answers)
    assert right[1.0] >= 8
    assert right[0.0] <= 5


def test_a_student_finds_the_names_that_its_teacher_finds(sites, teacher, tmp_path):
    outcome = distil(sites, teacher, tmp_path / "RUN")
    assert outcome.finished
    assert set(outcome.made) == {"encoder"}
    student, loaded = (
        StaticEncoder.from_pretrained(outcome.made["encoder"]),
        TextEncoder.from_pretrained(teacher),
    )
    names = sites.table("names").column("text").to_pylist()
    own, wanted = student.encode(names), loaded.encode(names)
    assert outcome.report["cosine"] > 0.95
    assert (own * wanted).sum(1).mean() == pytest.approx(outcome.report["cosine"], abs=1e-5)
    nearest = [np.argsort(-(m @ m.T - 9 * np.eye(len(m))), axis=1)[:, :5] for m in (own, wanted)]
    shared = [len({*a} & {*b}) / 5 for a, b in zip(*nearest, strict=True)]
    assert np.mean(shared) > 0.6
    build_index(sites, tmp_path / "I", student)
    linker = Linker(sites, open_index(sites, tmp_path / "I").search.generators[1])
    ((first, *_),) = linker.link_mentions(["acute lung injury"])
    assert first.concept.startswith("lung-") or first.concept.endswith("-injury")


def test_an_interrupted_run_continues_exactly(sites, teacher, tmp_path):
    short = ["config.training.steps=10", "config.training.save_every=5"]
    whole = distil(sites, teacher, tmp_path / "A", *short)
    first = distil(sites, teacher, tmp_path / "B", *short, "config.training.max_minutes=1e-9")
    assert not first.finished
    resumed = distil(sites, teacher, tmp_path / "B", *short, resume=True)
    assert resumed.finished
    prints = [
        StaticEncoder.from_pretrained(o.made["encoder"]).fingerprint() for o in (whole, resumed)
    ]
    assert prints[0] == prints[1]
    before = contents(tmp_path / "B")
    distil(sites, teacher, tmp_path / "B", *short, resume=True)
    assert changed(before, tmp_path / "B") == []


def test_the_vectors_of_an_index_are_those_of_the_teacher(sites, teacher, tmp_path):
    short = ["config.training.steps=3"]
    build_index(sites, tmp_path / "I", TextEncoder.from_pretrained(teacher))
    outcome = distil(sites, None, tmp_path / "RUN", *short, index=tmp_path / "I")
    assert outcome.report["n_texts"] == 2 * len(SITES) * len(KINDS)
    assert not (tmp_path / "RUN" / "teacher").exists()
    build_index(sites, tmp_path / "L")
    for named, data, message in (
        (None, {"index": tmp_path / "L"}, "has no vectors"),
        (teacher, {"index": tmp_path / "I"}, "not both"),
        (None, {}, "not both"),
    ):
        with pytest.raises(ConfigError, match=message):
            distil(sites, named, tmp_path / f"RUN-{message}-{len(data)}-{named is None}", **data)


def test_a_static_encoder_is_no_teacher(sites, random_encoder, tmp_path):
    build_index(sites, tmp_path / "I", random_encoder())
    with pytest.raises(ConfigError, match="is a static encoder itself"):
        distil(sites, None, tmp_path / "RUN", index=tmp_path / "I")


def test_a_table_is_not_wider_than_the_teacher(sites, teacher, tmp_path):
    with pytest.raises(ConfigError, match=r"config\.width: expected at most 32"):
        distil(sites, teacher, tmp_path / "RUN", "config.width=33")


def test_the_command_needs_no_mentions_and_learns_their_texts(sites, teacher, tmp_path):
    from typer.testing import CliRunner

    gold = tmp_path / "gold.pubtator"
    gold.write_text("1|t|Sore nose tip\n1|a|\n1\t5\t13\tnose tip\tDisease\tnose-pain\n")
    command = ["finetune", "linker-static", "--kb", str(sites.folder), "--encoder", str(teacher)]
    changes = [part for change in SMALL for part in ("--set", change)]
    changes += ["--set", "config.training.steps=2", "-q"]
    counts = []
    for run, more in (("A", []), ("B", ["--train", str(gold), "--format", "pubtator"])):
        done = CliRunner().invoke(app, [*command, *changes, *more, "-o", str(tmp_path / run)])
        assert done.exit_code == 0, done.output
        (line,) = (line for line in done.output.splitlines() if "n_texts" in line)
        counts.append(int(line.split()[-1].replace(",", "")))
    assert counts == [120, 121]


def test_the_recipe_states_the_defaults():
    recipe = LinkerRecipe.load("linker-static", encoder="X")
    defaults = from_mapping(StaticConfig, {})
    assert recipe.config.width == defaults.width
    assert recipe.config.hidden == defaults.hidden


def test_a_ranker_is_trained_on_the_scores_of_a_static_encoder(kb, random_encoder, tmp_path):
    random_encoder().save_pretrained(tmp_path / "E")
    recipe = LinkerRecipe.load("linker-ranker", ["config.epochs=1"], encoder=str(tmp_path / "E"))
    examples = to_queries([("heart atack", "D4"), ("chest cancer", "D2"), ("T2DM", "D1")] * 3)
    data = LinkerTrainingData(kb=kb, train=examples, out=tmp_path / "RUN")
    made = finetune(recipe, data).made
    linker = Linker.open(made["kb"], made["index"], made["model"])
    assert [part.name for part in linker.search.generators] == ["lexical", "dense"]
    assert linker.link_mentions(["heart attack"])[0]
