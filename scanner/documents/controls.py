"""Reads mappings of controls to policies and checks: documents of `kind: ControlMapping`, one for each framework."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from scanner.documents.files import read
from scanner.documents.nodes import Node, Position, shorten_key
from scanner.errors import UsageError
from scanner.model.nearest import did_you_mean
from scanner.policies.pod_security.standards import STANDARDS, Level
from scanner.posture.control_checks import (
    CheckSelector,
    CheckSelectorKind,
    Control,
    Framework,
    PolicySelector,
    SelectorKind,
)

API_VERSION: Final = "assay.dev/v1alpha1"
KIND: Final = "ControlMapping"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_LONGEST_ID: Final = 63
_LONGEST_TITLE: Final = 300
_LONGEST_EXPRESSION: Final = 10_000
SHIPPED: Final = Path(__file__).parent / "mappings"
"""The mappings that are part of Assay: a file for each framework, which has its name."""
_CHECKS: Final = {each.id: each for each in STANDARDS}
_LEVELS: Final = (Level.BASELINE, Level.RESTRICTED)


def read_frameworks(paths: Iterable[Path], *, languages: Collection[str]) -> tuple[Framework, ...]:
    """The frameworks of some files and folders, in their order. `languages` are those that a selector may name.

    Raises UsageError for a path that cannot be read or has no document, BadDocument for an error in a file, and for a framework
    that two documents describe.
    """
    places: dict[str, Position] = {}
    frameworks: list[Framework] = []
    for path in paths:
        before = len(frameworks)
        for node in read(find_mapping(path)):
            framework = read_framework(node, languages=languages)
            if (earlier := places.setdefault(framework.name, node.place)) is not node.place:
                name_node = node.entries()["metadata"].entries()["name"]
                name_node.fail(f"{framework.name} is described in {earlier} already: join both documents")
            frameworks.append(framework)
        if len(frameworks) == before:
            raise UsageError(f"--controls {path} has no document: check the path. Files end in .yaml, .yml or .json")
    return tuple(frameworks)


def find_mapping(path: Path) -> Path:
    """The path of a mapping: a name of a shipped one stands for its file, unless the working directory has something of this name.

    Raises UsageError for a name like that of a shipped one.
    """
    shipped, name = list_shipped(), str(path)
    if os.path.lexists(path) or name in shipped:
        return path if os.path.lexists(path) else shipped[name]
    if suggestion := did_you_mean(name, shipped):
        raise UsageError(f"there is no mapping {name}, and no file or folder of this name.{suggestion}")
    return path


def list_shipped() -> Mapping[str, Path]:
    """The mappings that are part of Assay, by name."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def read_framework(node: Node, *, languages: Collection[str]) -> Framework:
    """The framework of a document. Raises BadDocument."""
    fields = node.fields(("apiVersion", "kind", "metadata", "spec"))
    _expect(_get_field(node, fields, "apiVersion"), API_VERSION)
    _expect(_get_field(node, fields, "kind"), KIND)
    metadata = _get_field(node, fields, "metadata")
    name = _get_field(metadata, metadata.fields(("name",)), "name")
    spec = _get_field(node, fields, "spec")
    spec_fields = spec.fields(("title", "version", "controls"))
    title = _get_field(spec, spec_fields, "title")
    return Framework(
        name=_read_framework_name(name),
        title=_read_line(title, _LONGEST_TITLE),
        version=_read_line(spec_fields["version"], _LONGEST_ID) if "version" in spec_fields else "",
        controls=tuple(_read_controls(_get_field(spec, spec_fields, "controls"), languages)),
    )


def _read_controls(node: Node, languages: Collection[str]) -> Iterator[Control]:
    """The controls, of which no two have one id."""
    places: dict[str, Position] = {}
    if not node.items():
        node.fail("must have at least one control")
    for item in node.items():
        fields = item.fields(("id", "title", "policies", "checks", "cannotShow", "example"))
        own_id = _get_field(item, fields, "id")
        number = _read_line(own_id, _LONGEST_ID)
        if number in places:
            own_id.fail(f"{shorten_key(number)} is the id of the control at {places[number]} already")
        places[number] = own_id.place
        yield Control(
            number,
            _read_line(_get_field(item, fields, "title"), _LONGEST_TITLE),
            tuple(_read_selector(policy, languages, optional=True) for policy in _list_items(fields, "policies")),
            tuple(_read_check(check, languages) for check in _list_items(fields, "checks")),
            _read_line(fields["cannotShow"], _LONGEST_TITLE) if "cannotShow" in fields else "",
            _read_line(fields["example"], _LONGEST_ID) if "example" in fields else "",
        )


def _list_items(fields: Mapping[str, Node], name: str) -> list[Node]:
    return fields[name].items() if name in fields else []


