"""Write what the chart has of other files.

The table of its README comes from the comments of `values.yaml`, `files/defaults.yaml` from its defaults, the schema of `config` from
the flags, and `files/time-zones.txt` from the package tzdata.

`make docs` and `python -m scripts.generate_chart` run it. A comment that begins with `# --` describes the key below it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import yaml
from yaml.nodes import MappingNode, Node

from scanner.cli.commands.catalog import list_settings
from scanner.config.schema import make_schema
from scanner.model.json import JsonObject, as_list, as_object

CHART = Path(__file__).parents[1] / "deploy" / "chart"
PAGE = CHART / "README.md"
VALUES = CHART / "values.yaml"
DEFAULTS = CHART / "files" / "defaults.yaml"
SCHEMA = CHART / "values.schema.json"
TIME_ZONES = CHART / "files" / "time-zones.txt"
_BEGIN = "<!-- The rest of this page is generated from values.yaml: make docs -->\n"
_MARK = re.compile(r"\s*# -- (.*)")
_MORE = re.compile(r"\s*# (.*)")


class Value(NamedTuple):
    """A key of values.yaml with its path, such as `image.tag`, its default as JSON, and its description, or an empty one."""

    key: str
    default: str
    description: str


def page() -> str:
    """Return the page: its text as it is, and the table anew."""
    text, _, _ = PAGE.read_text().partition(_BEGIN)
    rows = [f"| `{value.key}` | `{value.default}` | {value.description} |" for value in values()]
    return "\n".join([text + _BEGIN, "| key | default | description |", "|---|---|---|", *rows]) + "\n"


def defaults() -> str:
    """Return the defaults by the paths of their keys, which the templates read in place of values.yaml.

    A map with a description is one value: the templates add no key to such a map of a user.
    """
    lines = [f"{value.key}: {value.default}" for value in values()]
    return "\n".join(["# Generated from values.yaml: make docs", *lines]) + "\n"


def schema() -> str:
    """Return the schema of the values: its text as it is, and the key `config` anew, as the schema of the configuration file."""
    document = json.loads(SCHEMA.read_text())
    whole = make_schema(list_settings())
    document["properties"]["config"] = _with_null(
        {key: value for key, value in whole.items() if not key.startswith("$")}
    )
    return json.dumps(document, indent=2) + "\n"


def _with_null(schema: JsonObject) -> JsonObject:
    """The schema of an object whose keys may be null, with which a user takes a default away."""
    keys = {key: _or_null(as_object(value)) for key, value in as_object(schema["properties"]).items()}
    return {**schema, "properties": keys}


def _or_null(schema: JsonObject) -> JsonObject:
    if "properties" in schema:
        schema = _with_null(schema)
    if "enum" in schema:
        return {**schema, "enum": [*as_list(schema["enum"]), None]}
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {**schema, "oneOf": [*as_list(schema["oneOf"]), {"type": "null"}]}


def time_zones() -> str:
    """Return the names of the time zones, each on a line."""
    return resources.files("tzdata").joinpath("zones").read_text()


def values() -> list[Value]:
    """Every described key of values.yaml, and every key without description that has no other keys, in their order."""
    text = VALUES.read_text()
    return list(_values(yaml.compose(text, yaml.SafeLoader), "", text.splitlines()))


def _values(node: Node | None, path: str, lines: list[str]) -> Iterator[Value]:
    if not isinstance(node, MappingNode):
        return
    for key, value in node.value:
        name = f"{path}{key.value}"
        description = _description(lines[: key.start_mark.line])
        if description or not (isinstance(value, MappingNode) and value.value):
            yield Value(name, _default(value), description)
        else:
            yield from _values(value, f"{name}.", lines)


def _description(above: list[str]) -> str:
    """The comment that ends with these lines, as one line; empty if it does not begin with the mark."""
    later: list[str] = []
    for line in reversed(above):
        if first := _MARK.fullmatch(line):
            return " ".join([first[1], *reversed(later)])
        if not (more := _MORE.fullmatch(line)):
            break
        later.append(more[1])
    return ""


def _default(node: Node) -> str:
    loader = yaml.SafeLoader("")
    return json.dumps(loader.construct_document(node))


if __name__ == "__main__":
    PAGE.write_text(page())
    DEFAULTS.write_text(defaults())
    SCHEMA.write_text(schema())
    TIME_ZONES.write_text(time_zones())
