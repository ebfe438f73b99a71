"""Where a connection may go (S2): every way to write an address one should not get to, and those one should."""

import asyncio
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from net.loopback import Names, Watch, ask, client_for
from turnout.core.errors import EgressRefused
from turnout.net.address import METADATA, embedded, is_public
from turnout.net.egress import Egress, Origin, origin_of

# Ways to write 127.0.0.1, 10.1.2.3, 192.168.1.1 and 169.254.169.254 without writing them.
DISGUISES = {
    "one number": """
        2130706433 0x7f000001 017700000001 0X7F000001 0x000000007f000001 00017700000001 167838211 0xa010203
        01200201003 0XA010203 0x000000000a010203 0001200201003 3232235777 0xc0a80101 030052000401 0XC0A80101
        0x00000000c0a80101 00030052000401 2852039166 0xa9fea9fe 025177524776 0XA9FEA9FE 0x00000000a9fea9fe
        00025177524776
    """,
    "octal": """
        0177.00.00.01 000177.0000.0000.0001 012.01.02.03 00012.0001.0002.0003 0300.0250.01.01
        000300.000250.0001.0001 0251.0376.0251.0376 000251.000376.000251.000376
    """,
    "hexadecimal": """
        0x7f.0x0.0x0.0x1 0X7F.0X0.0X0.0X1 0xa.0x1.0x2.0x3 0XA.0X1.0X2.0X3 0xc0.0xa8.0x1.0x1 0XC0.0XA8.0X1.0X1
        0xa9.0xfe.0xa9.0xfe 0XA9.0XFE.0XA9.0XFE
    """,
    "mixed": """
        0x7f.00.0.1 127.0x0.00.1 0xa.01.2.3 10.0x1.02.3 0xc0.0250.1.1 192.0xa8.01.1 0xa9.0376.169.254
        169.0xfe.0251.254
    """,
    "short": """
        127.1 127.0.1 0x7f.0x1 10.66051 10.1.515 0xa.0x10203 192.11010305 192.168.257 0xc0.0xa80101 169.16689662
        169.254.43518 0xa9.0xfea9fe
    """,
    "leading zeros": """
        127.000.000.001 0012.001.002.003 192.168.001.001 169.254.169.00254
    """,
    "dots": """
        127.0.0.1.. .127.0.0.1 10.1.2.3.. .10.1.2.3 192.168.1.1.. .192.168.1.1
        169.254.169.254.. .169.254.169.254
    """,
    "other digits and dots": """
        １２７．０．０．１ 127。0。0。1 127｡0｡0｡1 ①②⑦.0.0.① １０．１．２．３ 10。1。2。3 10｡1｡2｡3 ①0.①.②.③
        １９２．１６８．１．１ 192。168。1。1
        192｡168｡1｡1 ①⑨②.①⑥⑧.①.① １６９．２５４．１６９．２５４ 169。254。169。254 169｡254｡169｡254 ①⑥⑨.②⑤④.①⑥⑨.②⑤④
    """,
    "percent": """
        %31%32%37%2e%30%2e%30%2e%31 127%2e0%2e0%2e1 127.0.0.1%00.example.com 127.0.0.1%25lo
        %31%30%2e%31%2e%32%2e%33 10%2e1%2e2%2e3 10.1.2.3%00.example.com 10.1.2.3%25lo
        %31%39%32%2e%31%36%38%2e%31%2e%31 192%2e168%2e1%2e1 192.168.1.1%00.example.com 192.168.1.1%25lo
        %31%36%39%2e%32%35%34%2e%31%36%39%2e%32%35%34 169%2e254%2e169%2e254 169.254.169.254%00.example.com
        169.254.169.254%25lo
    """,
    "mapped": """
        ::ffff:127.0.0.1 ::FFFF:7f00:1 0:0:0:0:0:ffff:127.0.0.1 ::ffff:10.1.2.3 ::FFFF:a01:203
        0:0:0:0:0:ffff:10.1.2.3 ::ffff:192.168.1.1 ::FFFF:c0a8:101 0:0:0:0:0:ffff:192.168.1.1
        ::ffff:169.254.169.254 ::FFFF:a9fe:a9fe 0:0:0:0:0:ffff:169.254.169.254
    """,
    "translated": """
        ::ffff:0:127.0.0.1 ::ffff:0:10.1.2.3 ::ffff:0:192.168.1.1 ::ffff:0:169.254.169.254
    """,
    "compatible": """
        ::127.0.0.1 ::7f00:1 ::10.1.2.3 ::a01:203 ::192.168.1.1 ::c0a8:101 ::169.254.169.254 ::a9fe:a9fe
    """,
    "6to4": """
        2002:7f00:1:: 2002:7f00:1::1 2002:a01:203:: 2002:a01:203::1 2002:c0a8:101:: 2002:c0a8:101::1
        2002:a9fe:a9fe:: 2002:a9fe:a9fe::1
    """,
    "NAT64": """
        64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.1.2.3 64:ff9b::a01:203 64:ff9b::192.168.1.1
        64:ff9b::c0a8:101 64:ff9b::169.254.169.254 64:ff9b::a9fe:a9fe
    """,
    "NAT64, local": """
        64:ff9b:1::7f00:1 64:ff9b:1:0:7f:0:100:0 64:ff9b:1:7f:0:1:: 64:ff9b:1:7f00:0:100:: 64:ff9b:1::a01:203
        64:ff9b:1:0:a:102:300:0 64:ff9b:1:a:1:203:: 64:ff9b:1:a01:2:300:: 64:ff9b:1::c0a8:101
        64:ff9b:1:0:c0:a801:100:0 64:ff9b:1:c0:a8:101:: 64:ff9b:1:c0a8:1:100:: 64:ff9b:1::a9fe:a9fe
        64:ff9b:1:0:a9:fea9:fe00:0 64:ff9b:1:a9:fe:a9fe:: 64:ff9b:1:a9fe:a9:fe00::
    """,
    "ISATAP": """
        2606:4700::5efe:127.0.0.1 2606:4700::200:5efe:127.0.0.1 fe80::5efe:127.0.0.1 2606:4700::5efe:10.1.2.3
        2606:4700::200:5efe:10.1.2.3 fe80::5efe:10.1.2.3 2606:4700::5efe:192.168.1.1
        2606:4700::200:5efe:192.168.1.1 fe80::5efe:192.168.1.1 2606:4700::5efe:169.254.169.254
        2606:4700::200:5efe:169.254.169.254 fe80::5efe:169.254.169.254
    """,
    "Teredo": """
        2001:0:808:808::80ff:fffe 2001:0:7f00:1:0:0:f7f7:f7f7 2001:0:808:808::f5fe:fdfc
        2001:0:a01:203:0:0:f7f7:f7f7 2001:0:808:808::3f57:fefe 2001:0:c0a8:101:0:0:f7f7:f7f7
        2001:0:808:808::5601:5601 2001:0:a9fe:a9fe:0:0:f7f7:f7f7
    """,
    "zone": """
        ::ffff:127.0.0.1%1 ::ffff:10.1.2.3%1 ::ffff:192.168.1.1%1 ::ffff:169.254.169.254%1
    """,
}
DISGUISED = [spelling for spellings in DISGUISES.values() for spelling in spellings.split()]

