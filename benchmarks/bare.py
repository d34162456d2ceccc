"""The anchor: a bare client that lists and decodes, and does nothing else.

`python -m benchmarks.bare URL CA TOKEN_FILE PATH…` uses one connection and pages of 500. Documents of discovery have no items.
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import urllib3


def main(url: str, ca: str, token: str, *paths: str) -> None:
    pool = urllib3.PoolManager(ca_certs=ca, maxsize=1)
    headers = {"Authorization": f"Bearer {Path(token).read_text()}", "Accept": "application/json"}
    objects = size = 0
    for path in paths:
        more = ""
        while True:
            answer = pool.request("GET", f"{url}{path}?limit=500{more}", headers=headers)
            size += len(answer.data)
            page = orjson.loads(answer.data)
            objects += len(page.get("items", ()))
            token_of_next = page.get("metadata", {}).get("continue")
            if not token_of_next:
                break
            more = f"&continue={token_of_next}"
    print(objects, size)


if __name__ == "__main__":
    main(*sys.argv[1:])
