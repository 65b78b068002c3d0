"""Addresses of machines: which are this one, and which names a service is asked by."""

from __future__ import annotations

import ipaddress
import re

_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/?#@\[\]\\]+?)\.?(?::[0-9]*)?")
"""A host, which may be an IPv6 address in brackets, and a port: nothing else."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, as its own network sees it.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("192.168.0.1")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str:
    """Return the host of ``host:port``, as in a ``Host`` header, in lower case; "" if unreadable.

    >>> host_of("Localhost:8080"), host_of("[::1]:8080"), host_of("example.org@localhost")
    ('localhost', '::1', '')
    """
    match = _AUTHORITY.fullmatch(authority)
    return match[1].strip("[]").lower() if match else ""


def is_address(host: str) -> bool:
    """Whether a host is an IP address, not a name that a DNS server resolves.

    >>> is_address("192.168.0.1"), is_address("example.org")
    (True, False)
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
