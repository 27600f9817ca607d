"""The addresses that a document may connect to.

A name is resolved, and all of its addresses must be allowed. Addresses are compared by value, regardless of
notation: `169.254.169.254`, `2852039166`, `0xa9fea9fe` and `::ffff:a9fe:a9fe` are the same.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        # Link-local addresses, and metadata services of clouds at other addresses.
        ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128", "100.100.100.200/32",
         "192.0.0.192/32", "168.63.129.16/32"),
    )
)  # fmt: skip

NAT64 = ipaddress.ip_network("64:ff9b::/96")

Resolver = Callable[[str], Sequence[str]]
"""Returns the addresses of a host."""


def resolved(host: str) -> list[str]:
    """The addresses of a host, resolved by the system; empty if it can't be resolved."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True)
class Addresses:
    """The rules for addresses."""

    private: bool = True
    """Whether loopback and private addresses are allowed."""
    networks: tuple[Network, ...] = ()
    """Networks that are always allowed."""
    names: tuple[str, ...] = ()
    """Hosts that are allowed regardless of their addresses; `*.example` matches all hosts below `example`."""
    everywhere: bool = False
    resolver: Resolver = resolved

    def refused(self, host: str, *, resolve: bool) -> str | None:
        """The first address of a host that is not allowed; None if all are allowed, or none is known.

        Without `resolve`, names are not resolved: only literal addresses and `localhost` are checked.
        """
        if self.everywhere or self._named(host):
            return None
        return next((each for each in self._addresses(host, resolve=resolve) if not self._allows(each)), None)

    def checked(self, host: str) -> list[str] | str:
        """The addresses to connect to, or, as a string, an address that is not allowed."""
        if self.everywhere or self._named(host):
            return [host]
        found = self._addresses(host, resolve=True)
        bad = next((each for each in found if not self._allows(each)), None)
        return found if bad is None else bad

    def _named(self, host: str) -> bool:
        name = plain(host)
        return any(name == each or (each.startswith("*.") and name.endswith(each[1:])) for each in self.names)

    def _addresses(self, host: str, *, resolve: bool) -> list[str]:
        name = plain(host)
        if (literal := literal_of(name)) is not None:
            return [str(literal)]
        if resolve:
            return list(self.resolver(name))
        return ["127.0.0.1"] if name == "localhost" or name.endswith(".localhost") else []

    def _allows(self, address: str) -> bool:
        found = literal_of(address)
        return found is not None and all(self._permits(each) for each in _meanings(found))

    def _permits(self, address: IP) -> bool:
        if any(address in network for network in self.networks):
            return True
        if any(address in network for network in SPECIAL):
            return False
        return self.private or (address.is_global and not address.is_multicast)


def plain(host: str) -> str:
    """A host in normalized form: decoded, in lower case, without brackets and without the trailing dot."""
    return unicodedata.normalize("NFKC", unquote(host)).strip("[]").rstrip(".").lower()


def literal_of(host: str) -> IP | None:
    """The address that a text represents; None if it is a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    if not re.fullmatch(r"[0-9a-fx.]+", host) or not host[0].isdigit():
        return None
    try:  # a single number, or octal or hexadecimal notation
        return ipaddress.ip_address(socket.inet_aton(host))
    except OSError:
        return None


def _meanings(address: IP) -> Iterator[IP]:
    """The address itself, and the embedded IPv4 address that a gateway or the kernel would connect to."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return
    inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
    if address in NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    elif inner is None and int(address) >> 32 == 0 and int(address) > 1:  # ::a.b.c.d
        inner = ipaddress.IPv4Address(int(address))
    if inner is not None:
        yield inner
    if address.ipv4_mapped is None:
        yield address


def hosts_in(text: str) -> list[str]:
    """The hosts in a URL, in `host:port`, or in several of them separated by commas."""
    return [host for each in text.split(",") if (host := _host(each.strip()))]


def _host(text: str) -> str:
    text = urlsplit(text).netloc if "://" in text else text.partition("/")[0]
    text = text.rpartition("@")[2]
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text if text.count(":") > 1 else text.partition(":")[0]
