"""Addresses of machines: which are this one, and which names a service is asked by."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


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
    """Return the host of ``host:port``, as in a ``Host`` header, in lower case; "" if it has none.

    >>> host_of("Localhost:8080"), host_of("[::1]:8080")
    ('localhost', '::1')
    """
    try:
        return (urlsplit(f"//{authority}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_address(host: str) -> bool:
    """Whether a host is an IP address, not a name that somebody's DNS server resolves.

    >>> is_address("192.168.0.1"), is_address("example.org")
    (True, False)
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
