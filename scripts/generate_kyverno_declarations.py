"""Writes the declarations of Kyverno's CEL environments, out of the programs that are linked with Kyverno's releases.

Run it as `python -m scripts.generate_kyverno_declarations`; the programs are built first, which needs Go and some minutes for each
release. A row without `since` and `before` holds in every release, one without `policies` for policies in a namespace as well as
for cluster-wide ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from scanner.model.json import Json, JsonObject, as_list, as_object

RELEASES = ("1.16", "1.17", "1.18", "1.19")
SCOPES = ("cluster", "namespaced")
_ROOT = Path(__file__).parent.parent
TARGET = _ROOT / "scanner" / "policies" / "kyverno" / "libraries" / "declarations.json"
_SUFFIXES = ("_pascal", "_camel", "_prefixed", "_non_prefixed")
"""What some releases append to the id of an overload, by the form of the function's name."""

Place = tuple[str, str]
"""A release, and the scope of its policies."""
Row = tuple[tuple[str, str], ...]
"""The columns of a declaration as JSON, by their names."""


def declared_by(program: Path | str) -> JsonObject:
    """Return the declarations that a program prints."""
    printed = subprocess.run([program, "declarations"], stdout=subprocess.PIPE, check=True)  # noqa: S603 - a program of this repository
    return as_object(json.loads(printed.stdout))


def merged(declared: Iterable[JsonObject]) -> JsonObject:
    """Return the rows of all environments of all releases; a row has the environments in which it holds."""
    environments = {
        (str(printed["release"]), scope): as_object(printed[scope]) for printed in declared for scope in SCOPES
    }
    return {
        "releases": list(RELEASES),
        **{part: [*_rows(environments, part)] for part in ("variables", "types", "functions", "macros")},
    }


def _rows(environments: dict[Place, JsonObject], part: str) -> Iterator[JsonObject]:
    places: dict[Row, set[Place]] = {}
    for place, environment in environments.items():
        for row in _PARTS[part](environment[part]):
            places.setdefault(row, set()).add(place)
    # Of the same name in their first order: overloads are tried as they are declared.
    for row, held in sorted(places.items(), key=lambda item: item[0][0]):
        for limits in _limits(held):
            yield {**{name: json.loads(text) for name, text in row}, **limits}


def _row(**columns: Json) -> Row:
    return tuple((name, json.dumps(value)) for name, value in columns.items())


def _variables(declared: Json) -> Iterator[Row]:
    for name, type_ in sorted(as_object(declared).items()):
        yield _row(name=name, type=type_)


def _types(declared: Json) -> Iterator[Row]:
    for name, fields in sorted(as_object(declared).items()):
        for field, type_ in sorted(as_object(fields).items()):
            yield _row(name=name, field=field, type=type_)


def _functions(declared: Json) -> Iterator[Row]:
    for name, overloads in sorted(as_object(declared).items()):
        for overload in map(as_object, as_list(overloads)):
            columns = {key: overload[key] for key in ("member", "arguments", "result")}
            yield _row(name=name, id=_plain_id(str(overload["id"])), **columns)


def _plain_id(id_: str) -> str:
    return next((id_.removesuffix(suffix) for suffix in reversed(_SUFFIXES) if id_.endswith(suffix)), id_)


def _macros(declared: Json) -> Iterator[Row]:
    for key in sorted(map(str, as_list(declared))):
        name, size, receiver = key.split(":")
        yield _row(name=name, arguments=size, member=receiver == "true")


_PARTS = {"variables": _variables, "types": _types, "functions": _functions, "macros": _macros}


def _limits(held: set[Place]) -> Iterator[JsonObject]:
    """Yield the releases and scopes of a row; several if it holds in other releases for policies in a namespace."""
    by_scope = {scope: [release for release in RELEASES if (release, scope) in held] for scope in SCOPES}
    cluster, namespaced = by_scope.values()
    if cluster == namespaced:
        yield _span(cluster)
        return
    for scope, releases in by_scope.items():
        if releases:
            yield {"policies": scope, **_span(releases)}


def _span(releases: list[str]) -> JsonObject:
    positions = [RELEASES.index(release) for release in releases]
    if any(after - before != 1 for before, after in pairwise(positions)):
        message = f"a declaration holds in {releases}, but not in all releases between them"
        raise ValueError(message)
    since = {} if positions[0] == 0 else {"since": RELEASES[positions[0]]}
    return since if positions[-1] == len(RELEASES) - 1 else {**since, "before": RELEASES[positions[-1] + 1]}


def of_release(printed: JsonObject) -> dict[str, list[Row]]:
    """Return the rows that a program prints, by their part and scope."""
    return {
        f"{part}, {scope}": sorted(rows(as_object(printed[scope])[part]))
        for part, rows in _PARTS.items()
        for scope in SCOPES
    }


def rows_of(written: JsonObject, release: str) -> dict[str, list[Row]]:
    """Return the rows of the data that hold in a release, by their part and scope."""
    limits = ("since", "before", "policies")
    return {
        f"{part}, {scope}": sorted(
            _row(**{name: value for name, value in row.items() if name not in limits})
            for row in map(as_object, as_list(written[part]))
            if row.get("policies", scope) == scope and _is_within(row, release)
        )
        for part in _PARTS
        for scope in SCOPES
    }


def _is_within(row: JsonObject, release: str) -> bool:
    since, before = (row.get(name) for name in ("since", "before"))
    position = RELEASES.index(release)
    return (since is None or RELEASES.index(str(since)) <= position) and (
        before is None or position < RELEASES.index(str(before))
    )


def text_of(declarations: JsonObject) -> str:
    """Return the declarations as JSON, with a line for each row."""
    parts = []
    for name, value in declarations.items():
        if name == "releases":
            parts.append(f' "{name}": {json.dumps(value)}')
            continue
        rows = ",\n".join(f"  {json.dumps(row)}" for row in as_list(value))
        parts.append(f' "{name}": [\n{rows}\n ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> int:
    """Write the data file and print the number of its rows."""
    declared = []
    for release in RELEASES:
        command = [str(_ROOT / ".ci" / "kyverno-oracle"), release]
        built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - fixed words
        declared.append(declared_by(Path(built.stdout.strip())))
    declarations = merged(declared)
    TARGET.write_text(text_of(declarations), encoding="utf-8")
    rows = sum(len(as_list(value)) for name, value in declarations.items() if name != "releases")
    print(f"{rows} declarations written to {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