ADDRESSES = {
    "private": """
        0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.0.0.0 127.1.2.3
        127.255.255.255 169.254.0.0 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.255 192.0.2.1
        192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.1 203.0.113.255 224.0.0.1
        239.255.255.255 240.0.0.0 255.255.255.255
        :: ::1 100::1 fc00:: fd12:3456:789a::1 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fe80::1 febf::1 fec0::1 feff::1
        ff02::1 ff0e::1 2001::1 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8::1 2002::1
        3fff::1 3fff:fff::1 4000::1 5f00::1 8000::1 1::1 200::1 64:ff9b:1::1 64:ff9b:2::1 1fff:ffff::1
    """,
    "public": """
        1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
        168.63.129.15 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0
        192.88.98.1 192.88.100.1 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.1 203.0.112.255
        203.0.114.0 223.255.255.255
        2000::1 2001:200::1 2001:4860:4860::8888 2001:db7::1 2001:db9::1 2003::1 2606:4700:4700::1111
        2a00:1450:4001::200e 3ffe::1 3fff:1000::1 64:ff9b::808:808 2606:4700::5efe:808:808
    """,
}
PRIVATE, PUBLIC = ADDRESSES["private"].split(), ADDRESSES["public"].split()


def refused(origin: Origin, *, by: Egress | None = None) -> str:
    with pytest.raises(EgressRefused) as raised:
        (by or Egress(frozenset((origin,)))).allows(origin)
    return str(raised.value)


