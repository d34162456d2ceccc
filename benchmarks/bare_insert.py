"""The anchor of row 10: decode the pages of a folder, and insert one row of twelve columns for each object and policy.

`python -m benchmarks.bare_insert FOLDER DATABASE POLICIES` writes into a new SQLite file with one index.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

_COLUMNS = (
    "fingerprint BLOB, policy TEXT, binding TEXT, expression TEXT, api_version TEXT, kind TEXT, namespace TEXT, "
    "name TEXT, uid TEXT, resource_version TEXT, outcome TEXT, message TEXT"
)


def main(folder: str, database: str, policies: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"CREATE TABLE findings ({_COLUMNS})")
        connection.execute("CREATE INDEX findings_fingerprint ON findings (fingerprint)")
        for path in sorted(Path(folder).glob("page-*.json")):
            items = orjson.loads(path.read_bytes())["items"]
            connection.executemany(f"INSERT INTO findings VALUES ({', '.join('?' * 12)})", _rows(items, int(policies)))  # noqa: S608 -- no text of others


def _rows(items: list[dict[str, Any]], policies: int) -> Iterator[tuple[bytes | str, ...]]:
    for item in items:
        metadata = item["metadata"]
        for number in range(policies):
            name = f"policy-{number}"
            fingerprint = sha256(f"{name}/{metadata['uid']}".encode()).digest()
            yield (
                fingerprint, name, name, "false", item["apiVersion"], item["kind"], metadata["namespace"],
                metadata["name"], metadata["uid"], metadata["resourceVersion"], "violated", f"{name} denies {metadata['name']}",
            )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
