"""Writes the Go types behind the API's definitions, as `scanner/mutate/gotypes.py` reads them.

Run it as `python -m scripts.generate_go_types`, with Go at hand; the types are those of Kubernetes 1.36, which `gotypes/go.mod` pins.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

SOURCE = Path(__file__).parent / "gotypes"
TARGET = Path(__file__).parent.parent / "scanner" / "cluster" / "gotypes.json"
_DEFINITION = re.compile(r"([#!])[\w.-]*?(\w+)$")


def compact(structure: Mapping[str, Iterable[Mapping[str, str]]]) -> dict[str, str]:
    """Return the fields of a struct in its order, as codes."""
    return {field["name"]: _code(field) for field in structure["fields"] or ()}


def _code(field: Mapping[str, str]) -> str:
    """Return the code of a field's type; a struct is written in any case, even if its tag omits empty values."""
    code = _DEFINITION.sub(lambda match: "#" if match[1] == "#" else f"!{match[2]}", field["type"])
    is_struct = code[0] in "#!" and "omitzero" not in field["written"]
    always = " always" if field["written"] == "always" or is_struct else ""
    embedded = f" in {field['embedded']}" if field.get("embedded") else ""
    return f"{code}{always}{embedded}"


def main() -> int:
    """Write the table and print how many types it has."""
    made = subprocess.run(["go", "run", "."], cwd=SOURCE, check=True, capture_output=True).stdout  # noqa: S607 - the Go of this machine
    table = {structure["definition"]: compact(structure) for structure in json.loads(made)}
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in table.items())
    TARGET.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    print(f"{len(table)} types written to {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
