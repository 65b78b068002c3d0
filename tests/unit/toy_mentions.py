"""Chinese entities with two names each, and texts that mention them."""

from __future__ import annotations

from pathlib import Path

from biograft.kb import BuildConfig, build_store
from biograft.kb.sources import SourceConfig

_ORGANS = "胃肺肝肾心脑骨眼耳鼻"


def write_toy_mentions(folder: Path) -> tuple[Path, Path]:
    """Write a store and a file of texts, one a line; return both."""
    kb, texts, triples = folder / "kb", folder / "texts.txt", folder / "names.tsv"
    lines = ["head\trelation\ttail\thead_type\ttail_type\n"]
    lines += [f"{organ}炎症\talias\t{organ}部发炎\tDisease\tDisease\n" for organ in _ORGANS]
    triples.write_text("".join(lines), encoding="utf-8")
    source = SourceConfig(path=triples, format="triples", language="zh", same_as=("alias",))
    build_store(BuildConfig(sources=(source,)), kb)
    said = [f"患者昨天因为{organ}炎症来医院看医生并且吃药。" for organ in _ORGANS]
    said += [f"请问医生得了{organ}部发炎以后应该如何治疗？" for organ in _ORGANS]
    texts.write_text("\n".join(said) + "\n", encoding="utf-8")
    return kb, texts