def _read_selector(node: Node, languages: Collection[str], *, optional: bool) -> PolicySelector:
    """A selector of policies; `optional` if it may have that field."""
    kinds = [kind.value for kind in SelectorKind]
    fields = node.fields((*kinds, "value", "language", *(["optional"] if optional else [])))
    selector_kinds = [kind for kind in SelectorKind if kind.value in fields]
    if len(selector_kinds) != 1:
        node.fail(f"must have exactly one of {', '.join(kinds)}")
    [kind] = selector_kinds
    if "value" in fields and kind not in (SelectorKind.LABEL, SelectorKind.ANNOTATION):
        fields["value"].fail("belongs to a label or an annotation")
    return PolicySelector(
        by=kind,
        text=_read_line(fields[kind.value], _LONGEST_TITLE),
        value=fields["value"].any_string() if "value" in fields else None,
        language=_read_language(fields["language"], languages) if "language" in fields else "",
        optional="optional" in fields and fields["optional"].boolean(),
    )


def _read_check(node: Node, languages: Collection[str]) -> CheckSelector:
    """A selector of checks: by id within policies, by the name of a Pod Security check, or by expression."""
    kinds = [kind.value for kind in CheckSelectorKind]
    fields = node.fields((*kinds, "level", "policy", "optional", "stricter"))
    chosen = [kind for kind in CheckSelectorKind if kind.value in fields]
    if len(chosen) != 1:
        node.fail(f"must have exactly one of {', '.join(kinds)}")
    [kind] = chosen
    text, level = fields[kind.value], fields.get("level")
    if kind is CheckSelectorKind.ID and "policy" not in fields:
        node.fail("the field policy is missing: an id names a check of a policy")
    if kind is CheckSelectorKind.POD_SECURITY and "policy" in fields:
        fields["policy"].fail("belongs to an id or an expression: Pod Security is one policy")
    if level is not None and kind is not CheckSelectorKind.POD_SECURITY:
        level.fail("belongs to a Pod Security check")
    names = _read_pod_security(text, level) if kind is CheckSelectorKind.POD_SECURITY else ()
    return CheckSelector(
        by=kind,
        text=names[0] if names else _read_expression(text),
        policy=_read_selector(fields["policy"], languages, optional=False) if "policy" in fields else None,
        names=names,
        replaced_by=tuple(each.id for each in STANDARDS if each.overrides in names and each.id not in names),
        optional="optional" in fields and fields["optional"].boolean(),
        stricter="stricter" in fields and fields["stricter"].boolean(),
        level=_CHECKS[names[0]].level.value if names else "",
    )


def _read_pod_security(node: Node, level: Node | None) -> tuple[str, ...]:
    """The Pod Security checks that a name stands for: a check, or with a level the form of it that the level demands."""
    text = node.string()
    if level is None:
        if text not in _CHECKS:
            node.fail(f"must be one of {', '.join(_CHECKS)}.{did_you_mean(text, _CHECKS)}")
        return (text,)
    wanted = level.string()
    if wanted not in _LEVELS:
        level.fail(f"must be one of {', '.join(_LEVELS)}.{did_you_mean(wanted, _LEVELS)}")
    names = {each.id.removesuffix(f"_{each.level}"): each.id for each in STANDARDS if each.level == wanted}
    # A level demands the checks of the level below it, but those that it replaces.
    if wanted == Level.RESTRICTED:
        replaced = {each.overrides for each in STANDARDS}
        kept = {each.id: each.id for each in STANDARDS if each.level is Level.BASELINE and each.id not in replaced}
        names = {**kept, **names}
    if text not in names and text not in names.values():
        level.fail(f"has no check {text}: its checks are {', '.join(names)}.{did_you_mean(text, names)}")
    return (names.get(text, text),)


def _read_expression(node: Node) -> str:
    """An expression, which may have several lines."""
    text = node.string().strip()
    if len(text) > _LONGEST_EXPRESSION:
        node.fail(f"must have at most {_LONGEST_EXPRESSION:,} characters, not {len(text):,}")
    return text


def _read_language(node: Node, languages: Collection[str]) -> str:
    text = node.string()
    if text not in languages:
        node.fail(f"must be one of {', '.join(languages)}.{did_you_mean(text, languages)}")
    return text


def _read_framework_name(node: Node) -> str:
    text = node.string()
    if not _NAME.fullmatch(text):
        node.fail(
            "must be the name of a framework: at most 63 lower-case letters, digits, '-' and '.', "
            "such as cis-kubernetes"
        )
    return text


def _read_line(node: Node, longest: int) -> str:
    """A text of one line, without control characters."""
    text = node.string().strip()
    if len(text) > longest:
        node.fail(f"must have at most {longest} characters, not {len(text)}")
    if not text.isprintable():
        node.fail("must be one line of printable characters")
    return text


def _expect(node: Node, wanted: str) -> None:
    if node.string() != wanted:
        node.fail(f"must be {wanted}")


def _get_field(node: Node, fields: Mapping[str, Node], name: str) -> Node:
    """A required field of a node."""
    if name not in fields:
        node.fail(f"the field {name} is missing")
    return fields[name]
