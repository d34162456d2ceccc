"""The addresses to which a scan may send the requests of Kyverno's expressions.

The author of a policy chooses the URL, and a scan can often reach internal services. So the canonical form of an address is
checked after the look-up of the name and before the connection to that very address.

Source of truth: the special-purpose registries of IANA for IPv4 and IPv6, as `ipaddress` has them; RFC 3056 (6to4), 4291 (mapped
and compatible addresses), 4380 (Teredo), 6052 and 8215 (NAT64), 7915 (translated addresses); the manuals of the clouds.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from scanner.errors import UsageError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

OPTION: Final = "--allow-network-to"
_HOST: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*")
# They give a machine's credentials to every process on it. Most are in ranges that are rejected anyway.
_METADATA: Final = tuple(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",  # AWS, Google Cloud, Azure, Oracle, DigitalOcean and others
            "169.254.169.253",  # the resolver of AWS
            "169.254.170.2",  # tasks of AWS ECS
            "169.254.170.23",  # pods of AWS EKS
            "169.254.0.23",  # Tencent Cloud
            "168.63.129.16",  # the host of an Azure machine
            "100.100.100.200",  # Alibaba Cloud
            "192.0.0.192",  # Oracle Cloud, before
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
        ),
    )
)
# Addresses that stand for an IPv4 address in their last 32 bits, and are nothing else.
_SAME: Final = tuple(
    map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "::/96", "64:ff9b::/96", "64:ff9b:1::/48"))
)
# Ranges that `ipaddress` of Python 3.11 treats as global, but the current registries do not.
_NOT_PUBLIC: Final = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "fec0::/10", "3fff::/20", "5f00::/16")))
_LAST_32_BITS: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Destinations:
    """The values of --allow-network-to: ranges of addresses, and hosts with any address."""

    ranges: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    def find_refusal(self, host: str, address: Address) -> str:
        """The reason to send no request to a host at an address, or an empty string."""
        for form in list_forms(address):
            if never := _explain_never(form):
                return never
            if not _is_public(form) and not self._is_named(host, form):
                return f"which is {_name_range(form)}: name it with {OPTION} to allow it"
        return ""

    def _is_named(self, host: str, address: Address) -> bool:
        return host in self.hosts or any(address in allowed for allowed in self.ranges)


def parse_destinations(texts: Iterable[str]) -> Destinations:
    """Read the values of --allow-network-to: CIDR, address or host each. Raises UsageError."""
    ranges: list[Network] = []
    hosts: list[str] = []
    for text in texts:
        try:
            ranges.append(ipaddress.ip_network(text.strip("[]"), strict=False))
        except ValueError:
            hosts.append(_read_host(text))
    return Destinations(tuple(ranges), frozenset(hosts))


def canonicalize_host(host: str) -> str:
    """A host in the form for comparisons: in lower case, without brackets and without the dot of an absolute name."""
    return host.strip("[]").lower().rstrip(".")


def parse_address(text: str) -> Address | None:
    """The IP address in a text, or None for any other text."""
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def list_forms(address: Address) -> Iterator[Address]:
    """The canonical form of an address, and the addresses to which packets to it are forwarded."""
    if isinstance(address, ipaddress.IPv4Address):
        yield address
    elif any(address in same for same in _SAME) and int(address) > 1:  # :: and ::1 are themselves
        yield ipaddress.IPv4Address(int(address) & _LAST_32_BITS)
    else:
        yield address
        if address.sixtofour:
            yield address.sixtofour
        if address.teredo:
            yield from address.teredo


def _explain_never(address: Address) -> str:
    """The reason why no option allows an address, or an empty string."""
    if address in _METADATA:
        return "the metadata service of a cloud, to which a scan sends no request"
    if address.is_unspecified or address.is_multicast:
        return "which is not the address of a host"
    return ""


def _is_public(address: Address) -> bool:
    # The registry leaves 6to4 open, so releases of `ipaddress` differ: the IPv4 address, another form, decides.
    if isinstance(address, ipaddress.IPv6Address) and address.sixtofour:
        return True
    return address.is_global and not address.is_reserved and not any(address in part for part in _NOT_PUBLIC)


def _name_range(address: Address) -> str:
    if address.is_loopback:
        return "this machine"
    return "link-local" if address.is_link_local else "not public"


def _read_host(text: str) -> str:
    host = canonicalize_host(text)
    if not _HOST.fullmatch(host):
        raise UsageError(f"{OPTION} {text}: write a range (10.0.0.0/8), an address, or the name of a host without port")
    return host