class TestDisguises:
    def test_there_are_enough_and_none_twice(self) -> None:
        assert len(DISGUISED) == len(set(DISGUISED)) >= 150

    @pytest.mark.parametrize("host", DISGUISED)
    def test_no_connection_is_made(self, host: str) -> None:
        refused(Origin("http", host, 80))
        refused(Origin("https", host, 443, private=False))

    @pytest.mark.parametrize("host", DISGUISED)
    def test_not_even_if_it_stands_in_the_configuration(self, host: str) -> None:
        shown = f"[{host}]" if ":" in host else host
        for url in (f"http://{shown}/", f"https://{shown}:8443/v1", f"HTTP://{shown.upper()}", f"http://{shown}?x#y"):
            with pytest.raises(EgressRefused):
                origin_of(url)

    @pytest.mark.parametrize("host", DISGUISED)
    def test_whatever_a_resolver_makes_of_it(self, host: str, watch: Watch) -> None:
        """A name that is an alias of it: the system's own resolver says what it would lead to, and asks nobody."""
        watch.on = False
        try:
            found = socket.getaddrinfo(host, 80, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            return
        egress = Egress(frozenset((Origin("http", "llm.example", 80),)))
        for *_, address in found:
            with pytest.raises(EgressRefused):
                egress.admits("llm.example", 80, str(address[0]))

    @pytest.mark.parametrize("host", DISGUISED)
    def test_what_skips_the_resolver_has_been_checked(self, host: str) -> None:
        """The client goes straight to what it takes for an address: nothing it takes for one may count as a name."""
        for private in (True, False):
            origin = Origin("http", host, 80, private)
            try:
                Egress(frozenset((origin,))).allows(origin)
            except EgressRefused:
                continue
            assert private
            with suppress(ValueError):
                assert str(ip_address(host)) == host

    def test_end_to_end(self, watch: Watch) -> None:
        async def main() -> None:
            origins = [Origin("http", host, 80) for host in (*DISGUISED, *PRIVATE)]
            async with client_for(*origins) as client:
                for origin in origins:
                    with pytest.raises(EgressRefused):
                        await ask(client, origin)

        asyncio.run(main())
        assert watch.tried == []

    def test_end_to_end_behind_a_name(self, watch: Watch, names: Names) -> None:
        addresses = [*PRIVATE, *(host for host in DISGUISED if ":" in host and "%" not in host)]
        origins = {f"n{number}.example": address for number, address in enumerate(addresses)}

        async def main() -> None:
            async with client_for(*(Origin("http", name, 80) for name in origins)) as client:
                for name, address in origins.items():
                    # One good address does not redeem the other.
                    names.say(name, ["93.184.216.34", address])
                    with pytest.raises(EgressRefused, match=name):
                        await ask(client, Origin("http", name, 80))

        asyncio.run(main())
        assert watch.tried == []
        assert len(names.asked) == len(origins) > 100


class TestAddresses:
    @pytest.mark.parametrize("address", PRIVATE)
    def test_private(self, address: str) -> None:
        assert not is_public(ip_address(address))
        assert "private = true" in refused(Origin("http", address, 80))
        egress = Egress(
            frozenset((Origin("http", "llm.example", 80), Origin("http", "llm.internal", 80, private=True)))
        )
        with pytest.raises(EgressRefused):
            egress.admits("llm.example", 80, address)
        assert egress.admits("llm.internal", 80, address) == address

    @pytest.mark.parametrize("address", PUBLIC)
    def test_public(self, address: str) -> None:
        assert is_public(ip_address(address))
        origin = Origin("https", address, 443)
        assert Egress(frozenset((origin,))).allows(origin) == origin
        egress = Egress(frozenset((Origin("https", "llm.example", 443),)))
        assert egress.admits("llm.example", 443, address) == address
        shown = f"[{address}]" if ":" in address else address
        assert origin_of(f"https://{shown}/v1") == origin

    def test_a_zone_does_not_hide_an_address(self) -> None:
        egress = Egress(frozenset((Origin("http", "llm.example", 80), Origin("http", "x.example", 80, private=True))))
        for address in ("fe80::1%eth0", "::1%lo", "::ffff:10.0.0.1%1", "fe80::a9fe:a9fe%eth0"):
            assert "plain spelling" in refused(Origin("http", address, 80, private=True))
            with pytest.raises(EgressRefused):
                egress.admits("llm.example", 80, address)
        assert egress.admits("x.example", 80, "fe80::1%eth0") == "fe80::1%eth0"
        with pytest.raises(EgressRefused):
            egress.admits("x.example", 80, "fe80::a9fe:a9fe%eth0")

    @given(st.integers(0, 2**32 - 1).map(IPv4Address))
    def test_never_more_generous_than_python(self, address: IPv4Address) -> None:
        assert not is_public(address) or (address.is_global and not address.is_multicast)

    @given(st.integers(0, 2**128 - 1).map(IPv6Address))
    def test_nor_for_ipv6(self, address: IPv6Address) -> None:
        assert not is_public(address) or (address.is_global and not address.is_multicast)

    @given(st.integers(0, 2**128 - 1).map(IPv6Address))
    def test_what_is_embedded_can_be_listed_for_any_address(self, address: IPv6Address) -> None:
        assert all(isinstance(inner, IPv4Address) for inner in embedded(address))


def wrapped(address: IPv4Address) -> dict[str, str]:
    """Every form an IPv4 address takes inside an IPv6 one, built from its bytes."""
    a, b, c, d = address.packed
    one, two = f"{a:x}{b:02x}", f"{c:x}{d:02x}"
    other = IPv4Address(int(address) ^ 0xFFFF_FFFF).packed
    return {
        "mapped": f"::ffff:{one}:{two}",
        "translated": f"::ffff:0:{one}:{two}",
        "compatible": f"::{one}:{two}",
        "6to4": f"2002:{one}:{two}::1",
        "NAT64": f"64:ff9b::{one}:{two}",
        "NAT64 /48": f"64:ff9b:1:{one}:{c:x}:{d:x}00::",
        "NAT64 /56": f"64:ff9b:1:ab{a:02x}:{b:x}:{two}::",
        "NAT64 /64": f"64:ff9b:1:abcd:{a:x}:{b:x}{c:02x}:{d:x}00:0",
        "NAT64 /96": f"64:ff9b:1:abcd::{one}:{two}",
        "ISATAP": f"fe80::5efe:{one}:{two}",
        "ISATAP, global": f"2606:4700::200:5efe:{one}:{two}",
        "Teredo server": f"2001:0:{one}:{two}::1",
        "Teredo client": f"2001:0:808:808::{other[0]:x}{other[1]:02x}:{other[2]:x}{other[3]:02x}",
    }


HIDDEN = [
    pytest.param(str(IPv6Address(form)), id=f"{address} {how}")
    for address in sorted(METADATA, key=str)
    if isinstance(address, IPv4Address)
    for how, form in wrapped(address).items()
]


class TestMetadata:
    """For nobody, whatever the configuration says."""

    @pytest.mark.parametrize(
        "address", [*(pytest.param(str(address)) for address in sorted(METADATA, key=str)), *HIDDEN]
    )
    def test_never(self, address: str) -> None:
        assert "metadata" in refused(Origin("http", address, 80, private=True))
        egress = Egress(frozenset((Origin("http", "llm.internal", 80, private=True),)))
        with pytest.raises(EgressRefused, match="metadata"):
            egress.admits("llm.internal", 80, address)
        shown = f"[{address}]" if ":" in address else address
        with pytest.raises(EgressRefused, match="metadata"):
            origin_of(f"http://{shown}/latest/meta-data", private=True)
        with pytest.raises(EgressRefused):
            origin_of(f"http://{shown}/")

    @pytest.mark.parametrize("how", wrapped(IPv4Address(0)))
    def test_the_wrappings_are_what_they_say(self, how: str) -> None:
        """The same for an address that is no cloud's: private because of what it is wrapped in, or what is inside."""
        origin = Origin("http", str(IPv6Address(wrapped(IPv4Address("10.1.2.3"))[how])), 80)
        assert IPv4Address("10.1.2.3") in list(embedded(IPv6Address(origin.host)))
        refused(origin)
        private = origin._replace(private=True)
        assert Egress(frozenset((private,))).allows(private)

    def test_behind_a_private_name(self, watch: Watch, names: Names) -> None:
        names.say("metadata.google.internal", ["169.254.169.254"])
        origin = Origin("http", "metadata.google.internal", 80, private=True)

        async def main() -> None:
            async with client_for(origin) as client:
                with pytest.raises(EgressRefused, match="never"):
                    await ask(client, origin, path="/computeMetadata/v1/")

        asyncio.run(main())
        assert watch.tried == []


class OriginCase(NamedTuple):
    url: str
    scheme: str
    host: str
    port: int
    private: bool = False


WRITTEN = [
    OriginCase("https://api.openai.com/v1", "https", "api.openai.com", 443),
    OriginCase("https://api.openai.com", "https", "api.openai.com", 443),
    OriginCase("HTTPS://API.OpenAI.com/v1", "https", "api.openai.com", 443),
    OriginCase("https://api.openai.com./v1", "https", "api.openai.com", 443),
    OriginCase("http://llm.example:8080", "http", "llm.example", 8080),
    OriginCase("https://llm.example:/v1", "https", "llm.example", 443),
    OriginCase("http://xn--bcher-kva.example", "http", "xn--bcher-kva.example", 80),
    OriginCase("http://my_host.example", "http", "my_host.example", 80),
    OriginCase("http://gpu-7:8000/v1", "http", "gpu-7", 8000),
    OriginCase("http://7b.example", "http", "7b.example", 80),
    OriginCase("http://localhost:11434", "http", "localhost", 11434, True),
    OriginCase("http://LOCALHOST", "http", "localhost", 80, True),
    OriginCase("http://llm.localhost", "http", "llm.localhost", 80, True),
    OriginCase("http://127.0.0.1:8000", "http", "127.0.0.1", 8000, True),
    OriginCase("http://127.0.0.1.:8000", "http", "127.0.0.1", 8000, True),
    OriginCase("http://0.0.0.0:8000", "http", "0.0.0.0", 8000, True),
    OriginCase("http://10.1.2.3", "http", "10.1.2.3", 80, True),
    OriginCase("http://172.16.0.9", "http", "172.16.0.9", 80, True),
    OriginCase("http://192.168.1.20:1234/v1", "http", "192.168.1.20", 1234, True),
    OriginCase("http://100.64.0.7", "http", "100.64.0.7", 80, True),
    OriginCase("http://[::1]:8000", "http", "::1", 8000, True),
    OriginCase("http://[0:0:0:0:0:0:0:1]", "http", "::1", 80, True),
    OriginCase("http://[FD12::0001]", "http", "fd12::1", 80, True),
    OriginCase("http://[fe80::1]", "http", "fe80::1", 80, True),
    OriginCase("https://[2606:4700:4700:0000::1111]", "https", "2606:4700:4700::1111", 443),
    OriginCase("https://1.1.1.1", "https", "1.1.1.1", 443),
]

NO_URL = [
    "",
    "/",
    "llm.example",
    "//llm.example",
    "llm.example:80",
    "http:",
    "http:/llm.example",
    "http://",
    "http:///v1",
    "http://:80",
    "http://?x",
    "http://#x",
    "http://.",
    "http://..",
    "http://.llm.example",
    "http://llm..example",
    "http://llm.example..",
    "ftp://llm.example",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "dict://127.0.0.1:11211/",
    "ldap://127.0.0.1",
    "ws://127.0.0.1",
    "wss://llm.example",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock",
    "data:text/plain,x",
    "javascript:alert(1)",
    "jar:http://llm.example!/",
    "httpx://llm.example",
    "http\u0000://llm.example",
    "http://llm.example:0",
    "http://llm.example:65536",
    "http://llm.example:-1",
    "http://llm.example:+80",
    "http://llm.example:8_0",
    "http://llm.example:80a",
    "http://llm.example:８０",
    "http://llm.example:80:80",
    "http://llm.example: 80",
    "http://user@llm.example",
    "http://user:secret@llm.example",
    "http://:secret@llm.example",
    "http://@llm.example",
    "http://:@llm.example",
    "http://llm.example@127.0.0.1",
    "http://127.0.0.1@llm.example",
    "http://llm.example:80@127.0.0.1:80",
    "http://llm.example\\@127.0.0.1",
    "http://llm.example\\.internal",
    "http:\\\\llm.example",
    " http://llm.example",
    "http://llm.example ",
    "http://llm .example",
    "http://llm.exa\nmple",
    "http://llm.exa\tmple",
    "http://llm.example\r\nx: y",
    "http://llm.example/\x7f",
    "\x01http://llm.example",
    "http://[::1",
    "http://::1",
    "http://::1]",
    "http://[::1]x",
    "http://[::g]",
    "http://[1.2.3.4]",
    "http://[llm.example]",
    "http://[v1.llm]",
    "http://[fe80::1%25eth0]",
    "http://[fe80::1%eth0]",
    "http://[::1%25lo]",
    "http://bücher.example",
    "http://ｌｏｃａｌｈｏｓｔ",
    "http://llm。example",
    "http://l\u00adlm.example",
    "http://llm.example\u2024com",
    "http://loca\u200blhost",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "http://llm.example%00",
    "http://llm%2eexample",
    "http://llm.example%2f@x",
    "http://256.256.256.256",
    "http://1.2.3.4.5",
    "http://1.2.3",
    "http://llm.1",
    "http://llm.0x1",
    "http://0x",
    "http://llm*.example",
    "http://llm,example",
    "http://llm;example",
    "http://llm!example",
    "http://(llm)",
    "http://" + "a" * 64 + ".example",
    "http://" + "a." * 127 + "example",
]


class TestConfiguration:
    @pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.url)
    def test_what_a_url_leads_to(self, case: OriginCase) -> None:
        origin = origin_of(case.url)
        assert origin == case[1:]
        assert origin_of(str(origin), private=origin.private) == origin
        assert Egress(frozenset((origin,))).allows(origin) == origin
        assert origin_of(case.url, private=True) == origin._replace(private=True)

    @pytest.mark.parametrize("url", NO_URL)
    def test_what_leads_nowhere(self, url: str) -> None:
        for private in (True, False):
            with pytest.raises(EgressRefused):
                origin_of(url, private=private)

    def test_a_credential_is_not_repeated_in_the_refusal(self) -> None:
        with pytest.raises(EgressRefused) as raised:
            origin_of("https://user:hunter2@llm.example")
        assert "hunter2" not in str(raised.value)

    @given(
        st.text(st.sampled_from("htps:/[]@.0123456789abfx%?#-_\\ \t１。ｌ"), max_size=40).map(
            lambda end: f"http://{end}"
        )
        | st.text(max_size=40).map(lambda end: f"https://{end}")
    )
    def test_whatever_is_written_everybody_reads_the_same(self, url: str) -> None:
        try:
            origin = origin_of(url, private=True)
        except EgressRefused:
            return
        read = urlsplit(f"{origin}/v1")
        assert (read.scheme, read.hostname, read.port) == origin[:3]
        with suppress(ValueError):
            assert str(ip_address(origin.host)) == origin.host


