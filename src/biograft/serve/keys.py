"""API keys: a file of hashes with a role each; the keys themselves are kept nowhere.

A key is 32 random bytes, so that a plain SHA-256 of it cannot be searched.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from biograft.artifacts import new_file
from biograft.config import Choice, Config, check_fields, from_mapping, load_toml, to_toml
from biograft.errors import ConfigError, NotFoundError

ROLES = ("read", "review", "admin")
"""Roles of a key; each role includes those before it."""
_PREFIX = "bg_"


@dataclass(frozen=True, kw_only=True)
class ApiKey(Config):
    """The owner of a key, what the owner may do, and the hash of the key."""

    name: str
    """Name of the owner."""
    role: Annotated[str, Choice(*ROLES)]
    """Role of the owner, which determines the permitted routes."""
    sha256: str
    """SHA-256 of the key, in hexadecimal; the key itself is not stored."""

    def allows(self, role: str) -> bool:
        """Return whether the key allows what a role may do.

        Args:
            role: The role.
        """
        return ROLES.index(self.role) >= ROLES.index(role)


class KeyFile:
    """The keys of a service, in a TOML file of one table per owner.

    Args:
        path: The file.
        keys: Keys by owner.
    """

    def __init__(self, path: Path, keys: dict[str, ApiKey]) -> None:
        self.path, self.keys = path, keys
        self._by_hash = {key.sha256: key for key in keys.values()}

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False) -> KeyFile:
        """Read a file of keys; with ``create`` a missing file has no keys.

        Args:
            path: The file.
            create: Start without keys where the file is missing.
        """
        path = Path(path)
        if create and not path.exists():
            return cls(path, {})
        keys = {}
        for name, values in load_toml(path).items():
            if not isinstance(values, dict):
                raise ConfigError(f"{path}: {name}: expected a table with role and sha256")
            keys[name] = from_mapping(ApiKey, {"name": name, **values}, f"{path}: {name}.")
            check_fields(keys[name])
        return cls(path, keys)

    def find(self, key: str) -> ApiKey | None:
        """Return the owner of a key, or None.

        Args:
            key: The key.
        """
        return self._by_hash.get(_hash(key))

    def add(self, name: str, role: str) -> str:
        """Make a key for a user, write its hash into the file, and return the key.

        Args:
            name: Name of the user.
            role: The role.
        """
        if name in self.keys:
            raise ConfigError(f"{self.path}: {name!r} has a key; remove it first")
        key = _PREFIX + secrets.token_urlsafe(32)
        made = ApiKey(name=name, role=role, sha256=_hash(key))
        check_fields(made)
        self._write({**self.keys, name: made})
        return key

    def remove(self, name: str) -> None:
        """Take a key away; a service notices when it reads the file again.

        Args:
            name: Name of the user.
        """
        if name not in self.keys:
            raise NotFoundError(f"{self.path}: {name!r} has no key")
        self._write({key: value for key, value in self.keys.items() if key != name})

    def _write(self, keys: dict[str, ApiKey]) -> None:
        content = {name: {"role": key.role, "sha256": key.sha256} for name, key in keys.items()}
        with new_file(self.path, overwrite=True) as file:
            Path(file.name).chmod(0o600)  # before anything is in it, or under its name
            file.write((to_toml(content) + "\n").encode())
        self.keys = keys
        self._by_hash = {key.sha256: key for key in keys.values()}


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
