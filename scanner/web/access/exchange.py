"""Requests to the provider and to the address of a proxy's keys: few, short, small, and without redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar
from urllib.request import getproxies, proxy_bypass

import httpx2
import orjson

from scanner.model.json import Json
from scanner.model.urls import remove_password
from scanner.web.access.refused import ProviderUnavailable

TIMEOUT: Final = 10.0
"""Seconds for a whole request."""
_LARGEST: Final = 1 << 20
_AS_IT_IS: Final = "identity"
AnswerT = TypeVar("AnswerT")


class LimitedTransport(httpx2.AsyncBaseTransport):
    """Answers of at most a MiB within some seconds, uncompressed, because few bytes can become many.

    All faults are an httpx2.HTTPError.
    """

    def __init__(self, seconds: float = TIMEOUT) -> None:
        self._seconds = seconds
        self._proxy = ""
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and read the whole answer."""
        request.headers["Accept-Encoding"] = _AS_IT_IS
        try:
            async with asyncio.timeout(self._seconds):
                answer = await (await self._choose_transport(_proxy_for(request))).handle_async_request(request)
                try:
                    body = await _body(answer)
                finally:
                    await answer.aclose()
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no whole answer in {self._seconds:g} seconds") from error
        return httpx2.Response(answer.status_code, headers=answer.headers, content=body, request=request)

    async def _choose_transport(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        """The transport by a proxy, or without one."""
        if proxy != self._proxy:
            await self._inner.aclose()
            self._proxy, self._inner = proxy, httpx2.AsyncHTTPTransport(proxy=proxy or None)
        return self._inner

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _proxy_for(request: httpx2.Request) -> str:
    """The proxy that the environment names for a request; a client with a transport of its own does not read it."""
    proxies = getproxies()
    return "" if proxy_bypass(request.url.host) else proxies.get(request.url.scheme) or proxies.get("all", "")


async def _body(answer: httpx2.Response) -> bytes:
    if answer.headers.get("Content-Encoding", _AS_IT_IS) != _AS_IT_IS:
        raise httpx2.DecodingError("the answer is compressed")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > _LARGEST:
            raise httpx2.DecodingError(f"the answer has more than {_LARGEST >> 20} MiB")
    return bytes(body)


async def document_at(url: str, *, token: str = "") -> Json:
    """The JSON document at a URL; `token` is sent as a bearer token. Raises ProviderUnavailable."""
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    try:
        async with httpx2.AsyncClient(transport=LimitedTransport(), timeout=TIMEOUT, follow_redirects=False) as client:
            answer = await client.get(url, headers=headers)
            answer.raise_for_status()
            document: Json = orjson.loads(answer.content)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ProviderUnavailable(f"{remove_password(url)} does not answer as it must: {_reason(error)}") from error
    return document


def _reason(error: Exception) -> str:
    """The reason of a failure in our own words: a message of the client may quote what the server or a proxy has sent."""
    match error:
        case httpx2.HTTPStatusError():
            return f"status {error.response.status_code}"
        case httpx2.ReadTimeout() | httpx2.DecodingError() | httpx2.ConnectError():
            return f"{type(error).__name__}: {error}"
        case _:
            return type(error).__name__


class Shared(Generic[AnswerT]):
    """One question for all that ask it at the same time: each gets its answer, or its error."""

    def __init__(self, ask: Callable[[], Awaitable[AnswerT]]) -> None:
        self._ask = ask
        self._asked: asyncio.Future[AnswerT] | None = None

    async def answer(self) -> AnswerT:
        """The answer of the call that runs now. Without one, a new call begins."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self._ask())
        # A client that goes away ends its own wait, not the question of the others.
        return await asyncio.shield(self._asked)
