"""Writes the table of kinds that a Kubernetes 1.36 server has by itself, out of a recorded discovery answer.

Run it as `python scripts/generate_builtin_kinds.py`; the recording is found through ASSAY_RECORDINGS. Groups of the
recording that custom resource definitions added are left out.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

from scanner.cluster.live.discovery import read_aggregated_kinds
from scanner.model.json import Json, JsonObject, as_list, as_object, dig

VERSION = "v1.36"
TARGET = Path(__file__).parent.parent / "scanner" / "cluster" / "kinds.json"
CUSTOM_SUFFIX = ".example.com"


def table(recording: JsonObject) -> JsonObject:
    """Return the table: its Kubernetes version, and a row of five columns for each kind."""
    answers = [as_object(dig(answer, "body")) for answer in as_list(recording["aggregated"])]
    kinds = [kind for answer in answers for kind in read_aggregated_kinds(answer).kinds]
    rows: list[Json] = [
        [kind.group, kind.version, kind.kind, kind.plural, kind.namespaced]
        for kind in kinds
        if not kind.group.endswith(CUSTOM_SUFFIX)
    ]
    return {"kubernetes": VERSION, "columns": ["group", "version", "kind", "plural", "namespaced"], "kinds": rows}


def main() -> int:
    """Write the table and print how many kinds it has."""
    folder = Path(os.environ.get("ASSAY_RECORDINGS", "../shared/recordings"))
    source = folder / "discovery.json.gz"
    if not source.is_file():
        print(f"no recording at {source}: set ASSAY_RECORDINGS to the folder of recordings", file=sys.stderr)
        return 2
    made = table(json.loads(gzip.decompress(source.read_bytes())))
    rows = ",\n    ".join(json.dumps(row) for row in as_list(made["kinds"]))
    head = f'  "kubernetes": {json.dumps(made["kubernetes"])},\n  "columns": {json.dumps(made["columns"])},\n'
    TARGET.write_text(f'{{\n{head}  "kinds": [\n    {rows}\n  ]\n}}\n', encoding="utf-8")
    print(f"{len(as_list(made['kinds']))} kinds written to {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
