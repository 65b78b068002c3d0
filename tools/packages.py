"""Lists of the packages that biograft needs: versions, licences, and a bill of materials.

    python tools/packages.py constraints    write constraints.txt: the versions of this environment
    python tools/packages.py licences       write docs/licences.md
    python tools/packages.py sbom           write sbom.json (CycloneDX) of the core and the service

The first two read pyproject.toml and what is installed where they run, so run them in the
environment that made the published results. The last installs into an empty environment by uv.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_CLASSIFIER = "License :: OSI Approved :: "
_SHORT = 60
_SBOM_EXTRA = "serve"
LAB = "the laboratory"
_MANY = frozenset({"all", "dev", "docs", LAB})
"""Groups that are named only where a package comes with no other."""
_KNOWN = {"BSD": "BSD", "MIT": "MIT", "Apache": "Apache-2.0", "MPL": "MPL-2.0"}
"""How the text of a licence begins, where a package states nothing shorter."""


def declared() -> dict[str, list[Requirement]]:
    """Return what pyproject.toml asks for, by extra, and the lab; the core is an empty name."""
    project, lab = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in ("", "lab")
    )
    extras = project["optional-dependencies"]
    groups = {"": project["dependencies"], **extras, LAB: lab["dependencies"]}
    return {name: [Requirement(line) for line in lines] for name, lines in groups.items()}


def needed(groups: dict[str, list[Requirement]], group: str) -> Iterator[Requirement]:
    """Yield the requirements of a group, and of the groups within it."""
    for requirement in groups[group]:
        if canonicalize_name(requirement.name) == "biograft":
            for inner in sorted(requirement.extras):
                yield from needed(groups, inner)
        elif requirement.marker is None or requirement.marker.evaluate():
            yield requirement


def closure(requirements: list[Requirement]) -> dict[str, metadata.Distribution]:
    """Return the packages that are installed for some requirements, by name."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    queue = list(requirements)
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found[name] = package
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for line in package.requires or ():
                inner = Requirement(line)
                if inner.marker is None or inner.marker.evaluate({"extra": extra}):
                    queue.append(inner)
    return dict(sorted(found.items()))


def licence(package: metadata.Distribution) -> str:
    """Return the licence that a package states of itself, in short."""
    fields: Any = package.metadata
    stated = fields.get("License-Expression") or fields.get("License") or ""
    classified = [c for c in fields.get_all("Classifier") or () if c.startswith("License :: ")]
    names = [c.removeprefix(_CLASSIFIER).removeprefix("License :: ") for c in classified]
    if fields.get("License-Expression") or (
        stated and len(stated) <= _SHORT and "\n" not in stated
    ):
        return stated.strip()
    if names:
        return ", ".join(names)
    return next((short for start, short in _KNOWN.items() if start in stated[:200]), "see package")


def write_constraints() -> None:
    """Write the versions of all packages of this environment that biograft may use."""
    groups = declared()
    found = closure([each for group in groups for each in needed(groups, group)])
    lines = [f"{name}=={package.version.partition('+')[0]}" for name, package in found.items()]
    head = [
        "# The versions on which the tests run; published results have these, or earlier ones.",
        "# Written by tools/packages.py (`make constraints`), for pip install -c constraints.txt",
    ]
    text = "\n".join([*head, *lines]) + "\n"
    (ROOT / "constraints.txt").write_text(text, encoding="utf-8")


def write_licences() -> None:
    """Write the page of the licences."""
    groups = declared()
    of_group = {group: set(closure([*needed(groups, group)])) for group in groups}
    found = closure([each for group in groups for each in needed(groups, group)])
    lines = [
        "<!-- Written by tools/packages.py (`make licences`); do not edit. -->",
        "",
        "# Licences of packages",
        "",
        "biograft is under Apache-2.0. These packages are installed with it, or with an extra,",
        "under the licences that they state of themselves. *Development* means that a package is",
        "needed for tests and documentation, not to run biograft. `make sbom` writes the bill of",
        "materials of the core and the service, `sbom.json`, in the form of CycloneDX.",
        "",
        "| package | version | licence | comes with |",
        "|---|---|---|---|",
    ]
    for name, package in found.items():
        users = [g or "core" for g, names in of_group.items() if name in names]
        with_core = "core" in users
        own = [] if with_core else [user for user in users if user not in _MANY]
        shown = "core" if with_core else ", ".join(own) or (LAB if LAB in users else "development")
        stated = re.sub(r"\s+", " ", licence(package)).replace("|", "\\|")
        lines.append(f"| {name} | {package.version} | {stated} | {shown} |")
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "licences.md").write_text(text, encoding="utf-8")


def write_sbom() -> None:
    """Write the bill of materials of an environment with the core and the service alone."""
    beside = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        own = environment / "bin" / "python"
        wanted = f"{ROOT}[{_SBOM_EXTRA}]"
        for command in (
            [beside / "uv", "venv", "--quiet", environment],
            [beside / "uv", "pip", "install", "--quiet", "--python", own, wanted],
            [
                *(beside / "cyclonedx-py", "environment", own, "--output-reproducible"),
                *("--pyproject", ROOT / "pyproject.toml", "-o", ROOT / "sbom.json"),
            ],
        ):
            subprocess.run([*map(str, command)], check=True)


JOBS = {"constraints": write_constraints, "licences": write_licences, "sbom": write_sbom}


def main() -> None:
    """Write what is asked for."""
    if len(sys.argv) != 2 or sys.argv[1] not in JOBS:
        sys.exit(f"usage: python tools/packages.py {'|'.join(JOBS)}")
    JOBS[sys.argv[1]]()


if __name__ == "__main__":
    main()
