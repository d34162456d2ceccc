"""The shortest way to ask an API server something: one request, the answer as it came.

The tests compare what Assay says with what the server says, so this client shares nothing with the scanner's own.
Warnings follow RFC 9110 quoting as the server writes it (k8s.io/apimachinery/pkg/util/net, NewWarningHeader): UTF-8 in
the header, a backslash before quotes and backslashes, texts with control characters left out by the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import orjson
import urllib3

from scanner.model.json import Json, JsonObject

WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class Answer(NamedTuple):
    """A response of the server: HTTP status, headers, and the decoded body (None when it is not JSON)."""

    status: int
    headers: urllib3.HTTPHeaderDict
    body: Json

    def warnings(self) -> list[str]:
        """The warning texts, in the order in which the server wrote them."""
        lines = (line.encode("latin-1").decode() for line in self.headers.getlist("Warning"))
        return [re.sub(r"\\(.)", r"\1", text) for line in lines for text in WARNING.findall(line)]


@dataclass(frozen=True, slots=True)
class Client:
    """Requests to one API server, by default as the first of its users."""

    url: str
    token: str
    pool: urllib3.PoolManager

    @classmethod
    def trusting(cls, ca: Path, *, url: str, token: str) -> Client:
        """A client that accepts the certificates which the file `ca` vouches for."""
        return cls(url=url, token=token, pool=urllib3.PoolManager(ca_certs=str(ca), retries=False, timeout=30.0))

    def request(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        params: Mapping[str, str] | None = None,
        *,
        token: str | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request; a refusal is an answer like any other, only a broken connection raises."""
        reply = self.pool.request(
            method,
            f"{self.url}{path}?{urlencode(params or {})}",
            body=None if body is None else orjson.dumps(body),
            headers={
                "Authorization": f"Bearer {token or self.token}",
                "Accept": "application/json",
                "Content-Type": content_type,
                **(headers or {}),
            },
        )
        return Answer(reply.status, reply.headers, _decoded(reply))


def _decoded(reply: urllib3.BaseHTTPResponse) -> Json:
    if not reply.headers.get("Content-Type", "").startswith("application/json"):
        return None
    answer: Json = orjson.loads(reply.data)
    return answer
