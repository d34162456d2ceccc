"""Concurrent readers of a server: sessions of an auditor, one request after the other without a pause.

A process of its own, so that it takes no time from the server's interpreter. It prints one line of JSON: seconds by kind of address.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import orjson

_PLACE: Final = re.compile(rb'href="(f/[0-9a-f-]+\.html)#')
_PROBLEM: Final = re.compile(rb'href="(problems/p-[0-9a-f]+\.html)"')
_POLICY: Final = re.compile(rb'href="(policies/[^"#]+\.html)"')
_AFTER: Final = re.compile(rb'href="(findings\.html\?[^"]*after=[^"]*)" rel="next"')
AT_A_DATE: Final = ", at a date"
"""The end of the kind of an address of an earlier scan."""


class Reader:
    """One reader with one connection."""

    def __init__(self, host: str, port: int, clusters: list[str], dates: list[str], earlier: float, seed: int) -> None:
        """`earlier` is the share of sessions about an earlier date."""
        self._host, self._port, self._earlier = host, port, earlier
        self._clusters, self._dates = clusters, dates
        self._dice = random.Random(seed)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failed: list[str] = []

    async def read(self, until: float) -> None:
        """Read until a moment of the clock."""
        self._streams = await asyncio.open_connection(self._host, self._port)
        while time.monotonic() < until:
            for kind, path in self._session():
                await self.get(kind, path)
                if time.monotonic() > until:
                    break
        self._streams[1].close()

    def _session(self) -> Iterator[tuple[str, str]]:
        """The addresses of a session: about one cluster, at one date."""
        dice = self._dice
        cluster = dice.choice(self._clusters)
        date = dice.choice(self._dates) if dice.random() < self._earlier else ""
        top = f"/clusters/{cluster}/{f'at/{date}' if date else 'latest'}"
        api = f"/api/v1/clusters/{cluster}"
        query = f"&at={date}" if date else ""
        severity, namespace = dice.choice(("critical", "high", "medium", "low")), f"team-{dice.randrange(20):02}"
        yield "clusters", "/"
        yield "summary", f"{top}/index.html"
        yield "findings", f"{top}/findings.html"
        yield "findings, filtered", f"{top}/findings.html?severity={severity}&namespace={namespace}&status=open"
        yield "findings, sorted", f"{top}/findings.html?sort=oldest&action=Deny"
        yield "findings, by word", f"{top}/findings.html?text=bill&status=open"
        for kind, pattern in (("finding", _PLACE), ("problem", _PROBLEM), ("findings, next page", _AFTER)):
            if found := pattern.findall(self._last_list):
                yield kind, f"{top}/{dice.choice(found).decode().replace('&amp;', '&')}"
        yield "policies", f"{top}/policies.html"
        yield "policy", f"{top}/policies/config-{dice.randrange(20):02}.example.com.html"
        yield "namespace", f"{top}/namespaces/{namespace}.html"
        yield "coverage", f"{top}/coverage.html"
        yield "changes", f"{top}/changes.html"
        yield "owners", f"{top}/owners.html"
        yield "runs", f"/clusters/{cluster}/runs"
        yield "compare", f"/clusters/{cluster}/compare"
        yield "policies everywhere", "/policies"
        yield "policy everywhere", f"/policies/ValidatingAdmissionPolicy/config-{dice.randrange(20):02}.example.com"
        yield "search", f"/search?q={dice.choice(('bill', 'config-0', 'team-1', 'p-00', 'payments+label'))}"
        yield "api clusters", "/api/v1/clusters"
        yield "api scans", f"{api}/scans?limit=50"
        yield "api findings", f"{api}/findings?limit=100&severity={severity}{query}"
        yield "api problems", f"{api}/problems?limit=100&namespace={namespace}{query}"
        yield "api policies", f"{api}/policies?limit=100{query}"
        yield "api coverage", f"{api}/coverage?{query.lstrip('&')}"
        yield "api population", f"{api}/population?limit=100{query}"
        yield "api trend", f"{api}/trend"

    _last_list = b""

    async def get(self, kind: str, path: str) -> None:
        """Request a path, and keep the seconds until the last byte."""
        reader, writer = self._streams
        started = time.perf_counter()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.failed.append(f"closed {path}")
            self._streams = await asyncio.open_connection(self._host, self._port)
            return
        body = await _body(reader, head)
        earlier = "/at/" in path or "at=2" in path
        self.seconds[f"{kind}{AT_A_DATE}" if earlier else kind].append(time.perf_counter() - started)
        status = int(head.split(b" ", 2)[1])
        if status != 200:
            self.failed.append(f"{status} {path}")
        if kind.startswith("findings"):
            self._last_list = body


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """The body of an answer, with its length in the head or in pieces with lengths of their own."""
    if length := re.search(rb"(?i)content-length: (\d+)", head):
        return await reader.readexactly(int(length[1]))
    pieces: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readexactly(2)
    return b"".join(pieces)


async def _read(
    host: str, port: int, clusters: list[str], dates: list[str], earlier: float, readers: int, seconds: float
) -> None:
    several = [Reader(host, port, clusters, dates, earlier, seed) for seed in range(readers)]
    until = time.monotonic() + seconds
    await asyncio.gather(*(each.read(until) for each in several))
    together: dict[str, list[float]] = defaultdict(list)
    for each in several:
        for kind, own in each.seconds.items():
            together[kind] += own
    failed = [line for each in several for line in each.failed]
    sys.stdout.buffer.write(orjson.dumps({"seconds": together, "failed": failed}) + b"\n")


def main() -> None:
    """Read as standard input asks: host, port, clusters, dates, share of earlier dates, readers, seconds."""
    asked = orjson.loads(sys.stdin.buffer.read())
    asyncio.run(_read(**asked))


if __name__ == "__main__":
    main()
