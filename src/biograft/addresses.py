"""Addresses of machines: which are this one."""

from __future__ import annotations

import ipaddress


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