class TestOrigins:
    ORIGIN = Origin("https", "llm.example", 443)

    @pytest.mark.parametrize(
        "other",
        [
            Origin("http", "llm.example", 443),
            Origin("https", "llm.example", 444),
            Origin("http", "llm.example", 80),
            Origin("https", "www.llm.example", 443),
            Origin("https", "example", 443),
            Origin("https", "llm.example.", 443),
            Origin("https", "LLM.example", 443),
            Origin("https", "llm.example.evil.example", 443),
            Origin("https", "127.0.0.1", 443, private=True),
            Origin("https", "llm.example", 443, private=True)._replace(port=0),
        ],
        ids=str,
    )
    def test_only_those_in_the_configuration(self, other: Origin) -> None:
        assert "not in the configuration" in refused(other, by=Egress(frozenset((self.ORIGIN,))))
        refused(other, by=Egress())

    def test_a_caller_cannot_make_an_origin_private(self, watch: Watch, names: Names) -> None:
        names.say("llm.example", ["127.0.0.1"])
        claimed = self.ORIGIN._replace(private=True)
        assert Egress(frozenset((self.ORIGIN,))).allows(claimed) == self.ORIGIN

        async def main() -> None:
            async with client_for(self.ORIGIN) as client:
                with pytest.raises(EgressRefused):
                    await ask(client, claimed)

        asyncio.run(main())
        assert watch.tried == []

    def test_a_name_that_is_not_in_the_configuration_has_no_address(self) -> None:
        egress = Egress(frozenset((self.ORIGIN,)))
        for host, port in (("other.example", 443), ("llm.example", 80), ("LLM.example", 443), ("llm.example.", 443)):
            with pytest.raises(EgressRefused, match="not in the configuration"):
                egress.admits(host, port, "93.184.216.34")

    def test_one_that_is_listed_twice_is_private_if_it_is_once(self) -> None:
        for origins in (
            (self.ORIGIN, self.ORIGIN._replace(private=True)),
            (self.ORIGIN._replace(private=True), self.ORIGIN),
        ):
            egress = Egress(frozenset(origins))
            assert egress.allows(self.ORIGIN).private
            assert egress.admits("llm.example", 443, "10.0.0.1")

    def test_the_list_can_be_changed(self) -> None:
        egress = Egress(frozenset((self.ORIGIN,)))
        other = Origin("https", "other.example", 443)
        egress.allow(frozenset((other,)))
        assert egress.allows(other) == other
        refused(self.ORIGIN, by=egress)
        with pytest.raises(EgressRefused):
            egress.admits("llm.example", 443, "93.184.216.34")

    def test_every_metadata_address_is_written_plainly(self) -> None:
        assert all(not is_public(address) or address == IPv4Address("168.63.129.16") for address in METADATA)
        assert len(METADATA) == 14
        assert IPv4Address("169.254.169.254") in ip_network("169.254.0.0/16")
