"""Fills a real API server: every object is created through the API, and its status written as a controller writes it."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterable
from itertools import islice
from queue import Queue
from urllib.parse import urlsplit

import orjson

from benchmarks.objects import FAULT, Made, namespaces, objects
from benchmarks.policies import policies
from tests.integration.apiserver import ApiServer
from tests.integration.manifests import apply

THREADS = 6
BATCH = 50


def fill(server: ApiServer, count: int, seed: int = 1, fault: float = FAULT) -> None:
    """Store `count` objects and then the policies, so that the policies deny none of them."""
    store(server, namespaces())
    store(server, objects(count, seed, fault))
    apply(server, policies())


def store(server: ApiServer, made: Iterable[Made]) -> None:
    """Create objects through the API. Raises RuntimeError if the server refuses one."""
    batches: Queue[list[Made]] = Queue(maxsize=2 * THREADS)
    troubles: list[str] = []
    threads = [threading.Thread(target=_work, args=(server, batches, troubles)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    stream = iter(made)
    while batch := list(islice(stream, BATCH)):
        batches.put(batch)
    for _ in threads:
        batches.put([])
    for thread in threads:
        thread.join()
    if troubles:
        raise RuntimeError(f"{len(troubles)} objects were not stored, first: {troubles[0]}")


def _work(server: ApiServer, batches: Queue[list[Made]], troubles: list[str]) -> None:
    url = urlsplit(server.url)
    context = ssl.create_default_context(cafile=str(server.ca))
    connection = http.client.HTTPSConnection(str(url.hostname), url.port, context=context, timeout=60)
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    while batch := batches.get():
        for made in batch:
            try:
                stored = _sent(connection, "POST", made.path, made.body, headers)
                if made.status:
                    metadata = stored["metadata"]
                    path = f"{made.path}/{metadata['name']}/status"
                    _sent(connection, "PUT", path, {**stored, "status": made.status}, headers)
            except RuntimeError as error:
                troubles.append(str(error))
    connection.close()


def _sent(
    connection: http.client.HTTPSConnection, method: str, path: str, body: object, headers: dict[str, str]
) -> dict[str, dict[str, str]]:
    connection.request(method, path, orjson.dumps(body), headers)
    answer = connection.getresponse()
    data = answer.read()
    if answer.status not in (200, 201):
        raise RuntimeError(f"{method} {path}: {answer.status} {data[:300].decode(errors='replace')}")
    decoded: dict[str, dict[str, str]] = orjson.loads(data)
    return decoded
