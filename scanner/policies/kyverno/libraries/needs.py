"""The cluster data that an expression will read, as far as its text shows: they are listed before the evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from scanner.cel.stack import run_with_room
from scanner.cel.syntax import parser
from scanner.cel.syntax.parser import InvalidSyntax
from scanner.cel.syntax.tree import Call, Identifier, Literal, Node, walk
from scanner.policies.kyverno.libraries.resources import group_version

_READS = frozenset({"Get", "get", "List", "list"})
_MAPS = frozenset({"ToGVR", "toGVR"})
ANY = "*"


class Need(Struct, frozen=True):
    """A read of the cluster: objects of a resource, named by its plural or (`kind`) by its kind, or a global context `entry`.

    `namespace` is None if all of them may be read. A `resource` of `*` is one that only the evaluation names.
    """

    group: str = ""
    version: str = ""
    resource: str = ""
    kind: str = ""
    entry: str = ""
    namespace: str | None = None


def needs(text: str, own_namespace: str = "") -> frozenset[Need]:
    """Return the reads of an expression; `own_namespace` is the only namespace that a namespaced policy reads."""
    try:
        root, issues = run_with_room(lambda: parser.parse(text))
    except InvalidSyntax:
        return frozenset()
    return frozenset() if issues else frozenset(_needs(root, own_namespace))


def _needs(root: Node, own: str) -> Iterator[Need]:
    for node in walk(root):
        match node:
            case Call(function=function, target=Identifier(name="resource"), arguments=arguments):
                yield from _read(function, tuple(map(_text, arguments)), own)
            case Call(function="Get" | "get", target=Identifier(name="globalContext"), arguments=(name, *_)):
                yield Need(entry=_text(name) or "")
            case _:
                continue


def _text(node: Node) -> str | None:
    """Return a constant text, or None if the evaluation computes it."""
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None


def _read(function: str, arguments: tuple[str | None, ...], own: str) -> Iterator[Need]:
    if function not in _READS | _MAPS:
        return
    version, name = (*arguments, None, None)[:2]
    namespace = arguments[2] if len(arguments) > 2 else None  # noqa: PLR2004
    if version is None or name is None:
        # The call of ToGVR is a need of its own, if its arguments are constants.
        yield Need(resource=ANY)
    else:
        group, short = group_version(version, "") if version.count("/") <= 1 else ("", "")
        if function in _MAPS:
            yield Need(group, short, kind=name, namespace=own or None)
        else:
            yield Need(group, short, name, namespace=own or namespace or None)
