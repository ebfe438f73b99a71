"""Which addresses are public, and which IPv4 addresses are embedded in an IPv6 address.

The tables are our own: Python's `is_global` changes between releases and never knew site-local or unallocated IPv6. An
address that is not known to be assigned on the Internet is not public.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

# Where clouds hand credentials to every program that asks.
METADATA = frozenset(
    map(
        ip_address,
        (
            *("169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe"),  # all; AWS, Google, OpenStack
            *("169.254.170.2", "169.254.170.23", "fd00:ec2::23"),  # AWS: ECS, EKS
            *("168.63.129.16", "100.100.100.200", "169.254.0.23"),  # Azure's wire server, Alibaba, Tencent
            *("192.0.0.192", "fd00:c1::a9fe:a9fe", "169.254.42.42", "fd00:42::42"),  # Oracle, Scaleway
        ),
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_NAT64_LOCAL = ip_network("64:ff9b:1::/48")
# IANA's special-purpose registry for IPv4, and multicast; without the few anycast addresses in 192.0.0.0/24.
_SPECIAL_4 = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
            *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        ),
    )
)
# All IPv6 addresses that are assigned, and among them protocols such as Teredo, documentation and 6to4.
_GLOBAL_6 = ip_network("2000::/3")
_SPECIAL_6 = tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


def is_public(address: Address) -> bool:
    """Whether an address is assigned on the Internet. A NAT64 address is public if the one inside is: in a network
    without IPv4, all of IPv4 looks like that."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address in _NAT64:
        return all(is_public(inner) for inner in embedded(address))
    return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)


def embedded(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses in an IPv6 one: mapped, compatible, translated, 6to4, Teredo, NAT64, ISATAP."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    # Mapped (::ffff:a.b.c.d), translated (::ffff:0:a.b.c.d), compatible (::a.b.c.d, but :: and ::1 are themselves).
    if number >> 32 in (0xFFFF, 0xFFFF_0000) or (number >> 32 == 0 and number > 1):
        yield _at(number, 0)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _NAT64:
        yield _at(number, 0)
    if address in _NAT64_LOCAL:
        # RFC 6052 has a layout for each length of the prefix: /96, /64, /56, /48. Bits 64 to 71 are left out.
        yield _at(number, 0)
        yield _at(number, 24)
        yield IPv4Address(((number >> 64) & 0xFF) << 24 | ((number >> 32) & 0xFF_FFFF))
        yield IPv4Address(((number >> 64) & 0xFFFF) << 16 | ((number >> 40) & 0xFFFF))
    if (number >> 32) & 0xFDFF_FFFF == 0x5EFE:
        yield _at(number, 0)


def _at(number: int, shift: int) -> IPv4Address:
    return IPv4Address((number >> shift) & 0xFFFF_FFFF)
