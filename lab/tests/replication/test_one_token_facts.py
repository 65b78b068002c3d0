"""Cloze queries of one token: which are asked, and what a model answers."""

from __future__ import annotations

import json

import pytest
from tiny_masked_lm import tiny_masked_lm_folder

from biograft.errors import InputError
from biograft.kb import BuildConfig, KnowledgeBase, build_store
from biograft.kb.sources import SourceConfig
from biograft.models.masked_lm import MaskedLanguageModel
from biograft_lab.replication import Experiment, ExperimentJob, run_experiment
from biograft_lab.replication.one_token_facts import one_token_queries

TABLE = (
    "id\tname\tparents\n1\tdisease\t\n2\tfever\t1\n3\tlung disease\t1\n4\thay fever\t2\n"
    "5\tq fever\t2\n"
)


@pytest.fixture
def kb(write, tmp_path):
    columns = {name: name for name in ("id", "name", "parents")}
    source = SourceConfig(path=write("kb.tsv", TABLE), format="table", columns=columns)
    build_store(BuildConfig(sources=(source,)), tmp_path / "kb")
    return KnowledgeBase.open(tmp_path / "kb")


TEXTS = ["disease fever lung hay q is a"]


def test_only_answers_of_one_token_are_asked_for(kb, tmp_path):
    model = MaskedLanguageModel.from_pretrained(tiny_masked_lm_folder(tmp_path / "m", TEXTS))
    asked = one_token_queries(kb, model, 10)
    by_prompt = dict(zip([q.prompt for q in asked.queries], asked.gold, strict=True))
    assert set(by_prompt) == {
        *("fever is a [MASK]", "lung disease is a [MASK]", "hay fever is a [MASK]"),
        *("q fever is a [MASK]", "[MASK] is a disease"),  # not "[MASK] is a fever"
    }
    row = asked.row([True] + 4 * [False], 5)
    assert (row["n"], row["recall@5"]) == (5, 20)
    named = dict(zip(by_prompt, row["parts"]["name in the query"], strict=True))
    assert [prompt for prompt, flag in named.items() if flag == "1"] == [
        prompt for prompt in by_prompt if prompt.startswith(("lung", "hay", "q"))
    ]
    assert sum(map(int, row["documents"].split())) == 5
    assert len(one_token_queries(kb, model, 2).queries) == 2
    other = MaskedLanguageModel.from_pretrained(tiny_masked_lm_folder(tmp_path / "o", ["none"]))
    with pytest.raises(InputError, match="one token"):
        one_token_queries(kb, other, 10)


def test_every_seed_of_every_arm_answers(kb, tmp_path):
    for seed in (1, 2):
        for arm in ("MLM-only", "KeBioLM"):
            folder = tmp_path / f"runs/seed-{seed}/pretrained/{arm}/encoder"
            tiny_masked_lm_folder(folder, TEXTS, seed=seed)
    job = ExperimentJob(
        experiment=Experiment.load("kebiolm-facts"),
        work=tmp_path,
        data=tmp_path,
        out=tmp_path / "out.json",
    )
    rows = json.loads(run_experiment(job).read_text("utf-8"))["rows"]
    arms = [(row["config"], row["seed"]) for row in rows]
    assert arms == [(arm, seed) for seed in (1, 2) for arm in ("MLM-only", "KeBioLM")]
    assert rows[0]["right"] == rows[1]["right"]  # the same weights
    assert {len(row["right"]) for row in rows} == {5}
