"""Memory and speed of a trie of names, and the cost of constrained decoding.

Three questions, each answered in one run on the same names (random tokens of a Zipf distribution,
five to ten and an end) and the same weights (a random BART of 2 + 2 layers, 256 wide):

* look-ups: building, memory, and what may follow 160 hypotheses of a step, against the nested
  dictionaries that GenBioEL's published code uses; ``mask_ratio`` is over all steps of a decode
  but the first, at which the published way lists every first token 160 times;
* step: from log-probabilities to the chosen continuations, against the callback and mask of
  transformers' ``prefix_allowed_tokens_fn``, the median over depths, the first left out too;
* generation: mentions per second against transformers' ``generate`` without any constraint, for as
  many tokens, and against the published way (one mention at a time, no cache, callback), whose
  answers must be the same.

    python benchmarks/trie.py --quick --json     108 thousand names, under a minute
    python benchmarks/trie.py --json >benchmarks/results/trie.json     and 900 thousand
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_command, describe_commit
from published_generation import allowed, generate_name, nest
from script_options import run_with, start_parser
from timing import interleave
from transformers import BartConfig, BartForConditionalGeneration
from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor

from biograft.compute import describe_machine
from biograft.models.generation import BeamConfig, GenerationInputs, generate_names
from biograft.models.generation.beam_search import (
    FinishedNames,
    Hypotheses,
    best_continuations,
    select_hypotheses,
)
from biograft.text.trie import FlatTrie

N_TOKENS, N_SPECIAL, START, END = 50_265, 4, 2, 2
MENTIONS, BEAMS = 32, 5
SOURCE, PROMPT = 48, 4
SEED = 0


def run(options: argparse.Namespace) -> None:
    """Measure and print the result."""
    sizes = {}
    for n in (108_000,) if options.quick else (108_000, 900_000):
        print(f"{n:,} names", file=sys.stderr)
        sizes[str(n)] = _measure(n, quick=options.quick)
    last = sizes[str(max(map(int, sizes)))]
    result = {
        "benchmark": "trie",
        "command": describe_command("trie.py", sys.argv[1:]),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "mentions": MENTIONS,
        "beams": BEAMS,
        "sizes": sizes,
        **{key: last[key] for key in ("memory_ratio", "mask_ratio", "step_ratio")},
        "constrained_over_unconstrained": last["constrained_over_unconstrained"],
        "over_published": last["over_published"],
        "same_answers": last["same_answers"],
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=1))


def sample_names(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sample names as one row of tokens, each with its end, and where each ends."""
    rng = np.random.default_rng(SEED)
    lengths = rng.integers(5, 11, n)
    ends = np.cumsum(lengths + 1)
    probabilities = 1 / np.arange(1, N_TOKENS - N_SPECIAL + 1)
    tokens = np.full(ends[-1], END, np.int64)
    inner = np.ones(ends[-1], bool)
    inner[ends - 1] = False
    tokens[inner] = N_SPECIAL + rng.choice(
        N_TOKENS - N_SPECIAL, int(lengths.sum()), p=probabilities / probabilities.sum()
    )
    return tokens, ends


def split(tokens: np.ndarray, ends: np.ndarray) -> Iterator[list[int]]:
    """Return the names one by one."""
    start = 0
    for end in ends.tolist():
        yield tokens[start:end].tolist()
        start = end


def _measure(n: int, *, quick: bool) -> dict[str, Any]:
    dict_mib = _apart("--dictionaries", n)["mib"]
    tokens, ends = sample_names(n)
    (flat_s, (flat, _)), (dict_s, nested) = interleave(
        1, lambda: FlatTrie.build(tokens, ends), lambda: nest(split(tokens, ends))
    )
    prefixes = _prefixes(tokens, ends)
    return {
        "n_nodes": flat.n_nodes,
        "build_seconds": round(flat_s, 3),
        "dict_build_seconds": round(dict_s, 3),
        "mib": round(flat.nbytes / 2**20, 2),
        "dict_mib": round(dict_mib, 1),
        "memory_ratio": round(dict_mib / (flat.nbytes / 2**20), 1),
        **_look_ups(flat, nested, prefixes),
        **_steps(flat, nested, prefixes, n_runs=3 if quick else 7),
        **_generation(flat, nested, n_runs=1 if quick else 5, n_published=4 if quick else 32),
    }


