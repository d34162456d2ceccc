"""Records what Go's decoders make of changed objects: `tests/mutate/go_answers.json`, out of `go_changes.json` beside it.

Run it as `python -m scripts.record_go_answers`, with Go at hand. Each change is decoded by the strict JSON decoder, as after a JSON
patch, and where the kind's schema lets it pass from unstructured, as after an apply configuration.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scanner.cluster.schemas import builtin_schemas
from scanner.mutate import typed
from scanner.mutate.native import PatchFault
from scanner.mutate.operations import Operation, apply

SOURCE = Path(__file__).parent / "gotypes"
FOLDER = Path(__file__).parent.parent / "tests" / "mutate"
_IDENTITY = ("/apiVersion", "/kind")


def changed(document: Any, path: str, value: Any) -> Any:
    """The object with a value at a path, whether or not there was one."""
    try:
        return apply([Operation("replace", path, value)], document)
    except PatchFault:
        return apply([Operation("add", path, value)], document)


def at(document: Any, path: str) -> list[Any]:
    """What stands at a path, in a list; an empty list for nothing."""
    for step in path.split("/")[1:]:
        if isinstance(document, list):
            document = document[-1 if step == "-" else int(step)]
        elif step in document:
            document = document[step]
        else:
            return []
    return [document]


def asked(subjects: dict[str, Any], objects: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each change and each way in which it may come, with the changed object."""
    for kind, subject in subjects.items():
        group, _, version = subject["apiVersion"].rpartition("/")
        schema = builtin_schemas()[group, version, kind]
        for path, value in subject["changes"]:
            document = changed(objects[kind], path, value)
            for way in ("json", "merge"):
                if way == "json" or (path not in _IDENTITY and not typed.faults(schema, document)):
                    yield {"kind": kind, "way": way, "path": path, "value": value, "document": document}


def answers(given: list[dict[str, Any]]) -> list[Any]:
    """What Go says, in their order."""
    lines = "".join(f"{json.dumps(one, sort_keys=True)}\n" for one in given)
    command = ["go", "run", ".", "decode"]
    said = subprocess.run(command, cwd=SOURCE, input=lines.encode(), check=True, capture_output=True)  # noqa: S603 - a fixed command
    return [json.loads(line) for line in said.stdout.splitlines()]


def main() -> int:
    """Record the answers and say how many there are."""
    subjects = json.loads((FOLDER / "go_changes.json").read_text(encoding="utf-8"))
    versions = {kind: one["apiVersion"] for kind, one in subjects.items()}
    plain = [
        {
            "version": versions[kind],
            "kind": kind,
            "document": {"apiVersion": versions[kind], "kind": kind, **one["object"]},
        }
        for kind, one in subjects.items()
    ]
    objects = {one["kind"]: said["object"] for one, said in zip(plain, answers(plain), strict=True)}
    questions = list(asked(subjects, objects))
    said = answers([{**one, "version": versions[one["kind"]]} for one in questions])
    rows = [
        {name: one[name] for name in ("kind", "way", "path", "value")}
        | ({"error": answer["error"]} if "error" in answer else {"written": at(answer["object"], one["path"])})
        for one, answer in zip(questions, said, strict=True)
    ]
    parts = [json.dumps(kind) + ": " + json.dumps(one) for kind, one in objects.items()]
    lines = ",\n".join(map(json.dumps, rows))
    text = "\n".join(['{"objects": {', ",\n".join(parts), '}, "answers": [', lines, "]}", ""])
    (FOLDER / "go_answers.json").write_text(text, encoding="utf-8")
    print(f"{len(rows)} answers written to {FOLDER / 'go_answers.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
