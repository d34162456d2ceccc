"""Requests to the provider and to the address of a proxy's keys: few, short, and without redirects."""

from __future__ import annotations

from typing import Final

import httpx2

from scanner.model.json import Json
from scanner.web.access.refused import ProviderUnavailable

TIMEOUT: Final = 10.0
"""Seconds for each step of a request."""


async def document_at(url: str, *, token: str = "") -> Json:
    """The JSON document at a URL; `token` is sent as a bearer token. Raises ProviderUnavailable."""
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    try:
        async with httpx2.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client:
            answer = await client.get(url, headers=headers)
            answer.raise_for_status()
            document: Json = answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ProviderUnavailable(f"{url} does not answer as it must: {type(error).__name__}: {error}") from error
    return document