def _apart(option: str, n: int) -> dict[str, Any]:
    """Measure in a process of its own, whose memory nothing else has touched."""
    command = [sys.executable, __file__, option, str(n)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def weigh_dictionaries(n: int) -> dict[str, float]:
    """Return the memory that nested dictionaries of the names take."""
    tokens, ends = sample_names(n)
    before = _resident_mib()
    trie = nest(split(tokens, ends))
    return {"mib": _resident_mib() - before, "n": len(trie)}


def _resident_mib() -> float:
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def _prefixes(tokens: np.ndarray, ends: np.ndarray) -> list[list[list[int]]]:
    """Return the prefixes of the hypotheses of each step, taken from some names."""
    rng = np.random.default_rng(SEED + 1)
    chosen = rng.choice(len(ends), MENTIONS * BEAMS, replace=False)
    names = [tokens[ends[k - 1] if k else 0 : ends[k]].tolist() for k in chosen.tolist()]
    return [[name[: min(step, len(name) - 1)] for name in names] for step in range(8)]


def _nodes(flat: FlatTrie, prefixes: list[list[int]]) -> np.ndarray:
    nodes = []
    for prefix in prefixes:
        node = flat.root
        for token in prefix:
            node = flat.child(node, token)
        nodes.append(node)
    return np.array(nodes, np.int64)


def _look_ups(flat: FlatTrie, nested: Any, steps: list[list[list[int]]]) -> dict[str, Any]:
    """Time what may follow all hypotheses of a step, at each depth."""
    rows = []
    for prefixes in steps:
        nodes = _nodes(flat, prefixes)
        ours = _per_call(partial(flat.children, nodes))
        theirs = _per_call(partial(_walk_all, nested, prefixes))
        rows.append({"us": round(ours * 1e6, 2), "dict_us": round(theirs * 1e6, 1)})
    first, last = flat.children(_nodes(flat, steps[2]))
    same = [
        sorted(allowed(nested, prefix)) == flat.tokens[start:stop].tolist()
        for prefix, start, stop in zip(steps[2], first, last, strict=True)
    ]
    if not all(same):
        raise SystemExit("the tries do not agree")
    return {
        "look_ups_by_step": rows,
        "mask_ratio": _of_sums(rows[1:]),
        "mask_ratio_with_first": _of_sums(rows),
        "mask_ratio_median": round(statistics.median(r["dict_us"] / r["us"] for r in rows), 1),
    }


def _walk_all(nested: Any, prefixes: list[list[int]]) -> list[list[int]]:
    return [allowed(nested, prefix) for prefix in prefixes]


def _of_sums(rows: list[dict[str, float]]) -> float:
    """Compare the look-ups of a whole decode."""
    return round(sum(row["dict_us"] for row in rows) / sum(row["us"] for row in rows), 1)


def _per_call(call: Callable[[], Any], min_seconds: float = 0.05) -> float:
    """Return the median time of a call over five rounds."""
    n, seconds = 1, 0.0
    while seconds < min_seconds / 5:
        start = time.perf_counter()
        for _ in range(n):
            call()
        seconds = time.perf_counter() - start
        n *= 2
    n = max(1, n // 2)
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(n):
            call()
        rounds.append((time.perf_counter() - start) / n)
    return statistics.median(rounds)


def _steps(flat: FlatTrie, nested: Any, steps: Any, n_runs: int) -> dict[str, Any]:
    """Time a step from log-probabilities to chosen continuations, and what makes these.

    Ours shares probability among what may follow, so that it takes the scores as they are.
    """
    torch.manual_seed(SEED)
    scores = torch.randn(MENTIONS * BEAMS, N_TOKENS) * 3
    mentions = np.repeat(np.arange(MENTIONS), BEAMS)
    zeros, rows = np.zeros(MENTIONS * BEAMS), []
    for prefixes in steps[:6]:
        live = Hypotheses(mentions, _nodes(flat, prefixes), zeros, zeros.astype(np.int64))
        sequences = torch.tensor([[START, *prefix] for prefix in prefixes])
        processor = PrefixConstrainedLogitsProcessor(
            lambda _, prefix: allowed(nested, prefix.tolist()[1:]) or [END], BEAMS
        )

        def ours(live: Hypotheses = live, *, renormalise: bool = True) -> Any:
            config = BeamConfig(beams=BEAMS, renormalise=renormalise)
            continuations = best_continuations(scores, flat, live.nodes, config)
            return select_hypotheses(
                live, continuations, flat, FinishedNames(MENTIONS, config), config
            )

        def theirs(sequences: Any = sequences, processor: Any = processor) -> Any:
            return processor(sequences, scores).view(MENTIONS, -1).topk(2 * BEAMS)

        timed = interleave(
            n_runs, ours, theirs, partial(ours, renormalise=False), partial(scores.log_softmax, -1)
        )
        ms = [round(each.seconds * 1e3, 3) for each in timed]
        rows.append(dict(zip(("ms", "callback_ms", "with_norm_ms", "norm_ms"), ms, strict=True)))
    begun = rows[1:]
    return {
        "steps": rows,
        "step_ratio": round(statistics.median(row["callback_ms"] / row["ms"] for row in begun), 1),
        "step_ratio_with_norm": round(
            statistics.median(
                (row["callback_ms"] + row["norm_ms"]) / row["with_norm_ms"] for row in begun
            ),
            1,
        ),
    }


def _generation(flat: FlatTrie, nested: Any, n_runs: int, n_published: int) -> dict[str, Any]:
    """Time whole mentions, in turn."""
    model = _model()
    rng = np.random.default_rng(SEED + 2)
    sources = torch.from_numpy(rng.integers(N_SPECIAL, N_TOKENS, (MENTIONS, SOURCE)))
    mask = torch.ones_like(sources)
    prompts = rng.integers(N_SPECIAL, N_TOKENS, (MENTIONS, PROMPT)).tolist()
    begun = torch.tensor([[START, *prompt] for prompt in prompts])
    counted = _Counted(model)

    def ours(published: bool = False) -> Any:
        config = BeamConfig(beams=BEAMS, published=published)
        return generate_names(
            counted, GenerationInputs(sources, mask, begun.tolist()), flat, config=config
        )

    ours()
    n_steps = counted.n_calls

    def free() -> Any:
        return model.generate(
            input_ids=sources,
            attention_mask=mask,
            decoder_input_ids=begun,
            num_beams=BEAMS,
            num_return_sequences=BEAMS,
            min_new_tokens=n_steps,
            max_new_tokens=n_steps,
            do_sample=False,
        )

    constrained, unconstrained = interleave(n_runs, ours, free)

    def published() -> Any:
        return [
            generate_name(
                model, sources[row : row + 1], [START, *prompts[row]], nested, end=END, beams=BEAMS
            )
            for row in range(n_published)
        ]

    (slow,) = interleave(1, published)
    as_published = ours(True)
    rows = [[_row(flat, tokens) for _, tokens in names] for names in slow.result]
    same = all(
        own == row[row >= 0].tolist()
        for own, row in zip(rows, as_published.sequences[:n_published], strict=True)
    )
    rate, slow_rate = MENTIONS / constrained.seconds, n_published / slow.seconds
    return {
        "n_steps": n_steps,
        "mentions_per_second": round(rate, 1),
        "unconstrained_mentions_per_second": round(MENTIONS / unconstrained.seconds, 1),
        "published_mentions_per_second": round(slow_rate, 2),
        "constrained_over_unconstrained": round(constrained.seconds / unconstrained.seconds, 3),
        "over_published": round(rate / slow_rate, 1),
        "same_answers": same,
    }


class _Counted:
    """A model that counts how often its decoder is run."""

    def __init__(self, model: Any) -> None:
        self._model, self.n_calls = model, 0

    def __call__(self, **given: Any) -> Any:
        self.n_calls += 1
        return self._model(**given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def _row(flat: FlatTrie, tokens: list[int]) -> int:
    node = flat.root
    for token in tokens:
        node = flat.child(node, token)
    return int(flat.sequence_of(np.array([node]))[0])


def _model() -> Any:
    torch.manual_seed(SEED)
    config = BartConfig(
        vocab_size=N_TOKENS,
        d_model=256,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        max_position_embeddings=256,
        init_std=0.2,
        forced_eos_token_id=None,
        eos_token_id=END,
        bos_token_id=0,
        decoder_start_token_id=START,
    )
    model: Any = BartForConditionalGeneration(config)
    return model.eval()


def main() -> None:
    """Read the command line and run."""
    parser = start_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="108 thousand names only")
    parser.add_argument("--json", action="store_true", help="one line")
    parser.add_argument("--dictionaries", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dictionaries:
        print(json.dumps(weigh_dictionaries(options.dictionaries)))
        return
    run_with(run, options)


if __name__ == "__main__":
    main()
