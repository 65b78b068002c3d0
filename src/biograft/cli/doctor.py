"""``biograft doctor``: what is installed here, what is missing, and whether a store is whole."""

from __future__ import annotations

import importlib
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

import biograft
from biograft.cli.options import REJECTED, Json, OptionalKb, open_kb, print_json
from biograft.errors import BiograftError, ConfigError, visible

_REQUIREMENT = re.compile(
    r"^([\w.-]+)(?:\[([^\]]*)\])?[^;]*(?:;.*\bextra\s*==\s*['\"]([\w-]+)['\"])?"
)
_UNLISTED = frozenset({"all", "dev", "docs"})
"""Extras that unite others, or are for work on biograft."""
_MIB = 1 << 20


_MODULES = {"pyyaml": "yaml"}
"""Modules that are not called as their packages are."""


def _required(package: str, problems: list[str]) -> str:
    """Return the version of a package that has to be here."""
    try:
        importlib.import_module(_MODULES.get(package, package))
    except ImportError as error:
        problems.append(f"{package} cannot be imported ({error}); install biograft again")
    return _version(package) or "missing"


def _gpu(problems: list[str]) -> dict[str, Any]:
    if not _version("torch"):
        return {"GPU": "unknown without torch"}
    try:
        import torch

        found = torch.cuda.is_available()
        names = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
        bf16 = found and torch.cuda.is_bf16_supported(including_emulation=False)
    except (ImportError, OSError, RuntimeError) as error:
        problems.append(f"torch is installed and cannot be used ({error})")
        return {"GPU": "unknown"}
    return {"GPU": ", ".join(names) if found else "none", "GPU has bfloat16": bool(bf16)}


def _folders(problems: list[str]) -> dict[str, Any]:
    from biograft.compute import cache_folder

    cache = cache_folder()
    if cache is None:
        problems.append(
            "no folder for compiled loops can be written, so every process compiles them anew; "
            "set NUMBA_CACHE_DIR to a folder of your own"
        )
    data = os.environ.get("BIOGRAFT_DATA")
    if data and not Path(data).is_dir():
        problems.append(f"BIOGRAFT_DATA: {data} is no folder; change or unset it")
    return {
        "compiled loops": str(cache) if cache else "none",
        "temporary files": _temporary_files(),
        "public files for tests and papers (BIOGRAFT_DATA)": data or "not set",
        "all else": "only where an output option (-o) says",
    }


def _store(folder: Path, problems: list[str]) -> tuple[dict[str, Any], Any]:

    try:
        base = open_kb(folder)
        base.verify()
    except BiograftError as error:
        problems.append(str(error))
        return {"folder": str(folder), "state": "cannot be used"}, None
    return {
        **_described(folder, base.manifest),
        "concepts": len(base),
        "names": base.n_names,
        "relations": base.n_relations,
        "state": "every file is as it was built",
    }, base


def _index(folder: Path, base: Any, problems: list[str]) -> dict[str, Any]:
    from biograft.linking.index import INDEX, open_index

    found: dict[str, Any] = {"folder": str(folder)}
    try:
        manifest = INDEX.read(folder)
        found = _described(folder, manifest)
        if base is None:
            return {**found, "state": "not opened, as its knowledge base cannot be used"}
        open_index(base, folder)
    except BiograftError as error:
        problems.append(str(error))
        return {**found, "state": "cannot be used"}
    return {**found, "parts": " and ".join(manifest["parts"]), "state": "opens"}


def _processor() -> dict[str, Any]:
    from biograft.compute import describe_machine

    machine = describe_machine()
    threads = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    return {
        "processor": machine["processor"],
        "cores": machine["n_cores"],
        "vector instructions": ", ".join(machine["instructions"]) or "none known",
        "processor has bfloat16": machine["bf16"],
        "threads": ", ".join(f"{k}={v}" for k, v in threads.items() if v) or "one for each core",
    }


def _version(package: str) -> str:
    """Return the version of an installed package; empty if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _declared() -> list[re.Match[str]]:
    """Return what biograft asks for: package, its extras, and the extra of biograft it is for."""
    try:
        lines = metadata.requires("biograft") or []
    except metadata.PackageNotFoundError:  # code that is on the path without being installed
        lines = []
    return [match for match in map(_REQUIREMENT.match, lines) if match]


def _requirements(extra: str) -> Iterator[str]:
    """Yield the packages of an extra, or of the core; those of extras within it, too."""
    for match in _declared():
        if (match[3] or "") != extra:
            continue
        if match[1] == "biograft":
            for inner in match[2].split(","):
                yield from _requirements(inner.strip())
        else:
            yield match[1]


def _extras() -> Iterator[tuple[str, str]]:
    """Yield each extra with the versions of its packages, or the line that installs it."""
    for name in sorted({match[3] for match in _declared() if match[3]} - _UNLISTED):
        versions = {package: _version(package) for package in dict.fromkeys(_requirements(name))}
        if all(versions.values()):
            yield name, ", ".join(f"{package} {found}" for package, found in versions.items())
        else:
            missing = ", ".join(package for package, found in versions.items() if not found)
            yield name, f"not installed ({missing}); pip install 'biograft[{name}]'"


def _temporary_files() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "none"


def _described(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Say what a folder is, by its manifest."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "folder": str(folder),
        "format": f"{manifest['format']} {manifest['version']}",
        "made by": manifest.get("made_by", "unknown"),
        "made at": manifest.get("made_at", "unknown"),
        "MiB on disk": round(size / _MIB, 1),
    }


def doctor(
    kb: OptionalKb = None,
    index: Annotated[Path | None, "INDEX"] = None,
    as_json: Json = False,
) -> None:
    """Check the installation: packages, versions, cache folders.

    With --kb, and --index, it also opens them and compares every file of the knowledge base with
    its hash. The exit status is 1 if anything is wrong; a missing extra is not. Nothing is sent.

    Args:
        index: Index of --kb to examine.
    """
    if index is not None and kb is None:
        raise ConfigError("--index: needs the knowledge base that it was made from; give --kb")
    problems: list[str] = []
    sections: dict[str, dict[str, Any]] = {
        "biograft": {
            "version": biograft.__version__,
            "installed in": str(Path(biograft.__file__).parent),
            "Python": f"{platform.python_version()} ({platform.system()} {platform.machine()})",
        },
        "machine": {**_processor(), **_gpu(problems)},
        "core": {name: _required(name, problems) for name in _requirements("")},
        "extras": dict(_extras()),
        "folders": _folders(problems),
    }
    if kb is not None:
        sections["knowledge base"], opened = _store(kb, problems)
        if index is not None:
            sections["index"] = _index(index, opened, problems)
    if as_json:
        print_json({**sections, "problems": problems})
    else:
        _print(sections, problems)
    if problems:
        raise typer.Exit(REJECTED)


def _print(sections: Mapping[str, Mapping[str, Any]], problems: Sequence[str]) -> None:
    for title, entries in sections.items():
        typer.echo(title)
        width = max(map(len, entries), default=0)
        for name, value in entries.items():
            shown = ("no", "yes")[value] if isinstance(value, bool) else value
            typer.echo(visible(f"  {name:{width}}  {shown}"))
    for problem in problems:
        typer.echo(visible(f"problem: {problem}"), err=True)
    if not problems:
        typer.echo("no problem found")
