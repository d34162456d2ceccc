"""JSON patches: every path of an object by thirteen values, and the document itself.

One policy serves all patches with the same value: operation and path come with the requester.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from scanner.api import UserInfo
from scanner.model.json import Json, JsonObject
from tests.integration.fuzz.case import Case
from tests.integration.fuzz.manifests import binding_named, policy_named
from tests.integration.fuzz.stage import GROUPS, Stored

VALUES: Mapping[str, str] = {
    "null": "null",
    "text": "'x'",
    "zero": "0",
    "one": "1",
    "empty": "''",
    "map": "{}",
    "list": "[]",
    "false": "false",
    "float": "1.5",
    "texts": "['a', 'b']",
    "numbers": "{'n': 1}",
    "namespace": "namespaceObject",
}
"""The values as expressions; a further policy gives no value."""
REMOVED = "removed"
_SKIPPED = ("/metadata/managedFields/",)
_ABSENT_FIELDS = 6
_WITHOUT_VALUE = ("test", "add", "replace")


def _expression(value: str | None) -> str:
    last = "" if value is None else f", value: {value}"
    extra = "request.userInfo.extra['{}'][0]"
    return f"[JSONPatch{{op: {extra.format('op')}, path: {extra.format('path')}{last}}}]"


POLICIES: Mapping[str, JsonObject] = {
    name: policy_named(f"patch-{name}", (_expression(value),), user=f"patch-{name}")
    for name, value in {**VALUES, REMOVED: None}.items()
}


def manifests() -> Iterator[JsonObject]:
    """The policies and their bindings."""
    yield from POLICIES.values()
    yield from (binding_named(f"patch-{name}") for name in POLICIES)


def cases(stored: Stored, absent: Mapping[str, tuple[str, ...]], chance: Random) -> Iterator[Case]:
    """Every patch of every path of an object; `absent` names fields that it could have, by the path of their owner."""
    for path, inserts in _paths(stored.document, absent, chance):
        for name, value in VALUES.items():
            yield _case("replace" if inserts is False else "add", path, name, value)
            if inserts is None:
                yield _case("replace", path, name, value)
        if inserts is not True:
            yield _case("remove", path, REMOVED, None)
            yield _case(chance.choice(_WITHOUT_VALUE), path, REMOVED, None)
            yield _case("test", path, *chance.choice([*VALUES.items()]))
    for op in ("replace", "test", "add"):
        yield from (_case(op, "", name, value) for name, value in VALUES.items())
        yield _case(op, "", REMOVED, None)


def _case(op: str, path: str, name: str, value: str | None) -> Case:
    last = "" if value is None else f", value: {value}"
    user = UserInfo(f"patch-{name}", groups=GROUPS, extra=(("op", (op,)), ("path", (path,))))
    shown = f"[JSONPatch{{op: '{op}', path: '{path}'{last}}}]"
    return Case((POLICIES[name],), user, shown, path)


def _paths(
    document: JsonObject, absent: Mapping[str, tuple[str, ...]], chance: Random
) -> Iterator[tuple[str, bool | None]]:
    """Each path, and whether it is new (True), there (False), or an element, before which one can be inserted (None)."""
    for path, is_element, value in walked(document):
        if path.startswith(_SKIPPED):
            continue
        yield path, None if is_element else False
        if isinstance(value, list):
            yield f"{path}/-", True
        names = absent.get(path, ())
        for name in chance.sample(names, min(len(names), _ABSENT_FIELDS)):
            yield f"{path}/{name}", True


def walked(value: Json, path: str = "") -> Iterator[tuple[str, bool, Json]]:
    """Every path below a value, whether it leads to an element of a list, and what stands there."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
            yield below, False, item
            yield from walked(item, below)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield f"{path}/{at}", True, item
            yield from walked(item, f"{path}/{at}")
