"""The inputs of random expressions: objects with every kind of JSON value, and sets of composed variables."""

from __future__ import annotations

import random
from typing import Any

SPEC: dict[str, Any] = {
    "int": 3,
    "neg": -2,
    "zero": 0,
    "big": 9223372036854775807,
    "dbl": 1.5,
    "whole": 2.0,
    "huge": 1e300,
    "str": "abc",
    "empty": "",
    "uni": "héllo😀",
    "yes": True,
    "no": False,
    "nul": None,
    "ints": [3, 1, 2],
    "dbls": [1.5, -0.5, 2.0],
    "strs": ["b", "a", "abc"],
    "bools": [True, False],
    "mixed": [1, "a", None, 2.5, True, [1], {"a": 1}],
    "none": [],
    "objs": [{"name": "a", "n": 1}, {"name": "b", "n": 2.5}, {"name": "c"}],
    "lists": [[1, 2], [], [3, [4]]],
    "map": {"a": 1},
    "one": {"k": "v"},
    "labels": {"app": "web", "tier": "front", "x/y": "z"},
    "nested": {"a": {"b": {"c": 1}, "l": [1, {"d": None}]}},
    "emptymap": {},
    "ip": "10.0.0.1",
    "ip6": "2001:db8::1",
    "cidr": "10.0.0.0/8",
    "url": "https://user@example.com:8443/a%20b?x=1&x=2#f",
    "quantity": "1500m",
    "version": "1.2.3-rc.1+b",
    "time": "2024-02-29T12:34:56.789Z",
    "span": "1h30m",
    "pattern": "^[a-c]+$",
    "image": "registry.example.com:5000/team/web:1.2@sha256:abc",
}
KINDS: dict[str, tuple[str, ...]] = {
    "int": ("int", "neg", "zero", "big"),
    "double": ("dbl", "whole", "huge"),
    "string": ("str", "empty", "uni", "image", "pattern"),
    "bool": ("yes", "no"),
    "null": ("nul",),
    "list_int": ("ints", "none"),
    "list_double": ("dbls",),
    "list_string": ("strs",),
    "list_bool": ("bools",),
    "list_any": ("mixed", "objs", "lists"),
    "map": ("map", "one", "labels", "nested", "emptymap"),
    "ip_text": ("ip", "ip6"),
    "cidr_text": ("cidr",),
    "url_text": ("url",),
    "quantity_text": ("quantity",),
    "semver_text": ("version",),
    "timestamp_text": ("time",),
    "duration_text": ("span",),
}
"""The fields by the type of their usual values."""

NAMESPACE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": "team-1",
        "labels": {"team": "team-1", "env": "prod"},
        "creationTimestamp": "2024-01-01T00:00:00Z",
    },
    "spec": {"finalizers": ["kubernetes"]},
    "status": {"phase": "Active"},
}
ATTRIBUTES: dict[str, Any] = {
    "operation": "CREATE",
    "name": "web",
    "namespace": "team-1",
    "kind": {"group": "apps", "version": "v1", "kind": "Thing"},
    "resource": {"group": "apps", "version": "v1", "resource": "things"},
    "dryRun": True,
    "user": {"username": "bob", "uid": "u-1", "groups": ["dev", "system:authenticated"]},
}
VARIABLES: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    (("n", "object.spec.int"), ("total", "size(object.spec.strs) + 1"), ("names", "object.spec.strs.map(s, s + '!')")),
    (
        ("bad", "object.spec.missing"),
        ("pairs", "{'a': 1, 'b': 2}"),
        ("again", "variables.bad == null"),
        ("broken", "1 + 'a'"),
        ("when", "timestamp('2024-01-01T00:00:00Z')"),
        ("maybe", "object.spec.?int"),
    ),
)


def objects(source: random.Random, number: int) -> list[dict[str, Any] | None]:
    """Return the usual object, null, and objects whose fields are missing, null or of other types."""
    return [_object(SPEC), None, *(_object(_disturbed(source)) for _ in range(number - 2))]


def _object(spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "team-1", "labels": {"app": "web"}}
    return {"apiVersion": "apps/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def _disturbed(source: random.Random) -> dict[str, Any]:
    spec = {}
    for name, value in SPEC.items():
        chance = source.random()
        if chance < 0.6:
            spec[name] = value
        elif chance < 0.75:
            spec[name] = source.choice(list(SPEC.values()))
        elif chance < 0.85:
            spec[name] = None
    return spec
